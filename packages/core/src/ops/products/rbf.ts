/** The radial basis function kernel. */
import * as p from '../../graph/primitives.ts';
import { compose } from '../../graph/scope.ts';
import { ArgumentError, ShapeError, showShape } from '../../shape/errors.ts';
import { checkNames } from '../../shape/options.ts';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { floatOperands, given } from '../../tensor/operand.ts';
import type { Tensor, TensorLike } from '../../tensor/types.ts';
import { exp } from '../elementwise/exponential.ts';
import { mul, neg, square } from '../elementwise/arithmetic.ts';
import { widened } from '../elementwise/recording.ts';
import { say } from '../../shape/shown.ts';

/**
 * exp(-gamma |x - y|^2) for every pair of vectors. Source: scikit-learn `rbf_kernel`; Broomhead and Lowe (1988).
 *
 * Distances are summed from differences, so that near vectors far from the origin keep their digits and equal ones give exactly 1.
 *
 * @param x vectors, shape [..., n, d]
 * @param y vectors, shape [..., m, d]; leading axes broadcast
 * @param options gamma: a number or tensor, 1 / d if left out
 * @returns shape [..., n, m]
 * @throws ShapeError where the lengths of the vectors differ
 *
 * @example
 * rbfKernel(tensor([[0, 0]]), tensor([[0, 0], [1, 1]]), { gamma: 0.5 }); // about [[1, 0.36788]]
 */
export function rbfKernel(x: Tensor, y: Tensor, options: { readonly gamma?: TensorLike } = {}): Tensor {
  checkNames('rbfKernel', options, 'gamma');
  return compose('rbfKernel', () => {
    const [a, b] = floatOperands(x, y);
    const [ra, rb] = [a.shape.length, b.shape.length];
    if (ra < 2 || rb < 2 || a.shape[ra - 1] !== b.shape[rb - 1])
      throw new ShapeError(
        'rbfKernel',
        say`vectors do not fit: ${showShape(a.shape)} and ${showShape(b.shape)}; need [..., n, d] and [..., m, d] with equal d`,
        [a.shape, b.shape],
      );
    const { gamma } = options;
    if (typeof gamma === 'number' && !Number.isFinite(gamma))
      throw new ArgumentError('rbfKernel', say`bad gamma: ${gamma}; must be a finite number`);
    const difference = p.sub(p.insertAxes(widened(a), [ra - 1]), p.insertAxes(widened(b), [rb - 2]));
    const squares = nodeOf(square(wrap(difference)));
    const distance = wrap(p.reduce(squares, 'sum', [squares.shape.length - 1]));
    const kernel = exp(neg(mul(distance, given(gamma ?? 1 / Math.max(1, a.shape[ra - 1]!), distance))));
    return wrap(p.cast(nodeOf(kernel), a.dtype));
  });
}
