/** Random calls of reductions. */
import type { DType } from '@polygrad/core';
import { count, type NDArray, reduce } from '../oracle/ndarray.ts';
import { floatOf, isFloat, isNumber, type Made, type Operation, type Pool, ref } from './pool.ts';
import type { Noise } from '../operations/row.ts';
import type { Arg } from './program.ts';
import { average, spread, total } from '../oracle/sums.ts';

type Fold = (values: number[]) => number;
export const logSum: Fold = (v) => {
  const top = v.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  return Math.abs(top) === Number.POSITIVE_INFINITY ? top : top + Math.log(total(v.map((x) => Math.exp(x - top))));
};
const first =
  (better: (x: number, best: number) => boolean): Fold =>
  (v) => {
    const nan = v.findIndex(Number.isNaN);
    return nan >= 0 ? nan : v.reduce((best, x, i) => (better(x, v[best] as number) ? i : best), 0);
  };
const largest: Fold = (v) => v.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
const smallest: Fold = (v) => v.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);

export const wide = (dtype: DType): DType =>
  dtype === 'bool' || dtype === 'int8' || dtype === 'int16'
    ? 'int32'
    : dtype === 'uint8' || dtype === 'uint16'
      ? 'uint32'
      : dtype;

interface Row {
  readonly name: string;
  readonly f: Fold;
  readonly of?: 'any' | 'numbers' | 'floats';
  readonly result?: (dtype: DType) => DType;
  readonly noise?: Noise;
  readonly smooth?: boolean;
  /** Fewest elements that are reduced together. */
  readonly least?: number;
  readonly options?: { readonly [key: string]: Arg };
  readonly domain?: (x: number) => boolean;
}

const rows: readonly Row[] = [
  { name: 'sum', f: total, of: 'any', result: wide, noise: 'all', smooth: true },
  { name: 'mean', f: average, result: floatOf, noise: 'all', smooth: true, least: 1 },
  { name: 'max', f: largest, smooth: true, least: 1 },
  { name: 'min', f: smallest, smooth: true, least: 1 },
  { name: 'prod', f: (v) => v.reduce((a, b) => a * b, 1), of: 'any', result: wide, noise: 'all', smooth: true },
  { name: 'argMax', f: first((x, b) => x > b), result: () => 'int32', least: 1 },
  { name: 'argMin', f: first((x, b) => x < b), result: () => 'int32', least: 1 },
  { name: 'any', f: (v) => (v.some((x) => x !== 0) ? 1 : 0), of: 'any', result: () => 'bool' },
  { name: 'all', f: (v) => (v.every((x) => x !== 0) ? 1 : 0), of: 'any', result: () => 'bool' },
  { name: 'countNonZero', f: (v) => v.filter((x) => x !== 0).length, of: 'any', result: () => 'int32' },
  {
    name: 'variance',
    f: (v) => spread(v, 1),
    of: 'floats',
    noise: 'all',
    smooth: true,
    least: 2,
    options: { correction: 1 },
  },
  {
    name: 'std',
    f: (v) => Math.sqrt(spread(v, 0)),
    of: 'floats',
    noise: 'all',
    smooth: true,
    least: 2,
    options: { correction: 0 },
  },
  { name: 'logSumExp', f: logSum, of: 'floats', noise: 'all', smooth: true },
  {
    name: 'norm',
    f: (v) => Math.hypot(...v),
    of: 'floats',
    noise: 'all',
    smooth: true,
    least: 1,
    domain: (x) => Math.abs(x) < 1e3,
  },
  {
    name: 'norm',
    f: (v) => total(v.map(Math.abs)),
    of: 'floats',
    noise: 'all',
    smooth: true,
    least: 1,
    options: { p: 1 },
  },
  { name: 'nanSum', f: (v) => total(v.filter((x) => !Number.isNaN(x))), of: 'floats', noise: 'all', smooth: true },
  {
    name: 'nanMean',
    f: (v) => average(v.filter((x) => !Number.isNaN(x))),
    of: 'floats',
    noise: 'all',
    smooth: true,
    least: 1,
  },
  {
    name: 'norm',
    f: (v) => v.reduce((a, b) => Math.max(a, Math.abs(b)), 0),
    of: 'floats',
    smooth: true,
    least: 1,
    options: { p: Number.POSITIVE_INFINITY },
  },
  {
    name: 'norm',
    f: (v) => total(v.map((x) => Math.abs(x) ** 3)) ** (1 / 3),
    of: 'floats',
    noise: 'all',
    smooth: true,
    least: 1,
    options: { p: 3 },
    domain: (x) => Math.abs(x) < 30 && Math.abs(x) > 1e-2,
  },
  {
    name: 'norm',
    f: (v) => v.filter((x) => x !== 0).length,
    of: 'floats',
    least: 1,
    options: { p: 0 },
  },
  {
    name: 'median',
    f: (v) => {
      if (v.some(Number.isNaN)) return Number.NaN;
      return [...v].sort((a, b) => a - b)[Math.floor((v.length - 1) / 2)] as number;
    },
    of: 'floats',
    smooth: true,
    least: 1,
    options: { interpolation: 'lower' },
  },
  {
    name: 'median',
    f: (v) => {
      if (v.some(Number.isNaN)) return Number.NaN;
      const s = [...v].sort((a, b) => a - b);
      const m = (s.length - 1) / 2;
      return ((s[Math.floor(m)] as number) + (s[Math.ceil(m)] as number)) / 2;
    },
    of: 'floats',
    noise: 'all',
    smooth: true,
    least: 1,
    domain: Number.isFinite,
  },
];

function reduction(row: Row, pool: Pool): Made | null {
  const x = pool.pick(
    (v) =>
      (row.of === 'any' || (row.of === 'floats' ? isFloat(v.dtype) : isNumber(v))) &&
      (row.domain === undefined || v.data.every(row.domain)),
  );
  if (x === null) return null;
  const rank = x.shape.length;
  const all = x.shape.map((_, i) => i);
  const whole = pool.c.nat(4) === 3;
  const axes = whole || rank === 0 ? all : pool.c.nat(2) === 0 ? [pool.c.nat(rank)] : pool.c.some(all, 0);
  if (axes.length === 0 && rank > 0) return null;
  if (count(axes.map((i) => x.shape[i] as number)) < (row.least ?? 0)) return null;
  const keepDims = pool.c.nat(2) === 1;
  const written = pool.c.shuffled(axes).map((i) => (pool.c.seldom(3) ? i - rank : i));
  // In row-major order whatever the order in which axes are named.
  const axis: Arg = axes.length === 1 ? (written[0] as number) : written;
  const options: Arg = { ...(axes.length === rank ? {} : { axis }), ...(keepDims ? { keepDims } : {}), ...row.options };
  const dtype = row.result?.(x.dtype) ?? x.dtype;
  return {
    args: [ref(x), options],
    dtype,
    formula: (a) => reduce(a as NDArray, axes, row.f, keepDims),
    noise: row.noise ?? 'none',
    ordered: row.noise === undefined || !isFloat(dtype),
  };
}

export const reductions: readonly Operation[] = [
  ...rows.map(
    (row): Operation => ({
      name: row.name,
      ...(row.smooth ? { smooth: true } : {}),
      make: (pool) => reduction(row, pool),
    }),
  ),
];
