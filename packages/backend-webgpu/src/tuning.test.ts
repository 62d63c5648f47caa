/** Tiles measured on the adapter: unasked on hardware, beside a training, on a device that breaks kernels or goes away meanwhile. */
import { memoryStore, type TuningStore } from '@polygrad/core/engine';
import {
  getEngine,
  grads,
  idle,
  keep,
  onLost,
  protect,
  scaledDotProductAttention,
  scope,
  setEngine,
  setRecovery,
  stats,
  type Tensor,
  tensor,
  tune,
} from '@polygrad/core';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openDevice } from './device/device.ts';
import type { WebGpuEngine } from './gpu-engine.ts';
import { engineOn, patience, testAdapter, testEngine } from './fixtures/device.ts';
import './index.ts';
import type { WebGpuEngineOptions } from './options.ts';
import { isWhole } from '@polygrad/compiler/fixtures/everyday';

const engine = (await testEngine()) as WebGpuEngine;
const engines: WebGpuEngine[] = [];
beforeEach(async () => {
  if (engine !== null) await setEngine(engine);
});
afterEach(() => {
  setRecovery({});
  if (engine !== null && getEngine() !== engine) getEngine().dispose();
  for (const e of engines.splice(0)) e.dispose();
});
afterAll(() => engine?.dispose());

/** An engine, and the device under it, changed by `change`. */
async function open(options: WebGpuEngineOptions, change: (gpu: GPUDevice) => void = () => {}) {
  const found = await testAdapter();
  const gpu = await openDevice(found);
  change(gpu);
  const made = engineOn(gpu, found, options);
  engines.push(made);
  return { made, gpu };
}

/** A promise that is settled by hand. */
function gate(): { passed: Promise<void>; open: () => void } {
  let open: () => void = () => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}

/** A device whose pipelines come after `passed` from when `held` says so: however fast it is, they are seen on their way. */
const holding = (held: () => boolean, passed: Promise<void>) => (gpu: GPUDevice) => {
  const { createComputePipelineAsync } = gpu;
  gpu.createComputePipelineAsync = async (descriptor) => {
    const late = held();
    const pipeline = await createComputePipelineAsync.call(gpu, descriptor);
    if (late) await passed;
    return pipeline;
  };
};

/** A store that says what was kept in it, and is read after `begin`: nothing is measured before. */
function watched(begin: Promise<void> = Promise.resolve()): { store: TuningStore; kept: Promise<string> } {
  const store = memoryStore();
  let tell: (text: string) => void = () => {};
  const kept = new Promise<string>((resolve) => {
    tell = resolve;
  });
  const save = async (key: string, value: string): Promise<void> => {
    await store.save(key, value);
    tell(value);
  };
  return { store: { load: (key) => begin.then(() => store.load(key)), save }, kept };
}

/** Small whole numbers: sums of products are exact in any order. */
const numbers = (rows: number, columns: number): Tensor =>
  tensor(
    Float32Array.from({ length: rows * columns }, (_, i) => ((i * 7) % 11) - 5),
    { shape: [rows, columns] },
  );

/** Gradient descent on a layer of 36 of 48 numbers; `step` gives the loss. */
function training(): { step: () => Tensor; weights: Tensor } {
  const fractions = (rows: number, columns: number, seed: number): Tensor =>
    tensor(
      Float32Array.from({ length: rows * columns }, (_, i) => Math.sin(seed * (i + 1))),
      { shape: [rows, columns] },
    );
  const [x, y] = [fractions(40, 48, 0.37), fractions(40, 36, 0.21)];
  const weights = fractions(48, 36, 0.11);
  const loss = (w: Tensor): Tensor => x.matmul(w).tanh().sub(y).square().mean();
  const step = (): Tensor =>
    scope(() => {
      const now = keep(loss(weights));
      weights.assign(weights.sub(grads(loss)(weights)[0]!.mul(0.5)));
      return now;
    });
  return { step, weights };
}

async function read(loss: Tensor): Promise<number> {
  const value = (await loss.item()) as number;
  loss.dispose();
  return value;
}

describe.skipIf(engine === null)('tiles are measured', () => {
  it('by itself on hardware, on request elsewhere', async () => {
    const found = await testAdapter();
    const device = await openDevice(found);
    const made = engineOn(device, { ...found, software: false });
    expect(made.tuning?.automatic).toBe(true);
    expect(made.tuning?.store).toBeDefined();
    made.dispose();
    if (engine.software) expect(engine.tuning).toBeUndefined();
    await expect(testEngine({ tuning: 7 as unknown as boolean })).rejects.toThrow('bad tuning: 7');
  });

  it('soon after a product was first run, with the same results after as before', async () => {
    const { store, kept } = watched();
    const { made } = await open({ tuning: { store, automatic: true } });
    await setEngine(made);
    const [a, b] = [numbers(40, 48), numbers(48, 36)];
    const before = await a.matmul(b).data();
    expect(JSON.parse(await kept).tiles).toHaveProperty('float32 48x32x48x1 k.c 1');
    expect(await a.matmul(b).data()).toEqual(before);
  });

  it.runIf(isWhole)(
    'and those of attention, with values within what the contract allows',
    { timeout: patience },
    async () => {
      const { store, kept } = watched();
      const { made } = await open({ tuning: { store, automatic: true } });
      // As on hardware: software has one tile.
      Object.defineProperty(made, 'caps', { value: { ...made.caps, sharedIsMemory: false } });
      await setEngine(made);
      const part = (seed: number): Tensor =>
        tensor(
          Float32Array.from({ length: 2 * 24 * 8 }, (_, i) => Math.sin(1.3 * i + seed)),
          { shape: [2, 24, 8] },
        );
      const run = async (): Promise<number[]> =>
        [...(await scaledDotProductAttention(part(1), part(2), part(3), { form: 'kernel' }).data())].map(Number);
      const before = await run();
      expect(Object.entries(JSON.parse(await kept).tiles as object)).toEqual([
        [expect.stringMatching(/^attention forward float32 2x\d+x\d+ 8x8 rows$/), expect.stringMatching(/^rows:/)],
      ]);
      for (const [i, x] of (await run()).entries()) expect(Math.abs(x - before[i]!)).toBeLessThan(2e-6);
    },
  );

  it('but those that the device cannot compile are not taken', async () => {
    let measuring = false;
    let made = 0;
    let broken = 0;
    const { made: own } = await open({ tuning: false }, (gpu) => {
      const { createShaderModule } = gpu;
      gpu.createShaderModule = (descriptor) => {
        const { code } = descriptor;
        // The first is the tile that is taken without measuring.
        const spoil = measuring && code.includes('@compute') && made++ > 0;
        if (spoil) broken++;
        return createShaderModule.call(gpu, { ...descriptor, code: spoil ? code.replace('u32', 'u31') : code });
      };
    });
    await setEngine(own);
    const [a, b] = [numbers(40, 48), numbers(48, 36)];
    const before = await a.matmul(b).data();
    measuring = true;
    const [result] = await tune(own, { budget: Number.POSITIVE_INFINITY });
    measuring = false;
    expect(broken).toBeGreaterThan(0);
    expect(result?.measured.map(({ standard }) => standard)).toEqual([true]);
    expect(await a.matmul(b).data()).toEqual(before);
  });
});

describe.skipIf(engine === null)('measuring beside a training', () => {
  it('holds no step up, and changes losses by rounding alone', async () => {
    // A clock by which the second tile is the fastest and ends the budget: 17 looks for each class.
    let [clock, looks] = [0, 0];
    const now = (): number => {
      const look = looks++ % 17;
      return (clock += look < 5 ? 100 : look === 10 ? 1000 : 1);
    };
    // Measuring begins when the training's own kernels are there, and its first pipelines come when a step has gone by.
    const [settled, seen] = [gate(), gate()];
    let measuring = false;
    const { store, kept } = watched(settled.passed);
    const held = holding(() => measuring, seen.passed);
    const { made } = await open({ tuning: { store, automatic: true, now } }, held);
    Object.defineProperty(made, 'submitTimed', { value: undefined });
    await setEngine(made);
    const { step } = training();
    let found = '';
    void kept.then((text) => {
      found = text;
    });
    const losses: number[] = [];
    let beside = 0;
    let last = Number.POSITIVE_INFINITY;
    while (losses.length < last) {
      const { planMisses } = stats();
      const loss = step();
      const known = stats().planMisses === planMisses;
      if (known && measuring && made.waiting.pipelines > 0) {
        // Pipelines of candidates are being made: the step is on the device all the same.
        expect(made.waiting.batches).toBe(0);
        beside++;
        seen.open();
      }
      if (known && made.waiting.pipelines === 0) {
        measuring = true;
        settled.open();
      }
      // The first new plan after the choice has the chosen tiles.
      if (found !== '' && stats().planMisses > planMisses) last = Math.min(last, losses.length + 15);
      losses.push(await read(loss));
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    expect(beside).toBeGreaterThan(0);
    expect(Object.keys((JSON.parse(found) as { tiles: object }).tiles).length).toBeGreaterThan(0);
    await setEngine(engine);
    const plain = training();
    for (const [i, loss] of losses.entries()) {
      const expected = await read(plain.step());
      expect(Math.abs(loss - expected) / expected, `step ${i} of ${losses.length}`).toBeLessThan(1e-5);
    }
  });

  it('ends with the device, and the training goes on with another', async () => {
    const [settled, gone] = [gate(), gate()];
    let measuring = false;
    const { store } = watched(settled.passed);
    const held = holding(() => measuring, gone.passed);
    const { made, gpu } = await open({ tuning: { store, automatic: true } }, held);
    await setEngine(made);
    setRecovery({ interval: 0, patience });
    let told = 0;
    const stop = onLost(() => told++);
    const { step, weights } = training();
    protect([weights]);
    const first = await read(step());
    measuring = true;
    settled.open();
    // The kernels of candidates: what is measured now is lost.
    while (made.waiting.pipelines === 0) await new Promise((resolve) => setTimeout(resolve, 4));
    gpu.destroy();
    gone.open();
    await made.lost;
    await idle();
    expect(told).toBe(1);
    expect(getEngine()).not.toBe(made);
    expect(getEngine().name).toBe('webgpu');
    stop();
    // Data of the steps lived on the lost device only.
    const next = training();
    for (let i = 0; i < 5; i++) await read(next.step());
    expect(await read(next.step())).toBeLessThan(first);
    expect(made.memory().bytes).toBe(0);
    weights.dispose();
  });
});
