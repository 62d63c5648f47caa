/** Ten thousand steps at random sizes hold no more plans, kernels, modules and memory than a few hundred did. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import {
  clearPlans,
  memory,
  mul,
  setDynamicSizes,
  setEngine,
  softmax,
  stats,
  sum,
  type Tensor,
  tensor,
  matmul,
  scope,
} from '@polygrad/core';
import { expect, it } from 'vitest';
import { createCpuEngine } from './index.ts';

const steps = 10_000;

it('ten thousand steps at random sizes', async () => {
  const engine = await createCpuEngine({ threads: 1 });
  await setEngine(engine);
  setDynamicSizes('automatic');
  let state = 1;
  const below = (n: number): number => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return (state >>> 8) % n;
  };
  const weights = tensor(
    Float32Array.from({ length: 64 }, (_, i) => Math.sin(i)),
    { shape: [8, 8] },
  );
  const forms: readonly ((x: Tensor) => Tensor)[] = [
    (x) => sum(softmax(matmul(x, weights), 1), 0),
    (x) => sum(mul(x, x)),
    (x) => matmul(x, weights),
    (x) => softmax(x, 0),
  ];
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const heap = (): number => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  let kernels = 0;
  const [compile, release] = [engine.compile.bind(engine), engine.release.bind(engine)];
  engine.compile = (programs) => {
    const made = compile(programs);
    kernels += made.length;
    return made;
  };
  engine.release = (gone) => {
    kernels -= gone.length;
    release(gone);
  };
  const data = Float32Array.from({ length: 8 * 4096 }, (_, i) => Math.cos(i));
  let [early, plans, bytes, most] = [0, 0, 0, 0];
  for (let step = 0; step < steps; step++) {
    const n = 2 + below(4095);
    const x = tensor(data.slice(0, n * 8), { shape: [n, 8] });
    const y = scope(() => forms[step % forms.length]!(x));
    const [value] = await y.data();
    expect(Number.isFinite(value)).toBe(true);
    x.dispose();
    y.dispose();
    const now = stats();
    plans = Math.max(plans, now.plans);
    bytes = Math.max(bytes, now.bytes);
    most = Math.max(most, kernels);
    if (step === 2000) early = heap();
  }
  const { binds, families } = stats();
  // Twelve classes of each form; plans bound to a size are as many as are kept of any.
  expect(families).toBeLessThanOrEqual(12 * forms.length);
  expect(plans).toBeLessThanOrEqual(512);
  expect(binds).toBeGreaterThan(steps / 4);
  expect(bytes).toBeLessThan(64 * 2 ** 20);
  expect(memory().numTensors).toBe(1);
  expect(most).toBeLessThan(600);
  expect(heap() - early).toBeLessThan(16 * 2 ** 20);
  weights.dispose();
  clearPlans();
  expect(stats()).toMatchObject({ plans: 0, families: 0 });
  expect(kernels).toBe(0);
  engine.dispose();
});
