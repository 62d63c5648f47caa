/**
 * sin, cos, tan in arithmetic: the angle is reduced (angle.ts), then polynomials of fdlibm's form (k_sin.c, k_cos.c) on a rest
 * in two parts.
 */
import { type Angle, angleOf, bySize, reduceDouble, reduceInteger } from './angle.ts';
import { type Coefficients, type FloatMath, Math32, type Math64 } from '../float-math.ts';
import type { KNode } from '../../ir/ir.ts';

/** (sin r - r) / r^3 in r^2, |r| <= pi/4; minimax to 2^-27, and the Taylor series to 2^-60. */
const SIN: Coefficients = {
  float32: [-0.166666552, 0.00833218731, -0.000195179004],
  float64: [
    -1 / 6,
    1 / 120,
    -1 / 5040,
    1 / 362880,
    -1 / 39916800,
    1 / 6227020800,
    -1 / 1307674368000,
    1 / 355687428096000,
  ],
};
/** (cos r - 1 + r^2/2) / r^4 in r^2; 2^-33 and 2^-60. */
const COS: Coefficients = {
  float32: [0.0416666456, -0.00138873013, 2.44306684e-5],
  float64: [
    1 / 24,
    -1 / 720,
    1 / 40320,
    -1 / 3628800,
    1 / 479001600,
    -1 / 87178291200,
    1 / 20922789888000,
    -1 / 6402373705728000,
  ],
};
/** sin r / r and cos r in r^2, 2^-37 and 2^-34: for float32 results computed in float64. */
const SIN_WIDE = [
  0.9999999999955946, -0.16666666631072385, 0.00833332873137829, -0.0001983918663006496, 2.7172005471335453e-6,
];
const COS_WIDE = [
  0.999999999942767, -0.4999999956446868, 0.041666612575375676, -0.0013886509900476747, 2.4370942533159473e-5,
];

/** Without float64 beside float32. */
function reduce(m: FloatMath, a: KNode): Angle {
  return m instanceof Math32 ? reduceInteger(m, a) : reduceDouble(m as Math64, a);
}

function hasBit(m: FloatMath, quarter: KNode, bit: 1 | 2): KNode {
  return m.e.ne(m.e.and(quarter, bit), 0);
}

function sine(m: FloatMath, { high, low }: Angle): KNode {
  const square = m.mul(high, high);
  return m.add(high, m.add(low, m.mul(m.mul(high, square), m.poly(square, m.pick(SIN)))));
}

function cosine(m: FloatMath, { high, low }: Angle): KNode {
  const square = m.mul(high, high);
  const half = m.mul(square, 0.5);
  const one = m.sub(1, half);
  const tail = m.sub(m.mul(m.mul(square, square), m.poly(square, m.pick(COS))), m.mul(high, low));
  return m.add(one, m.add(m.sub(m.sub(1, one), half), tail));
}

/** sin of a plus a number of quarter turns. */
function wave(m: FloatMath, a: KNode, quarters: 0 | 1): KNode {
  if (!(m instanceof Math32) || m.wide === null) return waveOf(m, reduce(m, a), quarters);
  const { wide } = m;
  return bySize(m, wide, a, (turns) => waveOf(m, angleOf(m, wide, turns), quarters));
}

function waveOf(m: FloatMath, angle: Angle, quarters: 0 | 1): KNode {
  const k = m.e.add(angle.quarter, quarters);
  const value = m.where(hasBit(m, k, 1), cosine(m, angle), sine(m, angle));
  return m.where(hasBit(m, k, 2), m.neg(value), value);
}

export function sin(m: FloatMath, x: KNode): KNode {
  const value = wave(m, m.abs(x), 0);
  return m.where(m.isNegative(x), m.neg(value), value);
}

export function cos(m: FloatMath, x: KNode): KNode {
  return wave(m, m.abs(x), 1);
}

export function tan(m: FloatMath, x: KNode): KNode {
  const a = m.abs(x);
  const value = m instanceof Math32 && m.wide !== null ? tanWide(m, m.wide, a) : tanPlain(m, a);
  return m.where(m.isNegative(x), m.neg(value), value);
}

/** sin / cos, or -cos / sin where the quarter is odd. */
function quotient(m: FloatMath, odd: KNode, s: KNode, c: KNode): KNode {
  return m.div(m.where(odd, m.neg(c), s), m.where(odd, s, c));
}

function tanPlain(m: FloatMath, a: KNode): KNode {
  const angle = reduce(m, a);
  return quotient(m, hasBit(m, angle.quarter, 1), sine(m, angle), cosine(m, angle));
}

function tanWide(m: Math32, w: Math64, a: KNode): KNode {
  return bySize(m, w, a, ({ quarter, rest }) => {
    const square = w.mul(rest, rest);
    const s = w.mul(rest, w.poly(square, SIN_WIDE));
    const c = w.poly(square, COS_WIDE);
    return m.e.cast(quotient(w, hasBit(m, m.wholeOf(quarter).bits, 1), s, c), 'float32');
  });
}
