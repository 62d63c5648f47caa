/**
 * Small operations in terms of smaller ones: absolute value, rounding, NaN test, remainders, fused multiply-add, high product.
 */
import { type DType, isFloat } from '../shape/dtype.ts';
import type { FloatMath } from './decompose-math.ts';
import type { Exprs } from './expr.ts';
import type { KNode } from './ir.ts';

/** max(x, -x): keeps NaN, and max(-0, 0) is 0. */
export function abs(e: Exprs, x: KNode): KNode {
  return x.dtype === 'uint32' || x.dtype === 'bool' ? x : e.max(x, e.neg(x));
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
  const low = m.floor(x);
  const rest = m.sub(x, low);
  const half = m.mul(low, 0.5);
  const odd = e.not(m.eq(m.floor(half), half));
  const up = e.or(m.lt(0.5, rest), e.and(m.eq(rest, 0.5), odd));
  const rounded = m.where(up, m.add(low, 1), low);
  // Infinities have no rest; zeros take the sign by a product that is exact.
  return m.where(m.lt(m.abs(x), 2 ** 53), m.where(m.eq(rounded, 0), m.mul(x, 0), rounded), x);
}

/** On bits where the dtype has a 32-bit view; float64 compares with itself, which IEEE engines (the only ones with it) get right. */
export function nanTest(e: Exprs, x: KNode): KNode {
  if (!isFloat(x.dtype as DType)) return e.bool(false, x.lanes);
  if (x.dtype !== 'float32') return e.not(e.eq(x, x));
  const size = e.and(e.bitcast(x, 'int32'), e.i32(0x7fffffff));
  return e.lt(e.i32(0x7f800000), size);
}

/**
 * C's fmod: the remainder with the sign of x. Computed in float64 the multiples removed have at most 24 bits, so every step is
 * exact; four steps cover quotients up to 2^96.
 */
export function frem(m: FloatMath, x: KNode, y: KNode): KNode {
  const { e } = m;
  const size = m.abs(x);
  const step = m.abs(y);
  let rest = size;
  for (let i = 0; i < 4; i++) {
    const quotient = trunc(m, m.div(rest, step));
    const short = m.t === 'float64' ? e.cast(e.cast(quotient, 'float32'), 'float64') : quotient;
    rest = m.sub(rest, m.mul(short, step));
  }
  rest = m.where(m.lt(rest, 0), m.add(rest, step), rest);
  rest = m.where(m.le(step, rest), m.sub(rest, step), rest);
  const inside = m.where(m.lt(size, step), size, rest);
  const invalid = e.or(m.eq(y, 0), m.eq(size, Number.POSITIVE_INFINITY));
  const nan = e.or(e.or(m.isNaN(x), m.isNaN(y)), invalid);
  return m.where(nan, Number.NaN, m.copySign(inside, x));
}

/** High half of a uint32 product from products of 16-bit halves. */
export function mulHigh(e: Exprs, a: KNode, b: KNode): KNode {
  const u = (value: number): KNode => e.constant('uint32', value);
  const low = (x: KNode): KNode => e.and(x, u(0xffff));
  const high = (x: KNode): KNode => e.shr(x, u(16));
  const cross1 = e.mul(high(a), low(b));
  const cross2 = e.mul(low(a), high(b));
  const carry = e.shr(e.add(e.add(e.shr(e.mul(low(a), low(b)), u(16)), low(cross1)), low(cross2)), u(16));
  return e.add(e.add(e.mul(high(a), high(b)), carry), e.add(high(cross1), high(cross2)));
}

/**
 * a * b + c rounded once, for float32 operands on an engine with float64. The product is exact there; the sum may be
 * rounded twice only where it lies exactly between two float32 numbers, and then the error of the sum decides.
 */
export function fma32(e: Exprs, a: KNode, b: KNode, c: KNode): KNode {
  const wide = (x: KNode): KNode => e.cast(x, 'float64');
  const narrow = (x: KNode): KNode => e.cast(x, 'float32');
  const product = e.mul(wide(a), wide(b));
  const addend = wide(c);
  const sum = e.add(product, addend);
  const back = e.sub(sum, product);
  const error = e.add(e.sub(product, e.sub(sum, back)), e.sub(addend, back));
  const nearest = narrow(sum);
  const rest = e.sub(sum, wide(nearest));
  const other = e.add(wide(nearest), e.add(rest, rest));
  const zero = e.constant('float64', 0);
  const between = e.and(e.eq(wide(narrow(other)), other), e.not(e.eq(rest, zero)));
  const beyond = e.or(e.and(e.lt(zero, error), e.lt(zero, rest)), e.and(e.lt(error, zero), e.lt(rest, zero)));
  return e.where(e.and(between, beyond), narrow(other), nearest);
}
