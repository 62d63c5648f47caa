/**
 * Elements picked and put by index tensors.
 *
 * Indices are integers; negative ones count from the end, and those outside are moved to the nearest end (an engine cannot throw
 * from inside a kernel). Gradients flow to the data, never to the indices.
 */
import type { Node } from '../graph/node.ts';
import * as p from '../graph/primitives.ts';
import { makeNode } from '../graph/build.ts';
import { compose } from '../graph/scope.ts';
import { normalizeAxis } from '../shape/axes.ts';
import { broadcastsTo } from '../shape/broadcast.ts';
import { dtypeInfo, isInteger } from '../shape/dtype.ts';
import { DTypeError, ShapeError, showShape } from '../shape/errors.ts';
import { sizeOf } from '../shape/view.ts';
import { nodeOf, wrap } from '../tensor/handle.ts';
import type { Tensor } from '../tensor/types.ts';

/** One axis, by itself or in options. */
export type IndexAxis = number | { readonly axis?: number };

function axisOf(op: string, argument: IndexAxis | undefined, fallback: number, rank: number): number {
  return normalizeAxis(op, typeof argument === 'number' ? argument : (argument?.axis ?? fallback), rank);
}

/** Indices as int32 in 0 .. n-1. */
export function safeIndex(op: string, index: Node, n: number): Node {
  if (!isInteger(index.dtype))
    throw new DTypeError(op, `index dtype is ${index.dtype}: needs integers; convert with cast()`, [index.dtype]);
  const number = (value: number): Node => p.constant(value, 'int32');
  const plain = p.cast(index, 'int32');
  const wrapped =
    dtypeInfo[index.dtype].kind === 'uint' ? plain : p.where(p.lt(plain, number(0)), p.add(plain, number(n)), plain);
  return p.binary('minimum', p.binary('maximum', wrapped, number(0)), number(Math.max(0, n - 1)));
}

function checkSource(op: string, node: Node, axis: number, index: Node): void {
  if (node.shape[axis] === 0 && sizeOf(index.shape) > 0) {
    throw new ShapeError(op, `nothing to take from: axis ${axis} of shape ${showShape(node.shape)} is empty`, [
      node.shape,
    ]);
  }
}

function taken(op: string, x: Tensor, indices: Tensor, axis: IndexAxis | undefined): Node {
  const node = nodeOf(x);
  const which = axisOf(op, axis, 0, node.shape.length);
  const index = nodeOf(indices);
  checkSource(op, node, which, index);
  return makeNode('gather', [node, safeIndex(op, index, node.shape[which] as number)], { axis: which });
}

/**
 * Slices of x at the indices: the axis is replaced by the shape of the indices. Source: Array API `take`.
 *
 * @param indices integers of any shape
 * @param axis one axis, or { axis }; 0
 * @returns x.shape with the axis replaced by indices.shape
 *
 * @example
 * take(tensor([10, 20, 30]), tensor([2, 0], { dtype: 'int32' })); // [30, 10]
 */
export function take(x: Tensor, indices: Tensor, axis?: IndexAxis): Tensor {
  return compose('take', () => wrap(taken('take', x, indices, axis)));
}

/**
 * The same as take, for one-dimensional indices. Source: PyTorch `index_select`.
 *
 * @example
 * indexSelect(tensor([[1, 2], [3, 4]]), tensor([1], { dtype: 'int32' }), { axis: 0 }); // [[3, 4]]
 */
export function indexSelect(x: Tensor, indices: Tensor, axis?: IndexAxis): Tensor {
  return compose('indexSelect', () => {
    if (indices.ndim > 1)
      throw new ShapeError(
        'indexSelect',
        `indices have shape ${showShape(indices.shape)}: needs one axis; use take() for more`,
        [indices.shape],
      );
    return wrap(taken('indexSelect', x, indices, axis));
  });
}

/**
 * Rows of a table: take along axis 0. Source: PyTorch `embedding`.
 *
 * @param indices integers of any shape
 * @param weight table of shape [rows, ...]
 * @param options paddingIndex: a row that receives no gradient
 * @returns shape [...indices.shape, ...weight.shape.slice(1)]
 *
 * @example
 * embedding(tensor([1, 1], { dtype: 'int32' }), tensor([[1, 2], [3, 4]])); // [[3, 4], [3, 4]]
 */
export function embedding(indices: Tensor, weight: Tensor, options: { readonly paddingIndex?: number } = {}): Tensor {
  return compose('embedding', () => {
    if (weight.ndim < 1)
      throw new ShapeError('embedding', `weight has shape ${showShape(weight.shape)}: needs a table with rows`, [
        weight.shape,
      ]);
    const rows = taken('embedding', weight, indices, 0);
    if (options.paddingIndex === undefined) return wrap(rows);
    const count = weight.shape[0] as number;
    const pad = options.paddingIndex < 0 ? options.paddingIndex + count : options.paddingIndex;
    const index = safeIndex('embedding', nodeOf(indices), count);
    const isPad = p.reshape(p.eq(index, p.constant(pad, 'int32')), [
      ...index.shape,
      ...new Array<number>(weight.ndim - 1).fill(1),
    ]);
    return wrap(p.where(isPad, p.stopGradient(rows), rows));
  });
}

/**
 * Row-major position in a tensor of shape `full` for each element of `index`, which holds positions along `axis`; its own
 * positions stand for the other axes.
 */
function flatPositions(index: Node, full: readonly number[], axis: number): Node {
  let total: Node | null = null;
  let step = 1;
  for (let i = full.length - 1; i >= 0; i--) {
    const n = full[i] as number;
    let along: Node;
    if (i === axis) along = index;
    else if (index.shape[i] === 1) along = p.constant(0, 'int32');
    else
      along = p.reshape(
        p.iota(index.shape[i] as number),
        index.shape.map((size, at) => (at === i ? size : 1)),
      );
    const scaled = step === 1 ? along : p.mul(along, p.constant(step, 'int32'));
    total = total === null ? scaled : p.add(total, scaled);
    step *= n;
  }
  return p.broadcastTo(total ?? index, index.shape);
}

function along(op: string, x: Tensor, indices: Tensor, axis: IndexAxis | undefined): Node {
  const node = nodeOf(x);
  const index = nodeOf(indices);
  const rank = node.shape.length;
  const which = axisOf(op, axis, rank === 0 ? 0 : -1, Math.max(1, rank));
  const lead = node.shape.map((n, i) => (i === which ? (index.shape[i] ?? 1) : n));
  if (index.shape.length !== rank || !broadcastsTo(index.shape, lead)) {
    throw new ShapeError(
      op,
      `shapes do not fit: x ${showShape(node.shape)} and indices ${showShape(index.shape)}; sizes other than axis ${which} must be equal or 1`,
      [node.shape, index.shape],
    );
  }
  checkSource(op, node, which, index);
  const safe = p.broadcastTo(safeIndex(op, index, node.shape[which] as number), lead);
  const flat = p.reshape(node, [sizeOf(node.shape)]);
  return makeNode('gather', [flat, flatPositions(safe, node.shape, which)], { axis: 0 });
}

/**
 * One element of x per index, at the index's own position in all other axes. Source: Array API `take_along_axis`.
 *
 * @param indices integers of the rank of x; other sizes equal those of x (or 1, and stretch)
 * @param axis one axis, or { axis }; -1
 * @returns the shape of the indices
 *
 * @example
 * takeAlongAxis(tensor([[1, 2], [3, 4]]), tensor([[1], [0]], { dtype: 'int32' }), { axis: 1 }); // [[2], [3]]
 */
export function takeAlongAxis(x: Tensor, indices: Tensor, axis?: IndexAxis): Tensor {
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
export function gather(x: Tensor, indices: Tensor, axis?: IndexAxis): Tensor {
  return compose('gather', () => {
    const node = nodeOf(x);
    const index = nodeOf(indices);
    const which = axisOf('gather', axis, -1, node.shape.length);
    checkElementwise('gather', node, index, which);
    checkSource('gather', node, which, index);
    const flat = p.reshape(node, [sizeOf(node.shape)]);
    const positions = flatPositions(safeIndex('gather', index, node.shape[which] as number), node.shape, which);
    return wrap(makeNode('gather', [flat, positions], { axis: 0 }));
  });
}

function checkElementwise(op: string, node: Node, index: Node, axis: number): void {
  if (
    index.shape.length !== node.shape.length ||
    index.shape.some((n, i) => i !== axis && n > (node.shape[i] as number))
  ) {
    throw new ShapeError(
      op,
      `shapes do not fit: x ${showShape(node.shape)} and indices ${showShape(index.shape)}; ranks must be equal and sizes other than axis ${axis} not larger`,
      [node.shape, index.shape],
    );
  }
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
export function scatterAdd(x: Tensor, indices: Tensor, updates: Tensor, axis?: IndexAxis): Tensor {
  return compose('scatterAdd', () => {
    const node = nodeOf(x);
    const index = nodeOf(indices);
    const which = axisOf('scatterAdd', axis, -1, node.shape.length);
    checkElementwise('scatterAdd', node, index, which);
    checkSource('scatterAdd', node, which, index);
    const values = updatesFor('scatterAdd', node, nodeOf(updates), index.shape);
    const positions = flatPositions(safeIndex('scatterAdd', index, node.shape[which] as number), node.shape, which);
    const count = sizeOf(index.shape);
    const flat = p.reshape(node, [sizeOf(node.shape)]);
    const added = makeNode('scatterAdd', [flat, p.reshape(positions, [count]), p.reshape(values, [count])], {
      axis: 0,
    });
    return wrap(p.reshape(added, node.shape));
  });
}

function updatesFor(op: string, node: Node, updates: Node, shape: readonly number[]): Node {
  if (updates.dtype !== node.dtype)
    throw new DTypeError(op, `dtypes differ: ${node.dtype} and updates ${updates.dtype}; convert with cast()`, [
      node.dtype,
      updates.dtype,
    ]);
  if (!broadcastsTo(updates.shape, shape)) {
    throw new ShapeError(op, `updates have shape ${showShape(updates.shape)}: needs ${showShape(shape)}`, [
      updates.shape,
      shape,
    ]);
  }
  return p.broadcastTo(updates, shape);
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
export function indexAdd(x: Tensor, indices: Tensor, updates: Tensor, axis?: IndexAxis): Tensor {
  return compose('indexAdd', () => {
    const node = nodeOf(x);
    const index = nodeOf(indices);
    const which = axisOf('indexAdd', axis, 0, node.shape.length);
    if (index.shape.length !== 1)
      throw new ShapeError('indexAdd', `indices have shape ${showShape(index.shape)}: needs one axis`, [index.shape]);
    checkSource('indexAdd', node, which, index);
    const shape = node.shape.map((n, i) => (i === which ? (index.shape[0] as number) : n));
    const values = updatesFor('indexAdd', node, nodeOf(updates), shape);
    return wrap(
      makeNode('scatterAdd', [node, safeIndex('indexAdd', index, node.shape[which] as number), values], {
        axis: which,
      }),
    );
  });
}

/**
 * `value` where the mask is true, x elsewhere. Source: PyTorch `masked_fill`.
 *
 * @param mask bool, broadcasts with x
 *
 * @example
 * maskedFill(tensor([1, 2]), tensor([true, false]), 0); // [0, 2]
 */
export function maskedFill(x: Tensor, mask: Tensor, value: number): Tensor {
  return compose('maskedFill', () => {
    const node = nodeOf(x);
    const m = nodeOf(mask);
    if (m.dtype !== 'bool')
      throw new DTypeError('maskedFill', `mask is ${m.dtype}: needs bool; compare or cast first`, [m.dtype]);
    return wrap(p.where(m, p.constant(value, node.dtype), node));
  });
}
