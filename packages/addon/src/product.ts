/** Products of matrices as the driver takes them (native/driver.h). */
import type { MatrixProduct } from '@polygrad/core/kernel';

export const productKind = 4;

/** A number for each matrix of a product. */
export interface OfEach {
  readonly a: number;
  readonly b: number;
  readonly c: number;
}

/** The cells of a product: numbers of the buffers, and where bindings begin in them, in elements. */
export function productCommand(product: MatrixProduct, buffers: OfEach, starts: OfEach): number[] {
  const { dtype, m, n, k, batch } = product;
  const cells: number[] = [dtype === 'float64' ? 1 : 0, m, n, k, batch];
  for (const name of ['a', 'b', 'c'] as const) {
    const { offset, stride, distance, transposed } = product[name];
    cells.push(buffers[name], starts[name] + offset, stride, distance, transposed ? 1 : 0);
  }
  return cells;
}
