/** Values of every dtype: drawn over their whole range, read exactly, and compared to the last bit. */
import type { DType, Tensor } from '@polygrad/core';
import { elementsOf } from '../../host.ts';
import { integerFormat, wrap } from '../../oracle/formats.ts';
import { makeRandom, seedOf } from '../../oracle/random.ts';

export const integers = ['int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64'] as const;
export const floats = ['float16', 'bfloat16', 'float32', 'float64'] as const;
export type Integer = (typeof integers)[number];

/** Edges of the dtype, small numbers, and numbers of all sizes. */
export function draw(dtype: Integer, count: number, salt: string): bigint[] {
  const { bits } = integerFormat(dtype) as { bits: number };
  const random = makeRandom(seedOf(`${dtype}/${salt}`));
  const word = (): bigint => BigInt(Math.floor(random() * 2 ** 32));
  const top = 1n << BigInt(bits - 1);
  const edges = [0n, 1n, -1n, 2n, 3n, -7n, top, top - 1n, top + 1n, 2n ** 53n + 1n, -(2n ** 53n) - 1n];
  return Array.from({ length: count }, (_, i) => {
    if (i % 3 === 0) return wrap(dtype, edges[Math.floor(random() * edges.length)]!);
    return wrap(dtype, ((word() << 32n) | word()) >> BigInt(Math.floor(random() * 64)));
  });
}

/** Elements of a tensor as exact values. */
export async function read(t: Tensor): Promise<(number | bigint)[]> {
  const data = await elementsOf(t);
  return Array.from(data, integerFormat(t.dtype) === null ? (x) => x : BigInt);
}

export async function expectValues(
  what: string,
  t: Tensor,
  wanted: readonly (number | bigint | boolean)[],
  dtype: DType,
): Promise<void> {
  const got = await read(t);
  const found = t.dtype;
  t.dispose();
  if (found !== dtype) throw new Error(`${what}: dtype ${found} where ${dtype} is expected`);
  if (got.length !== wanted.length)
    throw new Error(`${what}: ${got.length} values where ${wanted.length} are expected`);
  wanted.forEach((w, i) => {
    const want = typeof w === 'boolean' ? Number(w) : w;
    if (!Object.is(got[i], want)) throw new Error(`${what}: element ${i} is ${got[i]} where ${want} is expected`);
  });
}
