import { expect, it } from 'vitest';
import type { DType } from '../kernel.ts';
import { hexFloat, openClConstant } from './types.ts';

/** The number a hexadecimal literal of C means. */
function parse(text: string): number {
  const [, whole, digits = '', exponent] = /^0x([01])(?:\.([0-9a-f]+))?p([+-]\d+)$/.exec(text) as unknown as string[];
  let value = Number.parseInt(`${whole}${digits}`, 16) || 0;
  for (let e = Number(exponent) - 4 * digits.length; e !== 0; e -= Math.sign(e)) value *= e > 0 ? 2 : 0.5;
  return value;
}

it('hexadecimal floats are exact', () => {
  const bits = new DataView(new ArrayBuffer(8));
  const numbers = [1, 0.1, 1e300, 1.7976931348623157e308, 2 ** -1022, 3.4e38, 1e-40, Math.PI];
  for (let i = 1; i <= 200; i++) {
    // Normal float32 numbers of every exponent.
    bits.setUint32(0, ((((i * 31) % 254) + 1) << 23) | (Math.imul(i, 2654435761) >>> 9));
    numbers.push(bits.getFloat32(0));
  }
  for (const x of numbers) expect(parse(hexFloat(Math.abs(x))), `${x}`).toBe(Math.abs(x));
  expect(hexFloat(2 ** -1074)).toBe('0x0.0000000000001p-1022');
});

it('literals have their type', () => {
  const text = (dtype: DType, value: number | bigint, lanes = 1): string => openClConstant(dtype, value, lanes).text;
  expect(text('float32', 1.5)).toBe('1.5f');
  expect(text('float32', -0)).toBe('(-0.0f)');
  expect(text('float32', Math.fround(0.1))).toBe('0x1.99999ap-4f');
  expect(text('float32', -Infinity, 4)).toBe('(float4)((-INFINITY))');
  expect(text('float64', Infinity)).toBe('((double)INFINITY)');
  expect(text('float64', 0.1)).toBe('0.1');
  expect(text('int32', -2147483648)).toBe('(-2147483647 - 1)');
  expect(text('int64', -(2n ** 63n))).toBe('(-9223372036854775807L - 1L)');
  expect(text('uint64', 2n ** 64n - 1n)).toBe('18446744073709551615UL');
  expect(text('int8', -128)).toBe('(char)(-128)');
  expect(text('bool', 1, 8)).toBe('(int8)(-1)');
});
