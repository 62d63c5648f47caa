/** A full device and a lost one under real work: memory is trimmed, work goes elsewhere if it may, and what is protected comes back. */
import '@polygrad/backend-cpu';
import {
  DeviceLostError,
  getEngine,
  grads,
  idle,
  keep,
  OutOfMemoryError,
  protect,
  scope,
  setEngine,
  setRecovery,
  type Tensor,
  tensor,
  zeros,
} from '@polygrad/core';
import { afterEach, describe, expect, it } from 'vitest';
import type { Driver } from './addon.ts';
import { createCudaEngine, CudaEngine } from './engine.ts';
import './index.ts';
import { setUp } from './setup.ts';
import { hasDevice, patience } from './testing/device.ts';

const engines: CudaEngine[] = [];
afterEach(async () => {
  setRecovery({});
  if (getEngine().name === 'cuda') getEngine().dispose();
  await setEngine('cpu', { threads: 1 });
  for (const engine of engines.splice(0)) engine.dispose();
});

describe.skipIf(!hasDevice())('a device without room', () => {
  const quarter = 1 << 20;

  it('gives back what nobody uses before it refuses, and goes on after that', async () => {
    const engine = createCudaEngine({ memory: 4.5 * quarter });
    engines.push(engine);
    await setEngine(engine);
    // Sizes of different classes, so that none serves the next.
    for (const parts of [16, 13, 11, 9, 7]) {
      const t = tensor(new Float32Array((quarter / 64) * parts).fill(parts));
      expect((await t.data())[99]).toBe(parts);
      t.dispose();
    }
    const held = [1, 2, 3].map((i) => tensor(new Float32Array(quarter / 4).fill(i)));
    const large = zeros([quarter / 2]).add(1);
    await expect(large.data()).rejects.toThrow(OutOfMemoryError);
    held.pop()?.dispose();
    held.pop()?.dispose();
    expect((await large.data()).length).toBe(quarter / 2);
    expect((await (held[0] as Tensor).data())[5]).toBe(1);
    for (const t of [...held, large]) t.dispose();
  });

  it('leaves the work to the CPU engine where that is the policy', async () => {
    setRecovery({ outOfMemory: 'cpu' });
    const engine = createCudaEngine({ memory: 2.5 * quarter });
    engines.push(engine);
    await setEngine(engine);
    const x = tensor(new Float32Array(quarter / 4).fill(3));
    const y = tensor(new Float32Array(quarter / 4).fill(4));
    const z = x.mul(y);
    expect((await z.data())[17]).toBe(12);
    expect([x.device, z.device]).toEqual(['cuda', 'cpu']);
    expect(getEngine()).toBe(engine);
    for (const t of [x, y, z]) t.dispose();
  });
});

describe.skipIf(!hasDevice())('a device that is lost', () => {
  it('is replaced, and a training goes on from the last copy', async () => {
    const setup = setUp({});
    let gone = false;
    const lost = (): never => {
      throw Object.assign(new Error('native'), { code: 201, call: 'cuEventRecord', command: 0, log: '' });
    };
    const driver = new Proxy(setup.driver, {
      get: (target, name) => {
        if (gone && ['submit', 'upload', 'alloc', 'readSync'].includes(name as string)) return lost;
        if (gone && ['read', 'idle'].includes(name as string)) return async () => lost();
        return target[name as keyof Driver].bind(target);
      },
    });
    const engine = new CudaEngine({ ...setup, driver });
    engines.push(engine);
    await setEngine(engine);
    setRecovery({ interval: 0, patience });
    const w = tensor([0.5, 0.5, 0.5]);
    protect([w]);
    const read: number[] = [];
    let failures = 0;
    for (let i = 0; i < 20; i++) {
      if (i === 8) gone = true;
      const losses: Tensor[] = [];
      try {
        scope(() => {
          const [x, y] = [tensor([1, 2, -1]), tensor([2, -1, 0.5])];
          const loss = (p: Tensor): Tensor => p.mul(x).sub(y).square().sum();
          losses.push(keep(loss(w)));
          w.assign(w.sub((grads(loss)(w)[0] as Tensor).mul(0.05)));
        });
        read.push((await (losses[0] as Tensor).item()) as number);
      } catch (error) {
        expect(error).toBeInstanceOf(DeviceLostError);
        failures++;
        await idle();
      } finally {
        for (const loss of losses) loss.dispose();
      }
    }
    expect(failures).toBeLessThanOrEqual(2);
    expect(getEngine()).not.toBe(engine);
    expect(getEngine().name).toBe('cuda');
    expect(read.length).toBeGreaterThanOrEqual(18);
    expect(read[read.length - 1]).toBeLessThan((read[7] as number) / 2);
    w.dispose();
    await idle();
  });
});
