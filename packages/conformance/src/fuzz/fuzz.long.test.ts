/** Many random programs, the same ones every time, on the engines that need nothing but a processor. */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { createReferenceEngine } from '@polygrad/testing';
import { expect, it } from 'vitest';
import { fuzz, fuzzHistories, fuzzMatrices, fuzzSizes, fuzzTransforms } from './fixtures/run.ts';

it.each([11, 12, 13])('programs on the CPU engine, seed %i', async (seed) => {
  await fuzz(await createCpuEngine({ threads: 1 + (seed % 2) }), { kind: 'programs', seed, programs: 400 });
});

it.each([21, 22])('derivatives on the CPU engine, seed %i', async (seed) => {
  await fuzz(await createCpuEngine({ threads: 1 }), { kind: 'gradients', seed, programs: 60 });
});

it.each([1, 2])('programs at several sizes on the CPU engine, threads: %i', async (threads) => {
  await fuzzSizes(await createCpuEngine({ threads }), { kind: 'sizes', seed: 60 + threads, programs: 60 });
});

it('programs at several sizes on the reference engine', async () => {
  await fuzzSizes(createReferenceEngine(), { kind: 'sizes', seed: 63, programs: 40 });
});

it('derivatives at several sizes on the CPU engine', async () => {
  await fuzzSizes(await createCpuEngine({ threads: 1 }), { kind: 'size-gradients', seed: 64, programs: 20 });
});

it.each(['sizes', 'size-gradients'] as const)('%s with shared plans from the first size on', async (kind) => {
  const programs = kind === 'sizes' ? 150 : 20;
  const engine = await createCpuEngine({ threads: 1 });
  const { compared } = await fuzzSizes(engine, { kind, seed: 65, sharing: 'always', programs });
  expect(compared).toBeGreaterThanOrEqual(2 * programs);
});

it.each(['transforms', 'transform-gradients'] as const)('%s on the CPU engine', async (kind) => {
  const programs = kind === 'transforms' ? 120 : 40;
  const { compared } = await fuzzTransforms(await createCpuEngine({ threads: 1 }), { kind, seed: 66, programs });
  expect(compared).toBeGreaterThan(3 * programs);
});

it('leaves and tapes on the CPU engine', async () => {
  const { compared } = await fuzzHistories(await createCpuEngine({ threads: 1 }), { seed: 67, programs: 200 });
  expect(compared).toBeGreaterThan(200);
});

it('linear algebra on the CPU engine', async () => {
  const { compared } = await fuzzMatrices(await createCpuEngine({ threads: 1 }), { seed: 68, programs: 20 });
  expect(compared).toBeGreaterThan(80);
});

it('refusals on the CPU engine', async () => {
  await fuzz(await createCpuEngine({ threads: 1 }), { kind: 'errors', seed: 31, programs: 800 });
});

it('programs on the reference engine', async () => {
  await fuzz(createReferenceEngine(), { kind: 'programs', seed: 41, programs: 200 });
});

it('programs on the reference engine with groups of threads', async () => {
  await fuzz(createReferenceEngine({ simt: true }), { kind: 'programs', seed: 51, programs: 150 });
});
