/**
 * A notation for decompositions: arithmetic on kernel expressions in one floating-point dtype.
 *
 * `fine` tells how accurate a function must be: true for results of float64, false where a float32 result is computed in
 * float64 (or in float32 on engines without float64), so that polynomials may stop early.
 */
import type { DType } from '../shape/dtype.ts';
import type { Exprs } from './expr.ts';
import type { KNode, UnaryOp } from './ir.ts';

export class FloatMath {
  readonly e: Exprs;
  readonly t: DType;
  readonly fine: boolean;

  constructor(e: Exprs, t: DType, fine: boolean) {
    this.e = e;
    this.t = t;
    this.fine = fine;
  }

  c(value: number): KNode {
    return this.e.constant(this.t, value);
  }
  add(a: KNode, b: KNode | number): KNode {
    return this.e.add(a, this.#node(b));
  }
  sub(a: KNode | number, b: KNode | number): KNode {
    return this.e.sub(this.#node(a), this.#node(b));
  }
  mul(a: KNode, b: KNode | number): KNode {
    return this.e.mul(a, this.#node(b));
  }
  div(a: KNode | number, b: KNode | number): KNode {
    return this.e.div(this.#node(a), this.#node(b));
  }
  neg(a: KNode): KNode {
    return this.e.neg(a);
  }
  abs(a: KNode): KNode {
    return this.e.unary('ABS', a);
  }
  floor(a: KNode): KNode {
    return this.e.unary('FLOOR', a);
  }
  sqrt(a: KNode): KNode {
    return this.e.unary('SQRT', a);
  }
  round(a: KNode): KNode {
    return this.floor(this.add(a, 0.5));
  }
  unary(op: UnaryOp, a: KNode): KNode {
    return this.e.unary(op, a);
  }
  lt(a: KNode | number, b: KNode | number): KNode {
    return this.e.lt(this.#node(a), this.#node(b));
  }
  le(a: KNode | number, b: KNode | number): KNode {
    return this.e.le(this.#node(a), this.#node(b));
  }
  eq(a: KNode, b: KNode | number): KNode {
    return this.e.eq(a, this.#node(b));
  }
  where(cond: KNode, a: KNode | number, b: KNode | number): KNode {
    return this.e.where(cond, this.#node(a), this.#node(b));
  }
  max(a: KNode, b: KNode | number): KNode {
    return this.e.max(a, this.#node(b));
  }
  min(a: KNode, b: KNode | number): KNode {
    return this.e.min(a, this.#node(b));
  }
  isNaN(a: KNode): KNode {
    return this.e.unary('ISNAN', a);
  }
  /** a * b + c, fused or not as the target likes. */
  muladd(a: KNode, b: KNode | number, c: KNode | number): KNode {
    return this.e.ternary('MULADD', a, this.#node(b), this.#node(c));
  }
  /** coefs[0] + coefs[1] x + coefs[2] x^2 + ... */
  poly(x: KNode, coefs: readonly number[]): KNode {
    let sum = this.c(coefs[coefs.length - 1] as number);
    for (let i = coefs.length - 2; i >= 0; i--) sum = this.muladd(sum, x, coefs[i] as number);
    return sum;
  }
  /** The size of `a` with the sign of `b`, zeros included. */
  copySign(a: KNode, b: KNode): KNode {
    return this.where(this.isNegative(b), this.neg(this.abs(a)), this.abs(a));
  }
  /** True for negative numbers and for -0. */
  isNegative(a: KNode): KNode {
    if (this.t === 'float32') return this.e.lt(this.e.bitcast(a, 'int32'), this.e.i32(0));
    return this.e.lt(this.e.bitcast(this.e.cast(a, 'float32'), 'int32'), this.e.i32(0));
  }
  toInt(a: KNode): KNode {
    return this.e.cast(a, 'int32');
  }
  fromInt(a: KNode): KNode {
    return this.e.cast(a, this.t);
  }
  /** 2^n for an integer-valued node n in [-126, 127], exactly. */
  smallPower(n: KNode): KNode {
    const bits = this.e.shl(this.e.add(this.toInt(n), this.e.i32(127)), this.e.i32(23));
    return this.e.cast(this.e.bitcast(bits, 'float32'), this.t);
  }
  /**
   * a * 2^n for integer-valued n with the exponent range of the dtype (and beyond: overflow gives infinity, underflow
   * rounds once). `a` is of size about one.
   */
  scale(a: KNode, n: KNode): KNode {
    if (this.t === 'float32') {
      const half = this.floor(this.mul(n, 0.5));
      return this.mul(this.mul(a, this.smallPower(half)), this.smallPower(this.sub(n, half)));
    }
    if (!this.fine) {
      // A float32 result is wanted: n in [-160, 130] is all that matters.
      const half = this.floor(this.mul(n, 0.5));
      return this.mul(this.mul(a, this.smallPower(half)), this.smallPower(this.sub(n, half)));
    }
    const part = this.floor(this.mul(n, 1 / 16));
    const rest = this.sub(n, this.mul(part, 16));
    let power = this.smallPower(part);
    for (let i = 0; i < 4; i++) power = this.mul(power, power);
    return this.mul(this.mul(a, this.smallPower(rest)), power);
  }

  #node(x: KNode | number): KNode {
    return typeof x === 'number' ? this.c(x) : x;
  }
}

/** 1, 1/1!, 1/2!, ... up to 1/count!. */
export function inverseFactorials(count: number): number[] {
  const list = [1];
  for (let n = 1; n <= count; n++) list.push((list[n - 1] as number) / n);
  return list;
}
