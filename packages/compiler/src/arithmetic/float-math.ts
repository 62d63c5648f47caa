/**
 * A notation for decompositions: arithmetic on kernel expressions in one floating-point dtype. JavaScript numbers become constants.
 *
 * What depends on the format (powers of two, signs, splitting numbers) is in a class for each, or in decompose/parts.ts where few functions use it. So a
 * function is written once, and differs between dtypes only in its coefficients. Functions stay close to half a unit in the last place by keeping rounding
 * errors of sums (T. J. Dekker, "A floating-point technique for extending the available precision", Numerische Mathematik 18, 1971): for s = a + b with |a|
 * >= |b|, (a - s) + b is exactly the error.
 */
import type { TargetCaps } from '../ir/target.ts';
import { Exprs, type Operand } from '../ir/expr.ts';
import type { KNode } from '../ir/ir.ts';

/** What decompositions need to know of an engine. */
export type DecomposeCaps = Pick<TargetCaps, 'dtypes' | 'nativeOps' | 'simt' | 'keepRounding' | 'flushesDenormals'>;

/** The dtypes functions are written for; others are computed in float32. */
export type FloatType = 'float32' | 'float64';

/** Coefficients per dtype. */
export type Coefficients = Readonly<Record<FloatType, readonly number[]>>;

/** An integer, held as a number of the dtype and, where that helps, as an int32 that is too large by `bias`. */
export interface Whole {
  readonly value: KNode;
  readonly bits: KNode;
  readonly bias: number;
}

export abstract class FloatMath extends Exprs {
  readonly e: Exprs;
  readonly t: FloatType;
  readonly caps: DecomposeCaps;

  constructor(e: Exprs, t: FloatType, caps: DecomposeCaps) {
    super(e);
    this.e = e;
    this.t = t;
    this.caps = caps;
  }

  /** True for float32. The files of functions know no class of this file but as types, so that pages have them without what makes IR. */
  isSingle(): this is Math32 {
    return this.t === 'float32';
  }

  // --- what differs between formats

  /** A nearest integer of a number of at most 2^11 (float32: 2^22) in size. */
  abstract whole(a: KNode): Whole;
  /**
   * A nearest integer of a * factor, within the same bounds. `plus`: the number its user will add, so that adding it may cost nothing: 127 for
   * `power`, 254 for `scale`.
   */
  wholeProduct(a: KNode, factor: number, plus = 0): Whole {
    void plus;
    return this.whole(this.mul(a, factor));
  }
  /** a * 2^n for a around one and any n in the range of the format and a little beyond: rounds once, denormals included. */
  abstract scale(a: KNode, n: Whole): KNode;
  /** x = 2^n mantissa with the mantissa in [cut, 2 cut), for positive finite x, with `denormals` also denormal ones; n is a number of the dtype. */
  abstract split(x: KNode, cut: number, denormals?: boolean): { readonly n: KNode; readonly mantissa: KNode };

  // --- arithmetic

  c(value: number): KNode {
    return this.constant(this.t, value);
  }
  pick(coefs: Coefficients): readonly number[] {
    return coefs[this.t];
  }
  abs(a: KNode): KNode {
    return this.unary('ABS', a);
  }
  floor(a: KNode): KNode {
    return this.unary('FLOOR', a);
  }
  sqrt(a: KNode): KNode {
    return this.unary('SQRT', a);
  }
  /** A nearest integer; of two equally near ones the engine decides. */
  nearest(a: KNode): KNode {
    return this.caps.nativeOps.has('ROUND') ? this.unary('ROUND', a) : this.floor(this.add(a, 0.5));
  }
  /** a limited to [low, high]; NaN stays. */
  clamp(a: KNode, low: number, high: number): KNode {
    return this.min(this.max(a, low), high);
  }
  /** True if the engine rounds a * b + c once. */
  get fuses(): boolean {
    return this.caps.nativeOps.has('FMA');
  }
  /** a * b + c, fused or not as the target prefers: only where its rounding does not matter. */
  muladd(a: KNode, b: Operand, c: Operand): KNode {
    return this.ternary('MULADD', a, b, c);
  }
  /** coefs[0] + coefs[1] x + coefs[2] x^2 + ... */
  poly(x: KNode, coefs: readonly number[]): KNode {
    let sum = this.c(coefs[coefs.length - 1]!);
    for (let i = coefs.length - 2; i >= 0; i--) sum = this.muladd(sum, x, coefs[i]!);
    return sum;
  }
  /** The rounding error of s = a + b, for |a| >= |b| or a = 0. */
  lost(a: KNode, b: KNode, s: KNode): KNode {
    return this.add(this.sub(a, s), b);
  }

  // --- conditions

  override where(cond: KNode, a: Operand, b: Operand): KNode {
    return super.where(cond, typeof a === 'object' ? a : this.c(Number(a)), b);
  }
  isNaN(a: KNode): KNode {
    return this.unary('ISNAN', a);
  }
}

/** float64, without 64-bit integers: exponents go through the bits of a float32. */
export class Math64 extends FloatMath {
  constructor(e: Exprs, caps: DecomposeCaps) {
    super(e, 'float64', caps);
  }

  whole(a: KNode): Whole {
    const value = this.nearest(a);
    return { value, bits: value, bias: 0 };
  }
  scale(a: KNode, n: Whole): KNode {
    const { rest, part } = this.powers(n.value);
    return this.mul(this.mul(a, rest), part);
  }

  /** 2^n as rest * part, n in [-1134, 1135]: part a power of 2^16 within the normal numbers. */
  powers(n: KNode): { readonly rest: KNode; readonly part: KNode } {
    const sixteenths = this.clamp(this.floor(this.mul(n, 1 / 16)), -63, 63);
    let part = this.smallPower(sixteenths);
    for (let i = 0; i < 4; i++) part = this.mul(part, part);
    return { rest: this.smallPower(this.sub(n, this.mul(sixteenths, 16))), part };
  }
  /** 2^n for n in [-126, 127]. */
  smallPower(n: KNode): KNode {
    const bits = this.shl(this.add(this.cast(n, 'int32'), 127), 23);
    return this.cast(this.bitcast(bits, 'float32'), 'float64');
  }

  split(x: KNode, cut: number): { readonly n: KNode; readonly mantissa: KNode } {
    let scaled = x;
    let exponent = this.c(0);
    // Well into float32's range by powers of two, the smallest denormals too.
    for (const step of [512, 256, 128, 128]) {
      const small = this.lt(scaled, 2 ** (-step / 2));
      const large = this.lt(2 ** (step / 2), scaled);
      scaled = this.mul(scaled, this.where(small, 2 ** step, this.where(large, 2 ** -step, 1)));
      exponent = this.add(exponent, this.where(small, -step, this.where(large, step, 0)));
    }
    const single = this.bitcast(this.cast(this.mul(scaled, 1 / cut), 'float32'), 'int32');
    const n = this.sub(this.shr(single, 23), 127);
    const down = this.bitcast(this.shl(this.sub(127, n), 23), 'float32');
    return { n: this.add(exponent, this.cast(n, 'float64')), mantissa: this.mul(scaled, this.cast(down, 'float64')) };
  }
}

/** 1.5 * 2^23: added to a small number, it leaves the number rounded to an integer in the low bits. */
const SHIFTER = 12582912;
const SHIFTER_BITS = 0x4b400000;

const bitsOf = new Int32Array(1);
const floatOf = new Float32Array(bitsOf.buffer);

/** float32: a number's bits are an int32, so exponents and signs are integer arithmetic. */
export class Math32 extends FloatMath {
  /** float64 arithmetic, where the engine has it. */
  readonly wide: Math64 | null;

  constructor(e: Exprs, caps: DecomposeCaps) {
    super(e, 'float32', caps);
    this.wide = caps.dtypes.has('float64') ? new Math64(e, caps) : null;
  }

  bits(a: KNode): KNode {
    return this.bitcast(a, 'int32');
  }
  fromBits(a: KNode): KNode {
    return this.bitcast(a, 'float32');
  }

  /** GPUs may reassociate sums, and convert to integers cheaply; on other engines adding a large constant is cheapest. */
  whole(a: KNode): Whole {
    if (this.caps.simt) return this.converted(this.nearest(a));
    const shifted = this.add(a, SHIFTER);
    return { value: this.sub(shifted, SHIFTER), bits: this.bits(shifted), bias: SHIFTER_BITS };
  }
  override wholeProduct(a: KNode, factor: number, plus = 0): Whole {
    if (this.caps.simt) return super.wholeProduct(a, factor);
    const shifted = this.muladd(a, factor, SHIFTER + plus);
    return { value: this.sub(shifted, SHIFTER + plus), bits: this.bits(shifted), bias: SHIFTER_BITS + plus };
  }
  /** A whole number of at most 2^22 in size as an integer that is too large. */
  shifted(value: KNode): Whole {
    return { value, bits: this.bits(this.add(value, SHIFTER)), bias: SHIFTER_BITS };
  }
  converted(value: KNode): Whole {
    return { value, bits: this.cast(value, 'int32'), bias: 0 };
  }

  /** n + plus in the lowest `digits` bits. */
  moved(n: Whole, plus: number, digits: number): KNode {
    const by = plus - n.bias;
    return by % 2 ** digits === 0 ? n.bits : this.add(n.bits, by);
  }
  /** In two steps, n in [-252, 254]. */
  scale(a: KNode, n: Whole): KNode {
    const sum = this.moved(n, 254, 10);
    const half = this.shr(sum, 1);
    const one = this.fromBits(this.shl(half, 23));
    const other = this.fromBits(this.shl(this.sub(sum, half), 23));
    return this.mul(this.mul(a, one), other);
  }
  split(x: KNode, cut: number, denormals = true): { readonly n: KNode; readonly mantissa: KNode } {
    const tiny = this.lt(x, 2 ** -126);
    const bits = this.bits(denormals ? this.where(tiny, this.mul(x, 2 ** 24), x) : x);
    floatOf[0] = cut;
    const n = this.shr(this.sub(bits, bitsOf[0]!), 23);
    const mantissa = this.fromBits(this.sub(bits, this.shl(n, 23)));
    const exponent = this.cast(n, 'float32');
    return { n: denormals ? this.add(exponent, this.where(tiny, -24, 0)) : exponent, mantissa };
  }
}
