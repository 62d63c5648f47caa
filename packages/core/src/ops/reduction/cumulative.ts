/**
 * Running results along an axis: sums, products, extremes, log-sum-exp; and differences, which undo sums.
 *
 * All take one axis, by itself or in options, the last one if left out; `reverse` runs from the end of the axis. Scalars count as one
 * element. bool and small integers are summed and multiplied as int32 or uint32, as in `sum` and `prod`.
 */
import { makeNode } from '../../graph/primitives.ts';
import type { Attrs, Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { compose } from '../../graph/scope.ts';
import { scanPrimitive } from '../../primitives/indexing.ts';
import { type DType, dtypeInfo, widenedFloat } from '@polygrad/compiler/shape/dtype';
import { checkCount, readAxis } from '@polygrad/compiler/shape/axes';
import { ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkNames, type OptionNames } from '@polygrad/compiler/shape/options';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { floatOperand, operand } from '../../tensor/operand.ts';
import type { Tensor, TensorLike } from '../../tensor/types.ts';
import { concat } from '../movement/joining.ts';
import { say } from '@polygrad/compiler/shape/shown';
import { sumDType } from '../elementwise/recording.ts';

/** Options of cumMax, cumMin and logCumSumExp. */
export interface CumulativeOptions {
  /** The axis to run along; the last one if left out. */
  readonly axis?: number;
  /** Run from the end of the axis. Default false. */
  readonly reverse?: boolean;
}

/** Options of cumSum and cumProd. */
export interface CumulativeSumOptions extends CumulativeOptions {
  /** Leave each element itself out: the first result is 0 for sums, 1 for products. Default false. */
  readonly exclusive?: boolean;
}

/** The dtype to scan x in: at least 32 bits. */
function scanned(x: Node): DType {
  return sumDType(widenedFloat(x.dtype));
}

/** The scan of x, cast to a dtype that scans take. */
function scan(x: Node, op: Exclude<Attrs['scan']['op'], 'linear'>, axis: number, reverse: boolean): Node {
  return makeNode(scanPrimitive, [p.cast(x, scanned(x))], { op, axis, reverse });
}

interface Read {
  readonly axis: number;
  readonly reverse: boolean;
  readonly exclusive: boolean;
}

function read<Options extends CumulativeOptions, const Text extends string>(
  op: string,
  argument: number | Options | undefined,
  rank: number,
  names: OptionNames<Options, Text>,
): Read {
  const axis = readAxis(op, argument, -1, rank, names);
  const options: CumulativeSumOptions = typeof argument === 'object' ? argument : {};
  return { axis, reverse: options.reverse ?? false, exclusive: options.exclusive ?? false };
}

function total(op: 'cumSum' | 'cumProd', x: TensorLike, argument: number | CumulativeSumOptions | undefined): Tensor {
  return compose(op, () => {
    const node = operand(x);
    const { axis, reverse, exclusive } = read(op, argument, node.shape.length, 'axis reverse? exclusive?');
    const result = sumDType(node.dtype);
    const first = op === 'cumSum' ? 0 : 1;
    if (node.shape.length === 0) return wrap(exclusive ? p.constant(first, result) : p.cast(node, result));
    const all = p.cast(scan(node, op === 'cumSum' ? 'sum' : 'prod', axis, reverse), result);
    return wrap(exclusive ? p.previous(all, axis, reverse, first) : all);
  });
}

/**
 * Sums of all elements up to each one. Source: Array API `cumulative_sum`.
 *
 * @param axis one axis, or { axis, reverse, exclusive }; -1
 * @returns the shape of x; int32 or uint32 for bool and small integers
 * @throws ShapeError for an axis that x has not
 *
 * @example
 * cumSum(tensor([1, 2, 3])); // [1, 3, 6]
 */
export function cumSum(x: TensorLike, axis?: number | CumulativeSumOptions): Tensor {
  return total('cumSum', x, axis);
}

/**
 * Products of all elements up to each one. Its derivatives are exact with any number of zeros. Source: Array API `cumulative_prod`.
 *
 * @param axis one axis, or { axis, reverse, exclusive }; -1
 * @returns the shape of x; int32 or uint32 for bool and small integers
 * @throws ShapeError for an axis that x has not
 *
 * @example
 * cumProd(tensor([1, 2, 3])); // [1, 2, 6]
 */
export function cumProd(x: TensorLike, axis?: number | CumulativeSumOptions): Tensor {
  return total('cumProd', x, axis);
}

function extreme(op: 'cumMax' | 'cumMin', x: TensorLike, argument: number | CumulativeOptions | undefined): Tensor {
  return compose(op, () => {
    const node = operand(x);
    const { axis, reverse } = read(op, argument, node.shape.length, 'axis reverse?');
    if (node.shape.length === 0) return wrap(p.identity(node));
    return wrap(p.cast(scan(node, op === 'cumMax' ? 'max' : 'min', axis, reverse), node.dtype));
  });
}

/**
 * The largest element up to each one; NaN from the first NaN on. The gradient goes to the winner, the latest of equals (as in PyTorch).
 * Source: PyTorch `cummax`.
 *
 * @param axis one axis, or { axis, reverse }; -1
 * @returns the shape and dtype of x
 * @throws ShapeError for an axis that x has not
 *
 * @example
 * cumMax(tensor([1, 3, 2])); // [1, 3, 3]
 */
export function cumMax(x: TensorLike, axis?: number | CumulativeOptions): Tensor {
  return extreme('cumMax', x, axis);
}

/**
 * The smallest element up to each one; see cumMax. Source: PyTorch `cummin`.
 *
 * @param axis one axis, or { axis, reverse }; -1
 * @returns the shape and dtype of x
 * @throws ShapeError for an axis that x has not
 *
 * @example
 * cumMin(tensor([3, 1, 2])); // [3, 1, 1]
 */
export function cumMin(x: TensorLike, axis?: number | CumulativeOptions): Tensor {
  return extreme('cumMin', x, axis);
}

/**
 * log(cumSum(exp(x))) without overflow. Integers become float32. Source: PyTorch `logcumsumexp`.
 *
 * @param axis one axis, or { axis, reverse }; -1
 * @returns the shape of x; -infinity where all elements so far are
 * @throws ShapeError for an axis that x has not
 *
 * @example
 * logCumSumExp(tensor([0, 0])); // [0, 0.6931472]
 */
export function logCumSumExp(x: TensorLike, axis?: number | CumulativeOptions): Tensor {
  return compose('logCumSumExp', () => {
    const given = floatOperand(x);
    const { axis: along, reverse } = read('logCumSumExp', axis, given.shape.length, 'axis reverse?');
    if (given.shape.length === 0) return wrap(p.identity(given));
    const node = p.cast(given, scanned(given));
    // Sums relative to the largest element so far, rescaled where that grows: none of the exponentials is above 1. The result
    // does not depend on what is subtracted, so that carries no gradient.
    const limit = node.dtype === 'float64' ? Number.MAX_VALUE : 2 ** 127 * (2 - 2 ** -23);
    const bound = (value: number): Node => p.constant(value, node.dtype);
    const largest = scan(p.stopGradient(node), 'max', along, reverse);
    const shift = p.binary('maximum', p.binary('minimum', largest, bound(limit)), bound(-limit));
    const terms = p.unary('exp', p.sub(node, shift));
    const rescale = p.unary('exp', p.sub(p.previous(shift, along, reverse, -limit), shift));
    const sums = makeNode(scanPrimitive, [terms, rescale], { op: 'linear', axis: along, reverse });
    const nothing = p.eq(sums, bound(0));
    const logs = p.unary('log', p.where(nothing, bound(1), sums));
    return wrap(p.cast(p.where(nothing, bound(Number.NEGATIVE_INFINITY), p.add(shift, logs)), given.dtype));
  });
}

/** Options of diff. */
export interface DiffOptions {
  /** How often differences are taken. Default 1. */
  readonly n?: number;
  /** The last one if left out. */
  readonly axis?: number;
  /** Put before and after x along the axis first. */
  readonly prepend?: Tensor;
  readonly append?: Tensor;
}

/** Most differences of differences: each is a separate step. */
const mostTimes = 1000;

/**
 * Each element minus the one before it, n times over; x itself for n = 0. For bool: whether they differ. Source: NumPy `diff`.
 *
 * @param options n (1), axis (-1), prepend, append
 * @returns the shape of x with the axis shorter by n (never below 0)
 * @throws ShapeError for a scalar or a wrong axis; ArgumentError unless n is a non-negative integer
 *
 * @example
 * diff(tensor([1, 4, 9])); // [3, 5]
 */
export function diff(x: Tensor, options: number | DiffOptions = {}): Tensor {
  if (typeof options !== 'number') checkNames('diff', options, 'n# axis prepend append');
  return compose('diff', () => {
    const { n = 1, axis, prepend, append } = typeof options === 'number' ? { axis: options } : options;
    checkCount('diff', 'number of times n', n, 0, Number.MAX_SAFE_INTEGER);
    const { shape } = nodeOf(x);
    if (shape.length === 0)
      throw new ShapeError('diff', say`x has shape ${showShape(shape)}: needs an axis; reshape it first`, [shape]);
    const along = readAxis('diff', axis, -1, shape.length);
    if (n === 0) return wrap(p.identity(nodeOf(x)));
    const parts = [prepend, x, append].filter((part): part is Tensor => part !== undefined);
    let node = nodeOf(parts.length === 1 ? x : concat(parts, { axis: along }));
    // Beyond the length nothing is left.
    const times = checkCount('diff', 'number of times n', Math.min(n, node.shape[along]!), 0, mostTimes);
    for (let i = 0; i < times; i++) {
      const length = Math.max(0, node.shape[along]! - 1);
      const part = (start: number): Node =>
        p.slice(
          node,
          node.shape.map((_, at) => (at === along && length > 0 ? start : 0)),
          node.shape.map((size, at) => (at === along ? length : size)),
          node.shape.map(() => 1),
        );
      const [later, earlier] = [part(1), part(0)];
      node = dtypeInfo[node.dtype].kind === 'bool' ? p.binary('xor', later, earlier) : p.sub(later, earlier);
    }
    return wrap(node);
  });
}
