/**
 * Values of small dtypes held in wide ones, and operations on them: small integers in int32, 16-bit floats in float32.
 */
import type { Exprs } from '../ir/expr.ts';
import type { KNode } from '../ir/ir.ts';
import type { BinaryOp, TernaryOp, UnaryOp } from '../ir/operations.ts';
import { highOf, lowOf } from '../ir/node.ts';
import { dtypeRange } from '../ir/simplify/fold.ts';
import type { TargetCaps } from '../ir/target.ts';
import { type DType, dtypeInfo, isFloat, type SmallFloat } from '../shape/dtype.ts';

/** The dtype that values of a small dtype are computed in. */
export function wideDtype(dtype: DType): 'float32' | 'int32' {
  return isFloat(dtype) ? 'float32' : 'int32';
}

/** What is needed to make such values. */
export interface SmallContext {
  readonly e: Exprs;
  readonly caps: Pick<TargetCaps, 'storageBytes' | 'castsFloat16'>;
  /** True if float32 arithmetic follows IEEE 754 exactly, denormal numbers included. */
  readonly ieee: boolean;
}

/** The dtype with which memory of a small dtype is declared: 16-bit floats as their bits; 32-bit words on engines without smaller ones. */
export function storageDtype({ storageBytes }: Pick<TargetCaps, 'storageBytes'>, dtype: DType): DType {
  if ((storageBytes?.[dtype] ?? dtypeInfo[dtype].bytes) === 4) return 'uint32';
  return isFloat(dtype) ? 'uint16' : dtype;
}

/**
 * A value of a small dtype. `loose`: equal to it after wrapping (integers: the low bits are right) or rounding (floats); `raw`: in its memory
 * form, if it comes from memory.
 */
export class SmallValue {
  readonly context: SmallContext;
  readonly dtype: DType;
  readonly raw: KNode | null;
  readonly #wide: KNode;
  readonly #fits: boolean;
  readonly #origin: Origin;

  constructor(
    context: SmallContext,
    dtype: DType,
    wide: KNode,
    fits: boolean,
    raw: KNode | null = null,
    origin: Origin = 'any',
  ) {
    this.context = context;
    this.dtype = dtype;
    this.#wide = wide;
    this.#fits = fits;
    this.raw = raw;
    this.#origin = origin;
  }

  /** A value loaded from memory of the dtype. */
  static stored(context: SmallContext, dtype: DType, raw: KNode): SmallValue {
    const float = isFloat(dtype);
    const wide = float ? decoded(context, dtype as SmallFloat, raw) : context.e.cast(raw, 'int32');
    return new SmallValue(context, dtype, wide, float || raw.dtype === dtype, raw);
  }

  static constant(context: SmallContext, dtype: DType, value: number, lanes: number): SmallValue {
    const { e, caps } = context;
    const wide = e.constant(wideDtype(dtype), value, lanes);
    const v = new SmallValue(context, dtype, wide, true);
    return new SmallValue(context, dtype, wide, true, v.held(storageDtype(caps, dtype)));
  }

  /** A value from its bits in a uint32 or int32. */
  static ofBits(context: SmallContext, dtype: DType, bits: KNode): SmallValue {
    if (isFloat(dtype)) return new SmallValue(context, dtype, decoded(context, dtype as SmallFloat, bits), true);
    return new SmallValue(context, dtype, context.e.cast(bits, 'int32'), false);
  }

  /** A value made by moving others: loose, exact and raw if all of them are. */
  static combine(values: readonly SmallValue[], make: (parts: readonly KNode[]) => KNode): SmallValue {
    const { context, dtype } = values[0]!;
    const fits = values.every((v) => v.fits);
    const raw = values.map((v) => v.raw);
    // Moved before it is decoded.
    if (raw.every((r) => r !== null && r.dtype === raw[0]?.dtype))
      return SmallValue.stored(context, dtype, make(raw as KNode[]));
    return new SmallValue(context, dtype, make(values.map((v) => v.loose)), fits);
  }

  get e(): Exprs {
    return this.context.e;
  }

  /** True if the wide value equals the value. */
  get fits(): boolean {
    return this.#fits;
  }

  get loose(): KNode {
    return this.#wide;
  }

  /** The value as an exact wide value. */
  get exact(): KNode {
    if (this.#fits) return this.#wide;
    const { e, dtype, context } = this;
    if (isCastable(context, dtype, this.#wide)) return e.cast(e.cast(this.#wide, 'float16'), 'float32');
    return isFloat(dtype)
      ? roundSmallFloat(e, dtype as SmallFloat, this.#wide, this.#origin, context.ieee)
      : wrap(e, dtype, this.#wide);
  }

  /** Its bits in the low part of a uint32, the others zero. */
  bits(): KNode {
    const { e, dtype, context } = this;
    if (isFloat(dtype)) {
      if (this.raw !== null) return e.cast(this.raw, 'uint32');
      if (isCastable(context, dtype, this.#wide))
        return e.cast(e.bitcast(e.cast(this.#wide, 'float16'), 'uint16'), 'uint32');
      return encodeSmallFloat(e, dtype as SmallFloat, this.#wide, this.#origin, context.ieee);
    }
    return e.and(e.cast(this.#wide, 'uint32'), e.constant('uint32', 2 ** (8 * dtypeInfo[dtype].bytes) - 1));
  }

  /** In the form of memory of dtype `storage`. */
  held(storage: DType): KNode {
    const { e, dtype } = this;
    if (this.raw?.dtype === storage) return this.raw;
    if (isFloat(dtype) || storage === 'uint32') return e.cast(this.bits(), storage);
    return e.cast(this.#wide, storage);
  }

  /** The value converted to another small dtype. */
  castTo(to: DType): SmallValue {
    const { context, dtype } = this;
    if (isFloat(dtype) || isFloat(to)) return fromWide(context, to, this.exact);
    const shorter = dtypeInfo[to].bytes <= dtypeInfo[dtype].bytes;
    if (shorter && !this.#fits) return new SmallValue(context, to, this.#wide, false);
    return fromWide(context, to, this.exact);
  }
}

/** True if the engine itself casts between this value and float32. Casts of constants are folded. */
function isCastable({ caps }: SmallContext, dtype: DType, x: KNode): boolean {
  return caps.castsFloat16 === true && dtype === 'float16' && x.op !== 'CONST';
}

/** The float32 that the bits of a 16-bit float represent. */
function decoded(context: SmallContext, dtype: SmallFloat, bits: KNode): KNode {
  const { e, ieee } = context;
  if (isCastable(context, dtype, bits)) return e.cast(e.bitcast(e.cast(bits, 'uint16'), 'float16'), 'float32');
  return decodeSmallFloat(e, dtype, e.cast(bits, 'uint32'), ieee);
}

/** int32 cut to a small integer dtype. */
function wrap(e: Exprs, dtype: DType, x: KNode): KNode {
  const [lo, hi] = dtypeRange[dtype];
  if (lowOf(x) >= lo && highOf(x) <= hi) return x;
  const bits = 8 * dtypeInfo[dtype].bytes;
  if (lo === 0) return e.and(x, hi);
  const by = e.i32(32 - bits);
  return e.shr(e.shl(x, by), by);
}

/** Conversion of a value of the engine's own dtypes. */
export function fromWide(context: SmallContext, to: DType, x: KNode): SmallValue {
  const { e } = context;
  const from = x.dtype as DType;
  if (isFloat(to)) {
    let wide = x;
    if (from === 'float64') wide = roundToOdd(e, x);
    else if (from === 'int64' || from === 'uint64') wide = roundToOdd(e, e.cast(gatherLowBits(e, x), 'float64'));
    // float32 has too few digits for a second rounding to be right; float16 overflows long before that matters.
    else if ((from === 'int32' || from === 'uint32') && to === 'bfloat16' && !fitsFloat32(x))
      wide = gatherLowBits(e, x);
    return new SmallValue(context, to, e.cast(wide, 'float32'), from === 'bool');
  }
  const [lo, hi] = dtypeRange[to];
  const whole = e.cast(x, 'int32');
  if (isFloat(from)) return new SmallValue(context, to, e.min(e.max(whole, lo), hi), true);
  return new SmallValue(context, to, whole, lowOf(x) >= lo && highOf(x) <= hi);
}

function fitsFloat32(x: KNode): boolean {
  return lowOf(x) >= -(2 ** 24) && highOf(x) <= 2 ** 24;
}

/** A float32 computed from values of the dtype of `x`, still to be rounded to it. */
function result(x: SmallValue, wide: KNode, origin: Origin = 'result'): SmallValue {
  return new SmallValue(x.context, x.dtype, wide, false, null, origin);
}

/** An operation of one operand. */
export function smallUnary(op: UnaryOp, x: SmallValue): SmallValue | KNode {
  const { e, context, dtype } = x;
  const float = isFloat(dtype);
  const made = (wide: KNode, fits: boolean): SmallValue => new SmallValue(context, dtype, wide, fits);
  switch (op) {
    case 'ISNAN':
      return e.unary(op, x.loose);
    case 'NEG':
      return float ? made(e.neg(x.exact), true) : made(e.neg(x.loose), false);
    case 'NOT':
      return made(e.not(x.loose), x.fits && dtypeInfo[dtype].kind === 'int');
    case 'ABS':
      return made(e.unary(op, x.exact), float || dtypeInfo[dtype].kind === 'uint');
    case 'FLOOR':
    case 'CEIL':
    case 'TRUNC':
    case 'ROUND':
      return made(e.unary(op, x.exact), true);
    case 'SQRT':
      return result(x, e.unary(op, x.exact));
    default:
      return made(e.unary(op, x.exact), false);
  }
}

/** An operation of two operands of one small dtype. */
export function smallBinary(op: BinaryOp, x: SmallValue, y: SmallValue): SmallValue | KNode {
  const { e, context, dtype } = x;
  const made = (wide: KNode, fits: boolean): SmallValue => new SmallValue(context, dtype, wide, fits);
  switch (op) {
    case 'LT':
    case 'LE':
    case 'EQ':
      return e.binary(op, x.exact, y.exact);
    case 'MAX':
    case 'MIN':
    case 'FREM':
    case 'IREM':
      return made(e.binary(op, x.exact, y.exact), true);
    case 'ADD':
    case 'SUB':
    case 'MUL':
      return isFloat(dtype)
        ? result(x, e.binary(op, x.exact, y.exact), op === 'MUL' ? 'result' : 'sum')
        : made(e.binary(op, x.loose, y.loose), false);
    case 'DIV':
      return result(x, e.binary(op, x.exact, y.exact));
    case 'AND':
    case 'OR':
    case 'XOR':
      return made(e.binary(op, x.loose, y.loose), x.fits && y.fits);
    case 'SHL':
      return made(e.binary(op, x.loose, y.exact), false);
    case 'SHR':
      return made(e.binary(op, x.exact, y.exact), true);
    default:
      return made(e.binary(op, x.exact, y.exact), false);
  }
}

/** WHERE, or a fused operation on floats. */
export function smallTernary(e: Exprs, op: TernaryOp, x: KNode | SmallValue, y: SmallValue, z: SmallValue): SmallValue {
  if (op === 'WHERE') return SmallValue.combine([y, z], ([a, b]) => e.where(x as KNode, a!, b!));
  return result(y, e.ternary(op, (x as SmallValue).exact, y.exact, z.exact));
}

// 16-bit floats by bit operations on 32-bit numbers: decoding, encoding, and rounding a float32 to the values they have.
//
// All results are exact or rounded once, to nearest, ties to even, with subnormals, infinities and NaN. Without `ieee`, nothing
// here relies on an engine keeping denormal float32 numbers or the order of float additions: sums are reinterpreted as bits at once. With
// it, knowing where a number comes from saves half of the work.

const infinity = 0x7f800000;
const quiet = 0x7fc00000;

/** The bits of a float32 as uint32, and back. */
const bitsOf = (e: Exprs, x: KNode): KNode => e.bitcast(x, 'uint32');
const floatOf = (e: Exprs, bits: KNode): KNode => e.bitcast(bits, 'float32');

/** x < limit for numbers below 2^31, as a signed comparison, which is one instruction everywhere. */
function below(e: Exprs, x: KNode, limit: number): KNode {
  return e.lt(e.bitcast(x, 'int32'), limit);
}

function above(e: Exprs, x: KNode, limit: number): KNode {
  return e.lt(limit, e.bitcast(x, 'int32'));
}

/** Adds half a unit of the lowest `digits` bits, ties to even; those bits are not cleared yet. */
function carried(e: Exprs, x: KNode, digits: number): KNode {
  return e.add(e.add(x, 2 ** (digits - 1) - 1), e.and(e.shr(x, digits), 1));
}

/** The float32 that 16 bits (the low ones of a uint32, the others zero) represent. `ieee`: float32 keeps denormal numbers. */
function decodeSmallFloat(e: Exprs, dtype: SmallFloat, bits: KNode, ieee: boolean): KNode {
  if (dtype === 'bfloat16') return floatOf(e, e.shl(bits, 16));
  if (ieee) {
    // Sign, exponent and fraction moved into place; the product corrects the exponent, also of subnormals.
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
 * Origin of a float32 that is to be rounded. `sum`: a sum or difference of two values of the dtype, which has no more digits than
 * the dtype where it is subnormal. `result`: of values of the dtype by `* / sqrt fma`, so below 2^100 or infinite if the dtype is
 * float16. A NaN of either is an operand's or the machine's: it has no digits below those of the dtype. `any`: anything else.
 */
export type Origin = 'sum' | 'result' | 'any';

/**
 * The bits (in the low half of a uint32) of the value of the dtype nearest to a float32. `ieee`: float32 keeps denormal numbers, sums
 * are not reassociated.
 */
function encodeSmallFloat(e: Exprs, dtype: SmallFloat, x: KNode, origin: Origin, ieee: boolean): KNode {
  const bits = bitsOf(e, x);
  const size = e.and(bits, 0x7fffffff);
  const notANumber = (): KNode => above(e, size, infinity);
  if (dtype === 'bfloat16') {
    const rounded = e.shr(carried(e, bits, 16), 16);
    return ieee && origin !== 'any' ? rounded : e.where(notANumber(), 0x7fc0, rounded);
  }
  if (ieee) {
    // As in decoding, the product with 2^-112 corrects exponents, also of subnormals.
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

/** x rounded to steps of float16, as if float16 went beyond 2^16; only sums keep the sign of a zero. */
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
 * The float32 of the value of the dtype nearest to a float32: `decode(encode(x))`, except that NaN may keep its sign and digits of the
 * dtype.
 */
function roundSmallFloat(e: Exprs, dtype: SmallFloat, x: KNode, origin: Origin, ieee: boolean): KNode {
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
    // A NaN from elsewhere may have digits whose carry would reach the sign.
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
 * A float64 truncated to float32, with the last bit set if something was cut off ("round to odd"): rounding that to 16 bits equals
 * rounding the float64 once.
 */
function roundToOdd(e: Exprs, x: KNode): KNode {
  const near = e.cast(x, 'float32');
  const back = e.cast(near, 'float64');
  const size = (y: KNode): KNode => e.where(e.lt(y, 0), e.neg(y), y);
  // Truncated: one step back where the cast rounded away from zero.
  const cut = e.sub(bitsOf(e, near), e.cast(e.lt(size(x), size(back)), 'uint32'));
  const inexact = e.or(e.lt(x, back), e.lt(back, x));
  return floatOf(e, e.or(cut, e.cast(inexact, 'uint32')));
}

/**
 * A large integer whose lowest bits are gathered into one, so that its conversion to float32 (from 64 bits: to float64) is exact: rounding
 * that to 16 bits equals rounding the integer once.
 */
function gatherLowBits(e: Exprs, x: KNode): KNode {
  const dtype = x.dtype as 'int32' | 'uint32' | 'int64' | 'uint64';
  const [digits, gathered] = dtype.endsWith('64') ? [53n, 12n] : [24n, 9n];
  const low = e.and(x, (1n << gathered) - 1n);
  const high = e.sub(x, low);
  const marked = e.where(e.eq(low, 0), high, e.or(high, 1n << (gathered - 1n)));
  let small = e.lt(x, 1n << digits);
  if (!dtype.startsWith('u')) small = e.and(small, e.lt(-(1n << digits), x));
  return e.where(small, x, marked);
}
