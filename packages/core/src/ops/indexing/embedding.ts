/** Rows of tables by index, one by one or in bags. Indices are tensors or host arrays (see index-argument.ts). */
import { makeNode } from '../../graph/build.ts';
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { compose, isHandle } from '../../graph/scope.ts';
import { scatterAddPrimitive } from '../../primitives/indexing.ts';
import { ArgumentError, ShapeError, showShape } from '../../shape/errors.ts';
import { checkNames, shown } from '../../shape/options.ts';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { floatOperand } from '../../tensor/operand.ts';
import type { Tensor } from '../../tensor/types.ts';
import { type IndexLike, indexNode, safeIndex, taken } from './index-argument.ts';
import { widened } from '../elementwise/recording.ts';
import { say } from '../../shape/shown.ts';

export interface EmbeddingOptions {
  /** A row that receives no gradient. Negative ones count from the end. */
  readonly paddingIndex?: number;
}

/** The padding index as a row of the table, or null. */
function readPaddingIndex(op: string, index: number | undefined, table: Node): number | null {
  if (index === undefined) return null;
  const rows = table.shape[0]!;
  if (!Number.isInteger(index) || index < -rows || index >= rows)
    throw new ArgumentError(
      op,
      say`paddingIndex out of range: ${index} for ${rows} rows; must be an integer from ${-rows} to ${rows - 1}`,
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
 * @param options paddingIndex: a row that receives no gradient
 * @returns shape [...indices.shape, ...weight.shape.slice(1)]
 * @throws DTypeError for indices that are no integers; ArgumentError for a paddingIndex outside the table
 *
 * @example
 * embedding(tensor([1, 1], { dtype: 'int32' }), tensor([[1, 2], [3, 4]])); // [[3, 4], [3, 4]]
 */
export function embedding(indices: IndexLike, weight: Tensor, options: EmbeddingOptions = {}): Tensor {
  checkNames('embedding', options, 'paddingIndex');
  return compose('embedding', () => {
    if (nodeOf(weight).shape.length < 1)
      throw new ShapeError('embedding', say`weight has shape ${showShape(weight.shape)}: needs a table with rows`, [
        weight.shape,
      ]);
    const padding = readPaddingIndex('embedding', options.paddingIndex, nodeOf(weight));
    const ids = indexNode('embedding', indices, weight.shape[0]!);
    const rows = taken('embedding', weight, wrap(ids), 0);
    if (padding === null) return wrap(rows);
    const index = safeIndex('embedding', ids, weight.shape[0]!);
    const isPad = trailing(p.eq(index, p.constant(padding, 'int32')), weight.ndim - 1);
    return wrap(p.where(isPad, p.stopGradient(rows), rows));
  });
}

export interface EmbeddingBagOptions {
  /** What becomes of the rows of a bag. An empty bag gives zeros. Default 'mean'. */
  readonly mode?: 'sum' | 'mean' | 'max';
  /** For one-dimensional indices: where each bag starts, integers [bags] that ascend from 0. */
  readonly offsets?: IndexLike | null;
  /** Factors of the rows, of the shape of the indices. For mode 'sum'. */
  readonly perSampleWeights?: Tensor | null;
  /** A row that does not count. Negative ones count from the end. */
  readonly paddingIndex?: number;
}

/**
 * Sums, means or maxima of rows of a table, bag by bag, without the rows in between. Source: PyTorch `embedding_bag`.
 *
 * @param indices integers [bags, n], or [n] with offsets
 * @param weight table of shape [rows, width]
 * @param options mode ('mean'), offsets, perSampleWeights, paddingIndex
 * @returns shape [bags, width]; of equal maxima the first takes the gradient
 * @throws ShapeError where indices, offsets and weights do not fit; ArgumentError for modes and factors that do not
 *
 * @example
 * const table = tensor([[1, 2], [3, 4], [5, 6]]);
 * embeddingBag([[0, 2]], table); // [[3, 4]]
 * embeddingBag([0, 1, 2], table, { mode: 'sum', offsets: [0, 2] }); // [[4, 6], [5, 6]]
 */
export function embeddingBag(indices: IndexLike, weight: Tensor, options: EmbeddingBagOptions = {}): Tensor {
  checkNames('embeddingBag', options, 'mode offsets perSampleWeights@ paddingIndex');
  const op = 'embeddingBag';
  return compose(op, () => {
    const { mode = 'mean', offsets, perSampleWeights } = options;
    const table = floatOperand(weight);
    if (mode !== 'sum' && mode !== 'mean' && mode !== 'max')
      throw new ArgumentError(op, say`unknown mode: ${shown(mode)}; must be 'sum', 'mean' or 'max'`);
    if (table.shape.length !== 2)
      throw new ShapeError(op, say`weight has shape ${showShape(table.shape)}: needs [rows, width]`, [table.shape]);
    const index = indexNode(op, indices, table.shape[0]!);
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
    const padding = readPaddingIndex(op, options.paddingIndex, table);
    let rows = widened(taken(op, wrap(table), wrap(index), 0));
    if (perSampleWeights) rows = p.mul(rows, p.cast(trailing(floatOperand(perSampleWeights), 1), rows.dtype));
    const safe = safeIndex(op, index, table.shape[0]!);
    /** Whether each index counts; null if all do. */
    const real = padding === null ? null : p.not(p.eq(safe, p.constant(padding, 'int32')));
    if (offsets && !isHandle(offsets)) checkOffsets(op, offsets, index.shape[0]!);
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
  const top = p.reduce(
    p.where(trailing(real, 1), rows, p.like(rows, Number.NEGATIVE_INFINITY)),
    'max',
    [axis],
    'first',
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
