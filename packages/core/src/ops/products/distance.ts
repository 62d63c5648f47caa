/**
 * Lengths, angles and distances of vectors, and the radial basis function kernel. Gradients are 0 where a length is 0, as those of `norm`. Integers
 * become float32.
 */
import * as p from '../../graph/primitives.ts';
import { compose } from '../../graph/scope.ts';
import { broadcastShapes } from '@polygrad/compiler/shape/broadcast';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkNames, shown } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { floatOperand, floatOperands, given } from '../../tensor/operand.ts';
import type { Tensor, TensorLike } from '../../tensor/types.ts';
import { div, mul, neg, square, sub } from '../elementwise/arithmetic.ts';
import { exp } from '../elementwise/transcendental.ts';
import { less } from '../elementwise/logic.ts';
import { floatPair, inFloat32, where, widened } from '../elementwise/recording.ts';
import { expand, unsqueeze } from '../movement/shape.ts';
import { optionsOf, readAxis } from '@polygrad/compiler/shape/axes';
import { norm, sum } from '../reduction/reduction.ts';

/** Axis of the components where none is named: 1, as PyTorch has it, and the only one of a vector. */
const usual = (t: Tensor): number => (t.ndim > 1 ? 1 : 0);

function checkOrder(op: string, order: number): number {
  if (typeof order !== 'number' || Number.isNaN(order) || order < 0)
    throw new ArgumentError(op, say`bad order p: ${shown(order)}; must be a number of at least 0`);
  return order;
}

/** The length, but not less than `least`. */
function atLeast(length: Tensor, least: number): Tensor {
  const bound = given(least, length);
  return where(less(length, bound), bound, length);
}

/** Options of `normalize`. */
export interface NormalizeOptions {
  /** Order of the norm, 2. Any number, infinite and negative ones too. */
  readonly p?: number;
  /** 1; the only axis of a vector. */
  readonly axis?: number;
  /** Smallest divisor, 1e-12. */
  readonly eps?: number;
}

/**
 * Vectors divided by their lengths: x / max(norm(x), eps). Source: PyTorch `torch.nn.functional.normalize`.
 *
 * @param options an axis, or p (2), axis (1, or 0 for a vector), eps (1e-12)
 * @returns the shape of x, of the dtype of the input; integers become float32
 * @throws ShapeError for axes out of range, ArgumentError for bad orders
 *
 * @example
 * normalize(tensor([3, 4])); // [0.6, 0.8]
 */
export function normalize(x: Tensor, options: number | NormalizeOptions = {}): Tensor {
  const chosen = optionsOf(options);
  checkNames('normalize', chosen, 'p# axis eps#');
  return compose('normalize', () =>
    inFloat32([wrap(floatOperand(x))], (t: Tensor) => {
      const axis = readAxis('normalize', chosen.axis, usual(t), t.ndim);
      const over = t.ndim === 0 ? [] : [axis];
      return div(t, atLeast(norm(t, { axis: over, p: chosen.p ?? 2, keepDims: true }), chosen.eps ?? 1e-12));
    }),
  );
}

/**
 * The cosine of the angle between vectors: the dot product of both, each divided by its length or eps, if that is larger. Source:
 * PyTorch `torch.nn.functional.cosine_similarity`.
 *
 * @param a, b shapes that broadcast
 * @param options an axis, or axis (1 of the broadcast shape, or 0 for vectors), eps (1e-8)
 * @returns the broadcast shape without the axis, of the common dtype; integers become float32
 *
 * @example
 * cosineSimilarity(tensor([1, 0]), tensor([3, 4])); // 0.6
 */
export function cosineSimilarity(
  a: Tensor,
  b: Tensor,
  options: number | { readonly axis?: number; readonly eps?: number } = {},
): Tensor {
  const chosen = optionsOf(options);
  checkNames('cosineSimilarity', chosen, 'axis eps#');
  return compose('cosineSimilarity', () =>
    inFloat32(floatPair(a, b), (x: Tensor, y: Tensor) => {
      const shape = broadcastShapes('cosineSimilarity', x.shape, y.shape);
      const rank = shape.length;
      if (rank === 0)
        throw new ShapeError('cosineSimilarity', 'no vectors: both are scalars; need at least one axis', [[], []]);
      const axis = readAxis('cosineSimilarity', chosen.axis, rank > 1 ? 1 : 0, rank);
      const eps = chosen.eps ?? 1e-8;
      const parts = [x, y].map((t: Tensor) => {
        const lead = rank - t.ndim;
        const full =
          lead > 0
            ? unsqueeze(
                t,
                Array.from({ length: lead }, (_, i) => i),
              )
            : t;
        // An axis that is stretched has as many equal components as the other side.
        const wide =
          full.shape[axis] === shape[axis]
            ? full
            : expand(
                full,
                full.shape.map((n, i) => (i === axis ? shape[axis]! : n)),
              );
        return div(wide, atLeast(norm(wide, { axis, keepDims: true }), eps));
      }) as [Tensor, Tensor];
      return sum(mul(...parts), axis);
    }),
  );
}

/**
 * Distances between all pairs of rows. Source: PyTorch `torch.cdist`. Computed from differences, not from dot products, so close
 * points keep their accuracy; the gradient at coinciding points is 0.
 *
 * @param a shape [..., m, k]
 * @param b shape [..., n, k]; leading axes broadcast
 * @param options p: order of the norm of the difference: 2 (default), 1, Infinity, 0 (components that differ) or any positive number
 * @returns shape [..., m, n], of the common dtype; integers become float32
 * @throws ShapeError where shapes do not fit, ArgumentError for bad orders
 *
 * @example
 * cdist(tensor([[0, 0]]), tensor([[3, 4], [0, 0]])); // [[5, 0]]
 */
export function cdist(a: Tensor, b: Tensor, options: { readonly p?: number } = {}): Tensor {
  checkNames('cdist', options, 'p#');
  return compose('cdist', () =>
    inFloat32(floatPair(a, b), (x: Tensor, y: Tensor) => {
      if (x.ndim < 2 || y.ndim < 2 || x.shape.at(-1) !== y.shape.at(-1))
        throw new ShapeError(
          'cdist',
          say`rows do not match: ${showShape(x.shape)} and ${showShape(y.shape)}; needs [..., m, k] and [..., n, k]`,
          [x.shape, y.shape],
        );
      broadcastShapes('cdist', x.shape.slice(0, -2), y.shape.slice(0, -2));
      const order = checkOrder('cdist', options.p ?? 2);
      const difference = sub(unsqueeze(x, x.ndim - 1), unsqueeze(y, y.ndim - 2));
      if (x.shape.at(-1) === 0) return sum(difference, -1);
      return norm(difference, { axis: -1, p: order });
    }),
  );
}

// The radial basis function kernel.

/**
 * exp(-gamma |x - y|^2) for every pair of vectors. Source: scikit-learn `rbf_kernel`; Broomhead and Lowe (1988).
 *
 * Distances are summed from differences, so that near vectors far from the origin keep their digits and equal ones give exactly 1.
 *
 * @param x vectors, shape [..., n, d]
 * @param y vectors, shape [..., m, d]; leading axes broadcast
 * @param options gamma: a number or tensor, 1 / d if left out
 * @returns shape [..., n, m], of the common dtype; integers become float32
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
