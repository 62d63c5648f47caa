/** In pages the code of worker threads comes while the engine works already: kernels made before are shared, too. */
import { clearPlans, flush, matmul, rand, setEngine } from '@polygrad/core';
import { expect, it, vi } from 'vitest';
import { createCpuEngine } from '../engine.ts';

const network = vi.hoisted(() => ({ up: false }));
vi.mock('#threads', () => import('./late.ts'));
vi.mock('./pool.ts', async (original) => {
  if (!network.up) throw new Error('no network');
  return original();
});

/** The event loop turns until something is so. */
async function until(done: () => boolean): Promise<void> {
  while (!done()) await new Promise((resolve) => setTimeout(resolve, 1));
}

/** The bytes of a product, as text that is fast to compare. */
function product(): string {
  using a = rand([256, 256], { key: [1, 2] });
  using b = matmul(a, a);
  return Buffer.from(b.dataSync().buffer).toString('base64');
}

it('an engine whose threads cannot be loaded computes alone', async () => {
  const engine = createCpuEngine({ threads: 2 });
  await setEngine(engine);
  const alone = product();
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(product() === alone).toBe(true);
  expect(engine.readyWorkers).toBe(0);
  engine.dispose();
});

it('workers that come late share kernels made before, of which some are gone', async () => {
  network.up = true;
  const engine = createCpuEngine({ threads: 2 });
  await setEngine(engine);
  using x = rand([64]);
  flush();
  clearPlans();
  const alone = product();
  expect([engine.readyWorkers, x.size]).toEqual([0, 64]);
  await until(() => engine.readyWorkers === 1);
  // A worker that has started needs a moment to take its first chunk; results do not tell.
  for (let i = 0; i < 20; i++) expect(product() === alone).toBe(true);
  clearPlans();
  expect(product() === alone).toBe(true);
  engine.dispose();
});

it('an engine disposed before its threads are loaded starts none', async () => {
  // Their code is there from the test before, but not before the event loop turns.
  const engine = createCpuEngine({ threads: 2 });
  engine.dispose();
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(engine.readyWorkers).toBe(0);
});
