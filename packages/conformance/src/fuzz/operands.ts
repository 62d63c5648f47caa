/** Operands of random calls: moderate values that are there, or new ones of a shape that is asked for; values with an axis, and elements picked along it. */
import type { DType } from '@polygrad/core';
import { at, build, count, type NDArray } from '../oracle/ndarray.ts';
import { isFloat, isNumber, type Made, type Pool, ref } from './pool.ts';
import type { Noise } from '../operations/row.ts';
import type { Value } from './program.ts';

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
  return { x, axis, written, n: x.shape[axis] as number };
}

/** The same for a value that is not empty. */
export const withElements = (pool: Pool, fits: (v: Value) => boolean = () => true): ReturnType<typeof withAxis> =>
  withAxis(pool, (v) => count(v.shape) > 0 && fits(v));

/** Calls that take each element along an axis from where an index says; `across` draws how long the index is along other axes. */
export const picked =
  (across: (pool: Pool, size: number) => number) =>
  (pool: Pool): Made | null => {
    const found = withElements(pool);
    if (found === null) return null;
    const { x, axis, written, n } = found;
    const shape = x.shape.map((size, i) => (i === axis ? pool.c.pick([2, 1, 4]) : across(pool, size)));
    const index = pool.indices(shape, 0, n - 1);
    return {
      args: [ref(x), ref(index), written],
      dtype: x.dtype,
      formula: (a, places) =>
        build(shape, (position) =>
          at(
            a as NDArray,
            position.map((p, k) => (k === axis ? at(places as NDArray, position) : p)),
          ),
        ),
    };
  };
