/** Random calls of what works line by line: running results, sorts, softmax and norms. */
import type { DType } from '@polygrad/core';
import { alongLines } from '../oracle/lines.ts';
import { count, map, type NDArray, nd, permute, reshape } from '../oracle/ndarray.ts';
import { isFloat, isNumber, type Made, type Operation, type Pool, ref } from './pool.ts';
import type { Noise } from '../operations/row.ts';
import type { Value } from './program.ts';
import { average, spread, total } from '../oracle/sums.ts';
import { logSum, wide } from './reductions.ts';

type Line = (line: number[]) => number[];
interface LineRow {
  readonly name: string;
  readonly f: (options: { reverse: boolean; exclusive: boolean }) => Line;
  readonly of: 'numbers' | 'floats';
  readonly result?: (dtype: DType) => DType;
  readonly noise?: Noise;
  readonly smooth?: boolean;
  readonly exclusive?: boolean;
}

const running =
  (f: (a: number, b: number) => number, start: number) =>
  ({ reverse, exclusive }: { reverse: boolean; exclusive: boolean }): Line =>
  (line) => {
    const given = reverse ? [...line].reverse() : line;
    let sum = start;
    const out = given.map((x) => {
      const before = sum;
      sum = f(sum, x);
      return exclusive ? before : sum;
    });
    return reverse ? out.reverse() : out;
  };

const lineRows: readonly LineRow[] = [
  {
    name: 'cumSum',
    f: running((a, b) => a + b, 0),
    of: 'numbers',
    result: wide,
    noise: 'steps',
    smooth: true,
    exclusive: true,
  },
  { name: 'cumProd', f: running((a, b) => a * b, 1), of: 'floats', noise: 'steps', smooth: true, exclusive: true },
  { name: 'cumMax', f: running(Math.max, Number.NEGATIVE_INFINITY), of: 'numbers', smooth: true },
  { name: 'cumMin', f: running(Math.min, Number.POSITIVE_INFINITY), of: 'numbers', smooth: true },
  {
    name: 'logCumSumExp',
    f: running((a, b) => logSum([a, b]), Number.NEGATIVE_INFINITY),
    of: 'floats',
    noise: 'steps',
    smooth: true,
  },
];

/** Order of numbers with NaN above all; the first of equals first. */
const order = (line: readonly number[], descending: boolean): number[] => {
  const compare = (a: number, b: number): number => {
    const [x, y] = [line[a] as number, line[b] as number];
    if (Number.isNaN(x) || Number.isNaN(y)) return Number(Number.isNaN(x)) - Number(Number.isNaN(y));
    return x < y ? -1 : x > y ? 1 : 0;
  };
  return line.map((_, i) => i).sort((a, b) => (descending ? compare(b, a) : compare(a, b)) || a - b);
};

const lines = (x: NDArray, axis: number, size: number, f: Line): NDArray => {
  // alongLines keeps the size of the axis where it is empty, so lines of another size are built here.
  const last = x.shape.length - 1;
  const toEnd = [...x.shape.map((_, i) => i).filter((i) => i !== axis), axis];
  const moved = permute(x, toEnd);
  const n = x.shape[axis] as number;
  const rows = count(moved.shape.slice(0, last));
  const data = Array.from({ length: rows }, (_, r) => f(moved.data.slice(r * n, (r + 1) * n) as number[])).flat();
  const back = x.shape.map((_, i) => toEnd.indexOf(i));
  return permute(nd([...moved.shape.slice(0, last), size], data), back);
};

/** Lines in order: their elements, or the positions of those. */
const inOrder =
  (positions: boolean) =>
  (pool: Pool): Made | null => {
    const x = pool.pick((v) => v.shape.length > 0);
    if (x === null) return null;
    const [axis, written] = pool.axis(x.shape.length);
    const descending = pool.c.nat(2) === 1;
    const line: Line = (l) => {
      const found = order(l, descending);
      return positions ? found : found.map((i) => l[i] as number);
    };
    return {
      args: [ref(x), { axis: written, descending }],
      dtype: positions ? 'int32' : x.dtype,
      formula: (a) => alongLines(a as NDArray, axis, line),
    };
  };

const orders: readonly Operation[] = [
  ...lineRows.map(
    (row): Operation => ({
      name: row.name,
      ...(row.smooth ? { smooth: true } : {}),
      make: (pool) => {
        const x = pool.pick((v) => v.shape.length > 0 && (row.of === 'floats' ? isFloat(v.dtype) : isNumber(v)));
        if (x === null) return null;
        const [axis, written] = pool.axis(x.shape.length);
        const reverse = pool.c.seldom(3);
        const exclusive = row.exclusive === true && pool.c.seldom(3);
        const dtype = row.result?.(x.dtype) ?? x.dtype;
        return {
          args: [ref(x), { axis: written, ...(reverse ? { reverse } : {}), ...(exclusive ? { exclusive } : {}) }],
          dtype,
          formula: (a) => alongLines(a as NDArray, axis, row.f({ reverse, exclusive })),
          noise: row.noise ?? 'none',
          ordered: row.noise === undefined || !isFloat(dtype),
        };
      },
    }),
  ),
  { name: 'sort', smooth: true, make: inOrder(false) },
  { name: 'argSort', make: inOrder(true) },
  {
    name: 'topK',
    smooth: true,
    make: (pool) => {
      const x = pool.pick((v) => v.shape.length > 0 && isNumber(v));
      if (x === null) return null;
      const [axis, written] = pool.axis(x.shape.length);
      const k = pool.c.nat((x.shape[axis] as number) + 1);
      const part = pool.c.nat(2);
      const least = pool.c.seldom(3);
      const picked = (l: number[]): number[] =>
        order(l, !least)
          .slice(0, k)
          .map((i) => (part === 0 ? (l[i] as number) : i));
      return {
        args: [ref(x), k, { axis: written, ...(least ? { largest: false } : {}) }],
        part,
        dtype: part === 0 ? x.dtype : 'int32',
        formula: (a) => lines(a as NDArray, axis, k, picked),
      };
    },
  },
  {
    name: 'diff',
    smooth: true,
    make: (pool) => {
      const x = pool.pick((v) => v.shape.length > 0 && isNumber(v));
      if (x === null) return null;
      const [axis, written] = pool.axis(x.shape.length);
      const size = x.shape[axis] as number;
      if (size === 0) return null;
      return {
        args: [ref(x), { axis: written }],
        dtype: x.dtype,
        formula: (a) => lines(a as NDArray, axis, size - 1, (l) => l.slice(1).map((v, i) => v - (l[i] as number))),
        noise: 'out',
      };
    },
  },
  {
    name: 'searchSorted',
    make: (pool) => {
      const v = pool.pick((y) => isFloat(y.dtype) && y.dtype !== 'float16' && y.dtype !== 'bfloat16');
      if (v === null) return null;
      const sorted = pool.input(v.dtype, [4], [-1.5, 0, 0, 1.25]);
      const right = pool.c.nat(2) === 1;
      return {
        args: [ref(sorted), ref(v), { right }],
        dtype: 'int32',
        formula: (s, x) =>
          map(
            x as NDArray,
            (y) => (s as NDArray).data.filter((e) => Number.isNaN(y) || (right ? e <= y : e < y)).length,
          ),
      };
    },
  },
];

/** Softmax and its kin: rows of numbers to rows of numbers. */
const softmax: Line = (v) => {
  const s = logSum(v);
  return v.map((x) => Math.exp(x - s));
};
const rowNorms: Readonly<Record<string, Line>> = {
  softmax,
  logSoftmax: (v) => {
    const total = logSum(v);
    return v.map((x) => x - total);
  },
  softmin: (v) => softmax(v.map((x) => -x)),
  normalize: (v) => {
    const length = Math.max(Math.sqrt(total(v.map((x) => x * x))), 1e-12);
    return v.map((x) => x / length);
  },
};
const lastNorms: Readonly<Record<string, Line>> = {
  layerNorm: (v) => {
    const [mean, deviation] = [average(v), Math.sqrt(spread(v, 0) + 0.1)];
    return v.map((x) => (x - mean) / deviation);
  },
  rmsNorm: (v) => {
    const length = Math.sqrt(average(v.map((y) => y * y)) + 0.1);
    return v.map((x) => x / length);
  },
};

const tame = (v: Value): boolean => isFloat(v.dtype) && v.data.every((x) => Math.abs(x) < 1e3);

const rowOperations: readonly Operation[] = [
  ...Object.entries(rowNorms).map(
    ([name, f]): Operation => ({
      name,
      smooth: true,
      make: (pool) => {
        const x = pool.pick(
          (v) => v.shape.length > 0 && tame(v) && (name !== 'normalize' || v.data.every((y) => Math.abs(y) > 1e-3)),
        );
        if (x === null) return null;
        const [axis, written] = pool.axis(x.shape.length);
        return {
          args: [ref(x), { axis: written }],
          dtype: x.dtype,
          formula: (a) => alongLines(a as NDArray, axis, f),
          // The difference of x and the logarithm rounds as those do.
          noise: name === 'logSoftmax' ? 'steps' : 'all',
          ordered: false,
        };
      },
    }),
  ),
  ...Object.entries(lastNorms).map(
    ([name, f]): Operation => ({
      name,
      smooth: true,
      make: (pool) => {
        const x = pool.pick((v) => v.shape.length > 0 && tame(v) && count(v.shape) > 0);
        if (x === null) return null;
        const over = pool.c.between(1, Math.min(3, x.shape.length));
        const size = x.shape.slice(-over);
        const flat = [...x.shape.slice(0, -over), count(size)];
        return {
          args: [ref(x), { normalizedShape: size, eps: 0.1 }],
          dtype: x.dtype,
          formula: (a) => reshape(alongLines(reshape(a as NDArray, flat), flat.length - 1, f), x.shape),
          noise: 'all',
          ordered: false,
        };
      },
    }),
  ),
];

export const lineOperations: readonly Operation[] = [...orders, ...rowOperations];
