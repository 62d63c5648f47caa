/** A driver that says late that it has no memory: the step is taken back, or done once what was kept for reuse is given back. */
import { idle, ones, onRollback, OutOfMemoryError, rand, scope, setEngine } from '@polygrad/core';
import { afterEach, describe, expect, it } from 'vitest';
import { openDevice } from './device/device.ts';
import type { WebGpuEngine } from './gpu-engine.ts';
import { engineOn, testAdapter, testEngine } from './fixtures/device.ts';

const first = await testEngine();
first?.dispose();

let engine: WebGpuEngine | null = null;
afterEach(() => engine?.dispose());

/** An engine whose driver has no memory for the buffers that `refuses` says. */
async function withDriver(refuses: () => boolean): Promise<WebGpuEngine> {
  const found = await testAdapter();
  const gpu = await openDevice(found);
  const { pushErrorScope, popErrorScope } = gpu;
  const scopes: string[] = [];
  gpu.pushErrorScope = (filter) => {
    scopes.push(filter);
    return pushErrorScope.call(gpu, filter);
  };
  gpu.popErrorScope = async () => {
    const refused = scopes.pop() === 'out-of-memory' && refuses();
    const error = await popErrorScope.call(gpu);
    return refused ? ({ message: 'no memory' } as GPUError) : error;
  };
  const made = engineOn(gpu, found);
  engine = made;
  await setEngine(made);
  return made;
}

const mebi = 2 ** 18;

describe.skipIf(first === null)('a driver without memory', () => {
  it('leaves weights as they were, whatever came after', async () => {
    let full = false;
    await withDriver(() => full);
    const w = ones([mebi]);
    await w.data();
    let steps = 0;
    const step = (): void =>
      scope(() => {
        const x = rand([3, mebi]).add(w).contiguous();
        w.assign(w.add(x.mean()).mul(2));
        steps++;
        onRollback(() => steps--);
      });
    full = true;
    step();
    step();
    await expect(idle()).rejects.toThrow(OutOfMemoryError);
    expect(steps).toBe(0);
    expect((await w.data())[mebi - 1]).toBe(1);
    full = false;
    // Not at once: the driver is not asked for as much again for a while.
    await new Promise((resolve) => setTimeout(resolve, 1100));
    step();
    await idle();
    expect(steps).toBe(1);
    expect((await w.data())[0]).toBeGreaterThan(4);
    w.dispose();
  });

  it('is asked again once what was kept has been given back', async () => {
    let refusals = 0;
    await withDriver(() => refusals-- > 0);
    const before = rand([2, mebi]);
    await before.data();
    before.dispose();
    refusals = 1;
    const x = scope(() =>
      ones([3, mebi])
        .add(rand([3, mebi]).mul(0))
        .add(1),
    );
    expect((await x.data())[3 * mebi - 1]).toBe(2);
    expect(engine?.memory().reservedBytes).toBeLessThan(5 * 4 * mebi);
    x.dispose();
  });

  it('and a loop that never awaits: one submission for each step', async () => {
    const used = await withDriver(() => false);
    const w = ones([mebi]);
    await w.data();
    const { submissions } = used.traffic;
    for (let i = 0; i < 30; i++) scope(() => w.assign(w.mul(0.5).add(rand([mebi]).mul(0))));
    await idle();
    expect(used.traffic.submissions - submissions).toBe(30);
    expect((await w.data())[9]).toBe(2 ** -30);
    w.dispose();
  });
});
