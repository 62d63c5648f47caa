/**
 * log, log2, log1p and pow in arithmetic.
 *
 * x = m 2^e with m in [sqrt(1/2), sqrt(2)), and log m = 2 atanh(s) = 2 (s + s^3/3 + s^5/5 + ...) with s = (m - 1) / (m + 1),
 * |s| <= 0.1716 (the reduction of fdlibm's e_log.c with the plain series instead of a fitted polynomial).
 */
import { exp2 } from './decompose-exp.ts';
import type { FloatMath } from './decompose-math.ts';
import type { KNode } from './ir.ts';

const LN2_HIGH = 0.6931471803691238;
const LN2_LOW = 1.9082149292705877e-10;

/** 2 atanh(s) = s * (2 + 2 s^2 / 3 + ...); `count` terms beyond the first. */
function twiceAtanh(m: FloatMath, s: KNode, count: number): KNode {
  const z = m.mul(s, s);
  const series = Array.from({ length: count }, (_, k) => 2 / (2 * k + 3));
  return m.muladd(m.mul(m.mul(z, s), m.poly(z, series)), 1, m.mul(s, 2));
}

interface Parts {
  readonly exponent: KNode;
  readonly mantissa: KNode;
}

/** What the argument is: a float32 number, a float64 number in float32's range, or any float64 number. */
type Argument = 'float32' | 'in range' | 'float64';

function argument(m: FloatMath): Argument {
  return m.t === 'float64' && m.fine ? 'float64' : 'float32';
}

/** Splits a positive finite number. Denormals are scaled up first. */
function split(m: FloatMath, x: KNode, kind: Argument): Parts {
  const { e } = m;
  let scaled = x;
  let exponent = m.c(0);
  if (kind === 'float64') {
    // float64 without 64-bit integers: bring the exponent into float32's range by powers of two.
    for (const step of [512, 256, 128]) {
      const [low, high] = [2 ** (-step / 2), 2 ** (step / 2)];
      const tooSmall = m.lt(scaled, low);
      const tooLarge = m.lt(high, scaled);
      scaled = m.mul(scaled, m.where(tooSmall, 2 ** step, m.where(tooLarge, 2 ** -step, 1)));
      exponent = m.add(exponent, m.where(tooSmall, -step, m.where(tooLarge, step, 0)));
    }
    // Once more for the smallest denormals, which start at 2^-1074.
    const tooSmall = m.lt(scaled, 2 ** -64);
    scaled = m.mul(scaled, m.where(tooSmall, 2 ** 128, 1));
    exponent = m.add(exponent, m.where(tooSmall, -128, 0));
  } else {
    const denormal = m.lt(x, 2 ** -126);
    scaled = m.mul(x, m.where(denormal, 2 ** 24, 1));
    exponent = m.where(denormal, -24, 0);
  }
  const single = e.cast(scaled, 'float32');
  // Exponent of scaled / sqrt(2), rounded: the mantissa then lies around one.
  const bits = e.sub(e.bitcast(single, 'int32'), e.i32(0x3f3504f3));
  const n = e.shr(bits, e.i32(23));
  const shifted = e.bitcast(e.sub(e.bitcast(single, 'int32'), e.shl(n, e.i32(23))), 'float32');
  // The float32 mantissa will do where the argument is one; others need all their bits.
  const half = m.floor(m.mul(m.fromInt(n), -0.5));
  const rest = m.sub(m.neg(m.fromInt(n)), half);
  const scaledDown = (): KNode => m.mul(m.mul(scaled, m.smallPower(half)), m.smallPower(rest));
  const mantissa = kind === 'float32' ? e.cast(shifted, m.t) : scaledDown();
  return { exponent: m.add(exponent, m.fromInt(n)), mantissa };
}

/** Values at and beyond the ends of the domain: 0, negatives, infinity, NaN. */
function edges(m: FloatMath, x: KNode, inside: KNode): KNode {
  const high = m.where(m.lt(x, Number.POSITIVE_INFINITY), inside, x);
  const low = m.where(m.lt(x, 0), Number.NaN, m.where(m.eq(x, 0), Number.NEGATIVE_INFINITY, high));
  return m.where(m.isNaN(x), x, low);
}

function terms(m: FloatMath): number {
  return m.fine ? 11 : 5;
}

export function log(m: FloatMath, x: KNode, kind: Argument = argument(m)): KNode {
  const { exponent, mantissa } = split(m, x, kind);
  const s = m.div(m.sub(mantissa, 1), m.add(mantissa, 1));
  const fraction = twiceAtanh(m, s, terms(m));
  return edges(m, x, m.add(m.mul(exponent, LN2_HIGH), m.muladd(exponent, LN2_LOW, fraction)));
}

export function log2(m: FloatMath, x: KNode): KNode {
  const { exponent, mantissa } = split(m, x, argument(m));
  const s = m.div(m.sub(mantissa, 1), m.add(mantissa, 1));
  return edges(m, x, m.muladd(twiceAtanh(m, s, terms(m)), Math.LOG2E, exponent));
}

export function log1p(m: FloatMath, x: KNode): KNode {
  const near = m.lt(m.abs(x), 0.4);
  const y = m.where(near, x, 0);
  const small = twiceAtanh(m, m.div(y, m.add(y, 2)), m.fine ? 14 : 7);
  return m.where(m.lt(m.abs(x), 1e-20), x, m.where(near, small, log(m, m.add(x, 1), m.fine ? 'float64' : 'in range')));
}

/** C99's pow: |a|^b = 2^(b log2 |a|) with the sign and the special cases of Annex F.9.4.4. */
export function pow(m: FloatMath, a: KNode, b: KNode): KNode {
  const { e } = m;
  const size = m.abs(a);
  const inf = Number.POSITIVE_INFINITY;
  // The exponent needs all the precision there is: an error in it is multiplied by up to 1100.
  const { exponent, mantissa } = split(m, size, argument(m));
  const s = m.div(m.sub(mantissa, 1), m.add(mantissa, 1));
  const base = m.muladd(twiceAtanh(m, s, m.t === 'float64' ? 11 : 6), Math.LOG2E, exponent);
  const inside = exp2(m, m.mul(b, base));
  const whole = m.eq(m.floor(b), b);
  const half = m.mul(b, 0.5);
  const odd = e.and(whole, e.not(m.eq(m.floor(half), half)));
  const grows = m.lt(0, b);
  // |a| is 0 or infinite: the result is 0 or infinity, by the sign of b.
  const fromZero = m.where(grows, 0, inf);
  const fromInfinity = m.where(grows, inf, 0);
  const magnitude = m.where(m.eq(size, 0), fromZero, m.where(m.eq(size, inf), fromInfinity, inside));
  // b is infinite: the result depends on |a| against one.
  const infiniteExponent = m.eq(m.abs(b), inf);
  const toward = m.where(m.eq(size, 1), 1, m.where(e.eq(m.lt(1, size), grows), inf, 0));
  const positive = m.where(infiniteExponent, toward, magnitude);
  const negative = m.isNegative(a);
  const signed = m.where(e.and(negative, odd), m.neg(positive), positive);
  const undefinedRoot = e.and(e.and(m.lt(a, 0), e.not(whole)), m.lt(size, inf));
  const result = m.where(undefinedRoot, Number.NaN, signed);
  const nan = e.or(m.isNaN(a), m.isNaN(b));
  return m.where(e.or(m.eq(a, 1), m.eq(b, 0)), 1, m.where(nan, Number.NaN, result));
}
