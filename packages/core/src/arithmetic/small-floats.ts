/**
 * 16-bit floats by bit operations on 32-bit numbers: decoding, encoding, and rounding a float32 to the values they have.
 *
 * All results are exact or rounded once, to nearest, ties to even, with subnormals, infinities and NaN. Unless `ieee` is said, nothing
 * here relies on an engine keeping denormal float32 numbers or the order of float additions: sums are looked at as bits at once. Where
 * it is, what is known of a number before it is rounded saves half of the work.
 */
import type { SmallFloat } from '../shape/dtype.ts';
import type { Exprs } from '../ir/expr.ts';
import type { KNode } from '../ir/ir.ts';

const infinity = 0x7f800000;
const quiet = 0x7fc00000;

/** The bits of a float32 as uint32, and back. */
const bitsOf = (e: Exprs, x: KNode): KNode => e.bitcast(x, 'uint32');
const floatOf = (e: Exprs, bits: KNode): KNode => e.bitcast(bits, 'float32');

/** x < limit for numbers below 2^31, which compare as signed ones everywhere in one instruction. */
function below(e: Exprs, x: KNode, limit: number): KNode {
  return e.lt(e.bitcast(x, 'int32'), limit);
}

function above(e: Exprs, x: KNode, limit: number): KNode {
  return e.lt(limit, e.bitcast(x, 'int32'));
}

/** x with its lowest `digits` bits rounded away by carries into the others: they are not cleared yet. */
function carried(e: Exprs, x: KNode, digits: number): KNode {
  return e.add(e.add(x, 2 ** (digits - 1) - 1), e.and(e.shr(x, digits), 1));
}

/** The float32 that 16 bits (the low ones of a uint32, the others zero) stand for. `ieee`: float32 keeps denormal numbers. */
export function decodeSmallFloat(e: Exprs, dtype: SmallFloat, bits: KNode, ieee: boolean): KNode {
  if (dtype === 'bfloat16') return floatOf(e, e.shl(bits, 16));
  if (ieee) {
    // Sign, exponent and fraction in place; the product sets the exponent right, of subnormals too.
    const high = e.bitcast(e.shl(bits, 16), 'int32');
    const placed = e.and(e.bitcast(e.shr(high, 3), 'uint32'), 0x8fffe000);
    const scaled = bitsOf(e, e.mul(floatOf(e, placed), 2 ** 112));
    const special = e.eq(e.and(bits, 0x7c00), 0x7c00);
    return floatOf(e, e.or(scaled, e.where(special, e.constant('uint32', infinity), 0)));
  }
  const size = e.shl(e.and(bits, 0x7fff), 13);
  const sign = e.shl(e.and(bits, 0x8000), 16);
  const exponent = e.and(size, 0x0f800000);
  const normal = e.add(size, 112 << 23);
  // Subnormals: 2^-14 * (1 + fraction) - 2^-14.
  const subnormal = bitsOf(e, e.sub(floatOf(e, e.add(size, 113 << 23)), 2 ** -14));
  const finite = e.where(e.eq(exponent, 0), subnormal, normal);
  const all = e.where(e.eq(exponent, 0x0f800000), e.or(size, infinity), finite);
  return floatOf(e, e.or(all, sign));
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
  const bits = bitsOf(e, x);
  const size = e.and(bits, 0x7fffffff);
  const notANumber = (): KNode => above(e, size, infinity);
  if (dtype === 'bfloat16') {
    const rounded = e.shr(carried(e, bits, 16), 16);
    return ieee && origin !== 'any' ? rounded : e.where(notANumber(), 0x7fc0, rounded);
  }
  if (ieee) {
    // As in decoding, the product with 2^-112 puts exponents right, of subnormals too.
    const placed = bitsOf(e, e.mul(finite(e, halfSteps(e, x, origin)), 2 ** -112));
    return e.or(e.and(e.shr(placed, 13), 0x7fff), e.and(e.shr(bits, 16), 0x8000));
  }
  // 2^16 and more become infinity by the same carry.
  const limited = e.min(size, 0x47800000);
  const normal = e.shr(e.add(carried(e, limited, 13), (15 - 127) * 2 ** 23), 13);
  const rounded = e.where(below(e, size, 113 << 23), subnormalSteps(e, size), normal);
  return e.or(e.where(notANumber(), 0x7e00, rounded), e.shr(e.xor(bits, size), 16));
}

/** Steps of 2^-24 in a size below 2^-14: the sum with 1/2 has just these steps. */
function subnormalSteps(e: Exprs, size: KNode): KNode {
  return e.add(bitsOf(e, e.add(floatOf(e, size), 0.5)), -0x3f000000);
}

/** x rounded to steps of float16, as if that had numbers from 2^16 on; of zeros only sums keep the sign. */
function halfSteps(e: Exprs, x: KNode, origin: Origin): KNode {
  const bits = bitsOf(e, x);
  if (origin === 'sum') return floatOf(e, e.and(carried(e, bits, 13), 0xffffe000));
  // The sum with 1.5 * 2^13 times the power of two below |x| has these steps. Far beyond float16 any large number will do.
  const power = e.max(e.and(bits, infinity), 113 << 23);
  const small = origin === 'any' ? e.min(power, 145 << 23) : power;
  const large = floatOf(e, e.add(small, (13 << 23) + 0x400000));
  return e.sub(e.add(x, large), large);
}

/** 2^16 and more become infinity. */
function finite(e: Exprs, rounded: KNode): KNode {
  return e.mul(e.mul(rounded, 2 ** 112), 2 ** -112);
}

/**
 * The float32 of the value of the dtype nearest to a float32: `decode(encode(x))`, but that NaN may keep its sign and digits of the
 * dtype.
 */
export function roundSmallFloat(e: Exprs, dtype: SmallFloat, x: KNode, origin: Origin, ieee: boolean): KNode {
  const bits = bitsOf(e, x);
  if (dtype === 'bfloat16') {
    const rounded = e.and(carried(e, bits, 16), 0xffff0000);
    if (ieee && origin !== 'any') return floatOf(e, rounded);
    const notANumber = ieee ? e.not(e.eq(x, x)) : above(e, e.and(bits, 0x7fffffff), infinity);
    return floatOf(e, e.where(notANumber, quiet, rounded));
  }
  if (ieee) {
    const rounded = finite(e, halfSteps(e, x, origin));
    if (origin === 'sum') return rounded;
    // NaN from elsewhere may have digits that a later carry would spill into the sign.
    const digits = origin === 'any' ? e.and(bitsOf(e, rounded), 0xffffe000) : bitsOf(e, rounded);
    return floatOf(e, e.or(digits, e.and(bits, 0x80000000)));
  }
  const size = e.and(bits, 0x7fffffff);
  const sign = e.xor(bits, size);
  const normal = e.and(carried(e, size, 13), 0xffffe000);
  const subnormal = bitsOf(e, e.mul(e.cast(e.bitcast(subnormalSteps(e, size), 'int32'), 'float32'), 2 ** -24));
  const rounded = e.where(below(e, size, 113 << 23), subnormal, normal);
  const limited = e.where(above(e, rounded, 0x477fe000), infinity, rounded);
  return floatOf(e, e.or(e.where(above(e, size, infinity), quiet, limited), sign));
}

/**
 * A float64 cut to float32, with the last bit set where something was cut off ("round to odd"): rounding that to 16 bits gives what
 * rounding the float64 once would give.
 */
export function roundToOdd(e: Exprs, x: KNode): KNode {
  const near = e.cast(x, 'float32');
  const back = e.cast(near, 'float64');
  const size = (y: KNode): KNode => e.where(e.lt(y, 0), e.neg(y), y);
  // Cut off, not rounded up: one step back where rounding went away from zero.
  const cut = e.sub(bitsOf(e, near), e.cast(e.lt(size(x), size(back)), 'uint32'));
  const inexact = e.or(e.lt(x, back), e.lt(back, x));
  return floatOf(e, e.or(cut, e.cast(inexact, 'uint32')));
}

/**
 * A large integer with its lowest bits gathered into one, so that its conversion to float32 (from 64 bits: to float64) is exact: rounding
 * that to 16 bits gives what rounding the integer once would give.
 */
export function gatherLowBits(e: Exprs, x: KNode): KNode {
  const dtype = x.dtype as 'int32' | 'uint32' | 'int64' | 'uint64';
  const [digits, gathered] = dtype.endsWith('64') ? [53n, 12n] : [24n, 9n];
  const low = e.and(x, (1n << gathered) - 1n);
  const high = e.sub(x, low);
  const marked = e.where(e.eq(low, 0), high, e.or(high, 1n << (gathered - 1n)));
  let small = e.lt(x, 1n << digits);
  if (!dtype.startsWith('u')) small = e.and(small, e.lt(-(1n << digits), x));
  return e.where(small, x, marked);
}
