/** float32 for decompositions: a number's bits are an int32, so exponents and signs are integer arithmetic. */
import type { Exprs } from './expr.ts';
import { type DecomposeCaps, FloatMath, type Whole } from './float-math.ts';
import { Math64 } from './float-math64.ts';
import type { KNode } from './ir.ts';

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
    return this.e.bitcast(a, 'int32');
  }
  fromBits(a: KNode): KNode {
    return this.e.bitcast(a, 'float32');
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
    const value = this.e.cast(wide, 'float32');
    if (this.caps.simt) return this.#converted(value);
    return { value, bits: this.bits(this.add(value, SHIFTER)), bias: SHIFTER_BITS };
  }
  #converted(value: KNode): Whole {
    return { value, bits: this.e.cast(value, 'int32'), bias: 0 };
  }

  power(n: Whole, plus = 0): KNode {
    return this.fromBits(this.e.shl(this.#moved(n, 127 + plus, 9), this.int(23)));
  }
  /** n + plus in the lowest `digits` bits. */
  #moved(n: Whole, plus: number, digits: number): KNode {
    const by = plus - n.bias;
    return by % 2 ** digits === 0 ? n.bits : this.e.add(n.bits, this.int(by));
  }
  inverseSquare(n: Whole): KNode {
    const capped = this.e.min(this.e.sub(n.bits, this.int(n.bias)), this.int(60));
    return this.fromBits(this.e.sub(this.int(127 << 23), this.e.shl(capped, this.int(24))));
  }
  /** In two steps, n in [-252, 254]. */
  scale(a: KNode, n: Whole): KNode {
    const { e } = this;
    const sum = this.#moved(n, 254, 10);
    const half = e.shr(sum, this.int(1));
    const one = this.fromBits(e.shl(half, this.int(23)));
    const other = this.fromBits(e.shl(e.sub(sum, half), this.int(23)));
    return this.mul(this.mul(a, one), other);
  }
  split(x: KNode, cut: number, denormals = true): { readonly n: KNode; readonly mantissa: KNode } {
    const { e } = this;
    const tiny = this.lt(x, 2 ** -126);
    const bits = this.bits(denormals ? this.where(tiny, this.mul(x, 2 ** 24), x) : x);
    floatOf[0] = cut;
    const n = e.shr(e.sub(bits, this.int(bitsOf[0] as number)), this.int(23));
    const mantissa = this.fromBits(e.sub(bits, e.shl(n, this.int(23))));
    const exponent = e.cast(n, 'float32');
    return { n: denormals ? this.add(exponent, this.where(tiny, -24, 0)) : exponent, mantissa };
  }
  /** 12 bits. */
  head(a: KNode): KNode {
    return this.fromBits(this.e.and(this.bits(a), this.int(0xfffff000)));
  }
  signOf(a: KNode): KNode {
    return this.e.and(this.bits(a), this.int(0x80000000));
  }
  withSign(a: KNode, sign: KNode): KNode {
    return this.fromBits(this.e.or(this.bits(a), sign));
  }
}
