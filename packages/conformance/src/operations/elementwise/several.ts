/** Elementwise operations of three operands, or of others than tensors of one shape: choices, limits, weights, numbers. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { at, broadcastShapes, build, count, map, zip } from '../../oracle/ndarray.ts';
import { integer, type Random, sample, samples, uniform } from '../../oracle/random.ts';
import { clamp } from '../../oracle/special.ts';
import { hold } from '../../programs/evaluate.ts';
import { weak } from '../../programs/operands.ts';
import { broadcast, isFloat, isNumber, type Made, type Pool, type RandomCall, ref } from '../../programs/pool.ts';
import type { Value } from '../../programs/program.ts';
import { floats, type Inputs, numeric, type OpSpec, spec } from '../../spec.ts';
import { type OperationRow, smooth } from '../row.ts';
import { anyShapes } from '../shapes.ts';
import { type Draw, off } from './row.ts';

const any = uniform(-3, 3);
const whole = integer(-9, 9);

function whereSpec(): OpSpec<3> {
  return {
    name: 'where',
    dtypes: numeric,
    inputDTypes: { 0: 'bool' },
    instances: [
      { c: [], a: [3], b: [] },
      { c: [5], a: [5], b: [5] },
      { c: [2, 1], a: [1, 3], b: [2, 3] },
      { c: [67], a: [67], b: [1] },
    ].map(({ c, a, b }) => ({
      label: `[${c}] [${a}] [${b}]`,
      small: count(broadcastShapes(c, a, b)) <= 12,
      draw: (r: Random) => [sample(r, c, integer(0, 1)), sample(r, a, whole), sample(r, b, whole)],
    })),
    run: ([c, a, b]) => pg.where(c, a, b),
    oracle: ([c, a, b]) => zip((p, x, y) => (p ? x : y), c, a, b),
    gradient: { of: [1, 2], order: 2 },
  };
}

function clipSpec(): OpSpec<1> {
  return {
    name: 'clip',
    dtypes: floats,
    instances: anyShapes.map(({ label, shape, small }) => ({
      label,
      small,
      draw: (r: Random) => [sample(r, shape, any)],
    })),
    run: ([x]) => pg.clip(x, -1, 1.5),
    oracle: ([x]) => map(x, (v) => clamp(v, -1, 1.5)),
    gradient: { of: [0], order: 2 },
  };
}

/** Lists of three shapes. */
const threes = (shapes: readonly Inputs<3, readonly number[]>[]): readonly Inputs<3, readonly number[]>[] => shapes;

function fmaSpec(): OpSpec<3> {
  return {
    name: 'fma',
    dtypes: floats,
    instances: threes([
      [[5], [5], [5]],
      [[67], [], [67]],
      [[2, 1], [3], [2, 3]],
      [[0], [1], []],
    ]).map((shapes) => ({
      label: shapes.map((shape) => `[${shape}]`).join(' '),
      small: true,
      draw: (r: Random) => samples(r, shapes, any),
    })),
    run: ([a, b, c]) => pg.fma(a, b, c),
    oracle: ([a, b, c]) => zip((x, y, z) => x * y + z, a, b, c),
    gradient: { of: [0, 1, 2], order: 2 },
  };
}

interface OneOf {
  readonly name: string;
  readonly run: (x: Tensor) => Tensor;
  readonly f: (x: number) => number;
  readonly draw: Draw;
}

const ofOne = ({ name, run, f, draw }: OneOf): OpSpec<1> => ({
  name,
  dtypes: floats,
  instances: [[], [7], [2, 3], [67]].map((shape) => ({
    label: `[${shape}]`,
    small: count(shape) < 10,
    draw: (r: Random) => [sample(r, shape, draw)],
  })),
  run: ([x]) => run(x),
  oracle: ([x]) => map(x, f),
  gradient: { of: [0], order: 2 },
});

interface ThreeOf {
  readonly name: string;
  readonly run: (xs: Inputs<3, Tensor>) => Tensor;
  readonly f: (a: number, b: number, c: number) => number;
  readonly draw: Inputs<3, Draw>;
}

const ofThree = ({ name, run, f, draw }: ThreeOf): OpSpec<3> => ({
  name,
  dtypes: floats,
  instances: threes([
    [[7], [7], [7]],
    [[2, 1], [3], [2, 3]],
    [[67], [], [1]],
  ]).map((each) => ({
    label: each.map((shape) => `[${shape}]`).join(' '),
    small: each[0][0] !== 67,
    draw: (r: Random) => [sample(r, each[0], draw[0]), sample(r, each[1], draw[1]), sample(r, each[2], draw[2])],
  })),
  run,
  oracle: ([a, b, c]) => zip(f, a, b, c),
  gradient: { of: draw.map((_, i) => i), order: 2 },
});

export const preluSpecs: readonly OpSpec[] = [
  ofOne({
    name: 'prelu with one weight',
    run: (x) => pg.prelu(x, 0.3),
    f: (x) => (x > 0 ? x : 0.3 * x),
    draw: off([0]),
  }),
  spec<2>({
    name: 'prelu with a weight per channel',
    dtypes: floats,
    instances: [
      [2, 3],
      [2, 3, 4],
      [1, 3, 2, 3],
    ].map((shape) => ({
      label: `[${shape}]`,
      small: true,
      draw: (r: Random) => [sample(r, shape, off([0])), sample(r, [3], uniform(0.1, 0.9))],
    })),
    run: ([x, w]) => pg.prelu(x, w),
    oracle: ([x, w]) =>
      build(x.shape, (index) => {
        const v = at(x, index);
        return v > 0 ? v : v * at(w, [index[1]!]);
      }),
    gradient: { of: [0, 1], order: 2 },
  }),
];

/** Truths for the rows of a value. */
function mask(pool: Pool, { shape }: Value): Value {
  const size = shape.at(-1) ?? 1;
  const salt = pool.c.nat(7);
  return pool.input(
    'bool',
    shape.slice(-1),
    Array.from({ length: size }, (_, i) => Number((i * 5 + salt) % 7 < 4)),
  );
}

/** True if the small shape stretches to the large one. */
function fitsInto(small: readonly number[], large: readonly number[]): boolean {
  return small.length <= large.length && small.every((n, i) => n === 1 || n === large[large.length - small.length + i]);
}

/** a + value * b * c, or a + value * b / c. */
const added =
  (divided: boolean) =>
  (pool: Pool): Made | null => {
    const of = (v: Value): boolean => isFloat(v.dtype) && v.data.every((x) => Math.abs(x) < 1e4);
    const divisor = (v: Value): boolean => !divided || v.data.every((x) => Math.abs(x) > 0.01);
    const a = pool.pick(of);
    const b = a && pool.partner(a, (v) => v.dtype === a.dtype && of(v));
    const c = a && pool.partner(a, (v) => v.dtype === a.dtype && of(v) && divisor(v));
    if (a === null || b === null || c === null || broadcast(a.shape, b.shape, c.shape) === null) return null;
    const value = pool.c.pick([1, 0.5, -2]);
    return {
      args: [ref(a), ref(b), ref(c), ...(value === 1 ? [] : [{ value }])],
      dtype: a.dtype,
      formula: (x, y, z) => zip((p, q, r) => p + value * (divided ? q / r : q * r), x, y, z),
      noise: 'all',
    };
  };

export const isCloseCall: RandomCall = {
  make: (pool) => {
    const a = pool.pick((v) => v.dtype === 'float32' || v.dtype === 'float64');
    const b = a && pool.partner(a, (v) => v.dtype === a.dtype);
    if (a === null || b === null) return null;
    const close = (x: number, y: number): number =>
      Number(
        x === y || Math.abs(x - y) <= 0.1 + 0.1 * (Math.abs(y) === Number.POSITIVE_INFINITY ? Number.NaN : Math.abs(y)),
      );
    return {
      args: [ref(a), ref(b), { rtol: 0.1, atol: 0.1 }],
      dtype: 'bool',
      formula: (x, y) => zip(close, x, y),
    };
  },
};

export const severalRows: readonly OperationRow[] = [
  {
    name: 'where',
    specs: [whereSpec()],
    calls: [
      {
        smooth: true,
        make: (pool) => {
          const a = pool.pick();
          if (a === null) return null;
          const b = pool.partner(a, (v) => v.dtype === a.dtype);
          const m = pool.partner(a, (v) => v.dtype === 'bool') ?? mask(pool, a);
          if (b === null || m === null) return null;
          return broadcast(m.shape, a.shape, b.shape) !== null
            ? {
                args: [ref(m), ref(a), ref(b)],
                dtype: a.dtype,
                formula: (c, x, y) => zip((p, q, r) => (p !== 0 ? q : r), c, x, y),
              }
            : null;
        },
      },
    ],
  },
  {
    name: 'maskedFill',
    specs: [
      spec<2>({
        name: 'maskedFill',
        dtypes: numeric,
        inputDTypes: { 1: 'bool' },
        instances: [
          {
            label: '[3,4]',
            small: true,
            draw: (r: Random) => [sample(r, [3, 4], integer(-99, 99)), sample(r, [4], integer(0, 1))],
          },
        ],
        run: ([x, mask]) => pg.maskedFill(x, mask, 7),
        oracle: ([x, mask]) => build([3, 4], ([i, j]) => (at(mask, [j]) !== 0 ? 7 : at(x, [i, j]))),
        gradient: { of: [0], order: 2 },
      }),
    ],
    calls: [
      {
        smooth: true,
        make: (pool) => {
          const a = pool.pick(isNumber);
          const m = a && (pool.pick((v) => v.dtype === 'bool' && fitsInto(v.shape, a.shape)) ?? mask(pool, a));
          if (a === null || m === null) return null;
          const value = hold(a.dtype, weak(pool, a.dtype)) as number;
          return {
            args: [ref(a), ref(m), value],
            dtype: a.dtype,
            formula: (x, c) => zip((q, p) => (p !== 0 ? value : q), x, c),
          };
        },
      },
    ],
  },
  {
    name: 'clip',
    specs: [clipSpec()],
    calls: [
      {
        smooth: true,
        make: (pool) => {
          const a = pool.pick(isNumber);
          if (a === null) return null;
          const ends = [weak(pool, a.dtype), weak(pool, a.dtype)].sort((x, y) => x - y);
          const [low, high] = ends.map((x) => hold(a.dtype, x)) as [number, number];
          const [below, above] = pool.c.pick([
            [low, high],
            [null, high],
            [low, null],
          ] as const);
          return {
            args: [ref(a), below, above],
            dtype: a.dtype,
            formula: (x) =>
              map(x, (v) =>
                Math.min(above ?? Number.POSITIVE_INFINITY, Math.max(below ?? Number.NEGATIVE_INFINITY, v)),
              ),
          };
        },
      },
    ],
  },
  {
    name: 'fma',
    specs: [fmaSpec()],
    calls: [
      {
        smooth: true,
        make: (pool) => {
          const a = pool.pick((v) => isFloat(v.dtype));
          const b = a && pool.partner(a, (v) => v.dtype === a.dtype);
          const c = a && pool.partner(a, (v) => v.dtype === a.dtype);
          if (a === null || b === null || c === null || broadcast(a.shape, b.shape, c.shape) === null) return null;
          return {
            args: [ref(a), ref(b), ref(c)],
            dtype: a.dtype,
            formula: (x, y, z) => zip((p, q, r) => p * q + r, x, y, z),
            noise: 'all',
          };
        },
      },
    ],
  },
  {
    name: 'addcmul',
    specs: [
      ofThree({
        name: 'addcmul',
        run: ([a, b, c]) => pg.addcmul(a, b, c, { value: 0.5 }),
        f: (a, b, c) => a + 0.5 * b * c,
        draw: [any, any, any],
      }),
    ],
    calls: smooth(added(false)),
  },
  {
    name: 'addcdiv',
    specs: [
      ofThree({
        name: 'addcdiv',
        run: ([a, b, c]) => pg.addcdiv(a, b, c, { value: 0.5 }),
        f: (a, b, c) => a + (0.5 * b) / c,
        draw: [any, any, off([0, 0.1, -0.1, 0.2, -0.2])],
      }),
    ],
    calls: smooth(added(true)),
  },
  {
    name: 'heaviside',
    specs: [
      ofOne({
        name: 'heaviside',
        run: (x) => pg.heaviside(pg.round(x), 0.25),
        f: (x) => (Math.round(x) === 0 ? 0.25 : Number(x > 0)),
        draw: off([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]),
      }),
    ],
    calls: [
      {
        make: (pool) => {
          const a = pool.pick((v) => isFloat(v.dtype));
          if (a === null) return null;
          const value = pool.c.pick([0.5, 0, 1]);
          return {
            args: [ref(a), value],
            dtype: a.dtype,
            formula: (x) => map(x, (v) => (v === 0 ? value : Number.isNaN(v) ? v : v < 0 ? 0 : 1)),
          };
        },
      },
    ],
    notes: { orders: '0 everywhere' },
  },
  {
    name: 'lerp',
    specs: [
      ofThree({
        name: 'lerp',
        run: ([a, b, w]) => pg.lerp(a, b, w),
        f: (a, b, w) => a + w * (b - a),
        draw: [any, any, uniform(-0.5, 1.5)],
      }),
    ],
    calls: [
      {
        smooth: true,
        make: (pool) => {
          const a = pool.pick((v) => isFloat(v.dtype));
          const b = a && pool.partner(a, (v) => v.dtype === a.dtype);
          if (a === null || b === null) return null;
          const w = pool.c.pick([0.5, 0.25, 0, 1]);
          return {
            args: [ref(a), ref(b), w],
            dtype: a.dtype,
            formula: (x, y) => zip((p, q) => p + w * (q - p), x, y),
            noise: 'all',
          };
        },
      },
    ],
  },
];
