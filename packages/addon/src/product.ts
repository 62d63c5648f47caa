/** Products of matrices as the driver takes them (native/driver.h). */
import type { DType, MatrixProduct } from '@polygrad/core/kernel';

export const productKind = 4;

/** A number for each matrix of a product. */
export interface OfEach {
  readonly a: number;
  readonly b: number;
  readonly c: number;
}

/** What factors and results may be, by the number the driver knows it by (native/product.h). */
const formats: readonly (readonly [factors: DType, result: DType])[] = [
  ['float32', 'float32'],
  ['float64', 'float64'],
  ['float16', 'float16'],
  ['float16', 'float32'],
  ['bfloat16', 'bfloat16'],
  ['bfloat16', 'float32'],
];

/** Bytes of an element that factors and results may be. */
export const bytesOf = (dtype: DType): number => (dtype === 'float64' ? 8 : dtype === 'float32' ? 4 : 2);

/** The cells of a product: numbers of the buffers, and where bindings begin in them, in elements. */
export function productCommand(product: MatrixProduct, buffers: OfEach, starts: OfEach): number[] {
  const { dtype, result, m, n, k, batch } = product;
  const format = formats.findIndex(([factors, kept]) => factors === dtype && kept === result);
  const cells: number[] = [format, m, n, k, batch];
  for (const name of ['a', 'b', 'c'] as const) {
    const { offset, stride, distance, transposed } = product[name];
    cells.push(buffers[name], starts[name] + offset, stride, distance, transposed ? 1 : 0);
  }
  return cells;
}
