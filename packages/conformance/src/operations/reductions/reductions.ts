/** Reductions: one row each, with the fold of a list of numbers that the suite and the random programs share. */
import * as pg from '@polygrad/core';
import type { DType } from '@polygrad/core';
import { count, map, reduce } from '../../oracle/ndarray.ts';
import { integer, type Random, sample, uniform } from '../../oracle/random.ts';
import { average, length, logSum, normOrders, spread, total } from '../../oracle/sums.ts';
import { floatOf, isFloat, isNumber, type Made, type Pool, type RandomCall, ref, wide } from '../../programs/pool.ts';
import type { Arg, Noise } from '../../programs/program.ts';
import { floats, type OpSpec } from '../../spec.ts';
import { functionOf, type OperationRow, together } from '../row.ts';
import { reductionCases } from '../shapes.ts';
import { gaps, nanMeanSpec, nanSumSpec } from './nan.ts';

type Fold = (values: number[]) => number;
const any = uniform(-2, 2);

/** What the suite checks in all shapes and axes: one spec. */
interface ReductionCase {
  /** The operation's name if left out. */
  readonly name?: string;
  readonly draw?: (r: Random) => number;
  readonly dtypes?: readonly DType[];
  /** 2 if left out. */
  readonly order?: 0 | 2;
}

interface ReductionRow {
  readonly name: string;
  readonly f: Fold;
  readonly options?: { readonly [key: string]: Arg };
  readonly of?: 'any' | 'numbers' | 'floats';
  /** The dtype of the result, if that is not the operand's. */
  readonly result?: (dtype: DType) => DType;
  readonly noise?: Noise;
  readonly smooth?: boolean;
  /** Fewest elements that are reduced together; where there is such a number, nothing is empty. */
  readonly least?: number;
  /** Where random programs call it. */
  readonly domain?: (x: number) => boolean;
  /** False: random programs do not call it so. */
  readonly drawn?: false;
  readonly cases?: readonly ReductionCase[];
  /** What the suite checks beside the cases. */
  readonly specs?: readonly OpSpec[];
}

const first =
  (better: (x: number, best: number) => boolean): Fold =>
  (v) => {
    const nan = v.findIndex(Number.isNaN);
    return nan >= 0 ? nan : v.reduce((best, x, i) => (better(x, v[best]!) ? i : best), 0);
  };
const firstLargest = first((x, best) => x > best);
const firstSmallest = first((x, best) => x < best);
const highest: Fold = (v) => v.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
const lowest: Fold = (v) => v.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
const nonZero: Fold = (v) => v.filter((x) => x !== 0).length;
const numbers = (v: readonly number[]): number[] => v.filter((x) => !Number.isNaN(x));

const ofIntegers = (name: string): ReductionCase => ({
  name: `${name} int`,
  draw: integer(-9, 9),
  dtypes: ['int32'],
  order: 0,
});
const ofTruths: readonly ReductionCase[] = [{ draw: integer(0, 1), dtypes: ['bool'], order: 0 }];

/** Positions along every axis, with ties. */
const position = (name: 'argMax' | 'argMin', fold: Fold): OpSpec<1> => ({
  name,
  dtypes: ['float32', 'float64', 'int32'],
  result: 'int32',
  // The last is found in chunks.
  instances: [[7], [3, 5], [67], [2, 3, 4], [4, 33], [33, 4], [2 ** 18 + 3]].flatMap((shape) =>
    shape.map((_, axis) => ({
      label: `[${shape}] over ${axis}`,
      options: { axis },
      draw: (r: Random) => [sample(r, shape, integer(-3, 3))],
    })),
  ),
  run: ([x], o) => functionOf(name)(x, o),
  oracle: ([x], o) => reduce(x, [o.axis as number], fold),
});

const counted: OpSpec<1> = {
  name: 'countNonZero',
  dtypes: ['float32', 'int32'],
  instances: [{ label: '[3,40]', small: false, draw: (r: Random) => [sample(r, [3, 40], integer(0, 2))] }],
  run: ([x]) => pg.countNonZero(x, { axis: 1 }),
  oracle: ([x]) => reduce(x, [1], nonZero),
  result: 'int32',
};

/** Norms of many orders along an axis. */
const normOfOrder: OpSpec<1> = {
  name: 'norm of an order',
  dtypes: floats,
  instances: [...normOrders, Number.NEGATIVE_INFINITY, 0.5, -1, 0].map((p) => ({
    label: `p ${p}`,
    small: p !== 0,
    options: { p },
    draw: (r: Random) => [map(sample(r, [3, 5], uniform(0.2, 1)), (x) => (r() < 0.5 ? -x : x))],
  })),
  run: ([x], o) => pg.norm(x, { p: o.p as number, axis: 1 }),
  oracle: ([x], o) =>
    reduce(x, [1], (v) => {
      if (o.p === 0) return v.length;
      if (o.p === Number.NEGATIVE_INFINITY) return Math.min(...v.map(Math.abs));
      return length(v, o.p as number);
    }),
  gradient: { of: [0], order: 2 },
};

const rows: readonly ReductionRow[] = [
  {
    name: 'sum',
    f: total,
    of: 'any',
    result: wide,
    noise: 'all',
    smooth: true,
    cases: [{}, ofIntegers('sum')],
  },
  { name: 'mean', f: average, result: floatOf, noise: 'all', smooth: true, least: 1, cases: [{}] },
  { name: 'max', f: highest, smooth: true, least: 1, cases: [{}, ofIntegers('max')] },
  { name: 'min', f: lowest, smooth: true, least: 1, cases: [{}] },
  {
    name: 'prod',
    f: (v) => v.reduce((a, b) => a * b, 1),
    of: 'any',
    result: wide,
    noise: 'all',
    smooth: true,
    cases: [{ draw: uniform(0.6, 1.4) }],
  },
  { name: 'argMax', f: firstLargest, result: () => 'int32', least: 1, specs: [position('argMax', firstLargest)] },
  { name: 'argMin', f: firstSmallest, result: () => 'int32', least: 1, specs: [position('argMin', firstSmallest)] },
  { name: 'any', f: (v) => (v.some((x) => x !== 0) ? 1 : 0), of: 'any', result: () => 'bool', cases: ofTruths },
  { name: 'all', f: (v) => (v.every((x) => x !== 0) ? 1 : 0), of: 'any', result: () => 'bool', cases: ofTruths },
  { name: 'countNonZero', f: nonZero, of: 'any', result: () => 'int32', specs: [counted] },
  {
    name: 'variance',
    f: (v) => spread(v),
    of: 'floats',
    least: 1,
    options: { correction: 0 },
    drawn: false,
    cases: [{}],
  },
  {
    name: 'variance',
    f: (v) => spread(v, 1),
    of: 'floats',
    noise: 'all',
    smooth: true,
    least: 2,
    options: { correction: 1 },
    cases: [{ name: 'variance unbiased' }],
  },
  {
    name: 'std',
    f: (v) => Math.sqrt(spread(v, 0)),
    of: 'floats',
    noise: 'all',
    smooth: true,
    least: 2,
    options: { correction: 0 },
    cases: [{}],
  },
  { name: 'logSumExp', f: logSum, of: 'floats', noise: 'all', smooth: true, cases: [{}] },
  {
    name: 'norm',
    f: (v) => Math.hypot(...v),
    of: 'floats',
    noise: 'all',
    smooth: true,
    least: 1,
    domain: (x) => Math.abs(x) < 1e3,
    cases: [{}],
    specs: [normOfOrder],
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
  {
    name: 'nanSum',
    f: (v) => total(numbers(v)),
    of: 'floats',
    noise: 'all',
    smooth: true,
    specs: [nanSumSpec, gaps('nanSum')],
  },
  {
    name: 'nanMean',
    f: (v) => average(numbers(v)),
    of: 'floats',
    noise: 'all',
    smooth: true,
    least: 1,
    specs: [nanMeanSpec, gaps('nanMean')],
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
];

function specOf(
  row: ReductionRow,
  { name = row.name, draw = any, dtypes = floats, order = 2 }: ReductionCase,
): OpSpec<1> {
  const { least } = row;
  return {
    name,
    dtypes,
    // Over all axes too, and with those that are reduced kept.
    instances: reductionCases
      .filter(
        ({ shape, axes }) =>
          least === undefined || (count(shape) > 0 && count(axes.map((axis) => shape[axis]!)) >= least),
      )
      .flatMap(({ shape, axes }) =>
        [false, true].map((keepDims) => ({
          label: `[${shape}] over [${axes}]${keepDims ? ' keepDims' : ''}`,
          small: count(shape) <= 24 && count(shape) > 0,
          options: { axis: [...axes], keepDims },
          draw: (random: Random) => [sample(random, shape, draw)],
        })),
      ),
    run: ([x], o) => functionOf(row.name)(x, { ...o, ...row.options }),
    oracle: ([x], o) => reduce(x, o.axis as number[], row.f, o.keepDims as boolean),
    terms: ([x]) => count(x.shape),
    ...(row.result ? { result: row.result } : {}),
    ...(order === 0 ? {} : { gradient: { of: [0], order } }),
  };
}

/** A random call: over some axes, in any order, counted from either end. */
export const reductionCall = (row: ReductionRow): RandomCall => ({
  ...(row.smooth ? { smooth: true } : {}),
  make: (pool) => made(row, pool),
});

function made(row: ReductionRow, pool: Pool): Made | null {
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
  if (count(axes.map((i) => x.shape[i]!)) < (row.least ?? 0)) return null;
  const keepDims = pool.c.nat(2) === 1;
  const written = pool.c.shuffled(axes).map((i) => (pool.c.seldom(3) ? i - rank : i));
  // In row-major order whatever the order in which axes are named.
  const axis: Arg = axes.length === 1 ? written[0]! : written;
  const options: Arg = { ...(axes.length === rank ? {} : { axis }), ...(keepDims ? { keepDims } : {}), ...row.options };
  const dtype = row.result?.(x.dtype) ?? x.dtype;
  return {
    args: [ref(x), options],
    dtype,
    formula: (a) => reduce(a, axes, row.f, keepDims),
    noise: row.noise ?? 'none',
    ordered: row.noise === undefined || !isFloat(dtype),
  };
}

export const reductionRows: readonly OperationRow[] = together(
  rows.map((row) => ({
    name: row.name,
    specs: [...(row.cases ?? []).map((given) => specOf(row, given)), ...(row.specs ?? [])],
    calls: row.drawn === false ? [] : [reductionCall(row)],
  })),
);
