/** Small operations in terms of smaller ones: absolute value, rounding, NaN test, fused multiply-add, high product, remainder. */
import type { Exprs } from '../../ir/expr.ts';
import type { KNode } from '../../ir/ir.ts';
import { type DType, isFloat, isSmallFloat } from '../../shape/dtype.ts';
import type { FloatMath, Math32 } from '../float-math.ts';
import { rounded, signOf, withSign } from './parts.ts';

/** float32 drops the sign bit; elsewhere max(x, -x), which keeps NaN and makes -0 0. */
export function abs(e: Exprs, x: KNode): KNode {
  if (x.dtype === 'float32') return e.bitcast(e.and(e.bitcast(x, 'int32'), 0x7fffffff), 'float32');
  return (x.dtype as DType).startsWith('u') || x.dtype === 'bool' ? x : e.max(x, e.neg(x));
}

export function ceil(m: FloatMath, x: KNode): KNode {
  return m.neg(m.floor(m.neg(x)));
}

export function trunc(m: FloatMath, x: KNode): KNode {
  return m.where(m.lt(x, 0), ceil(m, x), m.floor(x));
}

/** Half to even; a result of zero keeps the sign of the argument. */
export function round(m: FloatMath, x: KNode): KNode {
  const { e } = m;
  const a = m.abs(x);
  const low = m.floor(a);
  const rest = m.sub(a, low);
  const half = m.mul(low, 0.5);
  const odd = e.not(m.eq(m.floor(half), half));
  const up = e.or(m.lt(0.5, rest), e.and(m.eq(rest, 0.5), odd));
  // Infinities have no fraction, so they are not rounded up.
  return withSign(m, m.where(up, m.add(low, 1), low), signOf(m, x));
}

/** On bits where the dtype has a 32-bit view; float64 compares with itself, which IEEE engines (the only ones with it) get right. */
export function nanTest(e: Exprs, x: KNode): KNode {
  if (!isFloat(x.dtype as DType)) return e.bool(false, x.lanes);
  if (isSmallFloat(x.dtype as DType)) return nanTest(e, e.cast(x, 'float32'));
  if (x.dtype !== 'float32') return e.not(e.eq(x, x));
  const size = e.and(e.bitcast(x, 'int32'), 0x7fffffff);
  return e.lt(0x7f800000, size);
}

/** High half of a uint32 product from products of 16-bit halves. */
export function mulHigh({ e }: FloatMath, a: KNode, b: KNode): KNode {
  const low = (x: KNode): KNode => e.and(x, 0xffff);
  const high = (x: KNode): KNode => e.shr(x, 16);
  const cross1 = e.mul(high(a), low(b));
  const cross2 = e.mul(low(a), high(b));
  const carry = high(e.add(e.add(high(e.mul(low(a), low(b))), low(cross1)), low(cross2)));
  return e.add(e.add(e.mul(high(a), high(b)), carry), e.add(high(cross1), high(cross2)));
}

/** a + b and what the sum lost, whichever is larger (D. E. Knuth's TwoSum). */
function twoSum(m: FloatMath, a: KNode, b: KNode): readonly [KNode, KNode] {
  const sum = m.add(a, b);
  const back = m.sub(sum, a);
  return [sum, m.add(m.sub(a, m.sub(sum, back)), m.sub(b, back))];
}

/** a * b and what the product lost (Dekker, splitting by Veltkamp). Sizes near the ends of the format lose exactness. */
function twoProduct(m: FloatMath, a: KNode, b: KNode): readonly [KNode, KNode] {
  const factor = m.t === 'float32' ? 2 ** 12 + 1 : 2 ** 27 + 1;
  const split = (x: KNode): readonly [KNode, KNode] => {
    const stretched = rounded(m, m.mul(x, factor));
    const head = m.sub(stretched, m.sub(stretched, x));
    return [head, m.sub(x, head)];
  };
  const [[ah, al], [bh, bl]] = [split(a), split(b)];
  const product = rounded(m, m.mul(a, b));
  const rest = m.add(m.add(m.sub(m.mul(ah, bh), product), m.mul(ah, bl)), m.mul(al, bh));
  return [product, m.add(rest, m.mul(al, bl))];
}

/**
 * a * b + c rounded once. float32 with float64: the product is exact there, and the sum may be rounded twice only where it lies exactly
 * between two float32 numbers; then the error of the sum decides.
 */
export function fma(m: FloatMath, a: KNode, b: KNode, c: KNode): KNode {
  const w = m.isSingle() ? m.wide : null;
  if (w === null) return fmaParts(m, a, b, c);
  const { e } = m;
  const widen = (x: KNode): KNode => e.cast(x, 'float64');
  const narrow = (x: KNode): KNode => e.cast(x, 'float32');
  const [sum, error] = twoSum(w, w.mul(widen(a), widen(b)), widen(c));
  const nearest = narrow(sum);
  const rest = w.sub(sum, widen(nearest));
  const other = w.add(widen(nearest), w.add(rest, rest));
  const between = e.and(w.eq(widen(narrow(other)), other), e.not(w.eq(rest, 0)));
  const beyond = e.or(e.and(w.lt(0, error), w.lt(0, rest)), e.and(w.lt(error, 0), w.lt(rest, 0)));
  return e.where(e.and(between, beyond), narrow(other), nearest);
}

/** a * b + c from parts: rounded once, except for ties and for sizes whose parts leave the format. */
function fmaParts(m: FloatMath, a: KNode, b: KNode, c: KNode): KNode {
  const [product, productRest] = twoProduct(m, a, b);
  const [sum, sumRest] = twoSum(m, product, c);
  const exact = m.add(sum, m.add(sumRest, productRest));
  // The parts of infinities are NaN.
  return m.where(m.lt(m.abs(exact), Number.POSITIVE_INFINITY), exact, m.add(product, c));
}

// C's fmod: x minus a multiple of y, exact, with the sign of x.
//
// The quotient is subtracted in steps of a few bits whose products with y are exact. float32 on engines without float64 uses
// integers instead: r * 2^8 mod y, as often as the exponents differ.

/** Steps: 24 bits of the quotient each; the quotient of two float32 has at most 277. float64 gives up beyond about 2^280. */
const STEPS = 12;

/** a rounded to 53 - bits significant bits (Veltkamp). */
function short(w: FloatMath, a: KNode, bits: number): KNode {
  const stretched = w.mul(a, 2 ** bits + 1);
  return w.sub(stretched, w.sub(stretched, a));
}

/** In float64, for a >= b > 0. */
function remainder(w: FloatMath, a: KNode, b: KNode, narrow: boolean): KNode {
  const head = narrow ? b : short(w, b, 27);
  const tail = w.sub(b, head);
  let rest = a;
  for (let i = 0; i < STEPS; i++) {
    const quotient = short(w, w.nearest(w.div(rest, b)), 29);
    rest = w.sub(rest, w.mul(quotient, head));
    if (!narrow) rest = w.sub(rest, w.mul(quotient, tail));
  }
  return w.where(w.lt(rest, 0), w.add(rest, b), rest);
}

/** By integers, for float32 a >= b > 0. */
function remainderInteger(m: Math32, a: KNode, b: KNode): KNode {
  const { e } = m;
  const u = (value: number): KNode => e.constant('uint32', value);
  const parts = (x: KNode): { readonly exponent: KNode; readonly mantissa: KNode } => {
    const bits = e.bitcast(x, 'uint32');
    const exponent = e.shr(bits, u(23));
    const fraction = e.and(bits, u(0x7fffff));
    const denormal = e.eq(exponent, u(0));
    return {
      exponent: e.where(denormal, u(1), exponent),
      mantissa: e.where(denormal, fraction, e.or(fraction, u(0x800000))),
    };
  };
  const [x, y] = [parts(a), parts(b)];
  const divisor = e.max(y.mantissa, u(1));
  let left = e.where(e.lt(x.exponent, y.exponent), u(0), e.sub(x.exponent, y.exponent));
  let rest = e.irem(x.mantissa, divisor);
  for (let i = 0; i < 35; i++) {
    const step = e.min(left, u(8));
    rest = e.irem(e.shl(rest, step), divisor);
    left = e.sub(left, step);
  }
  // rest * 2^(exponent - 150), exact.
  const exponent = e.sub(e.bitcast(y.exponent, 'int32'), 150);
  return m.scale(e.cast(rest, 'float32'), { value: e.cast(exponent, 'float32'), bits: exponent, bias: 0 });
}

/**
 * For quotients below 2^23: the whole quotient is at most one too large, where the division rounded up to it, and the remainder is exact.
 */
function simpleRemainder(m: FloatMath, a: KNode, b: KNode, quotient: KNode): KNode {
  const rest = lessProduct(m, a, m.floor(quotient), b);
  return m.where(m.lt(rest, 0), m.add(rest, b), rest);
}

/** a - n b, which the dtype represents exactly. */
function lessProduct(m: FloatMath, a: KNode, n: KNode, b: KNode): KNode {
  const { e } = m;
  if (m.fuses || !m.isSingle() || m.wide === null) return e.ternary('FMA', m.neg(n), b, a);
  const [wideA, wideN, wideB] = [a, n, b].map((x) => e.cast(x, 'float64')) as [KNode, KNode, KNode];
  return e.cast(m.wide.sub(wideA, m.wide.mul(wideN, wideB)), 'float32');
}

export function frem(m: FloatMath, x: KNode, y: KNode): KNode {
  const { e } = m;
  const [a, b] = [m.abs(x), m.abs(y)];
  let rest: KNode;
  if (!m.isSingle()) {
    // Scaled away from the ends of the format.
    const factor = m.where(m.lt(2 ** 900, b), 2 ** -120, m.where(m.lt(b, 2 ** -900), 2 ** 120, 1));
    rest = m.div(remainder(m, m.mul(a, factor), m.mul(b, factor), false), factor);
  } else if (m.wide !== null) {
    rest = e.cast(remainder(m.wide, e.cast(a, 'float64'), e.cast(b, 'float64'), true), 'float32');
  } else rest = remainderInteger(m, a, b);
  if (!m.caps.simt && (m.fuses || (m.isSingle() && m.wide !== null))) {
    // Last, so that engines with branches compute the long form only where it is needed.
    const quotient = m.div(a, b);
    rest = m.where(m.le(2 ** 23, quotient), rest, simpleRemainder(m, a, b, quotient));
  }
  const value = m.where(m.lt(a, b), a, rest);
  const defined = e.and(m.lt(0, b), m.lt(a, Number.POSITIVE_INFINITY));
  const nan = e.or(m.isNaN(y), e.not(defined));
  return m.where(nan, Number.NaN, withSign(m, value, signOf(m, x)));
}
