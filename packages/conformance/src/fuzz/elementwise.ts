/** Random calls of all elementwise operations: those of this file change dtypes, choose and limit. */
import type { DType } from '@polygrad/core';
import { integerFormat } from '../oracle/formats.ts';
import { map, type NDArray, zip } from '../oracle/ndarray.ts';
import { binary, weak } from './binary.ts';
import { hold } from './evaluate.ts';
import { broadcast, isFloat, isNumber, type Operation, type Pool, ref } from './pool.ts';
import type { Value } from './program.ts';
import { unary } from './unary.ts';

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

/** A value of a dtype in any float dtype or integer dtype and back. */
function castTo(from: DType, to: DType, x: number): number | null {
  if (to === 'bool') return Number(x !== 0);
  const format = integerFormat(to);
  if (format === null) return hold(to, x);
  if (!isFloat(from)) return hold(to, x);
  if (Number.isNaN(x)) return 0;
  const [low, high] = format.signed
    ? [-(2 ** (format.bits - 1)), 2 ** (format.bits - 1) - 1]
    : [0, 2 ** format.bits - 1];
  const cut = Math.min(high, Math.max(low, Math.trunc(x)));
  return Number.isSafeInteger(cut) ? cut : null;
}

const dtypes: readonly DType[] = [
  'float32',
  'int32',
  'bool',
  'float16',
  'bfloat16',
  'float64',
  'int8',
  'uint8',
  'int64',
  'uint16',
  'int16',
  'uint32',
  'uint64',
];

const others: readonly Operation[] = [
  {
    name: 'cast',
    make: (pool) => {
      const x = pool.pick();
      if (x === null) return null;
      const to = pool.c.pick(dtypes);
      if (x.data.some((v) => castTo(x.dtype, to, v) === null)) return null;
      return {
        args: [ref(x), to],
        dtype: to,
        formula: (a) => map(a as NDArray, (v) => castTo(x.dtype, to, v) ?? 2 ** 60),
        noise: isFloat(to) && isFloat(x.dtype) ? 'out' : 'none',
      };
    },
  },
  {
    name: 'where',
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
            formula: (c, x, y) => zip((p, q, r) => (p !== 0 ? q : r), c as NDArray, x as NDArray, y as NDArray),
          }
        : null;
    },
  },
  {
    name: 'maskedFill',
    smooth: true,
    make: (pool) => {
      const a = pool.pick(isNumber);
      const m = a && (pool.pick((v) => v.dtype === 'bool' && fitsInto(v.shape, a.shape)) ?? mask(pool, a));
      if (a === null || m === null) return null;
      const value = hold(a.dtype, weak(pool, a.dtype)) as number;
      return {
        args: [ref(a), ref(m), value],
        dtype: a.dtype,
        formula: (x, c) => zip((q, p) => (p !== 0 ? value : q), x as NDArray, c as NDArray),
      };
    },
  },
  {
    name: 'clip',
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
          map(x as NDArray, (v) =>
            Math.min(above ?? Number.POSITIVE_INFINITY, Math.max(below ?? Number.NEGATIVE_INFINITY, v)),
          ),
      };
    },
  },
  {
    name: 'fma',
    smooth: true,
    make: (pool) => {
      const a = pool.pick((v) => isFloat(v.dtype));
      const b = a && pool.partner(a, (v) => v.dtype === a.dtype);
      const c = a && pool.partner(a, (v) => v.dtype === a.dtype);
      if (a === null || b === null || c === null || broadcast(a.shape, b.shape, c.shape) === null) return null;
      return {
        args: [ref(a), ref(b), ref(c)],
        dtype: a.dtype,
        formula: (x, y, z) => zip((p, q, r) => p * q + r, x as NDArray, y as NDArray, z as NDArray),
        noise: 'all',
      };
    },
  },
  ...(['addcmul', 'addcdiv'] as const).map(
    (name): Operation => ({
      name,
      smooth: true,
      make: (pool) => {
        const of = (v: Value): boolean => isFloat(v.dtype) && v.data.every((x) => Math.abs(x) < 1e4);
        const divisor = (v: Value): boolean => name === 'addcmul' || v.data.every((x) => Math.abs(x) > 0.01);
        const a = pool.pick(of);
        const b = a && pool.partner(a, (v) => v.dtype === a.dtype && of(v));
        const c = a && pool.partner(a, (v) => v.dtype === a.dtype && of(v) && divisor(v));
        if (a === null || b === null || c === null || broadcast(a.shape, b.shape, c.shape) === null) return null;
        const value = pool.c.pick([1, 0.5, -2]);
        return {
          args: [ref(a), ref(b), ref(c), ...(value === 1 ? [] : [{ value }])],
          dtype: a.dtype,
          formula: (x, y, z) =>
            zip(
              (p, q, r) => p + value * (name === 'addcmul' ? q * r : q / r),
              x as NDArray,
              y as NDArray,
              z as NDArray,
            ),
          noise: 'all',
        };
      },
    }),
  ),
  {
    name: 'heaviside',
    make: (pool) => {
      const a = pool.pick((v) => isFloat(v.dtype));
      if (a === null) return null;
      const value = pool.c.pick([0.5, 0, 1]);
      return {
        args: [ref(a), value],
        dtype: a.dtype,
        formula: (x) => map(x as NDArray, (v) => (v === 0 ? value : Number.isNaN(v) ? v : v < 0 ? 0 : 1)),
      };
    },
  },
  {
    name: 'lerp',
    smooth: true,
    make: (pool) => {
      const a = pool.pick((v) => isFloat(v.dtype));
      const b = a && pool.partner(a, (v) => v.dtype === a.dtype);
      if (a === null || b === null) return null;
      const w = pool.c.pick([0.5, 0.25, 0, 1]);
      return {
        args: [ref(a), ref(b), w],
        dtype: a.dtype,
        formula: (x, y) => zip((p, q) => p + w * (q - p), x as NDArray, y as NDArray),
        noise: 'all',
      };
    },
  },
  {
    name: 'isClose',
    make: (pool) => {
      const a = pool.pick((v) => v.dtype === 'float32' || v.dtype === 'float64');
      const b = a && pool.partner(a, (v) => v.dtype === a.dtype);
      if (a === null || b === null) return null;
      const close = (x: number, y: number): number =>
        Number(
          x === y ||
            Math.abs(x - y) <= 0.1 + 0.1 * (Math.abs(y) === Number.POSITIVE_INFINITY ? Number.NaN : Math.abs(y)),
        );
      return {
        args: [ref(a), ref(b), { rtol: 0.1, atol: 0.1 }],
        dtype: 'bool',
        formula: (x, y) => zip(close, x as NDArray, y as NDArray),
      };
    },
  },
];

/** True if the small shape stretches to the large one. */
function fitsInto(small: readonly number[], large: readonly number[]): boolean {
  return small.length <= large.length && small.every((n, i) => n === 1 || n === large[large.length - small.length + i]);
}

export const elementwise: readonly Operation[] = [...unary, ...binary, ...others];
