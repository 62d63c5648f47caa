/**
 * float64 for decompositions, without 64-bit integers: exponents go through the bits of a float32.
 */
import type { Exprs } from '../ir/expr.ts';
import { type DecomposeCaps, FloatMath, type Whole } from './float-math.ts';
import type { KNode } from '../ir/ir.ts';

export class Math64 extends FloatMath {
  constructor(e: Exprs, caps: DecomposeCaps) {
    super(e, 'float64', caps);
  }

  whole(a: KNode): Whole {
    const value = this.nearest(a);
    return { value, bits: value, bias: 0 };
  }
  power(n: Whole, plus = 0): KNode {
    const { rest, part } = this.#powers(plus === 0 ? n.value : this.add(n.value, plus));
    return this.mul(rest, part);
  }
  inverseSquare(n: Whole): KNode {
    return this.#smallPower(this.mul(this.min(n.value, 60), -2));
  }
  scale(a: KNode, n: Whole): KNode {
    const { rest, part } = this.#powers(n.value);
    return this.mul(this.mul(a, rest), part);
  }

  /** 2^n as rest * part, n in [-1134, 1135]: part a power of 2^16 within the normal numbers. */
  #powers(n: KNode): { readonly rest: KNode; readonly part: KNode } {
    const sixteenths = this.clamp(this.floor(this.mul(n, 1 / 16)), -63, 63);
    let part = this.#smallPower(sixteenths);
    for (let i = 0; i < 4; i++) part = this.mul(part, part);
    return { rest: this.#smallPower(this.sub(n, this.mul(sixteenths, 16))), part };
  }
  /** 2^n for n in [-126, 127]. */
  #smallPower(n: KNode): KNode {
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
  /** 24 bits, for numbers in float32's range. */
  head(a: KNode): KNode {
    return this.cast(this.cast(a, 'float32'), 'float64');
  }
  signOf(a: KNode): KNode {
    return this.isNegative(a);
  }
  withSign(a: KNode, sign: KNode): KNode {
    return this.where(sign, this.neg(a), a);
  }
}
