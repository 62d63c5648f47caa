/**
 * exp, exp2, expm1, sinh, cosh, tanh in arithmetic.
 *
 * exp(x) = 2^n exp(r) with n = round(x / ln 2) and r = x - n ln 2 in two steps (Cody and Waite, *Software Manual for the
 * Elementary Functions*, 1980); exp(r) by its Taylor polynomial on |r| <= ln(2)/2, whose next term is below the precision wanted.
 */
import { type FloatMath, inverseFactorials } from './decompose-math.ts';
import type { KNode } from './ir.ts';

/** ln 2 split so that n * high is exact in float64 for |n| < 2^11 (constants of fdlibm's e_exp.c). */
const LN2_HIGH = 0.6931471803691238;
const LN2_LOW = 1.9082149292705877e-10;
/** The same for float32 (Cephes, expf.c). */
const LN2_HIGH_32 = 0.693359375;
const LN2_LOW_32 = -2.1219444e-4;

/** Taylor degree for exp on |r| <= 0.35: relative error of the next term 4e-18, 2e-10 and 5e-9. */
function degree(m: FloatMath): number {
  return m.fine ? 13 : m.t === 'float64' ? 8 : 7;
}

/** e^r - 1 = r + r^2 P(r) for small |r|: no cancellation near zero. */
function expm1Small(m: FloatMath, r: KNode, terms: number): KNode {
  const tail = m.poly(r, inverseFactorials(terms).slice(2));
  return m.muladd(m.mul(r, r), tail, r);
}

/** Arguments beyond which the result is certainly 0 or infinity, so that n stays small. */
function clampExponent(m: FloatMath, x: KNode, low: number, high: number): KNode {
  return m.min(m.max(x, low), high);
}

export function exp(m: FloatMath, x: KNode): KNode {
  const limit = m.fine ? 760 : 110;
  const y = clampExponent(m, x, -limit, limit);
  const n = m.round(m.mul(y, Math.LOG2E));
  const [high, low] = m.t === 'float32' ? [LN2_HIGH_32, LN2_LOW_32] : [LN2_HIGH, LN2_LOW];
  const r = m.muladd(n, -low, m.muladd(n, -high, y));
  return m.scale(m.add(expm1Small(m, r, degree(m)), 1), n);
}

export function exp2(m: FloatMath, x: KNode): KNode {
  const limit = m.fine ? 1100 : 160;
  const y = clampExponent(m, x, -limit, limit);
  const n = m.round(y);
  const r = m.mul(m.sub(y, n), Math.LN2);
  return m.scale(m.add(expm1Small(m, r, degree(m)), 1), n);
}

export function expm1(m: FloatMath, x: KNode): KNode {
  const small = expm1Small(m, m.where(m.lt(m.abs(x), 0.35), x, 0), degree(m) + 1);
  const large = m.sub(exp(m, x), 1);
  // x itself for the tiniest, so that denormals and -0 pass through.
  return m.where(m.lt(m.abs(x), 1e-20), x, m.where(m.lt(m.abs(x), 0.35), small, large));
}

export function sinh(m: FloatMath, x: KNode): KNode {
  const size = m.abs(x);
  const t = expm1(m, size);
  const moderate = m.mul(m.add(t, m.div(t, m.add(t, 1))), 0.5);
  return m.where(m.lt(size, 1e-20), x, m.copySign(m.where(m.lt(size, 20), moderate, halfExp(m, size)), x));
}

export function cosh(m: FloatMath, x: KNode): KNode {
  const size = m.abs(x);
  const t = exp(m, size);
  return m.where(m.lt(size, 20), m.mul(m.add(t, m.div(1, t)), 0.5), halfExp(m, size));
}

/** exp(x) / 2 for large x without early overflow. */
function halfExp(m: FloatMath, x: KNode): KNode {
  const root = exp(m, m.mul(x, 0.5));
  return m.mul(m.mul(root, 0.5), root);
}

export function tanh(m: FloatMath, x: KNode): KNode {
  const size = m.min(m.abs(x), 22);
  const t = expm1(m, m.mul(size, 2));
  return m.where(m.lt(m.abs(x), 1e-20), x, m.copySign(m.div(t, m.add(t, 2)), x));
}
