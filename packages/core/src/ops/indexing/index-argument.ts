/**
 * Updates put at coordinates into zeros (scatterNd), and what operations by index share. That is index arguments as int32 nodes in range, positions in
 * flattened tensors and in sorted order. scatterNd is of no tensor, so its place is not a family's file.
 *
 * Negative indices count from the end. What the host knows is checked at the call: arrays, numbers, and tensors made of them
 * (graph/known-range.ts). Indices that were computed cannot be seen there, and an engine cannot throw from inside a kernel: what lies outside is moved
 * to the nearest end.
 */
import * as p from '../../graph/primitives.ts';
import { makeNode } from '../../graph/primitives.ts';
import { checkKnown } from '../../graph/known-range.ts';
import type { Node } from '../../graph/node.ts';
import { compose, isHandle } from '../../graph/scope.ts';
import { argSortPrimitive, gatherPrimitive, scatterAddPrimitive } from '../../primitives/indexing.ts';
import { checkShape, normalizeAxis } from '@polygrad/compiler/shape/axes';
import { type DType, dtypeInfo, isInteger, DTypeError } from '@polygrad/compiler/shape/dtype';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { eachNested, nestedShape } from '@polygrad/compiler/shape/nested';
import { checkNames, shown } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { type Shape, sizeOf } from '@polygrad/compiler/shape/view';
import { broadcastsTo } from '@polygrad/compiler/shape/broadcast';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import type { NestedInput, Tensor } from '../../tensor/types.ts';
import { tensor } from '../creation/creation.ts';
import { saturated } from '../elementwise/recording.ts';

/** Integers of any shape: a tensor of an integer dtype, or numbers whose range is checked at once. */
export type IndexLike = Tensor | number | readonly NestedInput[];

/** One axis, by itself or in options. */
export type IndexAxis = number | { readonly axis?: number };

/** The axis as a number from 0 to rank - 1. Throws ArgumentError or ShapeError where it is none. */
export function axisOf(op: string, argument: IndexAxis | undefined, fallback: number, rank: number): number {
  if (isHandle(argument))
    throw new ArgumentError(
      op,
      say`bad axis: ${argument}; indices come first and the axis last, as in ${op}(x, indices, 1)`,
    );
  if (typeof argument !== 'number') checkNames(op, argument, 'axis');
  return normalizeAxis(op, typeof argument === 'number' ? argument : (argument?.axis ?? fallback), rank);
}

/** Throws unless `value` is a position of an axis of size n, or a negative one. */
function checkPosition(op: string, value: number, n: number): void {
  if (!Number.isInteger(value) || value < -n || value >= n) throw outOfRange(op, value, n);
}

function outOfRange(op: string, value: number, n: number): ArgumentError {
  const range = n === 0 ? 'an empty axis has no positions' : `must be an integer from ${-n} to ${n - 1}`;
  return new ArgumentError(op, say`index out of range: ${value} for size ${n}; ${range}`);
}

/** Throws where the host knows that integers of a tensor are no positions of an axis of size n, nor negative ones. */
export function checkKnownPositions(op: string, node: Node, n: number): void {
  if (n > 0 && sizeOf(node.shape) > 0) checkKnown(node, -n, n - 1, (value) => outOfRange(op, value, n));
}

/** Throws unless an argument has integers; `order` names the arguments, for those who swapped them. */
export function checkIntegers(op: string, { dtype, shape }: Node, name: string, order?: string): void {
  if (isInteger(dtype)) return;
  const swapped = order === undefined ? '' : `, or give the arguments in the order ${op}(${order})`;
  throw new DTypeError(
    op,
    say`${name} have dtype ${dtype} and shape ${showShape(shape)}: need integers; convert with cast()${swapped}`,
    [dtype],
  );
}

/**
 * The indices as they were given.
 *
 * @param n size of the axis they go along; null: they are numbers of another kind; of coordinates, a function gives one for each column from their shape
 * @param order the arguments of the function, for messages
 */
export function indexNode(
  op: string,
  indices: IndexLike,
  n: number | null | ((shape: Shape) => readonly number[]),
  order: string = 'x, indices',
): Node {
  if (isHandle(indices)) {
    const node = nodeOf(indices as Tensor);
    checkIntegers(op, node, 'indices', order);
    if (n !== null) checkKnownPositions(op, node, typeof n === 'number' ? n : Math.max(...n(node.shape)));
    return node;
  }
  const shape = nestedShape(op, indices);
  const sizes = typeof n === 'function' ? n(shape) : [n];
  let at = 0;
  eachNested(op, indices, shape, (item) => {
    const size = sizes[at++ % sizes.length]!;
    // What is no number at all is refused below, when it is to become a tensor.
    if (typeof item !== 'number' && typeof item !== 'bigint' && typeof item !== 'boolean') return;
    const value = Number(item);
    if (size !== null) checkPosition(op, value, size);
    else if (!Number.isInteger(value))
      throw new ArgumentError(op, say`index is no integer: ${shown(item)}; indices are integers`);
  });
  return nodeOf(tensor(indices as NestedInput, { dtype: 'int32' }));
}

/** Indices as int32 in 0 .. n-1. */
export function safeIndex(op: string, index: Node, n: number): Node {
  checkIntegers(op, index, 'indices');
  const number = (value: number): Node => p.constant(value, 'int32');
  const plain = saturated(index);
  const wrapped =
    dtypeInfo[index.dtype].kind === 'uint' ? plain : p.where(p.lt(plain, number(0)), p.add(plain, number(n)), plain);
  return p.binary('minimum', p.binary('maximum', wrapped, number(0)), number(Math.max(0, n - 1)));
}

/** Throws ShapeError if elements are to be taken from an empty axis. */
export function checkSource(op: string, node: Node, axis: number, index: Node): void {
  if (node.shape[axis] === 0 && sizeOf(index.shape) > 0) {
    throw new ShapeError(op, say`nothing to take from: axis ${axis} of shape ${showShape(node.shape)} is empty`, [
      node.shape,
    ]);
  }
}

/**
 * Row-major position in a tensor of shape `full` for each element of `index`, which holds positions along `axis`; its own
 * positions stand for the other axes.
 */
export function flatPositions(index: Node, full: readonly number[], axis: number): Node {
  let total: Node | null = null;
  let step = 1;
  for (let i = full.length - 1; i >= 0; i--) {
    const n = full[i]!;
    let along: Node;
    if (i === axis) along = index;
    else if (index.shape[i] === 1) along = p.constant(0, 'int32');
    else
      along = p.reshape(
        p.iota(index.shape[i]!),
        index.shape.map((size, at) => (at === i ? size : 1)),
      );
    const scaled = step === 1 ? along : p.mul(along, p.constant(step, 'int32'));
    total = total === null ? scaled : p.add(total, scaled);
    step *= n;
  }
  return p.broadcastTo(total ?? index, index.shape);
}

/** Elements of x at int32 positions in range along an axis; the positions' other sizes are at most those of x. */
export function alongAxis(x: Node, positions: Node, axis: number): Node {
  const flat = p.reshape(x, [sizeOf(x.shape)]);
  return makeNode(gatherPrimitive, [flat, flatPositions(positions, x.shape, axis)], { axis: 0 });
}

/** Throws unless the indices have the rank of x and no larger sizes off the axis. */
export function checkElementwise(op: string, node: Node, index: Node, axis: number): void {
  if (index.shape.length !== node.shape.length || index.shape.some((n, i) => i !== axis && n > node.shape[i]!)) {
    throw new ShapeError(
      op,
      say`shapes do not fit: x ${showShape(node.shape)} and indices ${showShape(index.shape)}; ranks must be equal and sizes other than axis ${axis} not larger`,
      [node.shape, index.shape],
    );
  }
}

/** Slices of x at indices along one axis. */
export function taken(op: string, x: Tensor, indices: IndexLike, axis: IndexAxis | undefined): Node {
  const node = nodeOf(x);
  const which = axisOf(op, axis, 0, node.shape.length);
  const index = indexNode(op, indices, node.shape[which]!);
  checkSource(op, node, which, index);
  return makeNode(gatherPrimitive, [node, safeIndex(op, index, node.shape[which]!)], { axis: which });
}

/** Updates of the dtype of x, stretched to a shape. */
export function updatesFor(op: string, node: Node, updates: Node, shape: readonly number[]): Node {
  if (updates.dtype !== node.dtype)
    throw new DTypeError(op, say`dtypes differ: ${node.dtype} and updates ${updates.dtype}; convert with cast()`, [
      node.dtype,
      updates.dtype,
    ]);
  if (!broadcastsTo(updates.shape, shape)) {
    throw new ShapeError(op, say`updates have shape ${showShape(updates.shape)}: needs ${showShape(shape)}`, [
      updates.shape,
      shape,
    ]);
  }
  return p.broadcastTo(updates, shape);
}

// The order of elements along an axis as nodes: their positions, and the elements there.

/** The dtype of at least 32 bits to sort in: the order is the same. */
function sortable(dtype: DType): DType {
  const { kind, bytes } = dtypeInfo[dtype];
  if (bytes >= 4) return dtype;
  return kind === 'float' ? 'float32' : kind === 'int' ? 'int32' : 'uint32';
}

/** Positions of `count` elements in order along an axis, from rank `from` on; a scalar is one element. */
export function orderOf(
  x: Node,
  axis: number,
  descending: boolean,
  count: number = x.shape[axis] ?? 1,
  from: number = 0,
): Node {
  if (x.shape.length === 0) return p.constant(0, 'int32');
  const sorted = p.cast(p.stopGradient(x), sortable(x.dtype));
  return makeNode(argSortPrimitive, [sorted], { axis, descending, from, count });
}

/** The elements at positions along an axis. */
export function elementsAt(x: Node, order: Node, axis: number): Node {
  return x.shape.length === 0 ? p.identity(x) : alongAxis(x, order, axis);
}

// Elements put at coordinates into zeros, and places of coordinates.

/** Row-major position, in the leading axes of `shape`, of each row of coordinates [..., d]; and d. */
export function coordinates(
  op: string,
  indices: IndexLike,
  shape: Shape,
  order?: string,
): { places: Node; depth: number } {
  const sizes = (given: Shape): Shape => {
    const depth = given.at(-1) ?? 0;
    if (depth < 1 || depth > shape.length)
      throw new ShapeError(
        op,
        say`coordinates have shape ${showShape(given)}: the last axis must have from 1 to ${shape.length} entries for shape ${showShape(shape)}`,
        [given, shape],
      );
    return shape.slice(0, depth);
  };
  const index = indexNode(op, indices, sizes, order);
  const rank = index.shape.length;
  const depth = index.shape[rank - 1]!;
  const lead = index.shape.slice(0, -1);
  let places: Node | null = null;
  for (let k = 0; k < depth; k++) {
    const column = p.slice(
      index,
      index.shape.map((_, i) => (i === rank - 1 ? k : 0)),
      [...lead, 1],
      index.shape.map(() => 1),
    );
    const n = shape[k]!;
    const at = safeIndex(op, p.reshape(column, lead), n);
    places = places === null ? at : p.add(p.mul(places, p.constant(n, 'int32')), at);
  }
  return { places: places!, depth };
}

/**
 * Zeros of a shape with the updates added at coordinates; repeated ones add up. Source: TensorFlow `scatter_nd`.
 *
 * @param indices integers of shape [..., d], d from 1 to the rank of the result
 * @param updates tensor of shape [..., ...shape.slice(d)]
 * @param shape shape of the result
 * @returns a tensor of that shape and the dtype of the updates
 * @throws ShapeError where the shapes do not fit; ArgumentError for a bad shape
 *
 * @example
 * scatterNd([[1], [3], [1]], tensor([5, 6, 7]), [4]); // [0, 12, 0, 6]
 */
export function scatterNd(indices: IndexLike, updates: Tensor, shape: Shape): Tensor {
  return compose('scatterNd', () => {
    checkShape('scatterNd', shape);
    const { places, depth } = coordinates('scatterNd', indices, shape, 'indices, updates, shape');
    const values = nodeOf(updates);
    const rest = shape.slice(depth);
    const base = p.constant(0, values.dtype, [sizeOf(shape.slice(0, depth)), ...rest]);
    const fitted = updatesFor('scatterNd', base, values, [...places.shape, ...rest]);
    checkSource('scatterNd', base, 0, places);
    return wrap(p.reshape(makeNode(scatterAddPrimitive, [base, places, fitted], { axis: 0 }), [...shape]));
  });
}
