/** Number formats by their definitions: nearest values of 16-bit floats, their bits, integers that wrap. Exact, and slow. */

/** Significand bits (the hidden one counted) and least exponent of the 16-bit floats. */
const layouts = {
  float16: { digits: 11, least: -14, bias: 15 },
  bfloat16: { digits: 8, least: -126, bias: 127 },
} as const;

export type SmallFloat = keyof typeof layouts;

export function isSmallFloat(dtype: string): dtype is SmallFloat {
  return dtype === 'float16' || dtype === 'bfloat16';
}

/** The value of the format nearest to x, ties to the even one. */
export function nearest(format: SmallFloat, x: number): number {
  if (!Number.isFinite(x) || x === 0) return x;
  const { digits, least } = layouts[format];
  let exponent = 0;
  const size = Math.abs(x);
  while (2 ** (exponent + 1) <= size) exponent++;
  while (2 ** exponent > size && exponent > least) exponent--;
  const step = 2 ** (Math.max(exponent, least) - digits + 1);
  const low = Math.floor(size / step);
  const rest = size / step - low;
  const steps = rest > 0.5 || (rest === 0.5 && low % 2 === 1) ? low + 1 : low;
  // One more than the largest exponent is infinity.
  const value = steps * step >= 2 ** (2 - least) ? Number.POSITIVE_INFINITY : steps * step;
  return Math.sign(x) * value;
}

/** The number that 16 bits represent. */
export function fromBits(format: SmallFloat, bits: number): number {
  const { digits, bias } = layouts[format];
  const fraction = digits - 1;
  const exponent = (bits & 0x7fff) >> fraction;
  const rest = bits & (2 ** fraction - 1);
  const sign = bits & 0x8000 ? -1 : 1;
  if (exponent === 2 * bias + 1) return rest === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return (
    sign *
    (exponent === 0 ? rest * 2 ** (1 - bias - fraction) : (2 ** fraction + rest) * 2 ** (exponent - bias - fraction))
  );
}

/** Bits of an integer dtype and whether it has a sign; null for other dtypes. */
export function integerFormat(dtype: string): { readonly bits: number; readonly signed: boolean } | null {
  const match = /^(u?)int(\d+)$/.exec(dtype);
  return match === null ? null : { bits: Number(match[2]), signed: match[1] === '' };
}

/** An integer as the dtype holds it. */
export function wrap(dtype: string, x: bigint): bigint {
  const format = integerFormat(dtype);
  if (format === null) return x;
  return format.signed ? BigInt.asIntN(format.bits, x) : BigInt.asUintN(format.bits, x);
}
