/** A real device that goes away under a training: another one takes over, protected tensors come back, memory is flat. */
import {
  DeviceLostError,
  getEngine,
  grads,
  idle,
  keep,
  protect,
  scope,
  setEngine,
  setRecovery,
  type Tensor,
  tensor,
} from '@polygrad/core';
import { afterAll, describe, expect, it } from 'vitest';
import { openDevice } from './device/device.ts';
import { engineOn, patience, testAdapter, testEngine } from './fixtures/device.ts';
import './index.ts';

const first = await testEngine();
first?.dispose();

afterAll(() => {
  setRecovery({});
  if (first !== null) getEngine().dispose();
});

/** One step of gradient descent on (w x - y)^2 with fixed numbers. */
function step(w: Tensor, losses: Tensor[]): void {
  scope(() => {
    const [x, y] = [tensor([1, 2, -1]), tensor([2, -1, 0.5])];
    const loss = (p: Tensor): Tensor => p.mul(x).sub(y).square().sum();
    losses.push(keep(loss(w)));
    w.assign(w.sub(grads(loss)(w)[0]!.mul(0.05)));
  });
}

describe.skipIf(first === null)('a training on a device that is lost', () => {
  it('goes on from the last copy on another device', async () => {
    const found = await testAdapter();
    const gpu = await openDevice(found);
    const engine = await setEngine(engineOn(gpu, found));
    setRecovery({ interval: 0, patience });
    const w = tensor([0.5, 0.5, 0.5]);
    protect([w]);
    const read: number[] = [];
    let lost = 0;
    for (let i = 0; i < 30; i++) {
      if (i === 12) gpu.destroy();
      const losses: Tensor[] = [];
      try {
        step(w, losses);
        read.push((await losses[0]!.item()) as number);
      } catch (error) {
        expect(error).toBeInstanceOf(DeviceLostError);
        lost++;
        // Without a CPU engine beside it, data has nowhere to go until another device is there.
        await idle();
      } finally {
        for (const loss of losses) loss.dispose();
      }
    }
    expect(lost).toBeGreaterThanOrEqual(1);
    expect(lost).toBeLessThanOrEqual(2);
    expect(getEngine()).not.toBe(engine);
    expect(getEngine().name).toBe('webgpu');
    // Each loss but those of steps that were done again is below the one before.
    const again = read.filter((loss, i) => i > 0 && loss >= read[i - 1]!).length;
    expect(again).toBeLessThanOrEqual(1);
    expect(read[read.length - 1]).toBeLessThan(read[11]! / 2);
    w.dispose();
    await idle();
  });
});
