/**
 * A notation for decompositions: arithmetic on kernel expressions in one floating-point dtype. Numbers stand for constants.
 *
 * What depends on the format (powers of two, signs, cutting numbers into parts) is in float-math32.ts and float-math64.ts, so that
 * a function is written once and differs between dtypes in its coefficients only. Functions stay close to half a unit in the
 * last place by keeping what sums lose (T. J. Dekker, "A floating-point technique for extending the available precision", Numerische
 * Mathematik 18, 1971): for s = a + b with |a| >= |b|, (a - s) + b is exactly what was lost.
 */
import type { TargetCaps } from '../ir/target.ts';
import { Exprs, type Operand } from '../ir/expr.ts';
import type { KNode } from '../ir/ir.ts';

/** What decompositions ask of an engine. */
export type DecomposeCaps = Pick<TargetCaps, 'dtypes' | 'nativeOps' | 'simt' | 'keepRounding'>;

/** The dtypes functions are written for; others are computed in float32. */
export type FloatType = 'float32' | 'float64';

/** Coefficients per dtype. */
export type Coefficients = Readonly<Record<FloatType, readonly number[]>>;

/** ln 2 in two parts: products of the first with whole numbers are exact (float64: fdlibm's e_exp.c and e_log.c). */
export const LN2: Coefficients = {
  float32: [0.693145751953125, 1.42860677e-6],
  float64: [0.6931471803691238, 1.9082149292705877e-10],
};

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

  // --- what differs between formats

  /** A nearest integer of a number of at most 2^11 (float32: 2^22) in size. */
  abstract whole(a: KNode): Whole;
  /**
   * A nearest integer of a * factor, within the same bounds. `plus`: what its user adds to it, so that adding it may cost nothing: 127 for
   * `power`, 254 for `scale`.
   */
  wholeProduct(a: KNode, factor: number, plus = 0): Whole {
    void plus;
    return this.whole(this.mul(a, factor));
  }
  /** 2^(n + plus), which must be a normal number. */
  abstract power(n: Whole, plus?: number): KNode;
  /** 2^(-2n) for n >= 0; 2^-120 from n = 60 on. */
  abstract inverseSquare(n: Whole): KNode;
  /** a * 2^n for a around one and any n in the range of the format and a little beyond: rounds once, denormals included. */
  abstract scale(a: KNode, n: Whole): KNode;
  /** x = 2^n mantissa with the mantissa in [cut, 2 cut), for positive finite x, denormal ones if said so; n is a number of the dtype. */
  abstract split(x: KNode, cut: number, denormals?: boolean): { readonly n: KNode; readonly mantissa: KNode };
  /** a cut or rounded to half the significant bits or less, so that products of two such numbers are exact. */
  abstract head(a: KNode): KNode;
  /** The sign of a, for `withSign`. */
  abstract signOf(a: KNode): KNode;
  /** a >= 0 with that sign. */
  abstract withSign(a: KNode, sign: KNode): KNode;

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
  /** A nearest integer: which one of two equally near ones depends on the engine. */
  nearest(a: KNode): KNode {
    return this.caps.nativeOps.has('ROUND') ? this.unary('ROUND', a) : this.floor(this.add(a, 0.5));
  }
  /** a, which is computed from as a rounded number: no product that is contracted into a sum. */
  rounded(a: KNode): KNode {
    return this.unary('ROUNDED', a);
  }
  /** a limited to [low, high]; NaN stays. */
  clamp(a: KNode, low: number, high: number): KNode {
    return this.min(this.max(a, low), high);
  }
  /** True if the engine rounds a * b + c once. */
  get fuses(): boolean {
    return this.caps.nativeOps.has('FMA');
  }
  /** a * b + c, fused or not as the target likes: only where its rounding does not matter. */
  muladd(a: KNode, b: Operand, c: Operand): KNode {
    return this.ternary('MULADD', a, b, c);
  }
  /** coefs[0] + coefs[1] x + coefs[2] x^2 + ... */
  poly(x: KNode, coefs: readonly number[]): KNode {
    let sum = this.c(coefs[coefs.length - 1]!);
    for (let i = coefs.length - 2; i >= 0; i--) sum = this.muladd(sum, x, coefs[i]!);
    return sum;
  }
  /** What s = a + b lost, |a| >= |b| or a = 0. */
  lost(a: KNode, b: KNode, s: KNode): KNode {
    return this.add(this.sub(a, s), b);
  }

  // --- conditions

  override where(cond: KNode, a: Operand, b: Operand): KNode {
    return super.where(cond, typeof a === 'object' ? a : this.c(Number(a)), b);
  }
  /** The value of the first test that holds; the last value if none does. */
  choose(tests: readonly KNode[], values: readonly number[]): KNode {
    return tests.reduceRight((rest, test, i) => this.where(test, values[i]!, rest), this.c(values[tests.length]!));
  }
  isNaN(a: KNode): KNode {
    return this.unary('ISNAN', a);
  }
  /** True for negative numbers and for -0. The sign survives the way to float32. */
  isNegative(a: KNode): KNode {
    return this.lt(this.bitcast(this.cast(a, 'float32'), 'int32'), 0);
  }
}
