/** A tensor's elements as numbers a comparison can use: 16-bit floats decoded, 64-bit integers as bigints. */
import type { Tensor } from '@polygrad/core';

function fromHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15));
}

const word = new DataView(new ArrayBuffer(4));

function fromBrain(bits: number): number {
  word.setUint32(0, bits << 16);
  return word.getFloat32(0);
}

export async function hostNumbers(t: Tensor): Promise<ArrayLike<number | bigint>> {
  const data = await t.data();
  if (t.dtype === 'float16') return Array.from(data as Uint16Array, fromHalf);
  if (t.dtype === 'bfloat16') return Array.from(data as Uint16Array, fromBrain);
  return data;
}
