/**
 * C's fmod: x less a multiple of y, exact, with the sign of x.
 *
 * The quotient is taken off in steps of a few bits whose products with y are exact. float32 on engines without float64 goes by
 * integers instead: r * 2^8 mod y, as often as the exponents differ.
 */
import { type FloatMath, Math32 } from '../float-math.ts';
import type { KNode } from '../../ir/ir.ts';

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
 * For quotients below 2^23: the whole quotient is at most one too large, where the division rounded up to it, and what it leaves is exact.
 */
function simpleRemainder(m: FloatMath, a: KNode, b: KNode, quotient: KNode): KNode {
  const rest = lessProduct(m, a, m.floor(quotient), b);
  return m.where(m.lt(rest, 0), m.add(rest, b), rest);
}

/** a - n b, which is a number of the dtype. */
function lessProduct(m: FloatMath, a: KNode, n: KNode, b: KNode): KNode {
  const { e } = m;
  if (m.fuses || !(m instanceof Math32) || m.wide === null) return e.ternary('FMA', m.neg(n), b, a);
  const [wideA, wideN, wideB] = [a, n, b].map((x) => e.cast(x, 'float64')) as [KNode, KNode, KNode];
  return e.cast(m.wide.sub(wideA, m.wide.mul(wideN, wideB)), 'float32');
}

export function frem(m: FloatMath, x: KNode, y: KNode): KNode {
  const { e } = m;
  const [a, b] = [m.abs(x), m.abs(y)];
  let rest: KNode;
  if (!(m instanceof Math32)) {
    // Scaled away from the ends of the format.
    const factor = m.where(m.lt(2 ** 900, b), 2 ** -120, m.where(m.lt(b, 2 ** -900), 2 ** 120, 1));
    rest = m.div(remainder(m, m.mul(a, factor), m.mul(b, factor), false), factor);
  } else if (m.wide !== null) {
    rest = e.cast(remainder(m.wide, e.cast(a, 'float64'), e.cast(b, 'float64'), true), 'float32');
  } else rest = remainderInteger(m, a, b);
  if (!m.caps.simt && (m.fuses || (m instanceof Math32 && m.wide !== null))) {
    // Last, so that engines with branches compute the long way only where it is needed.
    const quotient = m.div(a, b);
    rest = m.where(m.le(2 ** 23, quotient), rest, simpleRemainder(m, a, b, quotient));
  }
  const value = m.where(m.lt(a, b), a, rest);
  const defined = e.and(m.lt(0, b), m.lt(a, Number.POSITIVE_INFINITY));
  const nan = e.or(m.isNaN(y), e.not(defined));
  return m.where(nan, Number.NaN, m.withSign(value, m.signOf(x)));
}
