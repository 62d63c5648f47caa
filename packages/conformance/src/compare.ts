/** Comparison at the tolerances of docs/numerics.md, with messages that show the worst element. */
import type { DType } from '@polygrad/core';
import { type NDArray, unravel } from './oracle/ndarray.ts';

/** Relative and absolute: |got - expected| is at most atol + rtol |expected|. */
export interface Tolerance {
  readonly rtol: number;
  readonly atol: number;
}

/** What is compared decides the tolerance; see docs/numerics.md. */
export type ToleranceKind = 'forward' | 'gradient' | 'finiteDifference';

/** Tolerances of each kind of comparison, by dtype. */
export type Tolerances = Readonly<Record<ToleranceKind, Readonly<Partial<Record<DType, Tolerance>>>>>;

const exact: Tolerance = { rtol: 0, atol: 0 };

/** The contract. `gradient` atol counts in units of the largest entry of the expected gradient. */
export const defaultTolerances: Tolerances = {
  forward: {
    float64: { rtol: 1e-7, atol: 1e-7 },
    float32: { rtol: 1.3e-6, atol: 1e-5 },
    float16: { rtol: 1e-3, atol: 1e-5 },
    bfloat16: { rtol: 1.6e-2, atol: 1e-5 },
    int8: exact,
    int16: exact,
    int32: exact,
    int64: exact,
    uint8: exact,
    uint16: exact,
    uint32: exact,
    uint64: exact,
    bool: exact,
  },
  gradient: { float64: { rtol: 1e-6, atol: 1e-7 }, float32: { rtol: 1.3e-5, atol: 1e-4 } },
  finiteDifference: { float64: { rtol: 1e-3, atol: 1e-5 } },
};

/** Relative error bound of a float32 sum of K products: K u / (1 - K u), u = 2^-24 (Higham, ch. 3). */
export function gamma(terms: number): number {
  const ku = terms * 2 ** -24;
  return ku / (1 - ku);
}

/**
 * Throws unless every element of `actual` is within atol + rtol * |expected| of `expected`; NaN equals NaN, infinities
 * must match exactly. `slack`, where given, is an additional absolute allowance per element (long sums).
 */
export function assertClose(
  what: string,
  actual: ArrayLike<number | bigint>,
  actualShape: readonly number[],
  expected: NDArray,
  { rtol, atol }: Tolerance,
  slack?: NDArray,
): void {
  if (actualShape.join() !== expected.shape.join()) {
    throw new Error(`${what}: shape [${actualShape}] where [${expected.shape}] is expected`);
  }
  if (actual.length !== expected.data.length) {
    throw new Error(`${what}: ${actual.length} values where ${expected.data.length} are expected`);
  }
  let worst = -1;
  let worstExcess = 0;
  for (let i = 0; i < actual.length; i++) {
    const a = Number(actual[i]);
    const e = expected.data[i]!;
    if (Object.is(a, e) || a === e || (Number.isNaN(a) && Number.isNaN(e))) continue;
    const error = Math.abs(a - e);
    const allowed = atol + rtol * Math.abs(e) + (slack?.data[i] ?? 0);
    if (error <= allowed) continue;
    const excess = Number.isFinite(error) ? error / Math.max(allowed, Number.MIN_VALUE) : Number.POSITIVE_INFINITY;
    if (worst < 0 || excess > worstExcess) {
      worst = i;
      worstExcess = excess;
    }
  }
  if (worst >= 0) {
    const index = unravel(worst, expected.shape);
    throw new Error(
      `${what}: element [${index}] is ${Number(actual[worst])} where ${expected.data[worst]} is expected ` +
        `(rtol ${rtol}, atol ${atol}${slack ? `, slack ${slack.data[worst]}` : ''})`,
    );
  }
}
