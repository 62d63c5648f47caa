/**
 * Small operations in terms of smaller ones: absolute value, rounding, NaN test, fused multiply-add, high product. Remainders
 * are in frem.ts.
 */
import { type DType, isFloat, isSmallFloat } from '../../shape/dtype.ts';
import type { Exprs } from '../../ir/expr.ts';
import { type FloatMath, Math32 } from '../float-math.ts';
import type { KNode } from '../../ir/ir.ts';

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
  // Infinities have no rest, so nothing goes up.
  return m.withSign(m.where(up, m.add(low, 1), low), m.signOf(x));
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
    const stretched = m.rounded(m.mul(x, factor));
    const head = m.sub(stretched, m.sub(stretched, x));
    return [head, m.sub(x, head)];
  };
  const [[ah, al], [bh, bl]] = [split(a), split(b)];
  const product = m.rounded(m.mul(a, b));
  const rest = m.add(m.add(m.sub(m.mul(ah, bh), product), m.mul(ah, bl)), m.mul(al, bh));
  return [product, m.add(rest, m.mul(al, bl))];
}

/**
 * a * b + c rounded once. float32 with float64: the product is exact there, and the sum may be rounded twice only where it lies exactly
 * between two float32 numbers; then the error of the sum decides.
 */
export function fma(m: FloatMath, a: KNode, b: KNode, c: KNode): KNode {
  const w = m instanceof Math32 ? m.wide : null;
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

/** a * b + c from parts: rounded once but for ties, and for sizes whose parts leave the format. */
function fmaParts(m: FloatMath, a: KNode, b: KNode, c: KNode): KNode {
  const [product, productRest] = twoProduct(m, a, b);
  const [sum, sumRest] = twoSum(m, product, c);
  const exact = m.add(sum, m.add(sumRest, productRest));
  // The parts of infinities are NaN.
  return m.where(m.lt(m.abs(exact), Number.POSITIVE_INFINITY), exact, m.add(product, c));
}
