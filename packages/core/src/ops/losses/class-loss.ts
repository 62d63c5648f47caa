/**
 * Losses of classification: negative log likelihood and cross entropy, for class numbers and for probabilities.
 *
 * Rows are compared with class numbers rather than indexed, so that loss, softmax and their gradient fit one kernel.
 */
import { told } from '#shown-as';
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { compose } from '../../graph/scope.ts';
import { sameShape } from '@polygrad/compiler/shape/view';
import { isFloat, isInteger, DTypeError } from '@polygrad/compiler/shape/dtype';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkNames } from '@polygrad/compiler/shape/options';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { floatOperand } from '../../tensor/operand.ts';
import type { Tensor } from '../../tensor/types.ts';
import { add, div, mul, neg } from '../elementwise/arithmetic.ts';
import type { LossOptions } from './loss.ts';
import { checkClasses, finish, isClass, weighted as weightedBy } from './loss-forms.ts';
import { inFloat32, saturated } from '../elementwise/recording.ts';
import { sum } from '../reduction/reduction.ts';
import { logSoftmax } from '../normalization/normalization.ts';
import { say } from '@polygrad/compiler/shape/shown';

/** Options of `nllLoss`. */
export interface ClassLossOptions extends LossOptions {
  /** Weight of each class, [C]; the mean is weighted too. */
  readonly weight?: Tensor;
  /** Targets of this value count for nothing. */
  readonly ignoreIndex?: number;
}

/** Class axis: 1 for batches, 0 for a single row of logits. */
function classAxis(op: string, x: Node): number {
  if (x.shape.length === 0) throw new ShapeError(op, 'predictions are a scalar; need an axis of classes', [x.shape]);
  return x.shape.length > 1 ? 1 : 0;
}

function checkTarget(op: string, x: Node, target: Node, axis: number): void {
  const expected = x.shape.filter((_, i) => i !== axis);
  if (!isInteger(target.dtype))
    throw new DTypeError(
      op,
      say`target has shape ${showShape(target.shape)} and dtype ${target.dtype}: needs class numbers of an integer dtype; predictions come first`,
      [target.dtype],
    );
  if (!sameShape(target.shape, expected)) {
    throw new ShapeError(
      op,
      say`target has shape ${showShape(target.shape)}: needs ${showShape(expected)} for predictions ${showShape(x.shape)} with classes along axis ${axis}${told && sameShape(target.shape, x.shape) ? `; argMax(target, ${axis}) makes them of rows of 0 and 1` : ''}`,
      [x.shape, target.shape],
    );
  }
}

/** True where the position along the class axis is the target: bool of the shape of x. */
function isTarget(x: Node, target: Node, axis: number): Node {
  const classes = x.shape[axis]!;
  const numbers = p.reshape(
    p.iota(classes),
    x.shape.map((_, i) => (i === axis ? classes : 1)),
  );
  return p.eq(numbers, p.insertAxes(saturated(target), [axis]));
}

function alongClasses(op: string, weight: Tensor, x: Node, axis: number): Node {
  const node = nodeOf(weight);
  if (node.shape.length !== 1 || node.shape[0] !== x.shape[axis]) {
    throw new ShapeError(op, say`weight has shape ${showShape(node.shape)}: needs [${x.shape[axis]}], one per class`, [
      node.shape,
    ]);
  }
  return p.reshape(
    p.cast(node, x.dtype),
    x.shape.map((n, i) => (i === axis ? n : 1)),
  );
}

/** Negative log likelihood of integer targets, with label smoothing, weights and ignored targets. */
function classLoss(
  op: string,
  logs: Node,
  target: Node,
  axis: number,
  smoothing: number,
  options: ClassLossOptions,
): Tensor {
  checkTarget(op, logs, target, axis);
  const classes = logs.shape[axis]!;
  checkClasses(op, target, classes, options);
  const mask = isTarget(logs, target, axis);
  const zero = p.like(logs, 0);
  const weight = options.weight === undefined ? null : alongClasses(op, options.weight, logs, axis);
  const weighted = weight === null ? logs : weightedBy(weight, logs);
  let losses = p.neg(p.reduce(p.where(mask, weighted, zero), 'sum', [axis]));
  if (smoothing !== 0) {
    const spread = p.mul(p.neg(p.reduce(weighted, 'sum', [axis])), p.like(logs, smoothing / classes));
    losses = p.add(p.mul(losses, p.like(logs, 1 - smoothing)), spread);
  }
  const { reduction = 'mean', ignoreIndex } = options;
  const number = saturated(target);
  losses = p.where(isClass(number, classes), losses, p.like(logs, Number.NaN));
  let counted =
    weight === null ? null : p.reduce(p.where(mask, p.broadcastTo(weight, logs.shape), zero), 'sum', [axis]);
  if (ignoreIndex !== undefined) {
    const ignored = p.eq(number, p.constant(ignoreIndex, 'int32'));
    losses = p.where(ignored, zero, losses);
    counted = p.where(ignored, zero, counted ?? p.constant(1, logs.dtype, target.shape));
  }
  const result = wrap(losses);
  if (reduction !== 'mean' || counted === null) return finish(op, result, reduction);
  return div(sum(result), sum(wrap(counted)));
}

/**
 * Minus the logarithm of the predicted probability of the target class, from log-probabilities. Source: PyTorch `nll_loss`.
 *
 * @param logs log-probabilities, [N, C, ...] or [C]
 * @param target class numbers (integers), [N, ...] or []
 * @param options weight [C], ignoreIndex, reduction
 * @returns a scalar, or with reduction 'none' the shape without the class axis
 * @throws ShapeError and DTypeError where target and log-probabilities do not fit; ArgumentError for class numbers from the host outside 0 .. C-1.
 *   The loss of computed ones is NaN
 *
 * @example
 * nllLoss(logSoftmax(tensor([[0, 0]])), tensor([1], { dtype: 'int32' })); // 0.6931472
 */
export function nllLoss(logs: Tensor, target: Tensor, options: ClassLossOptions = {}): Tensor {
  checkNames('nllLoss', options, 'reduction weight ignoreIndex#');
  return compose('nllLoss', () =>
    inFloat32([wrap(floatOperand(logs))], (wide) => {
      const node = nodeOf(wide);
      return classLoss('nllLoss', node, nodeOf(target), classAxis('nllLoss', node), 0, options);
    }),
  );
}

/** Options of `crossEntropy`. */
export interface CrossEntropyOptions extends ClassLossOptions {
  /** Share of the target that is spread over all classes, 0 .. 1. Default 0. */
  readonly labelSmoothing?: number;
}

/**
 * Minus the logarithm of the softmax probability of the target. Source: PyTorch `cross_entropy`.
 *
 * @param logits [N, C, ...] or [C]
 * @param target class numbers (integers) [N, ...], or probabilities of the shape of the logits
 * @param options labelSmoothing (0), weight [C], ignoreIndex (class numbers only), reduction
 * @returns a scalar, or with reduction 'none' the shape without the class axis
 * @throws ShapeError and DTypeError where target and logits do not fit; ArgumentError for class numbers from the host outside 0 .. C-1. The loss of
 *   computed ones is NaN
 *
 * @example
 * crossEntropy(tensor([[0, 0]]), tensor([1], { dtype: 'int32' })); // 0.6931472
 */
export function crossEntropy(logits: Tensor, target: Tensor, options: CrossEntropyOptions = {}): Tensor {
  checkNames('crossEntropy', options, 'reduction weight ignoreIndex# labelSmoothing#');
  return compose('crossEntropy', () =>
    inFloat32([wrap(floatOperand(logits))], (wide) => {
      const smoothing = options.labelSmoothing ?? 0;
      if (typeof smoothing !== 'number' || !(smoothing >= 0 && smoothing <= 1))
        throw new ArgumentError('crossEntropy', say`bad labelSmoothing: ${smoothing}; must be from 0 to 1`);
      const node = nodeOf(wide);
      const axis = classAxis('crossEntropy', node);
      const logs = logSoftmax(wrap(node), axis);
      const t = nodeOf(target);
      if (!isFloat(t.dtype)) return classLoss('crossEntropy', nodeOf(logs), t, axis, smoothing, options);
      if (!sameShape(t.shape, node.shape)) {
        throw new ShapeError(
          'crossEntropy',
          say`target has shape ${showShape(t.shape)} and dtype ${t.dtype}: probabilities need the shape of the logits ${showShape(node.shape)}, class numbers an integer dtype, as cast('int32') gives; predictions come first`,
          [node.shape, t.shape],
        );
      }
      if (options.ignoreIndex !== undefined)
        throw new ArgumentError(
          'crossEntropy',
          say`ignoreIndex ${options.ignoreIndex} with probabilities: only class numbers can be ignored`,
        );
      let chance = wrap(p.cast(t, node.dtype));
      if (smoothing !== 0) chance = add(mul(chance, 1 - smoothing), smoothing / node.shape[axis]!);
      if (options.weight !== undefined)
        chance = mul(chance, wrap(alongClasses('crossEntropy', options.weight, node, axis)));
      return finish('crossEntropy', neg(sum(wrap(weightedBy(nodeOf(chance), nodeOf(logs))), axis)), options.reduction);
    }),
  );
}
