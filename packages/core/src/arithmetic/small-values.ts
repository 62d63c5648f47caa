/**
 * Values of small dtypes held in wide ones, and what operations make of them: small integers in int32, 16-bit floats in float32.
 */
import type { TargetCaps } from '../ir/target.ts';
import { type DType, dtypeInfo, isFloat, type SmallFloat } from '../shape/dtype.ts';
import type { Exprs } from '../ir/expr.ts';
import type { BinaryOp, KNode, TernaryOp, UnaryOp } from '../ir/ir.ts';
import { highOf, lowOf } from '../ir/node.ts';
import { dtypeRange } from '../ir/simplify/fold.ts';
import {
  decodeSmallFloat,
  encodeSmallFloat,
  gatherLowBits,
  type Origin,
  roundSmallFloat,
  roundToOdd,
} from './small-floats.ts';

/** The dtype that values of a small dtype are computed in. */
export function wideDtype(dtype: DType): 'float32' | 'int32' {
  return isFloat(dtype) ? 'float32' : 'int32';
}

/** What values are made with. */
export interface SmallContext {
  readonly e: Exprs;
  readonly caps: Pick<TargetCaps, 'storageBytes'>;
  /** float32 arithmetic is IEEE 754's to the letter, denormal numbers included. */
  readonly ieee: boolean;
}

/** The dtype memory of a small dtype is declared with: 16-bit floats are their bits; engines without small words use 32-bit ones. */
export function storageDtype({ storageBytes }: Pick<TargetCaps, 'storageBytes'>, dtype: DType): DType {
  if ((storageBytes?.[dtype] ?? dtypeInfo[dtype].bytes) === 4) return 'uint32';
  return isFloat(dtype) ? 'uint16' : dtype;
}

/**
 * A value of a small dtype. `loose`: equal to it once wrapped (integers: the low bits are right) or rounded (floats); `raw`: as
 * memory holds it, where it comes from memory.
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

  /** What memory of the dtype held. */
  static stored(context: SmallContext, dtype: DType, raw: KNode): SmallValue {
    const { e, ieee } = context;
    const float = isFloat(dtype);
    const wide = float ? decodeSmallFloat(e, dtype as SmallFloat, e.cast(raw, 'uint32'), ieee) : e.cast(raw, 'int32');
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
    const { e, ieee } = context;
    if (isFloat(dtype))
      return new SmallValue(
        context,
        dtype,
        decodeSmallFloat(e, dtype as SmallFloat, e.cast(bits, 'uint32'), ieee),
        true,
      );
    return new SmallValue(context, dtype, e.cast(bits, 'int32'), false);
  }

  /** A value made by moving others: as loose, exact and raw as all of them. */
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

  /** True if the wide value is the value itself. */
  get fits(): boolean {
    return this.#fits;
  }

  get loose(): KNode {
    return this.#wide;
  }

  /** The value itself. */
  get exact(): KNode {
    if (this.#fits) return this.#wide;
    const { e, dtype, context } = this;
    return isFloat(dtype)
      ? roundSmallFloat(e, dtype as SmallFloat, this.#wide, this.#origin, context.ieee)
      : wrap(e, dtype, this.#wide);
  }

  /** Its bits in the low part of a uint32, the others zero. */
  bits(): KNode {
    const { e, dtype, context } = this;
    if (isFloat(dtype)) {
      if (this.raw !== null) return e.cast(this.raw, 'uint32');
      return encodeSmallFloat(e, dtype as SmallFloat, this.#wide, this.#origin, context.ieee);
    }
    return e.and(e.cast(this.#wide, 'uint32'), e.constant('uint32', 2 ** (8 * dtypeInfo[dtype].bytes) - 1));
  }

  /** As memory of dtype `storage` holds it. */
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
    // float32 holds too few digits to round them a second time: float16 overflows long before that.
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

/** A float32 made of values of the dtype of `x`, to be rounded to it. */
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
