/** Operands of random calls: moderate values that are there, or new ones of a shape that is asked for; values with an axis, and elements picked along it. */
import type { DType } from '@polygrad/core';
import { count } from '../oracle/ndarray.ts';
import { isFloat, isInteger, isNumber, type Pool } from './pool.ts';
import type { Noise, Value } from './program.ts';

export const small = (v: Value): boolean =>
  v.data.length <= 1500 && v.data.every((x) => !Number.isFinite(x) || Math.abs(x) < 1e4);

/** Few floats of moderate size, none of them NaN or infinite. */
export const plain = (v: Value): boolean =>
  isFloat(v.dtype) && v.data.length <= 800 && v.data.every((x) => Math.abs(x) < 100);

export const sums = (dtype: DType): { noise: Noise; ordered: boolean } => ({ noise: 'all', ordered: !isFloat(dtype) });

/** Elements for a new operand: moderate, and different. */
export function drawn(pool: Pool, dtype: DType, shape: readonly number[]): Value {
  const [a, b] = [pool.c.nat(31) + 1, pool.c.nat(17)];
  const whole = (i: number): number => ((i * a + b + (i >> 2)) % 7) - (dtype.startsWith('u') ? 0 : 3);
  return pool.input(
    dtype,
    shape,
    Array.from({ length: count(shape) }, (_, i) => (isFloat(dtype) ? whole(i) / 4 + (i % 3) / 8 : whole(i))),
  );
}

/** A number that stands for an element of the dtype. */
export function weak(pool: Pool, dtype: DType): number {
  const whole = pool.c.pick([2, 1, 3, 0, 5, 7]);
  if (dtype.startsWith('u') || isInteger(dtype)) return dtype.startsWith('u') || pool.c.nat(2) === 0 ? whole : -whole;
  return pool.c.pick([2, 0.5, -1.5, 1, 0, 3, -0.25]);
}

/** Elements of 1/8 .. 7/8: weights, variances and probabilities. */
export function parts(pool: Pool, dtype: DType, shape: readonly number[]): Value {
  const [a, b] = [pool.c.nat(31) + 1, pool.c.nat(17)];
  return pool.input(
    dtype,
    shape,
    Array.from({ length: count(shape) }, (_, i) => (1 + ((i * a + b + (i >> 2)) % 7)) / 8),
  );
}

export const operand = (pool: Pool, rank: number, most = 8, fits: (v: Value) => boolean = () => true): Value | null =>
  pool.pick((v) => isNumber(v) && v.shape.length >= rank && v.shape.length <= most && small(v) && fits(v));

/** A value with an axis, and the axis. */
export function withAxis(
  pool: Pool,
  fits: (v: Value) => boolean = () => true,
): { x: Value; axis: number; written: number; n: number } | null {
  const x = pool.pick((v) => v.shape.length > 0 && v.data.length < 4000 && fits(v));
  if (x === null) return null;
  const [axis, written] = pool.axis(x.shape.length);
  return { x, axis, written, n: x.shape[axis]! };
}

/** The same for a value that is not empty. */
export const withElements = (pool: Pool, fits: (v: Value) => boolean = () => true): ReturnType<typeof withAxis> =>
  withAxis(pool, (v) => count(v.shape) > 0 && fits(v));

/** A value of moderate floats that is not empty. */
export const vectors = (
  pool: Pool,
  rank: number,
  most: number,
  fits: (v: Value) => boolean = () => true,
): Value | null =>
  pool.pick((v) => v.shape.length >= rank && v.shape.length <= most && plain(v) && !v.shape.includes(0) && fits(v));

/** No element is close to 0. */
export const away = (v: Value): boolean => v.data.every((x) => Math.abs(x) > 0.05);

/** Floats that squares and exponentials do not carry away. */
export const tame = (v: Value): boolean => isFloat(v.dtype) && v.data.every((x) => Math.abs(x) < 1e3);
