/** Devices with less than the adapter has: what is split, and what is refused with both numbers. Half precision where the device has it. */
import '@polygrad/backend-cpu';
import {
  add,
  concat,
  keep,
  ones,
  OutOfMemoryError,
  scope,
  setEngine,
  setRecovery,
  type Tensor,
  tensor,
} from '@polygrad/core';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import type { WebGpuEngine } from './gpu-engine.ts';
import { engineOn, testAdapter, testEngine } from './fixtures/device.ts';
import type { WebGpuEngineOptions } from './options.ts';

const first = await testEngine();
first?.dispose();

const engines: WebGpuEngine[] = [];
afterEach(() => {
  setRecovery({});
  for (const e of engines.splice(0)) e.dispose();
});
afterAll(() => setEngine('cpu'));

/** The engine of a device that was asked for nothing but these features: WebGPU's default limits. */
async function modest(
  features: readonly GPUFeatureName[] = [],
  options: WebGpuEngineOptions = {},
): Promise<WebGpuEngine> {
  const found = await testAdapter();
  const gpu = await found.adapter.requestDevice({ requiredFeatures: [...features] });
  const engine = engineOn(gpu, { ...found, subgroups: undefined }, options);
  engines.push(engine);
  await setEngine(engine);
  return engine;
}

const mebi = 2 ** 20;

describe.skipIf(first === null)('a device with the default limits', () => {
  it('binds 128 MiB and eight tensors, and says so', async () => {
    const { caps } = await modest();
    expect([caps.maxBufferBytes, caps.maxBindings, caps.maxGroup, caps.sharedBytes]).toEqual([
      128 * mebi,
      8,
      256,
      16384,
    ]);
    expect([...caps.dtypes].sort()).toEqual(['bool', 'float32', 'int32', 'uint32']);
  });

  it('computes tensors of exactly what may be bound, and refuses more with the numbers', async () => {
    await modest();
    const most = 32 * mebi;
    const x = scope(() => ones([most]).mul(2));
    expect(await x.slice([{ start: most - 2, stop: most }]).array()).toEqual([2, 2]);
    x.dispose();
    const y = ones([most + mebi]).mul(2);
    const error = await y.data().catch((e: unknown) => e);
    expect(error).toBeInstanceOf(OutOfMemoryError);
    const { message } = error as OutOfMemoryError;
    expect(message).toMatch(new RegExp(`\\d{9} bytes requested .* of at most ${128 * mebi};`));
    expect(message).toMatch(/one buffer may be no larger on this device/);
    y.dispose();
    expect(() => tensor(new Float32Array(most + 64))).toThrow(OutOfMemoryError);
    expect(await tensor([1]).add(1).array()).toEqual([2]);
  });

  it('gives what is too large to the CPU engine where the policy says so', async () => {
    const engine = await modest();
    setRecovery({ outOfMemory: 'cpu' });
    const n = 33 * mebi;
    const x = scope(() => ones([n]).mul(2));
    expect(await x.slice([{ start: n - 2, stop: n }]).array()).toEqual([2, 2]);
    x.dispose();
    expect(engine.memory().bytes).toBeLessThan(128 * mebi);
  });

  it('splits kernels that would bind more than it can', async () => {
    for (const maxBindings of [4, 8]) {
      await modest([], { maxBindings });
      const n = maxBindings + 4;
      const parts = Array.from({ length: n }, (_, i) => keep(tensor([i, 2 * i, 3 * i])));
      const total = (n * (n - 1)) / 2;
      const sum = parts.reduce((x: Tensor, part) => add(x, part));
      expect(await sum.array()).toEqual([total, 2 * total, 3 * total]);
      const end = concat(parts).slice([{ start: 3 * n - 3, stop: 3 * n }]);
      expect(await end.array()).toEqual([n - 1, 2 * n - 2, 3 * n - 3]);
      // Many outputs of one step, as an optimizer has them.
      scope(() => {
        for (const part of parts) part.assign(part.mul(2).add(1));
      });
      expect(await parts[n - 1]!.array()).toEqual([2 * n - 1, 4 * n - 3, 6 * n - 5]);
      for (const part of parts) part.dispose();
    }
  });
});

describe.skipIf(first === null)('dtypes', () => {
  it('hold halves where the device has shader-f16, and leave them to the CPU engine elsewhere', async () => {
    const found = await testAdapter();
    const offered = found.adapter.features.has('shader-f16');
    const values = [1.5, -2, 65504, 0.0999755859375, 6.103515625e-5];
    for (const features of offered ? ([[], ['shader-f16']] as const) : ([[]] as const)) {
      const engine = await modest(features);
      const held = features.length > 0;
      expect(engine.caps.dtypes.has('float16')).toBe(held);
      const x = tensor(values, { dtype: 'float16' });
      expect(x.device).toBe(held ? 'webgpu' : 'cpu');
      expect(await x.mul(0.5).cast('float32').array()).toEqual(values.map((v) => v / 2));
      // Sums accumulate in float32.
      expect(await ones([4096], { dtype: 'float16' }).sum().cast('float32').item()).toBe(4096);
      x.dispose();
    }
  });

  it('that no shader holds live on the CPU engine', async () => {
    await modest();
    const x = tensor([1, 2, 3]);
    const far = x.cast('float64').add(1e-9);
    expect([x.device, far.device]).toEqual(['webgpu', 'cpu']);
    expect(await far.array()).toEqual([1 + 1e-9, 2 + 1e-9, 3 + 1e-9]);
    expect(await far.sub(x).mul(1e9).cast('float32').round().array()).toEqual([1, 1, 1]);
    expect(tensor([1n, 2n], { dtype: 'int64' }).device).toBe('cpu');
  });
});
