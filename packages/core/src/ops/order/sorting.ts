/**
 * Sorting along an axis, median and quantiles.
 *
 * Order: -0 equals 0, NaN is greater than every number (last, or first where `descending`; so the largest element is NaN as `max` has
 * it). Sorts are stable. Positions are int32. Gradients flow to the elements where they came from.
 */
import * as p from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import { compose } from '../../graph/scope.ts';
import { checkList, keepAxes, readAxes, readAxis } from '@polygrad/compiler/shape/axes';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { shown } from '@polygrad/compiler/shape/options';
import { isList, say } from '@polygrad/compiler/shape/shown';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { floatOperand } from '../../tensor/operand.ts';
import type { AxisArgument, AxisOptions, Tensor, TensorLike } from '../../tensor/types.ts';
import { elementsAt, orderOf } from '../indexing/index-argument.ts';

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

// Median and quantiles: positions in sorted order, between neighbours by interpolation. `axis` and `keepDims` as in reduction.ts.

/** What is taken where a quantile falls between two elements. */
export type Interpolation = 'linear' | 'lower' | 'higher' | 'midpoint' | 'nearest';

/** Options of quantile and median. */
export interface QuantileOptions extends AxisOptions {
  /** Default 'linear'. PyTorch's `median` is 'lower'. */
  readonly interpolation?: Interpolation;
}

/** Positions around a quantile among n sorted elements, and the weight of the upper one. */
function around(op: string, q: number, n: number, interpolation: Interpolation): [number, number, number] {
  const at = q * (n - 1);
  const low = Math.floor(at);
  const high = Math.ceil(at);
  switch (interpolation) {
    case 'linear':
      return [low, high, at - low];
    case 'lower':
      return [low, low, 0];
    case 'higher':
      return [high, high, 0];
    case 'midpoint':
      return [low, high, low === high ? 0 : 0.5];
    case 'nearest': {
      // Half way: the even position, as NumPy and PyTorch round.
      const nearest = at - low === 0.5 ? low + (low % 2) : Math.round(at);
      return [nearest, nearest, 0];
    }
    default:
      interpolation satisfies never;
      throw new ArgumentError(
        op,
        say`unknown interpolation: ${shown(interpolation)}; must be linear, lower, higher, midpoint or nearest`,
      );
  }
}

/** Quantiles of x over axes: one result per q, each of the reduced shape. */
function quantiles(
  op: string,
  x: TensorLike,
  qs: readonly number[],
  argument: QuantileOptions | AxisArgument | undefined,
): Node[] {
  const node = floatOperand(x);
  const { shape } = node;
  const { axes, keepDims } = readAxes(op, argument, shape.length, 'axis keepDims? interpolation');
  const options = typeof argument === 'object' && !isList(argument) ? (argument as QuantileOptions) : {};
  for (const q of qs)
    if (typeof q !== 'number' || !(q >= 0 && q <= 1))
      throw new ArgumentError(op, say`bad quantile: ${q}; must be from 0 to 1`);
  for (const axis of axes)
    if (shape[axis] === 0)
      throw new ShapeError(op, say`nothing to choose from: axis ${axis} of shape ${showShape(shape)} is empty`, [
        shape,
      ]);
  const rest = shape.map((_, i) => i).filter((i) => !axes.includes(i));
  const lead = rest.map((i) => shape[i]!);
  const n = axes.reduce((product, axis) => product * shape[axis]!, 1);
  const last = lead.length;
  const line = p.reshape(p.permute(node, [...rest, ...axes]), [...lead, n]);
  const places = qs.map((q) => around(op, q, n, options.interpolation ?? 'linear'));
  const one = places.length === 1 ? chosen(line, places[0]!) : null;
  const sorted = one ?? elementsAt(line, orderOf(line, last, false), last);
  const first = one === null ? 0 : places[0]![0];
  const at = (place: number): Node =>
    p.reshape(
      p.slice(
        sorted,
        [...lead.map(() => 0), place - first],
        [...lead, 1],
        [...lead, n].map(() => 1),
      ),
      lead,
    );
  // NaN is last in order, and any makes the result NaN.
  const greatest = one === null ? at(n - 1) : null;
  return places.map(([low, high, weight]) => {
    const value =
      weight === 0 ? at(low) : p.add(p.mul(at(low), p.like(node, 1 - weight)), p.mul(at(high), p.like(node, weight)));
    const result = greatest === null ? value : p.where(p.unary('isNaN', greatest), greatest, value);
    return keepDims ? p.reshape(result, keepAxes(shape, axes)) : result;
  });
}

/** The elements around one quantile, found without sorting all of a line; those of a line with NaN are all NaN. */
function chosen(line: Node, [low, high]: readonly [number, number, number]): Node {
  const last = line.shape.length - 1;
  // NaN is the greatest.
  const top = p.reshape(p.argReduce(p.stopGradient(line), 'max', [last]), keepAxes(line.shape, [last]));
  const spoilt = p.unary('isNaN', p.stopGradient(elementsAt(line, top, last)));
  return elementsAt(line, p.where(spoilt, top, orderOf(line, last, false, high - low + 1, low)), last);
}

/**
 * The value below which a part q of the elements lies. Integers become float32; NaN if an element is. Source: NumPy `quantile`.
 *
 * @param q from 0 to 1, or several: the results lie along a new first axis
 * @param options axis, keepDims, interpolation ('linear')
 * @returns shape without the axes; with [q.length] in front for several
 * @throws ArgumentError for q outside 0 to 1; ShapeError for empty axes
 *
 * @example
 * quantile(tensor([1, 2, 3, 4]), [0, 0.5]); // [1, 2.5]
 */
export function quantile(
  x: TensorLike,
  q: number | readonly number[],
  options?: QuantileOptions | AxisArgument,
): Tensor {
  return compose('quantile', () => {
    if (typeof q === 'number') return wrap(quantiles('quantile', x, [q], options)[0]!);
    checkList('quantile', 'quantiles', q, '[0.25, 0.75]');
    if (q.length === 0) throw new ArgumentError('quantile', 'no quantiles: 0 given; give at least one');
    return wrap(
      p.concat(
        quantiles('quantile', x, q, options).map((one) => p.insertAxes(one, [0])),
        0,
      ),
    );
  });
}

/**
 * The middle element in order, or the mean of the two middle ones; NaN if an element is. Integers become float32. The gradient goes to the
 * elements the value is made of. Source: NumPy `median`; PyTorch's takes the lower of the two ({ interpolation: 'lower' }).
 *
 * @param options axis, keepDims, interpolation ('linear')
 * @returns shape without the axes
 * @throws ShapeError for empty axes
 *
 * @example
 * median(tensor([4, 1, 3])); // 3
 */
export function median(x: TensorLike, options?: QuantileOptions | AxisArgument): Tensor {
  return compose('median', () => wrap(quantiles('median', x, [0.5], options)[0]!));
}
