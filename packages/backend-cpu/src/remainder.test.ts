/** fmod of all sizes on the engine itself: exact, whichever lanes of a vector need the long way. */
import { fmod, setEngine, tensor } from '@polygrad/core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type CpuEngine, createCpuEngine } from './engine.ts';

let engine: CpuEngine;
beforeAll(async () => {
  engine = createCpuEngine({ threads: 1 });
  await setEngine(engine);
});
afterAll(() => engine.dispose());

const edges = [0, -0, 1, 3, 0.1, 2 ** 23, 2 ** 23 - 1, 2 ** 24, 1e-45, 1e-310, 1e38, Infinity, -Infinity, NaN];

/** Numbers whose logarithms are spread over `spread` binary digits each way. */
function numbers(count: number, spread: number, seed: number): number[] {
  let state = seed;
  const next = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return (state >>> 0) / 2 ** 32;
  };
  return Array.from({ length: count }, () => (next() < 0.5 ? -1 : 1) * (1 + next()) * 2 ** ((next() * 2 - 1) * spread));
}

it.each([
  ['float32', 3],
  ['float32', 12],
  ['float32', 110],
  ['float64', 12],
  ['float64', 60],
] as const)('%s, 2^%s', async (dtype, spread) => {
  const Data = dtype === 'float32' ? Float32Array : Float64Array;
  // float64 gives up beyond quotients of about 2^280 (arithmetic/decompose/basic.ts of core).
  const within = (a: number, b: number): boolean =>
    dtype === 'float32' || !(b !== 0 && Math.abs(a / b) > 2 ** 250 && Number.isFinite(a));
  const pairs = edges.flatMap((a) => edges.filter((b) => within(a, b)).map((b) => [a, b] as const));
  const [x, y] = [1, 2].map((seed) =>
    Data.from([...numbers(4001, spread, seed), ...pairs.map((p) => p[seed - 1]!)]),
  ) as [Float32Array, Float32Array];
  // Quotients that are whole, or just below.
  for (let i = 0; i < 1000; i++) x[i] = y[i]! * (1 + (i % 97)) * (i % 2 === 0 ? 1 : 1 - 2 ** -24);
  const [a, b] = [tensor(x, { dtype }), tensor(y, { dtype })];
  const z = fmod(a, b);
  const got = await z.data();
  const wrong = Array.from(x).findIndex((v, i) => !Object.is(v % y[i]!, got[i]));
  expect(wrong < 0 ? '' : `${x[wrong]} % ${y[wrong]} is ${got[wrong]}`).toBe('');
  for (const t of [a, b, z]) t.dispose();
});
