/**
 * Graph nodes: recorded operations, which a flush computes into buffers; and the counts that say which nodes are needed.
 *
 * `makeNode` in primitives.ts makes nodes, after the primitive's rules have accepted the sources. A node is not a Tensor: users hold
 * Tensors, which are handles on nodes. Once a node is realised, its `storage` names a counted buffer.
 *
 * Two counts say whether a node is needed. `handles` counts those who may read its value later: Tensors, and nodes that keep
 * their history for a gradient. `uses` counts recorded nodes that compute from it and are not realised yet. When both are
 * zero the node is dead: its storage is released and it releases its sources.
 *
 * A Tensor holds its node (`retain`, `release`). A needed node holds its sources, until it is realised without history
 * (`realise`) or dead.
 */
import { told } from '#shown-as';
import { fault } from '@polygrad/compiler/shape/errors';
import type { DType } from '@polygrad/compiler/shape/dtype';
import type { Shape, View } from '@polygrad/compiler/shape/view';

// The graph primitives that every program carries, with their attributes. The files that define other primitives (primitives/) add them to
// these interfaces.
//
// Everything else about a primitive is in its definition (graph/definition.ts). An operation that can be written with primitives belongs in
// `ops/`, not here.
//
// Elementwise primitives (unary, binary, where, fma) broadcast like NumPy: sources of different shapes align at the trailing axes
// and axes of size 1 (or missing ones) stretch. Their sources have one dtype (except where's condition); dtypes never mix, `cast` is
// explicit. All other primitives take shapes exactly as described. Any axis may have size 0.

/** Functions of one value that every program carries. Definitions add theirs. */
export interface UnaryAttrs extends CommonUnaryAttrs {}
/** Functions of two values that every program carries. Definitions add theirs. */
export interface BinaryAttrs extends CommonBinaryAttrs {}
// biome-ignore format: a table of operations reads better grouped
type CommonUnaryAttrs = Record<
  'neg' | 'not' | 'abs' | 'sign' | 'sqrt' | 'rsqrt' | 'reciprocal' | 'floor' | 'exp' | 'log' | 'isNaN', null>;
// biome-ignore format: a table of operations reads better grouped
type CommonBinaryAttrs = Record<
  | 'add' | 'sub' | 'mul' | 'div' | 'idiv' | 'irem' | 'maximum' | 'minimum'
  | 'and' | 'or' | 'xor' | 'shl' | 'shr' | 'lt' | 'le' | 'eq', null>;

/** Attributes of `conv`. Arrays have one entry per spatial axis. */
export interface ConvAttr {
  readonly stride: readonly number[];
  /** Zeros added before and after, may be negative (cropping). */
  readonly padLow: readonly number[];
  readonly padHigh: readonly number[];
  /** Zeros inserted between elements of the input (transposed convolution) and of the kernel (dilation). */
  readonly lhsDilation: readonly number[];
  readonly rhsDilation: readonly number[];
  /** Groups of features; lhs [N, C, ...], rhs [O, C / groups, ...], result [N, O, ...]. Correlation: the kernel is not flipped. */
  readonly groups: number;
  /**
   * Groups of the batch, which the gradient of a grouped convolution by its kernel needs. The batch of lhs is split into this many groups;
   * group j is convolved with slice j of rhs's O. Result [N / batchGroups, O, ...]. 1 in ordinary use, and where groups > 1.
   */
  readonly batchGroups: number;
}

/** Attributes of common primitives. All arrays are frozen plain number arrays. */
export interface CommonAttrs extends CommonUnaryAttrs, CommonBinaryAttrs {
  // leaves
  /** Realised data from outside: it has storage from the start. */
  buffer: { readonly shape: readonly number[]; readonly dtype: DType };
  /** A number bound at each run: 0-d, not part of the plan key. Its value never changes: a new value is a new node. */
  scalar: { readonly value: number | bigint; readonly dtype: DType };
  /** A number baked into kernels, the same for every element. bool is 0 or 1. */
  constant: { readonly value: number | bigint; readonly shape: readonly number[]; readonly dtype: DType };
  /** 0, 1, 2 ... of shape [length], int32. */
  iota: { readonly length: number };
  /**
   * Random bits (uint32). Element i (row-major) is the first word of Threefry-2x32-20 for counter (i, 0); src has the key, two uint32 scalars.
   * Such nodes are never merged. `drawn`: the key came from the generator, so every call has other bits. A key given by the user means
   * the same bits wherever it is used.
   */
  randomBits: { readonly shape: readonly number[]; readonly drawn?: boolean };
  // elementwise besides unary and binary
  where: null;
  cast: { readonly dtype: DType };
  bitcast: { readonly dtype: DType };
  // reductions: axes ascending; the result has none of them (for keepDims, operations reshape it)
  /** `ties` is for gradients of max and min: 'share' divides the gradient equally among equal elements, 'first' gives all to the first. */
  reduce: {
    readonly op: 'sum' | 'prod' | 'max' | 'min';
    readonly axes: readonly number[];
    readonly ties: 'share' | 'first';
  };
  /** The int32 row-major position over `axes` of the first extreme; of the first NaN if there is one. */
  argReduce: { readonly op: 'max' | 'min'; readonly axes: readonly number[] };
  // movement: index arithmetic only
  reshape: { readonly shape: readonly number[] };
  permute: { readonly axes: readonly number[] };
  /** Broadcast of size-1 axes to `shape` of the same rank. */
  expand: { readonly shape: readonly number[] };
  /** Per axis start, number of elements, step (step may be negative). */
  slice: { readonly start: readonly number[]; readonly length: readonly number[]; readonly step: readonly number[] };
  /** Elements of `value` before and after each axis; never negative. */
  pad: { readonly low: readonly number[]; readonly high: readonly number[]; readonly value: number | bigint };
  concat: { readonly axis: number };
  /**
   * Sliding windows over the last `size.length` axes: [..., H, W] -> [..., outH, outW, kh, kw]. Linear; transpose of `fold`.
   */
  window: {
    readonly size: readonly number[];
    readonly stride: readonly number[];
    readonly dilation: readonly number[];
  };
  /** Sum of windows back to `spatial`: [..., outH, outW, kh, kw] -> [..., H, W], computed in gather form. */
  fold: {
    readonly size: readonly number[];
    readonly stride: readonly number[];
    readonly dilation: readonly number[];
    readonly spatial: readonly number[];
  };
  // contractions
  /**
   * Sums products over the contracted axes; paired axes have equal sizes. Result [batch..., lhs free..., rhs free...]. Batch axes are in
   * the order of lhsBatch, free axes (all others) in the operands' own order.
   */
  dotGeneral: {
    readonly lhsBatch: readonly number[];
    readonly rhsBatch: readonly number[];
    readonly lhsContract: readonly number[];
    readonly rhsContract: readonly number[];
  };
  conv: ConvAttr;
  // barriers
  /** Same value as src[0], no gradient. Further sources exist only for a custom gradient and are not read. */
  stopGradient: null;
  /**
   * Same value as src[0], for recomputation: not merged with src[0], and nothing is computed from it until
   * src[1] is in memory. src[1] may have any shape and dtype.
   */
  after: null;
  /** Same value, must be materialised in row-major order. */
  contiguous: null;
}

/** Attributes by primitive. */
export interface Attrs extends CommonAttrs, UnaryAttrs, BinaryAttrs {}

export type PrimitiveName = keyof Attrs;

/** Where the value of a realised node lies in device memory. */
export interface NodeStorage {
  /** The counted buffer (engine/pool.ts). Views of one buffer share it. */
  readonly buffer: StorageBuffer;
  /** How the node's shape maps to elements of the buffer: strides and offset in elements. */
  readonly view: View;
}

/** What the graph needs of a reference-counted buffer. A new buffer has a count of one. */
export interface StorageBuffer {
  readonly id: number;
  retain(): void;
  release(): void;
}

/** Where `backward()` puts the gradient of a leaf; shared by the leaf's node and its Tensor. */
export interface GradientSlot {
  grad: Handle | null;
}

/** Something that names a node: Tensor implements it. */
export interface Handle {
  node: Node;
  readonly disposed: boolean;
}

/** How many Tensors of a graph exist. */
export interface Live {
  tensors: number;
}

/** What the finalisation backstop drops for a handle that was garbage collected. */
export interface Watched {
  /** The node that the handle named last. Null where it was disposed. */
  node: Node | null;
  readonly live: Live;
}

/** A handle as the recorder tracks it (recorder.ts). */
export interface TrackedHandle extends Handle {
  /** Not null once the finalisation backstop watches the handle. */
  watched: Watched | null;
  /** True once `keep` removed it from every scope. */
  kept: boolean;
  /** Number of the scope exit that it survives. */
  stamp: number;
  /** True while a failing flush would roll back an assignment of it (transactions.ts). */
  assigned?: boolean;
  dispose(): void;
}

/**
 * Whether a node is counted in its sources. `floating`: not needed yet, counted nowhere. `uses` and `handles`:
 * it adds one to that count of each source. `body`: of the body of a loop, counted nowhere whatever names it. `dead`: no longer needed; it cannot
 * be used again.
 */
export type EdgeState = 'floating' | 'uses' | 'handles' | 'body' | 'dead';

/** One recorded operation. Generic over the primitive so that `attr` has its type. */
export interface Node<P extends PrimitiveName = PrimitiveName> {
  readonly id: number;
  readonly op: P;
  /** The number of its primitive's definition (definition.ts). */
  readonly kind: number;
  readonly attr: Attrs[P];
  /** Inputs. Emptied when the node is realised, unless it keeps its history (`requiresGrad`, or `pins` not zero). */
  src: readonly Node[];
  readonly shape: Shape;
  readonly dtype: DType;
  /** Set once the value is in memory. Leaves ('buffer') have it from the start; 'scalar' leaves never do. */
  storage: NodeStorage | null;
  /** Live Tensor handles plus history edges. Zero: no code can read this value by name. */
  handles: number;
  /** Unrealised nodes without history that compute from this one. */
  uses: number;
  edges: EdgeState;
  /** True if a gradient may flow through this node to a leaf made with requiresGrad. */
  requiresGrad: boolean;
  /** Bit set of the active tapes and gradient functions that recorded this node; if not zero, it keeps its history. */
  pins: number;
  /** For leaves made with requiresGrad. */
  slot: GradientSlot | null;
  /** Scratch of the current walk: `mark` is the walk's number (`nextMark`), `index` is valid only under it. */
  mark: number;
  index: number;
}

let marks = 0;

/** A number that is the mark of no node yet, for one walk. */
export function nextMark(): number {
  return ++marks;
}

/** True if the node is of this primitive; narrows `attr`. */
export function isOp<P extends PrimitiveName>(node: Node, op: P): node is Node<P> {
  return node.op === op;
}

const noNodes: readonly Node[] = [];

/** True if the node must keep its sources after it is realised. A leaf has no history. */
export function keepsHistory(node: Node): boolean {
  return node.pins !== 0 || (node.requiresGrad && node.slot === null);
}

/** Adds a handle. Throws Error for a node that is dead. */
export function retain(node: Node): void {
  node.handles++;
  if (node.edges === 'floating') countInSources(node);
  else if (node.edges === 'dead') throw wrongLifetime(node, 'before it was retained');
}

function wrongLifetime({ id, op }: Node, when: string): Error {
  return fault('recorder', told && `node ${id} (${op}) was released ${when}`);
}

/** Makes a floating node needed: it counts in its sources from now on, and floating sources become needed too. */
function countInSources(start: Node): void {
  let node: Node | undefined = start;
  let stack: Node[] | null = null;
  while (node !== undefined) {
    const { src } = node;
    // `keepsHistory`, without a call for each node.
    const history = node.pins !== 0 || (node.requiresGrad && node.slot === null);
    node.edges = history ? 'handles' : 'uses';
    // A leaf took over a reference of its buffer when it was made; a view of another node's buffer adds one.
    if (node.storage !== null && node.op !== 'buffer') node.storage.buffer.retain();
    for (let i = 0; i < src.length; i++) {
      const source = src[i]!;
      if (source.edges === 'dead') throw wrongLifetime(source, `while node ${node.id} (${node.op}) needs it`);
      if (source.edges === 'floating') {
        source.edges = 'uses';
        (stack ??= []).push(source);
      }
      if (history) source.handles++;
      else source.uses++;
    }
    node = stack?.pop();
  }
}

/** Has a handle name another node. */
export function rename(handle: TrackedHandle, node: Node): void {
  retain(node);
  const old = handle.node;
  handle.node = node;
  if (handle.watched) handle.watched.node = node;
  release(old);
}

/** Keeps a needed node alive without a handle, and its memory from being overwritten. */
export function holdUse(node: Node): void {
  node.uses++;
}

/** Undoes `holdUse`. */
export function dropUse(node: Node): void {
  if (--node.uses === 0 && node.handles === 0) free(node);
}

/** Removes a handle. */
export function release(node: Node): void {
  if (--node.handles === 0 && node.uses === 0) free(node);
}

/** Frees a node that is no longer needed: releases its storage and its sources, and frees sources that nothing else needs. */
function free(start: Node): void {
  let node: Node | undefined = start;
  let stack: Node[] | null = null;
  while (node !== undefined) {
    const { edges, src } = node;
    node.edges = 'dead';
    if (node.storage !== null) {
      node.storage.buffer.release();
      node.storage = null;
    }
    if (src.length > 0 && edges !== 'dead') {
      node.src = noNodes;
      for (let i = 0; i < src.length; i++) {
        const source = src[i]!;
        if (edges === 'handles') source.handles--;
        else source.uses--;
        if (source.handles === 0 && source.uses === 0) (stack ??= []).push(source);
      }
    }
    node = stack?.pop();
  }
}

/**
 * Gives a node its storage: the runtime calls this once the value is in memory. Takes over one reference of the buffer. The node releases
 * its sources unless it keeps its history.
 */
export function realise(node: Node, storage: NodeStorage): void {
  // Realising another node just before may have released the last need for this one.
  if (node.edges === 'dead') {
    storage.buffer.release();
    return;
  }
  node.storage = storage;
  if (node.pins === 0 && (!node.requiresGrad || node.slot !== null)) dropSources(node);
}

/** Releases the sources of a realised node. */
function dropSources(node: Node): void {
  const { edges, src } = node;
  node.src = noNodes;
  if (edges !== 'uses' && edges !== 'handles') return;
  for (let i = 0; i < src.length; i++) {
    const source = src[i]!;
    if (edges === 'handles') source.handles--;
    else source.uses--;
    if (source.handles === 0 && source.uses === 0) free(source);
  }
}

/**
 * Ends the node's history (its tape ended, or backward() has used it). A realised node releases its sources;
 * a pending one keeps them for computing only.
 */
export function forgetHistory(node: Node): void {
  if (keepsHistory(node)) return;
  if (node.storage !== null) {
    dropSources(node);
    return;
  }
  if (node.edges !== 'handles') return;
  node.edges = 'uses';
  const { src } = node;
  for (let i = 0; i < src.length; i++) {
    src[i]!.handles--;
    src[i]!.uses++;
  }
}
