/** allClose: whether two tensors hold the same numbers, within tolerances. The one answer is read back. */
import { compose } from '../graph/scope.ts';
import { keep } from '../tensor/scope.ts';
import type { TensorLike } from '../tensor/types.ts';
import { type CloseOptions, tolerancesOf } from '../ops/elementwise/close.ts';
import { isClose } from '../ops/elementwise/logic.ts';
import { all } from '../ops/reduction/reduction.ts';

/**
 * True if |a - b| <= atol + rtol * |b| for all elements, or both are the same infinity. Asynchronous, because it depends on data. Source:
 * NumPy `allclose`, PyTorch `allclose`.
 *
 * @param a, b any shapes that broadcast, any dtypes that meet in one
 * @param options rtol 1e-5, atol 1e-8, equalNaN false
 * @throws ShapeError, DTypeError where they do not meet
 *
 * @example
 * await allClose(tensor([1, 2]), tensor([1, 2.000001])); // true
 * await allClose(tensor([1, 2]), tensor([1, 2.1])); // false
 */
export async function allClose(a: TensorLike, b: TensorLike, options: CloseOptions = {}): Promise<boolean> {
  const tolerances = tolerancesOf('allClose', options);
  const close = compose('allClose', () => keep(all(isClose(a, b, tolerances))));
  try {
    return (await close.item()) === 1;
  } finally {
    close.dispose();
  }
}
