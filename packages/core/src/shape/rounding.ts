/** The nearest value of a dtype to a number: rounding for floats, wrapping for integers. */
import type { DType } from './dtype.ts';

/** An element as a JavaScript value: bigint for 64-bit integers, 0 or 1 for bool. */
export type Literal = number | bigint;

/** Rounds to a binary float with `digits` significand bits, least exponent `emin` and largest finite value `max`. Ties to even. */
function roundFloat(x: number, digits: number, emin: number, max: number): number {
  if (x === 0 || !Number.isFinite(x)) return x;
  const a = Math.abs(x);
  let exp = Math.floor(Math.log2(a));
  if (2 ** exp > a) exp--;
  else if (2 ** (exp + 1) <= a) exp++;
  const step = 2 ** (Math.max(exp, emin) - digits + 1);
  const q = a / step; // exact: step is a power of two
  let n = Math.floor(q);
  const rest = q - n;
  if (rest > 0.5 || (rest === 0.5 && n % 2 === 1)) n++;
  const r = n * step;
  const y = r > max ? Number.POSITIVE_INFINITY : r;
  return x < 0 ? -y : y;
}

/**
 * A number that rounds to any float shorter than float64 as the literal does: of large bigints the low bits are gathered into one, so
 * that the number is exact and nothing is rounded twice.
 */
function sticky(v: Literal): number {
  if (typeof v === 'number' || (v < 2n ** 53n && v > -(2n ** 53n))) return Number(v);
  const low = v & 0xfffn;
  return Number(low === 0n ? v : v - low + 0x800n);
}

/** The nearest value a dtype can hold; integers wrap. 64-bit integers are bigint, everything else number. */
export function normalize(dtype: DType, v: Literal): Literal {
  switch (dtype) {
    case 'float64':
      return Number(v);
    case 'float32':
      return Math.fround(sticky(v));
    case 'float16':
      return roundFloat(sticky(v), 11, -14, 65504);
    case 'bfloat16':
      return roundFloat(sticky(v), 8, -126, 3.3895313892515355e38);
    case 'int64':
      return BigInt.asIntN(64, toBig(v));
    case 'uint64':
      return BigInt.asUintN(64, toBig(v));
    case 'bool':
      return Number(v) !== 0 ? 1 : 0;
    default: {
      const n = typeof v === 'bigint' ? Number(BigInt.asIntN(32, v)) : v;
      if (dtype === 'int32') return n | 0;
      if (dtype === 'uint32') return n >>> 0;
      if (dtype === 'int8') return (n << 24) >> 24;
      if (dtype === 'int16') return (n << 16) >> 16;
      return dtype === 'uint8' ? n & 0xff : n & 0xffff;
    }
  }
}

function toBig(v: Literal): bigint {
  if (typeof v === 'bigint') return v;
  return Number.isFinite(v) ? BigInt(Math.trunc(v)) : 0n;
}
