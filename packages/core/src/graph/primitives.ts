/**
 * The primitives as functions on nodes, for gradient rules and for ops: `add(a, b)` instead of `makeNode('add', ...)`.
 *
 * They leave out nodes that change nothing, and give realised sources a realised view of the same buffer where strides
 * express the movement. Operands broadcast as attrs.ts says; dtypes must already agree.
 */
import {
  expandView,
  isRowMajor,
  permuteView,
  reshapeView,
  sameShape,
  type Shape,
  sliceView,
  type View,
} from '../shape/view.ts';
import { type DType, isSmallFloat } from '../shape/dtype.ts';
import { normalize } from '../shape/host.ts';
import type { BinaryOperation, UnaryOperation } from './definition.ts';
import type { Attrs, PrimitiveName } from './attrs.ts';
import { makeNode, record } from './build.ts';
import { isOp, type Node, keepsHistory } from './node.ts';

// Leaves

/**
 * A number as kernels take it: bigint for 64-bit integers only where a number would not be exact, so that equal values stay equal;
 * 16-bit floats rounded at once, lest they be rounded to float32 first.
 */
function numberOf(value: number | bigint, dtype: DType): number | bigint {
  if (dtype === 'int64' || dtype === 'uint64') {
    const whole = normalize(dtype, value) as bigint;
    return whole > -safe && whole < safe ? Number(whole) : whole;
  }
  return isSmallFloat(dtype) || typeof value === 'bigint' ? normalize(dtype, value) : value;
}

const safe = 2n ** 53n;

/** A number baked into kernels, filling `shape`. */
export function constant(value: number | bigint, dtype: DType, shape: Shape = []): Node<'constant'> {
  return record('constant', [], { value: numberOf(value, dtype), shape, dtype }, shape, dtype);
}

/** A number bound at each run: 0-d, no part of the plan. */
export function scalar(value: number | bigint, dtype: DType): Node<'scalar'> {
  return record('scalar', [], { value: numberOf(value, dtype), dtype }, [], dtype);
}

/** A 0-d constant of the node's dtype. */
export function like(node: Node, value: number): Node {
  return constant(value, node.dtype);
}

/** Zeros of the node's shape and dtype. */
export function zerosLike(node: Node): Node {
  return constant(0, node.dtype, node.shape);
}

/** 0 .. length-1, int32. */
export function iota(length: number): Node<'iota'> {
  return makeNode('iota', [], { length });
}

// Elementwise

export function unary(op: UnaryOperation, x: Node): Node {
  return makeNode(op, [x], null);
}

export function binary(op: BinaryOperation, a: Node, b: Node): Node {
  return makeNode(op, [a, b], null);
}

export const neg = (x: Node): Node => unary('neg', x);
export const not = (x: Node): Node => unary('not', x);
export const add = (a: Node, b: Node): Node => binary('add', a, b);
export const sub = (a: Node, b: Node): Node => binary('sub', a, b);
export const mul = (a: Node, b: Node): Node => binary('mul', a, b);
export const div = (a: Node, b: Node): Node => binary('div', a, b);
export const lt = (a: Node, b: Node): Node => binary('lt', a, b);
export const le = (a: Node, b: Node): Node => binary('le', a, b);
export const eq = (a: Node, b: Node): Node => binary('eq', a, b);

export function where(condition: Node, a: Node, b: Node): Node {
  return makeNode('where', [condition, a, b], null);
}

export function cast(x: Node, dtype: DType): Node {
  return x.dtype === dtype ? x : makeNode('cast', [x], { dtype });
}

// Reductions

export function reduce(
  x: Node,
  op: Attrs['reduce']['op'],
  axes: readonly number[],
  ties: Attrs['reduce']['ties'] = 'share',
): Node {
  return axes.length === 0 ? x : makeNode('reduce', [x], { op, axes, ties });
}

export function argReduce(x: Node, op: 'max' | 'min', axes: readonly number[]): Node {
  return makeNode('argReduce', [x], { op, axes });
}

// Movement

/** Gives a movement of a realised node the same buffer under another view. */
function aliased<P extends PrimitiveName>(node: Node<P>, x: Node, view: View | null): Node<P> {
  if (x.storage !== null && view !== null) {
    node.storage = { buffer: x.storage.buffer, view };
    if (!keepsHistory(node)) node.src = [];
  }
  return node;
}

export function reshape(x: Node, shape: Shape): Node {
  if (sameShape(x.shape, shape)) return x;
  return aliased(makeNode('reshape', [x], { shape }), x, x.storage && reshapeView(x.shape, x.storage.view, shape));
}

export function permute(x: Node, axes: readonly number[]): Node {
  if (axes.length === x.shape.length && axes.every((axis, i) => axis === i)) return x;
  return aliased(makeNode('permute', [x], { axes }), x, x.storage && permuteView(x.storage.view, axes));
}

/** Stretches axes of size 1; same rank. */
export function expand(x: Node, shape: Shape): Node {
  if (sameShape(x.shape, shape)) return x;
  if (isOp(x, 'constant')) return constant(x.attr.value, x.dtype, shape);
  return aliased(makeNode('expand', [x], { shape }), x, x.storage && expandView(x.shape, x.storage.view, shape));
}

export function slice(x: Node, start: readonly number[], length: readonly number[], step: readonly number[]): Node {
  if (sameShape(x.shape, length) && step.every((s, i) => s === 1 || length[i] === 1)) return x;
  return aliased(
    makeNode('slice', [x], { start, length, step }),
    x,
    x.storage && sliceView(x.storage.view, start, step),
  );
}

export function pad(x: Node, low: readonly number[], high: readonly number[], value = 0): Node {
  if (low.every((n) => n === 0) && high.every((n) => n === 0)) return x;
  return makeNode('pad', [x], { low, high, value });
}

export function concat(parts: readonly Node[], axis: number): Node {
  return parts.length === 1 ? parts[0]! : makeNode('concat', parts, { axis });
}

/** The same value as a node of its own: a place where differentiation can start. */
export function identity(x: Node): Node {
  return aliased(makeNode('reshape', [x], { shape: x.shape }), x, x.storage?.view ?? null);
}

/** The same value without its history. */
export function stopGradient(x: Node): Node {
  return aliased(makeNode('stopGradient', [x], null), x, x.storage?.view ?? null);
}

/** The same value, to be computed from again once `when` is there. */
export function after(x: Node, when: Node): Node {
  return makeNode('after', [x, when], null);
}

/** The same value in row-major order of its own. */
export function contiguous(x: Node): Node {
  if (x.storage !== null && isRowMajor(x.shape, x.storage.view)) return x;
  return makeNode('contiguous', [x], null);
}

// Helpers made of movements

/** Axes of size 1 put in front, then stretched: NumPy's broadcast_to. */
export function broadcastTo(x: Node, shape: Shape): Node {
  if (sameShape(x.shape, shape)) return x;
  const missing = shape.length - x.shape.length;
  const lifted = missing > 0 ? reshape(x, [...new Array<number>(missing).fill(1), ...x.shape]) : x;
  return expand(lifted, shape);
}

/** Puts axes of size 1 at `axes` (sorted, counted in the result). */
export function insertAxes(x: Node, axes: readonly number[]): Node {
  const shape = [...x.shape];
  for (const axis of axes) shape.splice(axis, 0, 1);
  return reshape(x, shape);
}

/** Sums x down to `shape`: the reverse of a broadcast. */
export function sumTo(x: Node, shape: Shape): Node {
  if (sameShape(x.shape, shape)) return x;
  const missing = x.shape.length - shape.length;
  const axes: number[] = [];
  for (let i = 0; i < x.shape.length; i++)
    if (i < missing || (shape[i - missing] === 1 && x.shape[i] !== 1)) axes.push(i);
  return reshape(reduce(x, 'sum', axes), shape);
}

/** Reverses the order along `axes`. */
export function flip(x: Node, axes: readonly number[]): Node {
  const backwards = x.shape.map((n, i) => axes.includes(i) && n > 1);
  if (!backwards.includes(true)) return x;
  return slice(
    x,
    x.shape.map((n, i) => (backwards[i] ? n - 1 : 0)),
    x.shape,
    x.shape.map((_, i) => (backwards[i] ? -1 : 1)),
  );
}

/** The element before each one in the order of a scan; `first` has none before it. */
export function previous(x: Node, axis: number, reverse: boolean, first: number): Node {
  const n = x.shape[axis]!;
  if (n === 0) return x;
  const at = (value: number): number[] => x.shape.map((_, i) => (i === axis ? value : 0));
  const kept = slice(
    x,
    at(reverse ? 1 : 0),
    x.shape.map((size, i) => (i === axis ? n - 1 : size)),
    x.shape.map(() => 1),
  );
  return pad(kept, at(reverse ? 0 : 1), at(reverse ? 1 : 0), first);
}
