/** float32 for decompositions: a number's bits are an int32, so exponents and signs are integer arithmetic. */
import type { Exprs } from '../ir/expr.ts';
import { type DecomposeCaps, FloatMath, type Whole } from './float-math.ts';
import { Math64 } from './float-math64.ts';
import type { KNode } from '../ir/ir.ts';

/** 1.5 * 2^23: added to a small number, it leaves the number rounded to an integer in the low bits. */
const SHIFTER = 12582912;
const SHIFTER_BITS = 0x4b400000;

const bitsOf = new Int32Array(1);
const floatOf = new Float32Array(bitsOf.buffer);

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

  /** GPUs may reassociate sums, and convert to integers cheaply; elsewhere adding a large constant is the cheapest way. */
  whole(a: KNode): Whole {
    if (this.caps.simt) return this.#converted(this.nearest(a));
    const shifted = this.add(a, SHIFTER);
    return { value: this.sub(shifted, SHIFTER), bits: this.bits(shifted), bias: SHIFTER_BITS };
  }
  override wholeProduct(a: KNode, factor: number, plus = 0): Whole {
    if (this.caps.simt) return super.wholeProduct(a, factor);
    const shifted = this.muladd(a, factor, SHIFTER + plus);
    return { value: this.sub(shifted, SHIFTER + plus), bits: this.bits(shifted), bias: SHIFTER_BITS + plus };
  }
  /** An integer-valued float64 of at most 2^22 in size. */
  wholeOf(wide: KNode): Whole {
    const value = this.cast(wide, 'float32');
    if (this.caps.simt) return this.#converted(value);
    return { value, bits: this.bits(this.add(value, SHIFTER)), bias: SHIFTER_BITS };
  }
  #converted(value: KNode): Whole {
    return { value, bits: this.cast(value, 'int32'), bias: 0 };
  }

  power(n: Whole, plus = 0): KNode {
    return this.fromBits(this.shl(this.#moved(n, 127 + plus, 9), 23));
  }
  /** n + plus in the lowest `digits` bits. */
  #moved(n: Whole, plus: number, digits: number): KNode {
    const by = plus - n.bias;
    return by % 2 ** digits === 0 ? n.bits : this.add(n.bits, by);
  }
  inverseSquare(n: Whole): KNode {
    const capped = this.min(this.sub(n.bits, n.bias), 60);
    return this.fromBits(this.sub(127 << 23, this.shl(capped, 24)));
  }
  /** In two steps, n in [-252, 254]. */
  scale(a: KNode, n: Whole): KNode {
    const sum = this.#moved(n, 254, 10);
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
  /** 12 bits. */
  head(a: KNode): KNode {
    return this.fromBits(this.and(this.bits(a), 0xfffff000));
  }
  signOf(a: KNode): KNode {
    return this.and(this.bits(a), 0x80000000);
  }
  withSign(a: KNode, sign: KNode): KNode {
    return this.fromBits(this.or(this.bits(a), sign));
  }
}
