/** Elements of tensors as numbers of JavaScript: 16-bit floats decoded. */
import type { DType, Tensor } from '@polygrad/core';
import { fromBits, isSmallFloat } from './oracle/formats.ts';
import type { NDArray } from './oracle/ndarray.ts';

/** What `data()` gives, as exact values: 64-bit integers are bigints. */
export async function elementsOf(t: Tensor): Promise<ArrayLike<number | bigint>> {
  const { dtype } = t;
  const data = await t.data();
  return isSmallFloat(dtype) ? Array.from(data as Uint16Array, (bits) => fromBits(dtype, bits)) : data;
}

/** The array of a tensor, which is disposed. */
export async function arrayOf(t: Tensor): Promise<NDArray & { readonly dtype: DType }> {
  const { dtype, shape } = t;
  const data = Array.from((await elementsOf(t)) as ArrayLike<number>, Number);
  t.dispose();
  return { dtype, shape: [...shape], data };
}

export async function arraysOf(ts: readonly Tensor[]): Promise<NDArray[]> {
  const found: NDArray[] = [];
  for (const t of ts) found.push(await arrayOf(t));
  return found;
}
