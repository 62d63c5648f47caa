/**
 * Losses: how far predictions are from targets, as a number to minimise.
 *
 * All take `reduction`: 'mean' (default) over all elements, 'sum', or 'none' for the loss of each element.
 */
import type { Node } from '../graph/node.ts';
import * as p from '../graph/primitives.ts';
import { compose } from '../graph/scope.ts';
import { isFloat, isInteger } from '../shape/dtype.ts';
import { sameShape } from '../shape/broadcast.ts';
import { ArgumentError, DTypeError, ShapeError, showShape } from '../shape/errors.ts';
import { nodeOf, wrap } from '../tensor/handle.ts';
import { floatOperand, floatOperands, given } from '../tensor/operand.ts';
import type { Tensor } from '../tensor/types.ts';
import { softplus } from './activation.ts';
import { abs, add, div, mul, neg, square, sub } from './arithmetic.ts';
import { exp, log, xlogy } from './exponential.ts';
import { lessEqual, where } from './logic.ts';
import { sum } from './reduction.ts';
import { logSoftmax } from './softmax.ts';

/** How the losses of elements become one. */
export type Reduction = 'mean' | 'sum' | 'none';

export interface LossOptions {
  /** Default 'mean'. */
  readonly reduction?: Reduction;
}

function finish(op: string, losses: Tensor, reduction: Reduction = 'mean'): Tensor {
  switch (reduction) {
    case 'none':
      return losses;
    case 'sum':
      return sum(losses);
    case 'mean':
      return div(sum(losses), losses.size);
    default:
      throw new ArgumentError(op, `bad reduction: '${String(reduction satisfies never)}'; must be 'mean', 'sum' or 'none'`);
  }
}

/** Prediction and target as floats of one dtype and shape. */
function pair(op: string, prediction: Tensor, target: Tensor): [Tensor, Tensor] {
  const [x, y] = floatOperands(prediction, target);
  if (!sameShape(x.shape, y.shape)) {
    throw new ShapeError(op, `shapes differ: prediction ${showShape(x.shape)} and target ${showShape(y.shape)}; make them equal`, [x.shape, y.shape]);
  }
  return [wrap(x), wrap(y)];
}

/**
 * The squared difference. Source: PyTorch `mse_loss`.
 *
 * @example
 * mseLoss(tensor([1, 2]), tensor([1, 4])); // 2
 */
export function mseLoss(prediction: Tensor, target: Tensor, options: LossOptions = {}): Tensor {
  return compose('mseLoss', () => {
    const [x, y] = pair('mseLoss', prediction, target);
    return finish('mseLoss', square(sub(x, y)), options.reduction);
  });
}

/**
 * The absolute difference. Source: PyTorch `l1_loss`.
 *
 * @example
 * l1Loss(tensor([1, 2]), tensor([1, 4])); // 1
 */
export function l1Loss(prediction: Tensor, target: Tensor, options: LossOptions = {}): Tensor {
  return compose('l1Loss', () => {
    const [x, y] = pair('l1Loss', prediction, target);
    return finish('l1Loss', abs(sub(x, y)), options.reduction);
  });
}

/**
 * Half the square for differences up to delta, a line beyond. Source: Huber (1964); PyTorch `huber_loss`.
 *
 * @param options delta (1), reduction
 *
 * @example
 * huberLoss(tensor([0, 0]), tensor([0.5, 3])); // (0.125 + 2.5) / 2
 */
export function huberLoss(prediction: Tensor, target: Tensor, options: LossOptions & { readonly delta?: number } = {}): Tensor {
  return compose('huberLoss', () => {
    const [x, y] = pair('huberLoss', prediction, target);
    const delta = given(options.delta ?? 1, x);
    const distance = abs(sub(x, y));
    const far = mul(delta, sub(distance, mul(delta, 0.5)));
    return finish('huberLoss', where(lessEqual(distance, delta), mul(square(distance), 0.5), far), options.reduction);
  });
}

/**
 * Huber's loss divided by beta. Source: PyTorch `smooth_l1_loss`.
 *
 * @param options beta (1), reduction
 *
 * @example
 * smoothL1Loss(tensor([0]), tensor([3])); // 2.5
 */
export function smoothL1Loss(prediction: Tensor, target: Tensor, options: LossOptions & { readonly beta?: number } = {}): Tensor {
  return compose('smoothL1Loss', () => {
    const [x, y] = pair('smoothL1Loss', prediction, target);
    const distance = abs(sub(x, y));
    if (options.beta === 0) return finish('smoothL1Loss', distance, options.reduction);
    const beta = given(options.beta ?? 1, x);
    const near = div(mul(square(distance), 0.5), beta);
    return finish('smoothL1Loss', where(lessEqual(distance, beta), near, sub(distance, mul(beta, 0.5))), options.reduction);
  });
}

export interface ClassLossOptions extends LossOptions {
  /** Weight of each class, [C]; the mean is weighted too. */
  readonly weight?: Tensor;
  /** Targets of this value count for nothing. */
  readonly ignoreIndex?: number;
}

/** Class axis: 1 for batches, 0 for a single row of logits. */
const classAxis = (x: Node): number => (x.shape.length > 1 ? 1 : 0);

function checkTarget(op: string, x: Node, target: Node, axis: number): void {
  const expected = x.shape.filter((_, i) => i !== axis);
  if (!isInteger(target.dtype)) throw new DTypeError(op, `target dtype is ${target.dtype}: needs class numbers of an integer dtype, or probabilities of shape ${showShape(x.shape)}`, [target.dtype]);
  if (!sameShape(target.shape, expected)) {
    throw new ShapeError(op, `target has shape ${showShape(target.shape)}: needs ${showShape(expected)} for predictions ${showShape(x.shape)} with classes along axis ${axis}`, [x.shape, target.shape]);
  }
}

/** 0 .. C-1 along the class axis, and the target along the others. */
function isTarget(x: Node, target: Node, axis: number): Node {
  const classes = x.shape[axis] as number;
  const numbers = p.reshape(p.iota(classes), x.shape.map((_, i) => (i === axis ? classes : 1)));
  return p.eq(numbers, p.insertAxes(p.cast(target, 'int32'), [axis]));
}

function alongClasses(op: string, weight: Tensor, x: Node, axis: number): Node {
  const node = nodeOf(weight);
  if (node.shape.length !== 1 || node.shape[0] !== x.shape[axis]) {
    throw new ShapeError(op, `weight has shape ${showShape(node.shape)}: needs [${x.shape[axis]}], one per class`, [node.shape]);
  }
  return p.reshape(p.cast(node, x.dtype), x.shape.map((n, i) => (i === axis ? n : 1)));
}

/**
 * Negative log likelihood of integer targets. The row is compared with the class numbers rather than indexed, so that it stays
 * in the kernel that computed the logarithms.
 */
function classLoss(op: string, logs: Node, target: Node, axis: number, smoothing: number, options: ClassLossOptions): Tensor {
  checkTarget(op, logs, target, axis);
  const mask = isTarget(logs, target, axis);
  const zero = p.like(logs, 0);
  const weight = options.weight === undefined ? null : alongClasses(op, options.weight, logs, axis);
  const weighted = weight === null ? logs : p.mul(logs, weight);
  let losses = p.neg(p.reduce(p.where(mask, weighted, zero), 'sum', [axis]));
  if (smoothing !== 0) {
    const classes = logs.shape[axis] as number;
    const spread = p.mul(p.neg(p.reduce(weighted, 'sum', [axis])), p.like(logs, smoothing / classes));
    losses = p.add(p.mul(losses, p.like(logs, 1 - smoothing)), spread);
  }
  const { reduction = 'mean', ignoreIndex } = options;
  let counted = weight === null ? null : p.reduce(p.where(mask, p.broadcastTo(weight, logs.shape), zero), 'sum', [axis]);
  if (ignoreIndex !== undefined) {
    const ignored = p.eq(p.cast(target, 'int32'), p.constant(ignoreIndex, 'int32'));
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
 *
 * @example
 * nllLoss(logSoftmax(tensor([[0, 0]])), tensor([1], { dtype: 'int32' })); // 0.6931472
 */
export function nllLoss(logs: Tensor, target: Tensor, options: ClassLossOptions = {}): Tensor {
  return compose('nllLoss', () => {
    const node = floatOperand(logs);
    return classLoss('nllLoss', node, nodeOf(target), classAxis(node), 0, options);
  });
}

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
 * @throws ShapeError and DTypeError where target and logits do not fit
 *
 * @example
 * crossEntropy(tensor([[0, 0]]), tensor([1], { dtype: 'int32' })); // 0.6931472
 */
export function crossEntropy(logits: Tensor, target: Tensor, options: CrossEntropyOptions = {}): Tensor {
  return compose('crossEntropy', () => {
    const smoothing = options.labelSmoothing ?? 0;
    if (!(smoothing >= 0 && smoothing <= 1)) throw new ArgumentError('crossEntropy', `bad labelSmoothing: ${smoothing}; must be from 0 to 1`);
    const node = floatOperand(logits);
    if (node.shape.length === 0) throw new ShapeError('crossEntropy', 'logits are a scalar; need an axis of classes', [node.shape]);
    const axis = classAxis(node);
    const logs = logSoftmax(wrap(node), axis);
    const t = nodeOf(target);
    if (!isFloat(t.dtype)) return classLoss('crossEntropy', nodeOf(logs), t, axis, smoothing, options);
    if (!sameShape(t.shape, node.shape)) {
      throw new ShapeError('crossEntropy', `target has shape ${showShape(t.shape)}: probabilities need that of the logits ${showShape(node.shape)}`, [node.shape, t.shape]);
    }
    if (options.ignoreIndex !== undefined) throw new ArgumentError('crossEntropy', `ignoreIndex ${options.ignoreIndex} with probabilities: only class numbers can be ignored`);
    let chance = wrap(p.cast(t, node.dtype));
    if (smoothing !== 0) chance = add(mul(chance, 1 - smoothing), smoothing / (node.shape[axis] as number));
    if (options.weight !== undefined) chance = mul(chance, wrap(alongClasses('crossEntropy', options.weight, node, axis)));
    return finish('crossEntropy', neg(sum(mul(chance, logs), axis)), options.reduction);
  });
}

/**
 * Minus the log likelihood of targets 0 .. 1 under probabilities. Logarithms are cut off at -100. Source: PyTorch `binary_cross_entropy`.
 *
 * @param options weight (broadcasts), reduction
 *
 * @example
 * binaryCrossEntropy(tensor([0.5]), tensor([1])); // 0.6931472
 */
export function binaryCrossEntropy(prediction: Tensor, target: Tensor, options: LossOptions & { readonly weight?: Tensor } = {}): Tensor {
  return compose('binaryCrossEntropy', () => {
    const [x, y] = pair('binaryCrossEntropy', prediction, target);
    const cut = (t: Tensor): Tensor => where(lessEqual(t, -100), -100, t);
    const losses = neg(add(mul(y, cut(log(x))), mul(sub(1, y), cut(log(sub(1, x))))));
    return finish('binaryCrossEntropy', options.weight ? mul(losses, options.weight) : losses, options.reduction);
  });
}

/**
 * binaryCrossEntropy(sigmoid(x), y) without overflow: softplus(x) - x y. Source: PyTorch `binary_cross_entropy_with_logits`.
 *
 * @param options posWeight: factor of positive targets (broadcasts); weight (broadcasts); reduction
 *
 * @example
 * binaryCrossEntropyWithLogits(tensor([0]), tensor([1])); // 0.6931472
 */
export function binaryCrossEntropyWithLogits(
  logits: Tensor,
  target: Tensor,
  options: LossOptions & { readonly weight?: Tensor; readonly posWeight?: Tensor | number } = {},
): Tensor {
  return compose('binaryCrossEntropyWithLogits', () => {
    const [x, y] = pair('binaryCrossEntropyWithLogits', logits, target);
    let losses: Tensor;
    if (options.posWeight === undefined) losses = sub(softplus(x), mul(x, y));
    else {
      // (1 - y) x + (1 + (w - 1) y) softplus(-x)
      const factor = add(1, mul(sub(given(options.posWeight, x), 1), y));
      losses = add(mul(sub(1, y), x), mul(factor, softplus(neg(x))));
    }
    return finish('binaryCrossEntropyWithLogits', options.weight ? mul(losses, options.weight) : losses, options.reduction);
  });
}

/**
 * Kullback and Leibler's divergence target * (log(target) - logs), element by element. Source: PyTorch `kl_div`.
 *
 * @param logs log-probabilities
 * @param target probabilities, or log-probabilities with logTarget
 * @param options logTarget (false), reduction; 'batchMean' divides the sum by the size of the first axis
 *
 * @example
 * klDiv(log(tensor([0.5, 0.5])), tensor([0.5, 0.5])); // 0
 */
export function klDiv(logs: Tensor, target: Tensor, options: { readonly reduction?: Reduction | 'batchMean'; readonly logTarget?: boolean } = {}): Tensor {
  return compose('klDiv', () => {
    const [x, y] = pair('klDiv', logs, target);
    const losses = options.logTarget ? mul(exp(y), sub(y, x)) : sub(xlogy(y, y), mul(y, x));
    if (options.reduction === 'batchMean') return div(sum(losses), losses.shape[0] ?? 1);
    return finish('klDiv', losses, options.reduction);
  });
}
