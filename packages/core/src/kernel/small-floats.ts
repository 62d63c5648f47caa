/**
 * 16-bit floats by bit operations on 32-bit numbers: decoding, encoding, and rounding a float32 to the values they have.
 *
 * All results are exact or rounded once, to nearest, ties to even, with subnormals, infinities and NaN. Unless `ieee` is said, nothing
 * here relies on an engine keeping denormal float32 numbers or the order of float additions: sums are looked at as bits at once. Where
 * it is, what is known of a number before it is rounded saves half of the work.
 */
import type { SmallFloat } from '../shape/dtype.ts';
import type { Exprs } from './expr.ts';
import type { KNode } from './ir.ts';

const infinity = 0x7f800000;
const quiet = 0x7fc00000;

/** uint32 arithmetic with literals. */
class Bits {
  readonly e: Exprs;

  constructor(e: Exprs) {
    this.e = e;
  }

  lit(value: number): KNode {
    return this.e.constant('uint32', value);
  }
  of(f: KNode): KNode {
    return this.e.bitcast(f, 'uint32');
  }
  float(x: KNode): KNode {
    return this.e.bitcast(x, 'float32');
  }
  and(x: KNode, mask: number): KNode {
    return this.e.and(x, this.lit(mask));
  }
  or(x: KNode, mask: number): KNode {
    return this.e.or(x, this.lit(mask));
  }
  add(x: KNode, y: number): KNode {
    return this.e.add(x, this.lit(y));
  }
  shl(x: KNode, by: number): KNode {
    return this.e.shl(x, this.lit(by));
  }
  shr(x: KNode, by: number): KNode {
    return this.e.shr(x, this.lit(by));
  }
  /** x < limit for numbers below 2^31, which compare as signed ones everywhere in one instruction. */
  below(x: KNode, limit: number): KNode {
    return this.e.lt(this.e.bitcast(x, 'int32'), this.e.i32(limit));
  }
  above(x: KNode, limit: number): KNode {
    return this.e.lt(this.e.i32(limit), this.e.bitcast(x, 'int32'));
  }
  /** x with its lowest `digits` bits rounded away by carries into the others: they are not cleared yet. */
  carried(x: KNode, digits: number): KNode {
    return this.e.add(this.add(x, 2 ** (digits - 1) - 1), this.and(this.shr(x, digits), 1));
  }
  literalWhere(condition: KNode, value: number, other: KNode): KNode {
    return this.e.where(condition, this.lit(value), other);
  }
}

/** The float32 that 16 bits (the low ones of a uint32, the others zero) stand for. `ieee`: float32 keeps denormal numbers. */
export function decodeSmallFloat(e: Exprs, dtype: SmallFloat, bits: KNode, ieee: boolean): KNode {
  const b = new Bits(e);
  if (dtype === 'bfloat16') return b.float(b.shl(bits, 16));
  if (ieee) {
    // Sign, exponent and fraction in place; the product sets the exponent right, of subnormals too.
    const high = e.bitcast(b.shl(bits, 16), 'int32');
    const placed = b.and(e.bitcast(e.shr(high, e.i32(3)), 'uint32'), 0x8fffe000);
    const scaled = b.of(e.mul(b.float(placed), e.f32(2 ** 112)));
    const special = e.eq(b.and(bits, 0x7c00), b.lit(0x7c00));
    return b.float(e.or(scaled, e.where(special, b.lit(infinity), b.lit(0))));
  }
  const size = b.shl(b.and(bits, 0x7fff), 13);
  const sign = b.shl(b.and(bits, 0x8000), 16);
  const exponent = b.and(size, 0x0f800000);
  const normal = b.add(size, 112 << 23);
  // Subnormals: 2^-14 * (1 + fraction) - 2^-14.
  const subnormal = b.of(e.sub(b.float(b.add(size, 113 << 23)), e.f32(2 ** -14)));
  const finite = e.where(e.eq(exponent, b.lit(0)), subnormal, normal);
  const all = e.where(e.eq(exponent, b.lit(0x0f800000)), b.or(size, infinity), finite);
  return b.float(e.or(all, sign));
}

/**
 * Where a float32 that is to be rounded comes from. `sum`: a sum or difference of two values of the dtype, which has no more digits than
 * the dtype where it is subnormal. `result`: of values of the dtype by `* / sqrt fma`, so below 2^100 or infinite where the dtype is
 * float16. NaN of both is one of theirs or the machine's: it has no digits below those of the dtype. `any`: from anywhere.
 */
export type Origin = 'sum' | 'result' | 'any';

/**
 * The bits (in the low half of a uint32) of the value of the dtype nearest to a float32. `ieee`: float32 keeps denormal numbers, sums
 * are not reassociated.
 */
export function encodeSmallFloat(e: Exprs, dtype: SmallFloat, x: KNode, origin: Origin, ieee: boolean): KNode {
  const b = new Bits(e);
  const bits = b.of(x);
  const size = b.and(bits, 0x7fffffff);
  const notANumber = (): KNode => b.above(size, infinity);
  if (dtype === 'bfloat16') {
    const rounded = b.shr(b.carried(bits, 16), 16);
    return ieee && origin !== 'any' ? rounded : b.literalWhere(notANumber(), 0x7fc0, rounded);
  }
  if (ieee) {
    // As in decoding, the product with 2^-112 puts exponents right, of subnormals too.
    const placed = b.of(e.mul(finite(b, halfSteps(b, x, origin)), e.f32(2 ** -112)));
    return e.or(b.and(b.shr(placed, 13), 0x7fff), b.and(b.shr(bits, 16), 0x8000));
  }
  // 2^16 and more become infinity by the same carry.
  const limited = e.min(size, b.lit(0x47800000));
  const normal = b.shr(b.add(b.carried(limited, 13), (15 - 127) * 2 ** 23), 13);
  const rounded = e.where(b.below(size, 113 << 23), subnormalSteps(b, size), normal);
  return e.or(b.literalWhere(notANumber(), 0x7e00, rounded), b.shr(e.xor(bits, size), 16));
}

/** Steps of 2^-24 in a size below 2^-14: the sum with 1/2 has just these steps. */
function subnormalSteps(b: Bits, size: KNode): KNode {
  return b.add(b.of(b.e.add(b.float(size), b.e.f32(0.5))), -0x3f000000);
}

/** x rounded to steps of float16, as if that had numbers from 2^16 on; of zeros only sums keep the sign. */
function halfSteps(b: Bits, x: KNode, origin: Origin): KNode {
  const { e } = b;
  const bits = b.of(x);
  if (origin === 'sum') return b.float(b.and(b.carried(bits, 13), 0xffffe000));
  // The sum with 1.5 * 2^13 times the power of two below |x| has these steps. Far beyond float16 any large number will do.
  const power = e.max(b.and(bits, infinity), b.lit(113 << 23));
  const small = origin === 'any' ? e.min(power, b.lit(145 << 23)) : power;
  const large = b.float(b.add(small, (13 << 23) + 0x400000));
  return e.sub(e.add(x, large), large);
}

/** 2^16 and more become infinity. */
function finite(b: Bits, rounded: KNode): KNode {
  const { e } = b;
  return e.mul(e.mul(rounded, e.f32(2 ** 112)), e.f32(2 ** -112));
}

/**
 * The float32 of the value of the dtype nearest to a float32: `decode(encode(x))`, but that NaN may keep its sign and digits of the
 * dtype.
 */
export function roundSmallFloat(e: Exprs, dtype: SmallFloat, x: KNode, origin: Origin, ieee: boolean): KNode {
  const b = new Bits(e);
  const bits = b.of(x);
  if (dtype === 'bfloat16') {
    const rounded = b.and(b.carried(bits, 16), 0xffff0000);
    if (ieee && origin !== 'any') return b.float(rounded);
    const notANumber = ieee ? e.not(e.eq(x, x)) : b.above(b.and(bits, 0x7fffffff), infinity);
    return b.float(b.literalWhere(notANumber, quiet, rounded));
  }
  if (ieee) {
    const rounded = finite(b, halfSteps(b, x, origin));
    if (origin === 'sum') return rounded;
    // NaN from elsewhere may have digits that a later carry would spill into the sign.
    const digits = origin === 'any' ? b.and(b.of(rounded), 0xffffe000) : b.of(rounded);
    return b.float(e.or(digits, b.and(bits, 0x80000000)));
  }
  const size = b.and(bits, 0x7fffffff);
  const sign = e.xor(bits, size);
  const normal = b.and(b.carried(size, 13), 0xffffe000);
  const subnormal = b.of(e.mul(e.cast(e.bitcast(subnormalSteps(b, size), 'int32'), 'float32'), e.f32(2 ** -24)));
  const rounded = e.where(b.below(size, 113 << 23), subnormal, normal);
  const limited = b.literalWhere(b.above(rounded, 0x477fe000), infinity, rounded);
  return b.float(e.or(b.literalWhere(b.above(size, infinity), quiet, limited), sign));
}

/**
 * A float64 cut to float32, with the last bit set where something was cut off ("round to odd"): rounding that to 16 bits gives what
 * rounding the float64 once would give.
 */
export function roundToOdd(e: Exprs, x: KNode): KNode {
  const b = new Bits(e);
  const near = e.cast(x, 'float32');
  const back = e.cast(near, 'float64');
  const zero = e.constant('float64', 0);
  const size = (y: KNode): KNode => e.where(e.lt(y, zero), e.neg(y), y);
  // Cut off, not rounded up: one step back where rounding went away from zero.
  const cut = e.sub(b.of(near), e.cast(e.lt(size(x), size(back)), 'uint32'));
  const inexact = e.or(e.lt(x, back), e.lt(back, x));
  return b.float(e.or(cut, e.cast(inexact, 'uint32')));
}

/**
 * A large integer with its lowest bits gathered into one, so that its conversion to float32 (from 64 bits: to float64) is exact: rounding
 * that to 16 bits gives what rounding the integer once would give.
 */
export function gatherLowBits(e: Exprs, x: KNode): KNode {
  const dtype = x.dtype as 'int32' | 'uint32' | 'int64' | 'uint64';
  const [digits, gathered] = dtype.endsWith('64') ? [53n, 12n] : [24n, 9n];
  const lit = (value: bigint): KNode => e.constant(dtype, value);
  const low = e.and(x, lit((1n << gathered) - 1n));
  const high = e.sub(x, low);
  const marked = e.where(e.eq(low, lit(0n)), high, e.or(high, lit(1n << (gathered - 1n))));
  let small = e.lt(x, lit(1n << digits));
  if (!dtype.startsWith('u')) small = e.and(small, e.lt(lit(-(1n << digits)), x));
  return e.where(small, x, marked);
}
