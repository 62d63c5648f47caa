/** a * b + c rounded once, in software: the meaning of FMA for the reference interpreter. */
import type { DType } from '../shape/dtype.ts';
import { getElement, hostArrays, setElement } from '../shape/host.ts';

const view = new DataView(new ArrayBuffer(8));

function bitsOf(x: number): bigint {
  view.setFloat64(0, x);
  return view.getBigInt64(0);
}

/**
 * Fused multiply-add of float32 values. The product of two float32 is exact in float64; the sum is rounded to odd
 * there, after which rounding to float32 is right (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums",
 * IEEE Trans. Computers 57(4), 2008).
 */
export function fma32(a: number, b: number, c: number): number {
  const product = a * b;
  const sum = product + c;
  if (!Number.isFinite(sum) || sum === 0) return Math.fround(sum);
  // Two-sum: the exact error of the addition.
  const back = sum - product;
  const error = product - (sum - back) + (c - back);
  if (error === 0) return Math.fround(sum);
  const bits = bitsOf(sum);
  if (bits & 1n) return Math.fround(sum);
  // Even: step to the odd neighbour on the side of the exact value.
  view.setBigInt64(0, bits + (error > 0 === sum > 0 ? 1n : -1n));
  return Math.fround(view.getFloat64(0));
}

/** A finite float64 as integer times a power of two. */
function split(x: number): { readonly mantissa: bigint; readonly exponent: number } {
  const bits = BigInt.asUintN(64, bitsOf(x));
  const biased = Number((bits >> 52n) & 0x7ffn);
  const fraction = bits & 0xfffffffffffffn;
  const mantissa = biased === 0 ? fraction : fraction | (1n << 52n);
  return { mantissa: x < 0 || Object.is(x, -0) ? -mantissa : mantissa, exponent: Math.max(biased, 1) - 1075 };
}

/** Fused multiply-add of float64 values, exact by integer arithmetic. */
export function fma64(a: number, b: number, c: number): number {
  const quick = a * b + c;
  if (!Number.isFinite(a) || !Number.isFinite(b) || !Number.isFinite(c) || a === 0 || b === 0 || c === 0) return quick;
  const [x, y, z] = [split(a), split(b), split(c)];
  const product = { mantissa: x.mantissa * y.mantissa, exponent: x.exponent + y.exponent };
  const exponent = Math.min(product.exponent, z.exponent);
  const sum = (product.mantissa << BigInt(product.exponent - exponent)) + (z.mantissa << BigInt(z.exponent - exponent));
  if (sum === 0n) return 0;
  return roundToDouble(sum, exponent);
}

/** value * 2^exponent to nearest even. */
function roundToDouble(value: bigint, exponent: number): number {
  const sign = value < 0n ? -1 : 1;
  let magnitude = value < 0n ? -value : value;
  const length = magnitude.toString(2).length;
  // The last kept bit has weight 2^lowest; denormals stop at 2^-1074.
  const lowest = Math.max(exponent + length - 53, -1074);
  const drop = lowest - exponent;
  if (drop > 0) {
    const shift = BigInt(drop);
    const rest = magnitude & ((1n << shift) - 1n);
    const half = 1n << (shift - 1n);
    magnitude >>= shift;
    if (rest > half || (rest === half && (magnitude & 1n) === 1n)) magnitude += 1n;
    exponent = lowest;
  }
  // Two steps, so that the power of two itself neither overflows nor underflows.
  const first = Math.max(-1000, Math.min(1000, exponent));
  return sign * Number(magnitude) * 2 ** first * 2 ** (exponent - first);
}

/**
 * Error function in float64, for the reference interpreter.
 *
 * Kummer's series erf(x) = 2x/sqrt(pi) exp(-x^2) sum (2x^2)^n / (1*3*...*(2n+1)) below 3 (all terms positive, so no
 * cancellation), the continued fraction of erfc above (Abramowitz and Stegun 7.1.6 and 7.1.14).
 */
export function erf(x: number): number {
  if (Number.isNaN(x) || x === 0) return x;
  const z = Math.abs(x);
  const sign = Math.sign(x);
  if (z > 6) return sign;
  if (z < 3) {
    let term = 1;
    let sum = 1;
    for (let n = 1; n < 120; n++) {
      term *= (2 * z * z) / (2 * n + 1);
      sum += term;
      if (term < 1e-18 * sum) break;
    }
    return (sign * 2 * z * Math.exp(-z * z) * sum) / Math.sqrt(Math.PI);
  }
  let fraction = z;
  for (let n = 80; n >= 1; n--) fraction = z + n / 2 / fraction;
  return sign * (1 - Math.exp(-z * z) / (fraction * Math.sqrt(Math.PI)));
}

// The same bits as another dtype: BITCAST of the reference interpreter.

/** The function from an `x` of dtype `from` to its bits read as dtype `to` of the same size. */
export function reinterpretFunction(from: DType, to: DType): (x: number | bigint) => number | bigint {
  const bytes = new ArrayBuffer(8);
  const written = new hostArrays[from](bytes, 0, 1);
  const seen = new hostArrays[to](bytes, 0, 1);
  return (x) => {
    setElement(written, from, 0, x);
    const read = getElement(seen, to, 0);
    return typeof read === 'boolean' ? Number(read) : read;
  };
}
