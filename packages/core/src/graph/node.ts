/**
 * Graph nodes: what lazy recording appends, and what a flush turns into buffers.
 *
 * A Node is an ordinary object made by `makeNode` in build.ts (after the primitive's shape rule has accepted its
 * inputs). It is not a Tensor: users hold Tensors, which are handles on nodes. Nodes never own memory by themselves;
 * `storage` points at a counted buffer once the node is realised.
 *
 * Two counts say who needs a node. `handles` counts those who may ask for its value later: Tensors, and nodes that keep
 * their history for a gradient. `uses` counts recorded nodes that compute from it and are not realised yet. Both are kept
 * by counting.ts; when both are zero the node is dead, its storage is given back and its own sources are let go.
 */
import type { DType } from '../shape/dtype.ts';
import type { Shape, View } from '../shape/view.ts';
import type { Attrs, PrimitiveName } from './attrs.ts';

/** Device memory as the graph sees it: something that can be shared by several nodes and given back. */
export interface NodeStorage {
  /** The counted buffer (engine/pool.ts). Views of one buffer share it. */
  readonly buffer: StorageBuffer;
  /** How the node's shape maps to elements of the buffer: strides and offset in elements. */
  readonly view: View;
}

/** The little that the graph needs of a counted buffer. A new buffer has a count of one. */
export interface StorageBuffer {
  readonly id: number;
  retain(): void;
  release(): void;
}

/** Where `backward()` puts the gradient of a leaf; shared by the leaf's node and its Tensor. */
export interface GradientSlot {
  grad: Handle | null;
}

/** Something that holds a node by name: Tensor implements it. */
export interface Handle {
  node: Node;
  readonly disposed: boolean;
}

/**
 * Whether a node counts in its sources. `floating`: nobody needs the node yet, it counts nowhere. `uses` and `handles`:
 * it adds one to that count of each source. `dead`: it was needed and no longer is; it cannot be used again.
 */
export type EdgeState = 'floating' | 'uses' | 'handles' | 'dead';

/** One recorded operation. Generic over the primitive so that `attr` has its type. */
export interface Node<P extends PrimitiveName = PrimitiveName> {
  readonly id: number;
  readonly op: P;
  readonly attr: Attrs[P];
  /** Inputs. Emptied when the node is realised, unless it keeps its history (`requiresGrad`, or `pins` not zero). */
  src: readonly Node[];
  readonly shape: Shape;
  readonly dtype: DType;
  /** Set once the value is in memory. Leaves ('buffer') have it from the start; 'scalar' leaves never do. */
  storage: NodeStorage | null;
  /** Live Tensor handles plus history edges. Zero means: nobody can ask for this value by name. */
  handles: number;
  /** Unrealised nodes without history that compute from this one. */
  uses: number;
  edges: EdgeState;
  /** True if a gradient may flow through this node to a leaf made with requiresGrad. */
  requiresGrad: boolean;
  /** Bit set of the active tapes and gradient functions that recorded this node; not zero means history is kept. */
  pins: number;
  /** For leaves made with requiresGrad. */
  slot: GradientSlot | null;
  /** Scratch of whichever walk is running: `mark` is that walk's own number (`nextMark`), `index` is valid only under it. */
  mark: number;
  index: number;
}

let marks = 0;

/** A number no node has been marked with. */
export function nextMark(): number {
  return ++marks;
}

/** True if the node is of this primitive; narrows `attr`. */
export function isOp<P extends PrimitiveName>(node: Node, op: P): node is Node<P> {
  return node.op === op;
}
