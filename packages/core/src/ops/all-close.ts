/** allClose: whether two tensors hold the same numbers, within tolerances. The one answer is read back. */
import { checkNames } from '../shape/options.ts';
import { compose } from '../graph/scope.ts';
import { isClose } from './logic.ts';
import { all } from './reduction.ts';
import { keep } from '../tensor/scope.ts';
import type { TensorLike } from '../tensor/types.ts';

/** Tolerances of `isClose` and `allClose`. */
export interface CloseOptions {
  /** Tolerance times the magnitude of the second operand. Default 1e-5. */
  readonly rtol?: number;
  /** Tolerance whatever the magnitude. Default 1e-8. */
  readonly atol?: number;
  /** Whether NaN is close to NaN. Default false. */
  readonly equalNaN?: boolean;
}

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
  checkNames('allClose', options, 'rtol# atol# equalNaN?');
  const close = compose('allClose', () => keep(all(isClose(a, b, options))));
  try {
    return (await close.item()) === 1;
  } finally {
    close.dispose();
  }
}
