/**
 * Sorting along an axis.
 *
 * Order: -0 equals 0, NaN is greater than every number (last, or first where `descending`; so the largest element is NaN as `max` has
 * it). Sorts are stable. Positions are int32. Gradients flow to the elements where they came from.
 */
import { compose } from '../../graph/scope.ts';
import { ArgumentError, ShapeError, showShape } from '../../shape/errors.ts';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import type { Tensor } from '../../tensor/types.ts';
import { readAxis } from '../reduction/axis-argument.ts';
import { say } from '../../shape/shown.ts';
import { elementsAt, orderOf } from './sort-order.ts';

/** Options of sort and argSort. */
export interface SortOptions {
  /** The last one if left out. */
  readonly axis?: number;
  /** From the greatest to the smallest. Default false. */
  readonly descending?: boolean;
  /** Sorts are always stable; the option is there for those who say so. */
  readonly stable?: boolean;
}

/** Options that ask for the positions of the elements too. */
export interface SortIndices {
  readonly returnIndices: true;
}

function readOptions(
  op: string,
  x: Tensor,
  argument: number | (SortOptions & Partial<SortIndices>) | undefined,
  more: '' | ' returnIndices?' = '',
): { axis: number; descending: boolean } {
  const options = typeof argument === 'object' ? argument : {};
  return {
    axis: readAxis(op, argument, -1, nodeOf(x).shape.length, `axis descending? stable?${more}`),
    descending: options.descending ?? false,
  };
}

/**
 * The elements in order along an axis. Source: Array API `sort`.
 *
 * @param x tensor of any dtype
 * @param options an axis, or axis (-1), descending (false); returnIndices: also the positions (int32) they had
 * @returns the shape of x
 * @throws ShapeError for an axis that x has not
 *
 * @example
 * sort(tensor([3, 1, 2])); // [1, 2, 3]
 */
export function sort(x: Tensor, options: SortOptions & SortIndices): [Tensor, Tensor];
export function sort(x: Tensor, options?: number | SortOptions): Tensor;
export function sort(x: Tensor, options?: number | (SortOptions & Partial<SortIndices>)): Tensor | [Tensor, Tensor] {
  return compose('sort', () => {
    const { axis, descending } = readOptions('sort', x, options, ' returnIndices?');
    const node = nodeOf(x);
    const order = orderOf(node, axis, descending);
    const values = wrap(elementsAt(node, order, axis));
    return typeof options === 'object' && options.returnIndices ? [values, wrap(order)] : values;
  });
}

/**
 * The positions (int32) of the elements in order along an axis. Source: Array API `argsort`.
 *
 * @param x tensor of any dtype
 * @param options an axis, or axis (-1), descending (false)
 * @returns the shape of x
 * @throws ShapeError for an axis that x has not
 *
 * @example
 * argSort(tensor([3, 1, 2])); // [1, 2, 0]
 */
export function argSort(x: Tensor, options?: number | SortOptions): Tensor {
  return compose('argSort', () => {
    const { axis, descending } = readOptions('argSort', x, options);
    return wrap(orderOf(nodeOf(x), axis, descending));
  });
}

/** Options of topK. */
export interface TopKOptions {
  /** The last one if left out. */
  readonly axis?: number;
  /** The greatest (default) or the smallest. */
  readonly largest?: boolean;
  /** Results are always in order; the option is there for those who say so. */
  readonly sorted?: boolean;
}

/**
 * The k greatest elements along an axis, greatest first, and where they are; the first of equals. Source: PyTorch `topk`.
 *
 * @param x tensor of any dtype
 * @param k how many
 * @param options an axis, or axis (-1), largest (true; false: the k smallest, smallest first)
 * @returns values and positions (int32), the shape of x with the axis of size k
 * @throws ArgumentError unless k is an integer from 0 to the size of the axis; ShapeError for an axis that x has not
 *
 * @example
 * topK(tensor([1, 9, 5, 7]), 2); // [[9, 7], [1, 3]]
 */
export function topK(x: Tensor, k: number, options: number | TopKOptions = {}): [Tensor, Tensor] {
  return compose('topK', () => {
    const node = nodeOf(x);
    const rank = node.shape.length;
    const axis = readAxis('topK', options, -1, rank, 'axis largest? sorted?');
    if (rank === 0)
      throw new ShapeError('topK', say`x has shape ${showShape(node.shape)}: needs an axis; reshape it first`, [
        node.shape,
      ]);
    const n = node.shape[axis]!;
    if (!Number.isInteger(k) || k < 0 || k > n)
      throw new ArgumentError(
        'topK',
        say`bad k: ${k} for axis ${axis} of size ${n}; must be an integer from 0 to ${n}`,
      );
    const largest = typeof options === 'number' ? true : (options.largest ?? true);
    const order = orderOf(node, axis, largest, k);
    return [wrap(elementsAt(node, order, axis)), wrap(order)];
  });
}
