/** What losses have in common: how those of elements become one number, and how prediction and target meet. */
import { checkKnown } from '../../graph/known-range.ts';
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { compose } from '../../graph/scope.ts';
import { floatFor, promoteTypes } from '@polygrad/compiler/shape/promotion';
import { sameShape, sizeOf } from '@polygrad/compiler/shape/view';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { shown } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import type { Tensor } from '../../tensor/types.ts';
import { add, div, mul, neg, sub } from '../elementwise/arithmetic.ts';
import { less } from '../elementwise/logic.ts';
import { inFloat32, where } from '../elementwise/recording.ts';
import { exp, log1p } from '../elementwise/transcendental.ts';
import { sum } from '../reduction/reduction.ts';

/** How the losses of elements become one. */
export type Reduction = 'mean' | 'sum' | 'none';

/** The loss of elements as asked for. */
export function finish(op: string, losses: Tensor, reduction: Reduction = 'mean'): Tensor {
  switch (reduction) {
    case 'none':
      return losses;
    case 'sum':
      return sum(losses);
    case 'mean':
      return div(sum(losses), losses.size);
    default:
      throw new ArgumentError(
        op,
        say`bad reduction: ${shown(reduction satisfies never)}; must be 'mean', 'sum' or 'none'`,
      );
  }
}

/** Throws unless a number among the options lies in its range. */
export function checkNumber(op: string, name: string, value: number, least: number, open: boolean = false): number {
  if (typeof value !== 'number' || !(open ? value > least : value >= least))
    throw new ArgumentError(op, say`bad ${name}: ${value}; must be ${open ? 'above' : 'at least'} ${least}`);
  return value;
}

/** Tensors as floats of one dtype: their common one, or float32 if that is no float. */
export function floats(op: string, tensors: readonly Tensor[]): Tensor[] {
  const nodes = tensors.map((t) => nodeOf(t));
  const dtype = floatFor(nodes.map((node) => node.dtype).reduce((a, b) => promoteTypes(op, a, b)));
  return nodes.map((node) => wrap(p.cast(node, dtype)));
}

/** A loss of a prediction and a target, or two, as floats of one dtype and shape. 16-bit floats are computed in float32. */
export function between(
  op: string,
  tensors: readonly Tensor[],
  loss: (x: Tensor, y: Tensor, z: Tensor) => Tensor,
): Tensor {
  return compose(op, () => {
    const all = floats(op, tensors);
    const { shape } = all[0]!;
    for (const other of all)
      if (!sameShape(shape, other.shape))
        throw new ShapeError(
          op,
          say`shapes differ: prediction ${showShape(shape)} and target ${showShape(other.shape)}; make them equal`,
          [shape, other.shape],
        );
    return inFloat32(all, loss as (...args: Tensor[]) => Tensor);
  });
}

/** weight * x, and 0 where the weight is 0 and x infinite: what has no weight does not count. There its slope by the weight is 0. */
export function weighted(weight: Node, x: Node): Node {
  const infinite = p.eq(p.unary('abs', x), p.like(x, Number.POSITIVE_INFINITY));
  const nothing = p.binary('and', p.eq(weight, p.like(weight, 0)), infinite);
  return p.mul(weight, p.where(nothing, p.like(x, 0), x));
}

/**
 * The cross entropy of a logit x and a target y of 0 .. 1: (1 - y) softplus(x) + positive y softplus(-x).
 *
 * Both have the term log1p(exp(-|x|)), and beside it |x| on one side of 0. So nothing cancels: small losses of certain predictions keep their digits.
 */
export function logitLoss(x: Tensor, y: Tensor, positive?: Tensor): Tensor {
  const negative = less(x, 0);
  const own = positive === undefined ? y : mul(positive, y);
  const other = sub(1, y);
  const line = wrap(weighted(nodeOf(where(negative, own, other)), nodeOf(where(negative, neg(x), x))));
  const rest = log1p(exp(where(negative, x, neg(x))));
  return add(line, positive === undefined ? rest : mul(add(other, own), rest));
}

/** Throws where the host knows of class numbers from `least` (0) on that are no classes, nor ignored: their loss would be NaN. */
export function checkClasses(
  op: string,
  target: Node,
  classes: number,
  { ignoreIndex, least = 0 }: { readonly ignoreIndex?: number | undefined; readonly least?: number } = {},
): void {
  if (sizeOf(target.shape) === 0) return;
  const besides = ignoreIndex === undefined ? '' : `, or the ignoreIndex ${ignoreIndex}`;
  const wrong = (value: number): Error =>
    new ArgumentError(
      op,
      say`class number out of range: ${value} for ${classes} classes; must be an integer from 0 to ${classes - 1}${besides}`,
    );
  checkKnown(target, least, classes - 1, wrong, ignoreIndex);
}

/** True where an int32 class number is one of so many classes. A kernel cannot throw, so the loss of another one is NaN. */
export function isClass(number: Node, classes: number): Node {
  return p.binary('and', p.le(p.constant(0, 'int32'), number), p.lt(number, p.constant(classes, 'int32')));
}
