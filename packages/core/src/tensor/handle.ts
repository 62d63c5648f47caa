/**
 * TensorHandle, the object behind every Tensor: a counted handle on a node. `wrap` makes one, `nodeOf` gives its node.
 *
 * Lifetime, assignment, reading and conversion of host data are here. Operations are not: methods/methods.ts adds them to this class's prototype,
 * so that operations can import `wrap` without a cycle.
 */
/// <reference lib="esnext.disposable" preserve="true" />
import {
  type GradientSlot,
  type Node,
  release,
  rename,
  retain,
  type TrackedHandle,
  type Watched,
} from '../graph/node.ts';
import { identity, stopGradient } from '../graph/primitives.ts';
import { backstop, isLeaf, releasedSlot, trackHandle } from '../graph/recorder.ts';
import { adopt, composingDepth, isHandle, opName } from '../graph/scope.ts';
import { graph } from '../graph/state.ts';
import { transactions } from '../graph/transactions.ts';
import { registerCommon } from '../primitives/common.ts';
import { readNode, readNodeSync } from '../runtime/reading.ts';
import { deviceOf } from '../runtime/runtime.ts';
import { type DType, isFloat, type TypedArray, DTypeError } from '@polygrad/compiler/shape/dtype';
import { ArgumentError, OperationError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { floatsOf, getElement } from '@polygrad/compiler/shape/host';
import { handleBrand, shown } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { sameShape, type Shape, sizeOf } from '@polygrad/compiler/shape/view';
import type { NestedValues, Tensor } from './types.ts';

// Tensors hold nodes, so nodes need their common primitives now.
registerCommon();

/**
 * A tensor was used after `dispose()` or after its scope ended.
 *
 * @example
 * const t = ones([2]);
 * t.dispose();
 * t.add(1); // throws DisposedError
 */
export class DisposedError extends OperationError {
  override readonly name: string = 'DisposedError';
  /** The operation that made the tensor. */
  readonly madeBy: string;

  constructor(op: string, handle: TensorHandle) {
    const { node, label } = handle;
    const where = handle.origin ? `\nIt was made here:\n${handle.origin}` : '';
    super(
      op,
      say`tensor used after it was disposed: ${node.dtype} ${showShape(node.shape)} made by ${label}; return it from its scope, keep() it, or dispose it later${where}`,
      'DISPOSED',
    );
    this.madeBy = label;
  }
}

/** A switch for debugging, for the whole program and not one per runtime. */
let withOrigins = false;

/**
 * Makes every tensor remember the stack trace of the call that made it, for messages. Slow; for finding a lifetime bug.
 *
 * @throws ArgumentError unless `on` is a boolean
 *
 * @example
 * traceOrigins(true);
 * const t = ones([2]);
 * t.dispose();
 * // t.add(1) would now throw a DisposedError that shows where `t` was made
 * traceOrigins(false);
 */
export function traceOrigins(on: boolean): void {
  if (typeof on !== 'boolean')
    throw new ArgumentError('traceOrigins', say`bad on: ${shown(on)}; must be true or false`);
  withOrigins = on;
}

/** The class of all Tensors. */
export class TensorHandle implements TrackedHandle {
  declare node: Node;
  declare disposed: boolean;
  declare watched: Watched | null;
  declare kept: boolean;
  declare stamp: number;
  declare assigned: boolean;
  /** Name of the operation that made the tensor. */
  declare readonly label: string;
  /** Stack trace, while traceOrigins is on. */
  declare readonly origin: string;

  constructor(node: Node) {
    this.node = node;
    this.disposed = false;
    this.watched = null;
    this.kept = false;
    this.stamp = 0;
    this.assigned = false;
    const { label } = graph;
    this.label = label === '' ? node.op : label;
    this.origin = withOrigins ? (new Error().stack ?? '') : '';
  }

  get shape(): Shape {
    return this.node.shape;
  }

  get ndim(): number {
    return this.node.shape.length;
  }

  get size(): number {
    return sizeOf(this.node.shape);
  }

  get dtype(): DType {
    return this.node.dtype;
  }

  get requiresGrad(): boolean {
    return this.node.requiresGrad;
  }

  set requiresGrad(wanted: boolean) {
    if (wanted === this.node.requiresGrad) return;
    const node = nodeOf(this as unknown as Tensor, 'requiresGrad');
    if (wanted && !isFloat(node.dtype)) {
      throw new DTypeError(
        'requiresGrad',
        say`dtype not accepted: ${node.dtype}; only floating-point tensors have gradients; convert with cast()`,
        [node.dtype],
      );
    }
    // Other handles of the same node keep their history.
    if (!wanted) this.rebind(stopGradient(node), null);
    else this.rebind(node.handles + node.uses > 1 ? identity(node) : node, { grad: null });
  }

  get grad(): Tensor | null {
    return (this.node.slot?.grad ?? null) as Tensor | null;
  }

  set grad(value: Tensor | null) {
    const { node } = this;
    if (!isLeaf(node)) {
      throw new OperationError(
        'grad',
        'this tensor is no leaf with requiresGrad, so it has no gradient to set; set requiresGrad = true first',
      );
    }
    const old = node.slot.grad as TensorHandle | null;
    if (old === (value as unknown)) return;
    node.slot.grad = value;
    old?.dispose();
  }

  /** Points the handle at another node; `slot` makes it a requiresGrad leaf. */
  rebind(node: Node, slot: GradientSlot | null): void {
    if (slot !== null) {
      node.slot = slot;
      node.requiresGrad = true;
    }
    if (node === this.node) return;
    transactions.rehearsal?.add(this);
    graph.observer?.assign(this);
    rename(this, node);
    trackHandle(this);
  }

  assign(value: Tensor): Tensor {
    const target = nodeOf(this as unknown as Tensor, 'assign');
    const node = nodeOf(value, 'assign');
    if (!sameShape(target.shape, node.shape)) {
      throw new ShapeError(
        'assign',
        say`shapes differ: ${showShape(target.shape)} and ${showShape(node.shape)}; reshape or broadcast the value first`,
        [target.shape, node.shape],
      );
    }
    if (target.dtype !== node.dtype) {
      throw new DTypeError(
        'assign',
        say`dtypes differ: ${target.dtype} and ${node.dtype}; convert the value with cast()`,
        [target.dtype, node.dtype],
      );
    }
    graph.placeholders?.checkAssign(this, node);
    // A leaf keeps its gradient and stays a leaf, without making the value's own node one. A released history is of no use to who keeps the value.
    const leaf = isLeaf(target);
    const next = leaf || node.slot === releasedSlot ? stopGradient(node) : node;
    if (next !== target) transactions.assign(this, next);
    this.rebind(next, leaf ? target.slot : null);
    return this as unknown as Tensor;
  }

  get device(): string {
    return deviceOf(nodeOf(this as unknown as Tensor, 'device'));
  }

  // Reading: the only operations of tensors that wait for the engine.

  async data(): Promise<TypedArray> {
    return readNode(nodeOf(this as unknown as Tensor, 'data'));
  }

  dataSync(): TypedArray {
    return readNodeSync(nodeOf(this as unknown as Tensor, 'dataSync'));
  }

  async array(): Promise<NestedValues> {
    const node = nestable('array', nodeOf(this as unknown as Tensor, 'array'));
    return nest(await readNode(node), node);
  }

  arraySync(): NestedValues {
    const node = nestable('arraySync', nodeOf(this as unknown as Tensor, 'arraySync'));
    return nest(readNodeSync(node), node);
  }

  async item<T extends number | bigint = number>(): Promise<T> {
    const node = alone('item', nodeOf(this as unknown as Tensor, 'item'));
    return element<T>(await readNode(node), node);
  }

  itemSync<T extends number | bigint = number>(): T {
    const node = alone('itemSync', nodeOf(this as unknown as Tensor, 'itemSync'));
    return element<T>(readNodeSync(node), node);
  }

  async print(): Promise<void> {
    const node = nodeOf(this as unknown as Tensor, 'print');
    const { shape, dtype } = node;
    const [data, { textOf }] = await Promise.all([readNode(node), import('./printed.ts')]);
    console.log(textOf(shape, (i) => getElement(data, dtype, i), floatsOf(dtype)));
  }

  dispose(): void {
    if (this.disposed) return;
    this.disposed = true;
    graph.live.tensors--;
    graph.observer?.disposed(this);
    if (this.watched) {
      // V8 keeps what was registered until it collects the old generation.
      this.watched.node = null;
      backstop.unregister(this);
    }
    if (this.assigned) transactions.forget(this);
    const { node } = this;
    if (node.slot !== null && isLeaf(node) && node.handles === 1) (node.slot.grad as TensorHandle | null)?.dispose();
    release(node);
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  toString(): string {
    return `Tensor ${this.node.dtype} ${showShape(this.node.shape)}${this.disposed ? ' (disposed)' : ''}`;
  }

  /** Shape and dtype without values: logs and JSON only show which tensor it is. */
  toJSON(): string {
    return this.toString();
  }

  /** Text in a template. Throws as an operand of JavaScript: a number would be NaN, no comparison true, and + would join texts. */
  [Symbol.toPrimitive](hint: string): string {
    if (hint === 'string') return this.toString();
    throw new ArgumentError(
      'tensor',
      say`a ${this.toString()} is no number: read its value first, with await t.item(), or compute with t.add(1) and the like; in texts it is \`\${t}\``,
    );
  }
}

Object.defineProperty(TensorHandle.prototype, handleBrand, { value: true });
// What messages call it.
Object.defineProperty(TensorHandle, 'name', { value: 'Tensor' });

/** A new Tensor for a node. It lives until its scope ends, it is disposed, or it is garbage collected. */
export function wrap(made: Node): Tensor {
  const node = graph.placeholders?.tracked(made) ?? made;
  retain(node);
  graph.live.tensors++;
  const handle = new TensorHandle(node);
  graph.observer?.made(handle);
  adopt(handle);
  return handle as unknown as Tensor;
}

/** The node of a tensor that is still alive. Throws DisposedError. */
export function nodeOf(tensor: Tensor, op: string = ''): Node {
  const handle = tensor as unknown as TensorHandle;
  let node: Node | null = null;
  try {
    node = graph.operand?.(handle) ?? (handle?.disposed === false ? handle.node : null);
  } catch {
    // A revoked proxy, or one that throws.
  }
  // With a name it is a tensor argument, not an operand of an operation, so autocast does not apply.
  if (node === null) throw notAlive(tensor, op);
  return op === '' && graph.casting !== null ? graph.casting(node) : node;
}

/** The error for a value that is no tensor, or one that was disposed. */
function notAlive(tensor: unknown, op: string): OperationError {
  // The name of the caller if it gave one, or of the operation in progress.
  const name = op !== '' && composingDepth() === 0 ? op : opName(op || (isHandle(tensor) ? tensor.node.op : 'tensor'));
  if (isHandle(tensor)) return new DisposedError(name, tensor as TensorHandle);
  return new OperationError(name, say`not a tensor: ${shown(tensor)}; make one with tensor()`);
}

/**
 * True if the value is a Tensor.
 *
 * @example
 * isTensor(ones([2])); // true
 */
export function isTensor(value: unknown): value is Tensor {
  return isHandle(value);
}

export { uploadNode } from '../runtime/upload.ts';

/** Elements as nested arrays; the element itself for shape []. */
export function nest(
  data: TypedArray,
  { shape, dtype }: { readonly shape: Shape; readonly dtype: DType },
): NestedValues {
  let at = 0;
  const build = (axis: number): NestedValues => {
    if (axis === shape.length) return getElement(data, dtype, at++);
    const length = shape[axis]!;
    // V8 keeps an array that is made with more places in a hash table, of ten times the memory.
    const row: NestedValues[] = length > mostPlaces ? [] : new Array(length);
    for (let i = 0; i < length; i++) row[i] = build(axis + 1);
    return row;
  };
  return build(0);
}

const mostPlaces = 2 ** 25;

/** Most elements of nested arrays: above, V8 ends the process where it cannot make an array. */
const mostNested = 2 ** 26;

/** The node, if it may become nested arrays. Throws ShapeError otherwise. */
function nestable(op: string, node: Node): Node {
  const { shape } = node;
  if (sizeOf(shape) <= mostNested) return node;
  throw new ShapeError(
    op,
    say`too many elements: shape ${showShape(shape)} has ${sizeOf(shape)}, nested arrays at most ${mostNested}; use data()`,
    [shape],
  );
}

/** The node, if it has exactly one element. Throws ShapeError otherwise. */
export function alone(op: string, node: Node): Node {
  if (sizeOf(node.shape) !== 1) {
    throw new ShapeError(
      op,
      say`not one element: ${showShape(node.shape)} has ${sizeOf(node.shape)}; use data() or array()`,
      [node.shape],
    );
  }
  return node;
}

/** The only element, as item() returns it. */
export function element<T extends number | bigint>(data: TypedArray, { dtype }: { readonly dtype: DType }): T {
  const value = getElement(data, dtype, 0);
  return (typeof value === 'boolean' ? Number(value) : value) as T;
}
