/**
 * Elements picked and put by index tensors, and rows of tables by index, one by one or in bags.
 *
 * Indices are integers, in tensors or host arrays; negative ones count from the end. Those that the host knows are checked: arrays, and tensors made of
 * them. Computed ones that lie outside are moved to the nearest end (an engine cannot throw from inside a kernel). Gradients flow to the data, never to
 * the indices.
 */
import * as p from '../../graph/primitives.ts';
import { makeNode } from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import { compose, isHandle } from '../../graph/scope.ts';
import { scatterAddPrimitive } from '../../primitives/indexing.ts';
import { largestAmong } from '../../primitives/reduction.ts';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { DTypeError } from '@polygrad/compiler/shape/dtype';
import { checkNames, shown } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { sizeOf } from '@polygrad/compiler/shape/view';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { floatOperand, given } from '../../tensor/operand.ts';
import type { Tensor, TensorLike } from '../../tensor/types.ts';
import { widened } from '../elementwise/recording.ts';
import {
  alongAxis,
  axisOf,
  checkIntegers,
  checkElementwise,
  checkSource,
  flatPositions,
  type IndexAxis,
  type IndexLike,
  indexNode,
  safeIndex,
  taken,
  updatesFor,
} from './index-argument.ts';

/**
 * Slices of x at the indices: the axis is replaced by the shape of the indices. Source: Array API `take`.
 *
 * @param indices integers of any shape
 * @param axis one axis, or { axis }; 0
 * @returns x.shape with the axis replaced by indices.shape
 * @throws ArgumentError for indices from the host outside the axis; computed ones are moved to its nearest end
 *
 * @example
 * take(tensor([10, 20, 30]), tensor([2, 0], { dtype: 'int32' })); // [30, 10]
 */
export function take(x: Tensor, indices: IndexLike, axis?: IndexAxis): Tensor {
  return compose('take', () => wrap(taken('take', x, indices, axis)));
}

/**
 * The same as take, for one-dimensional indices. Source: PyTorch `index_select`.
 *
 * @example
 * indexSelect(tensor([[1, 2], [3, 4]]), tensor([1], { dtype: 'int32' }), { axis: 0 }); // [[3, 4]]
 */
export function indexSelect(x: Tensor, indices: IndexLike, axis?: IndexAxis): Tensor {
  return compose('indexSelect', () => {
    const which = axisOf('indexSelect', axis, 0, nodeOf(x).shape.length);
    const list = wrap(indexNode('indexSelect', indices, nodeOf(x).shape[which]!));
    const { shape } = list;
    if (shape.length > 1)
      throw new ShapeError(
        'indexSelect',
        say`indices have shape ${showShape(shape)}: needs one axis; use take() for more`,
        [shape],
      );
    return wrap(taken('indexSelect', x, list, axis));
  });
}

function along(op: string, x: Tensor, indices: IndexLike, axis: IndexAxis | undefined): Node {
  const node = nodeOf(x);
  const rank = node.shape.length;
  const which = axisOf(op, axis, rank === 0 ? 0 : -1, Math.max(1, rank));
  const size = node.shape[which] ?? 1;
  const index = indexNode(op, indices, size);
  const fits = node.shape.every((n, i) => i === which || n === index.shape[i] || n === 1 || index.shape[i] === 1);
  if (index.shape.length !== rank || !fits) {
    throw new ShapeError(
      op,
      say`shapes do not fit: x ${showShape(node.shape)} and indices ${showShape(index.shape)}; sizes other than axis ${which} must be equal or 1`,
      [node.shape, index.shape],
    );
  }
  checkSource(op, node, which, index);
  // Without the axis both stretch to this.
  const lead = node.shape.map((n, i) => (n === 1 ? index.shape[i]! : n));
  const stretched = (to: number): number[] => lead.map((n, i) => (i === which ? to : n));
  const safe = p.broadcastTo(safeIndex(op, index, size), stretched(index.shape[which] ?? 1));
  return alongAxis(p.broadcastTo(node, stretched(size)), safe, which);
}

/**
 * One element of x per index, at the index's own position in all other axes. Source: Array API `take_along_axis`.
 *
 * @param indices integers of the rank of x; sizes other than the axis equal those of x, or one of both is 1 and stretches
 * @param axis one axis, or { axis }; -1
 * @returns the broadcast shape, along the axis as long as the indices
 *
 * @example
 * takeAlongAxis(tensor([[1, 2], [3, 4]]), tensor([[1], [0]], { dtype: 'int32' }), { axis: 1 }); // [[2], [3]]
 */
export function takeAlongAxis(x: Tensor, indices: IndexLike, axis?: IndexAxis): Tensor {
  return compose('takeAlongAxis', () => wrap(along('takeAlongAxis', x, indices, axis)));
}

/**
 * The same as takeAlongAxis, but other sizes of the indices may be smaller than those of x. Source: PyTorch `gather`.
 *
 * @param axis one axis, or { axis }
 * @returns the shape of the indices
 *
 * @example
 * gather(tensor([[1, 2], [3, 4]]), tensor([[1]], { dtype: 'int32' }), { axis: 1 }); // [[2]]
 */
export function gather(x: Tensor, indices: IndexLike, axis?: IndexAxis): Tensor {
  return compose('gather', () => {
    const node = nodeOf(x);
    const which = axisOf('gather', axis, -1, node.shape.length);
    const index = indexNode('gather', indices, node.shape[which]!);
    checkElementwise('gather', node, index, which);
    checkSource('gather', node, which, index);
    return wrap(alongAxis(node, safeIndex('gather', index, node.shape[which]!), which));
  });
}

/**
 * x with the updates added at the indices, at their own position in all other axes; repeated indices add up. Source: PyTorch `scatter_add`.
 *
 * @param indices integers of the rank of x, sizes other than the axis not larger than those of x
 * @param updates tensor of the shape of the indices
 * @param axis one axis, or { axis }; -1
 * @returns a new tensor of the shape of x
 *
 * @example
 * scatterAdd(zeros([3]), tensor([1, 1], { dtype: 'int32' }), tensor([5, 6])); // [0, 11, 0]
 */
export function scatterAdd(x: Tensor, indices: IndexLike, updates: Tensor, axis?: IndexAxis): Tensor {
  return compose('scatterAdd', () => {
    const node = nodeOf(x);
    const which = axisOf('scatterAdd', axis, -1, node.shape.length);
    const index = indexNode('scatterAdd', indices, node.shape[which]!);
    checkElementwise('scatterAdd', node, index, which);
    checkSource('scatterAdd', node, which, index);
    const values = updatesFor('scatterAdd', node, nodeOf(updates), index.shape);
    const positions = flatPositions(safeIndex('scatterAdd', index, node.shape[which]!), node.shape, which);
    const count = sizeOf(index.shape);
    const flat = p.reshape(node, [sizeOf(node.shape)]);
    const added = makeNode(scatterAddPrimitive, [flat, p.reshape(positions, [count]), p.reshape(values, [count])], {
      axis: 0,
    });
    return wrap(p.reshape(added, node.shape));
  });
}

/**
 * x with slices added at one-dimensional indices along an axis; repeated indices add up. Source: PyTorch `index_add`.
 *
 * @param indices integers [n]
 * @param updates tensor of the shape of x with the axis of size n
 * @param axis one axis, or { axis }; 0
 * @returns a new tensor of the shape of x
 *
 * @example
 * indexAdd(zeros([3]), tensor([1, 1], { dtype: 'int32' }), tensor([5, 6])); // [0, 11, 0]
 */
export function indexAdd(x: Tensor, indices: IndexLike, updates: Tensor, axis?: IndexAxis): Tensor {
  return compose('indexAdd', () => {
    const node = nodeOf(x);
    const which = axisOf('indexAdd', axis, 0, node.shape.length);
    const index = indexNode('indexAdd', indices, node.shape[which]!);
    if (index.shape.length !== 1)
      throw new ShapeError('indexAdd', say`indices have shape ${showShape(index.shape)}: needs one axis`, [
        index.shape,
      ]);
    checkSource('indexAdd', node, which, index);
    const shape = node.shape.map((n, i) => (i === which ? index.shape[0]! : n));
    const values = updatesFor('indexAdd', node, nodeOf(updates), shape);
    return wrap(
      makeNode(scatterAddPrimitive, [node, safeIndex('indexAdd', index, node.shape[which]!), values], {
        axis: which,
      }),
    );
  });
}

/**
 * `value` where the mask is true, x elsewhere. Source: PyTorch `masked_fill`.
 *
 * @param mask bool, broadcasts with x
 * @param value a number (true or false for bool), or a tensor of shape [] and the dtype of x
 * @returns the shape x and the mask broadcast to, in the dtype of x
 * @throws DTypeError unless the mask is bool and the value fits x; ShapeError for a value of more than one element
 *
 * @example
 * maskedFill(tensor([1, 2]), tensor([true, false]), 0); // [0, 2]
 */
export function maskedFill(x: Tensor, mask: Tensor, value: TensorLike): Tensor {
  return compose('maskedFill', () => {
    const node = nodeOf(x);
    const m = nodeOf(mask);
    if (m.dtype !== 'bool')
      throw new DTypeError('maskedFill', say`mask is ${m.dtype}: needs bool; compare or cast first`, [m.dtype]);
    return wrap(p.where(m, updatesFor('maskedFill', node, nodeOf(given(value, x)), []), node));
  });
}

// Rows of tables by index, one by one or in bags.

/** Options of `embedding`. */
export interface EmbeddingOptions {
  /** A row that receives no gradient. Negative ones count from the end. */
  readonly paddingIdx?: number;
}

/** The padding index as a row of the table, or null. */
function readPaddingIndex(op: string, index: number | undefined, table: Node): number | null {
  if (index === undefined) return null;
  const rows = table.shape[0]!;
  if (!Number.isInteger(index) || index < -rows || index >= rows)
    throw new ArgumentError(
      op,
      say`paddingIdx out of range: ${index} for ${rows} rows; must be an integer from ${-rows} to ${rows - 1}`,
    );
  return index < 0 ? index + rows : index;
}

/** Adds axes of size 1 behind a node's own. */
function trailing(node: Node, count: number): Node {
  return p.reshape(node, [...node.shape, ...new Array<number>(count).fill(1)]);
}

/**
 * Rows of a table: take along axis 0. Source: PyTorch `embedding`.
 *
 * @param indices integers of any shape, in a tensor or an array
 * @param weight table of shape [rows, ...]
 * @param options paddingIdx: a row that receives no gradient
 * @returns shape [...indices.shape, ...weight.shape.slice(1)]
 * @throws DTypeError for indices that are no integers; ArgumentError for a paddingIdx outside the table, and for indices from the host. Computed ones
 *   are moved to the nearest row
 *
 * @example
 * embedding(tensor([1, 1], { dtype: 'int32' }), tensor([[1, 2], [3, 4]])); // [[3, 4], [3, 4]]
 */
export function embedding(indices: IndexLike, weight: Tensor, options: EmbeddingOptions = {}): Tensor {
  checkNames('embedding', options, 'paddingIdx');
  return compose('embedding', () => {
    if (nodeOf(weight).shape.length < 1)
      throw new ShapeError('embedding', say`weight has shape ${showShape(weight.shape)}: needs a table with rows`, [
        weight.shape,
      ]);
    const padding = readPaddingIndex('embedding', options.paddingIdx, nodeOf(weight));
    const ids = indexNode('embedding', indices, weight.shape[0]!, 'indices, weight');
    const rows = taken('embedding', weight, wrap(ids), 0);
    if (padding === null) return wrap(rows);
    const index = safeIndex('embedding', ids, weight.shape[0]!);
    const isPad = trailing(p.eq(index, p.constant(padding, 'int32')), weight.ndim - 1);
    return wrap(p.where(isPad, p.stopGradient(rows), rows));
  });
}

/** Options of `embeddingBag`. */
export interface EmbeddingBagOptions {
  /** What becomes of the rows of a bag. An empty bag gives zeros. Default 'mean'. */
  readonly mode?: 'sum' | 'mean' | 'max';
  /** For one-dimensional indices: where each bag starts, integers [bags] that ascend from 0. */
  readonly offsets?: IndexLike | null;
  /** Factors of the rows, of the shape of the indices. For mode 'sum'. */
  readonly perSampleWeights?: Tensor | null;
  /** A row that does not count. Negative ones count from the end. */
  readonly paddingIdx?: number;
}

/**
 * Sums, means or maxima of rows of a table, bag by bag, without the rows in between. Source: PyTorch `embedding_bag`.
 *
 * @param indices integers [bags, n], or [n] with offsets
 * @param weight table of shape [rows, width]
 * @param options mode ('mean'), offsets, perSampleWeights, paddingIdx
 * @returns shape [bags, width]; of equal maxima the first takes the gradient
 * @throws ShapeError where indices, offsets and weights do not fit; ArgumentError for modes and factors that do not
 *
 * @example
 * const table = tensor([[1, 2], [3, 4], [5, 6]]);
 * embeddingBag([[0, 2]], table); // [[3, 4]]
 * embeddingBag([0, 1, 2], table, { mode: 'sum', offsets: [0, 2] }); // [[4, 6], [5, 6]]
 */
export function embeddingBag(indices: IndexLike, weight: Tensor, options: EmbeddingBagOptions = {}): Tensor {
  checkNames('embeddingBag', options, 'mode offsets perSampleWeights@ paddingIdx');
  const op = 'embeddingBag';
  return compose(op, () => {
    const { mode = 'mean', offsets, perSampleWeights } = options;
    const table = floatOperand(weight);
    if (mode !== 'sum' && mode !== 'mean' && mode !== 'max')
      throw new ArgumentError(op, say`unknown mode: ${shown(mode)}; must be 'sum', 'mean' or 'max'`);
    if (table.shape.length !== 2)
      throw new ShapeError(op, say`weight has shape ${showShape(table.shape)}: needs [rows, width]`, [table.shape]);
    const index = indexNode(op, indices, table.shape[0]!, 'indices, weight');
    const rank = index.shape.length;
    if ((rank !== 1 && rank !== 2) || (rank === 1) !== Boolean(offsets))
      throw new ShapeError(
        op,
        say`indices ${showShape(index.shape)} ${offsets ? 'with' : 'without'} offsets: need [bags, n] without or [n] with them`,
        [index.shape],
      );
    if (perSampleWeights && mode !== 'sum')
      throw new ArgumentError(op, say`perSampleWeights with mode '${mode}': only sums have factors; use mode 'sum'`);
    if (perSampleWeights && perSampleWeights.shape.join() !== index.shape.join())
      throw new ShapeError(
        op,
        say`perSampleWeights have shape ${showShape(perSampleWeights.shape)}: needs that of the indices, ${showShape(index.shape)}`,
        [perSampleWeights.shape, index.shape],
      );
    const padding = readPaddingIndex(op, options.paddingIdx, table);
    let rows = widened(taken(op, wrap(table), wrap(index), 0));
    if (perSampleWeights) rows = p.mul(rows, p.cast(trailing(floatOperand(perSampleWeights), 1), rows.dtype));
    const safe = safeIndex(op, index, table.shape[0]!);
    /** Whether each index counts; null if all do. */
    const real = padding === null ? null : p.not(p.eq(safe, p.constant(padding, 'int32')));
    if (isHandle(offsets)) checkIntegers(op, nodeOf(offsets as Tensor), 'offsets');
    else if (offsets) checkOffsets(op, offsets, index.shape[0]!);
    const bags = offsets ? listedBags(op, indexNode(op, offsets, null), index.shape[0]!) : rowBags();
    return wrap(p.cast(bags.pool(mode, rows, real), table.dtype));
  });
}

/** Throws unless offsets given by the host start at 0, do not fall and lie within the indices. */
function checkOffsets(op: string, offsets: IndexLike, count: number): void {
  const list = Array.from(offsets as ArrayLike<number>, Number);
  const bad = list.findIndex((at, i) => (i === 0 ? at !== 0 : !(at >= list[i - 1]! && at <= count)));
  if (bad >= 0)
    throw new ArgumentError(
      op,
      say`bad offset ${bad}: ${list[bad]} in ${showShape(list)}; the first is 0, none is below the one before it or above ${count}, the number of indices`,
    );
}

interface Bags {
  pool(mode: 'sum' | 'mean' | 'max', rows: Node, real: Node | null): Node;
}

/** Sums divided by counts, and zeros where nothing is counted. */
function averaged(total: Node, count: Node): Node {
  const least = p.binary('maximum', count, p.constant(1, 'int32'));
  return p.div(total, trailing(p.cast(least, total.dtype), 1));
}

/** The largest along an axis where `real`, and zeros where nothing is. */
function largest(rows: Node, real: Node, axis: number): Node {
  if (rows.shape[axis] === 0)
    return p.constant(
      0,
      rows.dtype,
      rows.shape.filter((_, i) => i !== axis),
    );
  const masked = p.where(trailing(real, 1), rows, p.like(rows, Number.NEGATIVE_INFINITY));
  // A row that does not count may be the first of equals where those that count are -infinity. But then it stands before the first of these.
  const top = largestAmong(masked, [axis], [real], (x, counts) =>
    p.binary(
      'maximum',
      p.argReduce(x, 'max', [axis]),
      trailing(p.argReduce(p.cast(counts, 'int32'), 'max', [axis]), 1),
    ),
  );
  const some = p.lt(p.constant(0, 'int32'), p.reduce(p.cast(real, 'int32'), 'sum', [axis]));
  return p.where(trailing(some, 1), top, p.like(top, 0));
}

/** Bags that are the rows of a matrix of indices. */
function rowBags(): Bags {
  return {
    pool(mode, rows, real) {
      const all = real ?? p.constant(1, 'bool', rows.shape.slice(0, 2));
      if (mode === 'max') return largest(rows, all, 1);
      const counted = real === null ? rows : p.where(trailing(real, 1), rows, p.like(rows, 0));
      const total = p.reduce(counted, 'sum', [1]);
      return mode === 'sum' ? total : averaged(total, p.reduce(p.cast(all, 'int32'), 'sum', [1]));
    },
  };
}

/** Bags that follow each other in one list. */
function listedBags(op: string, offsets: Node, length: number): Bags {
  if (offsets.shape.length !== 1)
    throw new ShapeError(op, say`offsets have shape ${showShape(offsets.shape)}: needs [bags]`, [offsets.shape]);
  const count = offsets.shape[0]!;
  const start = safeIndex(op, offsets, length + 1);
  // The bag of a position is the number of starts up to it, less one.
  const begun = p.le(p.reshape(start, [1, count]), p.reshape(p.iota(length), [length, 1]));
  const bag = p.sub(p.reduce(p.cast(begun, 'int32'), 'sum', [1]), p.constant(1, 'int32'));
  const put = (values: Node, shape: readonly number[]): Node =>
    makeNode(scatterAddPrimitive, [p.constant(0, values.dtype, shape), bag, values], { axis: 0 });
  return {
    pool(mode, rows, real) {
      const width = rows.shape[1]!;
      const all = real ?? p.constant(1, 'bool', [length]);
      if (mode === 'max') {
        const own = p.eq(p.reshape(bag, [1, length]), p.reshape(p.iota(count), [count, 1]));
        const wide = p.broadcastTo(p.reshape(rows, [1, length, width]), [count, length, width]);
        return largest(wide, p.binary('and', own, p.reshape(all, [1, length])), 1);
      }
      const counted = real === null ? rows : p.where(trailing(real, 1), rows, p.like(rows, 0));
      const total = put(counted, [count, width]);
      return mode === 'sum' ? total : averaged(total, put(p.cast(all, 'int32'), [count]));
    },
  };
}
