/** Integer tensors beside numbers that their dtype does not hold: comparisons and limits answer as mathematics does. */
import { beforeAll, describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';

beforeAll(() => pg.setEngine(createReferenceEngine()));

const elements: Readonly<Record<string, readonly (number | bigint)[]>> = {
  uint8: [0, 1, 2, 254, 255],
  int8: [-128, -1, 0, 1, 127],
  uint16: [0, 65535],
  int32: [-(2 ** 31), -1, 0, 3, 2 ** 31 - 1],
  uint32: [0, 2 ** 32 - 1],
  int64: [-(2n ** 63n), -1n, 0n, 2n ** 53n + 1n, 2n ** 63n - 1n],
  uint64: [0n, 2n ** 64n - 1n],
};
const numbers: readonly (number | bigint)[] = [
  -Infinity,
  -1e30,
  -(2n ** 70n),
  -(2 ** 31),
  -128.5,
  -128,
  -1,
  -0.5,
  0,
  -0,
  0.5,
  1,
  1.5,
  2.5,
  126.999,
  254.5,
  255,
  255.5,
  256,
  300n,
  65535.5,
  2 ** 31,
  2 ** 32 - 0.5,
  2n ** 63n,
  2n ** 64n,
  1e30,
  Infinity,
  Number.NaN,
];
// JavaScript compares numbers and bigints by their mathematical values.
const comparisons: Readonly<Record<string, (a: number | bigint, b: number | bigint) => boolean>> = {
  less: (a, b) => a < b,
  lessEqual: (a, b) => a <= b,
  greater: (a, b) => a > b,
  greaterEqual: (a, b) => a >= b,
  // biome-ignore lint/suspicious/noDoubleEquals: numbers and bigints of one value are equal
  equal: (a, b) => a == b,
  // biome-ignore lint/suspicious/noDoubleEquals: numbers and bigints of one value are equal
  notEqual: (a, b) => a != b,
};
type Compare = (a: pg.TensorLike, b: pg.TensorLike) => pg.Tensor;

async function read(t: pg.Tensor): Promise<unknown> {
  const values = await t.array();
  t.dispose();
  return values;
}

describe.each(Object.keys(elements))('%s', (dtype) => {
  const values = elements[dtype] as readonly (number | bigint)[];
  const make = (): pg.Tensor => pg.tensor([...values] as number[], { dtype: dtype as pg.DType });

  it.each(Object.keys(comparisons))('%s', async (name) => {
    const compare = (pg as unknown as Record<string, Compare>)[name]!;
    const expected = comparisons[name] as (a: number | bigint, b: number | bigint) => boolean;
    const x = make();
    for (const c of numbers) {
      expect(await read(compare(x, c)), `${name}(x, ${c})`).toEqual(values.map((v) => expected(v, c)));
      expect(await read(compare(c, x)), `${name}(${c}, x)`).toEqual(values.map((v) => expected(c, v)));
    }
    pg.dispose(x);
  });

  it('limits beyond the dtype are none', async () => {
    const x = make();
    for (const [low, high] of [
      [-Infinity, Infinity],
      [-(2n ** 70n), 2n ** 70n],
      [-1e30, 1e30],
    ] as const) {
      expect(await read(pg.clip(x, low, high))).toEqual(await x.array());
      expect(await read(pg.maximum(x, low))).toEqual(await x.array());
      expect(await read(pg.minimum(high, x))).toEqual(await x.array());
      expect(() => pg.maximum(x, high)).toThrow(/^\[maximum\] .*/);
      expect(() => pg.minimum(x, low)).toThrow(/^\[minimum\] .*/);
      expect(() => pg.clip(x, high, null)).toThrow(/^\[clip\] .*/);
      expect(() => pg.where(true, x, high)).toThrow(/^\[where\] .*/);
    }
    expect(() => pg.clip(x, 0.5, null)).toThrow(/^\[clip\] number 0.5 is no/);
    expect(() => pg.maximum(x, Number.NaN)).toThrow(/^\[maximum\] number NaN is no/);
    pg.dispose(x);
  });
});

it('numbers that the dtype holds are bound, and make no new plan', () => {
  pg.scope(() => {
    const x = pg.tensor([1, 2], { dtype: 'uint8' });
    expect(pg.printGraph([pg.less(x, 2)])).toContain('scalar');
  });
});
