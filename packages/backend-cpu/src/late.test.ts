import { ArgumentError, tensor } from '@polygrad/core';
import { getEngine, setEngine } from '@polygrad/core/engine';
import { createReferenceEngine } from '@polygrad/testing';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { CpuEngine } from './engine.ts';
import { lateCpuProvider } from './late.ts';
import { cpuProvider } from './provider.ts';

const key = Symbol.for('polygrad.registry');
const globals = globalThis as { [key]?: unknown };
let before: unknown;

beforeEach(() => {
  before = globals[key];
  globals[key] = { providers: new Map([['cpu', lateCpuProvider]]), current: null };
});
afterEach(() => {
  globals[key] = before;
});

it('tells of the machine what the engine itself would tell', async () => {
  expect(await lateCpuProvider.probe()).toEqual(await cpuProvider.probe());
});

it('computes once it was awaited, synchronously then', async () => {
  expect(() => getEngine()).toThrow(
    "[getEngine] the cpu backend starts asynchronously here; call await setEngine('cpu') first",
  );
  const engine = await setEngine('cpu', { threads: 1 });
  expect(engine).toBeInstanceOf(CpuEngine);
  expect(tensor([1, 2]).add(1).arraySync()).toEqual([2, 3]);
  engine.dispose();
});

it('refuses options as the engine does', async () => {
  await expect(setEngine('cpu', { threads: 0 })).rejects.toThrow(ArgumentError);
});

it('holds what another engine does not, once it is there', async () => {
  const narrow = createReferenceEngine({ dtypes: ['float32', 'int32', 'uint32', 'bool'] });
  await setEngine(narrow);
  expect(() => tensor([1, 2], { dtype: 'float64' })).toThrow(
    /holds? .*float64.* is still starting; call await setEngine\('cpu'\) once/,
  );
  const cpu = await setEngine('cpu', { threads: 1 });
  await setEngine(narrow);
  const sum = tensor([1, 2], { dtype: 'float64' }).add(2 ** -40);
  expect(sum.device).toMatch(/^cpu/);
  expect(await sum.array()).toEqual([1 + 2 ** -40, 2 + 2 ** -40]);
  cpu.dispose();
  narrow.dispose();
});
