/**
 * How nodes are made: `makeNode`, which checks a primitive's sources by its rules; `record`, where shape and dtype are known; and the
 * primitives as functions on nodes, for rules and operations: `add(a, b)` instead of `makeNode('add', [a, b], null)`.
 *
 * These functions leave out nodes that change nothing. A movement of a realised source becomes a view of the same buffer where strides can
 * express it. Operands broadcast as node.ts says; dtypes must already agree.
 */
import { showAs } from '#shown-as';
import { mostElements } from '@polygrad/compiler/shape/axes';
import { type DType, isSmallFloat } from '@polygrad/compiler/shape/dtype';
import { ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { normalize } from '@polygrad/compiler/shape/host';
import { say } from '@polygrad/compiler/shape/shown';
import {
  expandView,
  isRowMajor,
  permuteView,
  reshapeView,
  sameShape,
  type Shape,
  sliceView,
  type View,
} from '@polygrad/compiler/shape/view';
import {
  type Attrs,
  type EdgeState,
  type GradientSlot,
  isOp,
  keepsHistory,
  type Node,
  type NodeStorage,
  type PrimitiveName,
} from './node.ts';
import {
  type AnyDefinition,
  type BinaryOperation,
  registerDefinition,
  type CommonPrimitive,
  type DefinedPrimitive,
  type Definition,
  definitionOf,
  type UnaryOperation,
} from './definition.ts';
import { releasedSlot } from './recorder.ts';
import { shareRange } from './known-range.ts';
import { opName, track } from './scope.ts';
import { graph } from './state.ts';

// Making nodes.
//
// A new node is floating: it is counted in its sources only once a handle, or another needed node, holds it (node.ts). So give a new node a
// handle before you release handles that it depends on.

/**
 * Records one node. Throws ShapeError or DTypeError in the name of the current operation.
 *
 * @param op the primitive: its name, or its definition if it has one (primitives/)
 * @param src its inputs, as node.ts describes
 * @param attr its attributes; kept, so do not change them afterwards
 */
export function makeNode<P extends CommonPrimitive>(op: P, src: readonly Node[], attr: Attrs[P]): Node<P>;
export function makeNode<P extends DefinedPrimitive>(op: Definition<P>, src: readonly Node[], attr: Attrs[P]): Node<P>;
export function makeNode(op: UnaryOperation | BinaryOperation, src: readonly Node[], attr: null): Node;
export function makeNode(op: CommonPrimitive | AnyDefinition, src: readonly Node[], attr: Attrs[PrimitiveName]): Node {
  let definition = op as Definition<PrimitiveName>;
  if (typeof op === 'string') definition = definitionOf<PrimitiveName>(op);
  else registerDefinition(op);
  const { infer } = definition;
  const dtype = infer.dtype(src, attr, definition.op);
  const shape = infer.shape(src, attr, definition.op);
  // A result that only lives inside a kernel may have more elements than memory holds. But its axes may not be longer, and its size must be
  // a safe integer.
  let size = 1;
  let longest = 0;
  for (let axis = 0; axis < shape.length; axis++) {
    const n = shape[axis]!;
    size *= n;
    if (n > longest) longest = n;
  }
  if (!(size <= Number.MAX_SAFE_INTEGER && longest <= mostElements))
    throw new ShapeError(
      opName(definition.op),
      say`too many elements: ${size} in ${showShape(shape)}; make sizes smaller`,
      [shape],
    );
  return recordKind(definition.id, definition.op, src, attr, shape, dtype);
}

/** Records a node of the same primitive as an existing one. */
export function makeAgain<P extends PrimitiveName>(node: Node<P>, src: readonly Node[], attr: Attrs[P]): Node<P> {
  return (makeNode as (op: Definition<P>, src: readonly Node[], attr: Attrs[P]) => Node<P>)(
    definitionOf(node.op),
    src,
    attr,
  );
}

/** Its constructor sets all fields: fields with initial values would be set by a function of their own. */
class Recorded<P extends PrimitiveName> implements Node<P> {
  declare readonly id: number;
  declare readonly kind: number;
  declare readonly op: P;
  declare readonly attr: Attrs[P];
  declare src: readonly Node[];
  declare readonly shape: Shape;
  declare readonly dtype: DType;
  declare storage: NodeStorage | null;
  declare handles: number;
  declare uses: number;
  declare edges: EdgeState;
  declare requiresGrad: boolean;
  declare pins: number;
  declare slot: GradientSlot | null;
  declare mark: number;
  declare index: number;

  constructor(kind: number, op: P, src: readonly Node[], attr: Attrs[P], shape: Shape, dtype: DType) {
    this.id = ++graph.newest;
    this.kind = kind;
    this.op = op;
    this.attr = attr;
    this.src = src;
    this.shape = shape;
    this.dtype = dtype;
    this.storage = null;
    this.handles = 0;
    this.uses = 0;
    this.edges = 'floating';
    this.requiresGrad = false;
    this.pins = 0;
    this.slot = null;
    this.mark = 0;
    this.index = 0;
  }
}

// In consoles. printGraph shows the sources too.
showAs(Recorded.prototype, ({ id, op, dtype, shape }) => `${op} ${dtype} ${showShape(shape)} #${id}`);

/**
 * A copy of the node with other sources, attributes and shape, for rules to look at; it is not recorded. It has the class of recorded nodes: an
 * engine of JavaScript runs rules slower for good once they have met objects of another form.
 */
export function unrecorded(
  { kind, op, dtype, storage }: Node,
  src: readonly Node[],
  attr: Attrs[PrimitiveName],
  shape: Shape,
): Node {
  const { newest } = graph;
  const node = new Recorded(kind, op, src, attr, shape, dtype);
  graph.newest = newest;
  node.storage = storage;
  return node;
}

/** Records a node whose shape and dtype are known to be right. */
export function record<P extends PrimitiveName>(
  op: P,
  src: readonly Node[],
  attr: Attrs[P],
  shape: Shape,
  dtype: DType,
): Node<P> {
  return recordKind(definitionOf(op).id, op, src, attr, shape, dtype);
}

/** The same where the number of the primitive's definition is known. */
export function recordKind<P extends PrimitiveName>(
  kind: number,
  op: P,
  src: readonly Node[],
  attr: Attrs[P],
  shape: Shape,
  dtype: DType,
): Node<P> {
  const node = new Recorded(kind, op, src, attr, shape, dtype);
  let fromLeaf = false;
  let released = false;
  let pins = 0;
  // stopGradient hides the gradient of its value, but a custom gradient's inputs follow it.
  for (let i = op === 'stopGradient' ? 1 : 0; i < src.length; i++) {
    const source = src[i]!;
    if (source.requiresGrad)
      if (source.slot === releasedSlot) released = true;
      else fromLeaf = true;
    pins |= source.pins;
  }
  if (fromLeaf || released || pins !== 0) track(node, fromLeaf, released, pins);
  graph.pendingNodes++;
  return node;
}

/** A leaf for memory that holds its value; takes over one reference of the buffer. */
export function bufferNode(storage: NodeStorage, shape: Shape, dtype: DType): Node<'buffer'> {
  const node = record('buffer', [], { shape, dtype }, shape, dtype);
  node.storage = storage;
  return node;
}

// Leaves

/**
 * A number as kernels take it. 64-bit integers are bigints only if a number would be inexact, so that equal values compare equal. 16-bit
 * floats are rounded in one step, not to float32 first.
 */
export function numberOf(value: number | bigint, dtype: DType): number | bigint {
  if (dtype === 'int64' || dtype === 'uint64') {
    const whole = normalize(dtype, value) as bigint;
    return whole > -safe && whole < safe ? Number(whole) : whole;
  }
  return isSmallFloat(dtype) || typeof value === 'bigint' ? normalize(dtype, value) : value;
}

const safe = 2n ** 53n;

/** A constant of the kernel, filling `shape`. */
export function constant(value: number | bigint, dtype: DType, shape: Shape = []): Node<'constant'> {
  return record('constant', [], { value: numberOf(value, dtype), shape, dtype }, shape, dtype);
}

/** A number bound at each run: 0-d, not part of the plan. */
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

/** Gives a movement of a realised node its source's buffer under another view; null: strides cannot express it. */
function aliased<P extends PrimitiveName>(node: Node<P>, x: Node, view: View | null): Node<P> {
  if (x.storage !== null && view !== null) {
    node.storage = { buffer: x.storage.buffer, view };
    if (!keepsHistory(node)) node.src = [];
    if (node.op !== 'slice') shareRange(node, x);
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

/** The same value as a separate node: a place where differentiation can start. */
export function identity(x: Node): Node {
  return aliased(makeNode('reshape', [x], { shape: x.shape }), x, x.storage?.view ?? null);
}

/** The same value without its history. */
export function stopGradient(x: Node): Node {
  return aliased(makeNode('stopGradient', [x], null), x, x.storage?.view ?? null);
}

/** The same value, for recomputation once `when` is in memory. */
export function after(x: Node, when: Node): Node {
  return makeNode('after', [x, when], null);
}

/** The same value, in memory in row-major order. */
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

/** The element before each one in scan order; before the first one, `first`. */
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
