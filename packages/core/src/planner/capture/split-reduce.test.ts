/** Positions of extremes of many elements are found in chunks; the answer is that of one walk over all of them. */
import { beforeAll, describe, expect, it } from 'vitest';
import {
  all,
  any,
  argMax,
  argMin,
  type DType,
  getEngine,
  max,
  min,
  prod,
  setEngine,
  stats,
  tensor,
} from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { splitPositionsLeast as least } from './rewrite.ts';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

/** The first NaN, or the first greatest element. */
function position(data: ArrayLike<number>, sign: 1 | -1 = 1): number {
  let best = 0;
  for (let i = 1; i < data.length && !Number.isNaN(data[best]); i++) {
    const [value, least] = [data[i] as number, data[best] as number];
    if (Number.isNaN(value) || sign * value > sign * least) best = i;
  }
  return best;
}

const steps = (n: number): Float32Array => Float32Array.from({ length: n }, (_, i) => (i * 7919) % 1009);

describe('the position of an extreme among many elements', () => {
  it('is the first of equal ones', async () => {
    const data = steps(least + 1);
    const before = stats(getEngine()).kernels;
    expect(await argMax(tensor(data)).item()).toBe(position(data));
    expect(stats(getEngine()).kernels - before).toBe(2);
    expect(await argMin(tensor(data)).item()).toBe(position(data, -1));
  });

  it('is that of the first NaN', async () => {
    for (const places of [[least - 1], [8999, 9001]]) {
      const data = steps(least);
      for (const at of places) data[at] = Number.NaN;
      expect(await argMax(tensor(data)).item()).toBe(places[0]);
    }
  });

  it('is 0 where all are the value that chunks are filled up with', async () => {
    const n = least + 17;
    expect(await argMax(tensor(new Float32Array(n).fill(Number.NEGATIVE_INFINITY))).item()).toBe(0);
    expect(await argMin(tensor(new Uint32Array(n).fill(2 ** 32 - 1))).item()).toBe(0);
  });

  it('is found along axes that are not the last, and for several results', async () => {
    const [n, width] = [least + 2, 3];
    const data = steps(n * width);
    const x = tensor(data).reshape([3, n / 3, width]);
    const columns = await argMax(x, [0, 1]).data();
    expect([...columns]).toEqual([0, 1, 2].map((c) => position(data.filter((_, i) => i % width === c))));
    const rows = await argMin(tensor(data).reshape([width, n]), 1).data();
    expect([...rows]).toEqual([0, 1, 2].map((r) => position(data.subarray(r * n, (r + 1) * n), -1)));
  });

  it('is found where the reduced axes are apart', async () => {
    const [a, b, c] = [least / 2, 3, 2];
    const data = steps(a * b * c);
    const got = await argMax(tensor(data).reshape([a, b, c]), [0, 2]).data();
    expect([...got]).toEqual([0, 1, 2].map((j) => position(data.filter((_, i) => Math.floor(i / c) % b === j))));
  });
});

// So many that parts are filled up: no whole number of parts is near.
const odd = 8209;

it.each<[DType, number | bigint, number | bigint]>([
  ['int8', -128, 127],
  ['uint8', 0, 255],
  ['int16', -(2 ** 15), 2 ** 15 - 1],
  ['uint16', 0, 2 ** 16 - 1],
  ['int32', -(2 ** 31), 2 ** 31 - 1],
  ['uint32', 0, 2 ** 32 - 1],
  ['int64', -(2n ** 63n), 2n ** 63n - 1n],
  ['uint64', 0n, 2n ** 64n - 1n],
  ['float32', Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY],
])('the extremes of many %s are theirs, not those of what parts are filled up with', async (dtype, least, most) => {
  const of = (value: number | bigint) => tensor(Array.from({ length: odd }, () => value) as number[], { dtype });
  const before = stats(getEngine()).kernels;
  expect(await max(of(least)).item()).toBe(least);
  expect(stats(getEngine()).kernels - before).toBe(2);
  expect(await min(of(most)).item()).toBe(most);
  const one = typeof least === 'bigint' ? 1n : 1;
  expect(await prod(of(one)).item()).toBe(one);
});

it('all and any of many', async () => {
  const of = (value: boolean) => tensor(Array.from({ length: odd }, () => value));
  expect([await all(of(true)).item(), await any(of(false)).item()].map(Boolean)).toEqual([true, false]);
});
