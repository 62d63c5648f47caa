/**
 * The captured graph of a flush: every node that its outputs need, numbered, and the integers that identify its structure.
 *
 * In: the requested nodes. Out: `nodes`, `leaves`, `outputs` and `key` of a CapturedGraph, from which plans are found or made.
 *
 * One iterative depth-first walk numbers the nodes (sources before users) and writes the key of the plan cache. Buffers are
 * numbered by first appearance: which leaves alias is part of the key, which buffers they are is not. A CapturedGraph is reused from
 * flush to flush, and holds nodes only between `collect` and `clear`.
 */
import { told } from '#shown-as';
import { fault } from '@polygrad/compiler/shape/errors';
import type { BufferPool, PoolBuffer } from '../../engine/pool.ts';
import { definitions } from '../../graph/definition.ts';
import { nextMark, type Node, type NodeStorage } from '../../graph/node.ts';
import { graph } from '../../graph/state.ts';
import { type DType, dtypeInfo } from '@polygrad/compiler/shape/dtype';
import { sizeOf } from '@polygrad/compiler/shape/view';
import { intsPerAxis, IntWriter } from './cache.ts';

/** What `collect` must know besides the outputs. */
export interface CaptureOptions {
  readonly pool: BufferPool;
  /** Dtypes the engine holds. */
  readonly dtypes: ReadonlySet<DType>;
  /** Bytes of one element of each dtype id in device memory. */
  readonly elementBytes: readonly number[];
  readonly bindAlign: number;
  /** True if outputs may overwrite leaves that no caller can read any more (donation). */
  readonly donate: boolean;
  /** True for an unrealised node that costs too much to recompute. Called only for nodes that may be needed later. */
  readonly keep: (node: Node) => boolean;
}

const leafKind = 1 << 30;

export class CapturedGraph {
  /** Nodes by local number, `count` of them, realised nodes ('leaves') and scalars included. */
  readonly nodes: (Node | undefined)[] = [];
  count = 0;
  /** Local numbers of realised nodes, by first appearance. */
  readonly leaves: IntWriter = new IntWriter(64);
  /** Local numbers of the outputs: the requested ones, then those kept for later. */
  readonly outputs: IntWriter = new IntWriter(64);
  /** Local numbers of leaves over which outputs may be written. */
  readonly donatable: IntWriter = new IntWriter(64);
  /** The structure as integers; the first `key.length` are valid. */
  readonly key: IntWriter = new IntWriter();
  /** Copies on this engine of leaves of other engines, by local number, below `#foreignEnd`. The list is never shortened, so flushes reuse it. */
  readonly #foreign: (NodeStorage | null)[] = [];
  #foreignEnd = 0;
  readonly #stack: (Node | undefined)[] = [];
  readonly #cursor: number[] = [];
  /** Edges to each node from inside the captured graph. */
  #edges = new Int32Array(256);
  /** The dtype written last and its number: consecutive nodes nearly always share it. */
  #dtype: DType | null = null;
  #dtypeId = 0;
  /** The pool of the previous walk. */
  #pool: BufferPool | null = null;
  /** True if the engine lacks the dtype of a node on the way, or its data. */
  #elsewhere = false;
  #mark = 0;
  #bufferCount = 0;
  /** Nodes to be computed that a caller may still read. */
  #needed = 0;

  /** Walks from the requested nodes, which have no storage yet. False if the engine lacks a dtype, or data that other engines hold. */
  collect(wanted: readonly Node[], options: CaptureOptions): boolean {
    this.clear();
    this.#mark = nextMark();
    this.#elsewhere = false;
    if (options.pool !== this.#pool) {
      this.#pool = options.pool;
      this.#dtype = null;
    }
    this.#needed = 0;
    let named = 0;
    this.outputs.reserve(wanted.length);
    for (let i = 0; i < wanted.length; i++) {
      const node = wanted[i]!;
      if (node.mark !== this.#mark) this.#visit(node, options);
      if (this.#elsewhere) {
        this.#dtype = null;
        return false;
      }
      this.outputs.push(node.index);
      if (node.handles !== 0 || node.pins !== 0) named++;
    }
    // Usually the outputs are the only nodes with other users. Unnamed nodes that another run needs become outputs too.
    const heldBehind = this.#needed > named && this.#keepExpensive(options);
    if (options.donate && !heldBehind) this.#findDonatable(options.elementBytes);
    this.key.reserve(this.outputs.length + this.donatable.length + 2);
    this.key.append(this.outputs);
    this.key.append(this.donatable);
    return true;
  }

  /** A leaf's data on the engine of this walk. */
  storageOf(leaf: Node): NodeStorage {
    return (leaf.index < this.#foreignEnd ? this.#foreign[leaf.index] : null) ?? leaf.storage!;
  }

  /** Drops all references to nodes. */
  clear(): void {
    for (let i = 0; i < this.count; i++) this.nodes[i] = undefined;
    this.count = 0;
    this.leaves.length = 0;
    this.outputs.length = 0;
    this.donatable.length = 0;
    this.key.length = 0;
    this.#bufferCount = 0;
    for (let i = 0; i < this.#foreignEnd; i++) this.#foreign[i] = null;
    this.#foreignEnd = 0;
  }

  #visit(root: Node, options: CaptureOptions): void {
    const mark = this.#mark;
    // Nodes whose sources are being visited, and where to go on in them: none for a node of leaves.
    const stack = this.#stack;
    const cursor = this.#cursor;
    let top = 0;
    let deepest = 0;
    let node = root;
    let at = 0;
    walk: for (;;) {
      const { src } = node;
      for (; at < src.length; at++) {
        const source = src[at]!;
        if (source.mark === mark) continue;
        if (source.storage !== null) {
          this.#takeLeaf(source, source.storage, options);
          continue;
        }
        stack[top] = node;
        cursor[top] = at + 1;
        if (++top > deepest) deepest = top;
        node = source;
        at = 0;
        continue walk;
      }
      this.#takeComputed(node, options);
      if (top === 0) break;
      node = stack[--top]!;
      at = cursor[top]!;
    }
    for (let i = 0; i < deepest; i++) stack[i] = undefined;
  }

  /** Numbers a node whose sources are numbered, and writes it to the key. Writes into the key's array directly, because this runs for every node. */
  #takeComputed(node: Node, options: CaptureOptions): void {
    const { key } = this;
    const { op, src, shape, attr, kind, dtype } = node;
    const sources = src.length;
    if (node.handles !== 0 || node.pins !== 0) this.#needed++;
    if (dtype !== this.#dtype) {
      if (!options.dtypes.has(dtype)) this.#elsewhere = true;
      this.#dtype = dtype;
      this.#dtypeId = dtypeInfo[dtype].id;
    }
    const most = shape.length * intsPerAxis + sources + 64;
    if (key.length + most > key.data.length) key.reserve(most);
    const { encode } = definitions[kind]!;
    key.data[key.length++] = kind | (this.#dtypeId << 8) | (sources << 12);
    if (encode != null) (encode as (attr: unknown, out: IntWriter) => void)(attr, key);
    if (sources === 0) {
      if (op === 'buffer') {
        graph.refusePlaceholder?.(node);
        throw fault('flush', told && `the data of a tensor of shape [${shape}] was given back while it is needed`);
      }
      key.list(shape);
    } else {
      const edges = this.#edges;
      const { data } = key;
      let end = key.length;
      for (let i = 0; i < sources; i++) {
        const { index } = src[i]!;
        edges[index] = edges[index]! + 1;
        data[end++] = index;
      }
      key.length = end;
    }
    // `#number`, without a call for each node.
    const at = this.count++;
    node.mark = this.#mark;
    node.index = at;
    this.nodes[at] = node;
    if (at >= this.#edges.length) this.#growEdges();
    this.#edges[at] = 0;
  }

  /** Gives a node the next number. */
  #number(node: Node): number {
    const at = this.count++;
    node.mark = this.#mark;
    node.index = at;
    this.nodes[at] = node;
    if (at >= this.#edges.length) this.#growEdges();
    this.#edges[at] = 0;
    return at;
  }

  #growEdges(): void {
    const bigger = new Int32Array(this.#edges.length * 2);
    bigger.set(this.#edges);
    this.#edges = bigger;
  }

  /** Numbers a node in memory, and writes it to the key: dtype, shape, strides, buffer, alignment. */
  #takeLeaf(node: Node, own: NodeStorage, options: CaptureOptions): void {
    const at = this.#number(node);
    const { leaves } = this;
    if (leaves.length === leaves.data.length) leaves.reserve(1);
    leaves.data[leaves.length++] = at;
    let storage = own;
    if ((storage.buffer as PoolBuffer).pool !== options.pool) {
      const here = storageIn(node, options.pool);
      if (here === null) {
        this.#elsewhere = true;
        return;
      }
      const foreign = this.#foreign;
      while (foreign.length <= at) foreign.push(null);
      foreign[at] = here;
      this.#foreignEnd = at + 1;
      storage = here;
    }
    const buffer = storage.buffer as PoolBuffer;
    const { key } = this;
    const { shape } = node;
    const { strides, offset } = storage.view;
    const most = shape.length * 2 + 8;
    if (key.length + most > key.data.length) key.reserve(most);
    const { data } = key;
    const typeId = node.dtype === this.#dtype ? this.#dtypeId : dtypeInfo[node.dtype].id;
    let end = key.length;
    data[end++] = leafKind | typeId;
    data[end++] = shape.length;
    for (let axis = 0; axis < shape.length; axis++) data[end++] = shape[axis]!;
    // The stride of an axis of one element does not matter.
    for (let axis = 0; axis < shape.length; axis++) data[end++] = shape[axis] === 1 ? 0 : strides[axis]!;
    if (buffer.mark !== this.#mark) {
      buffer.mark = this.#mark;
      buffer.index = this.#bufferCount++;
    }
    data[end++] = buffer.index;
    data[end++] = (viewBase(shape, strides, offset) * options.elementBytes[typeId]!) % options.bindAlign;
    key.length = end;
  }

  /** Adds expensive nodes to the outputs. True if others that a caller may still read are left unrealised. */
  #keepExpensive(options: CaptureOptions): boolean {
    let heldBehind = false;
    const asked = new Set(this.outputs.data.subarray(0, this.outputs.length));
    for (let i = 0; i < this.count; i++) {
      const node = this.nodes[i]!;
      if ((node.handles === 0 && node.pins === 0) || node.storage !== null || asked.has(i)) continue;
      if (options.keep(node)) {
        this.outputs.reserve(1);
        this.outputs.push(i);
      } else if (node.src.length > 0) heldBehind = true;
    }
    return heldBehind;
  }

  /**
   * True if a node outside this captured graph uses one that stays unrealised, and so will need the leaves again. Such users are nodes
   * that an earlier flush could not compute.
   */
  #isNeededElsewhere(): boolean {
    for (let i = 0; i < this.count; i++) {
      const node = this.nodes[i]!;
      if (node.storage !== null || node.uses <= this.#edges[i]!) continue;
      if (!this.outputs.data.subarray(0, this.outputs.length).includes(i)) return true;
    }
    return false;
  }

  /** Leaves that no caller can read any more, whose users are all in this captured graph, and whose buffer no other node shares. */
  #findDonatable(elementBytes: readonly number[]): void {
    for (let i = 0; i < this.leaves.length; i++) {
      const local = this.leaves.data[i]!;
      const node = this.nodes[local]!;
      // Most leaves have a handle, so this check comes first.
      if (node.handles !== 0 || node.pins !== 0 || node.uses !== this.#edges[local]) continue;
      const { buffer: counted, view } = node.storage!;
      const buffer = counted as PoolBuffer;
      if (buffer.refs !== 1 || buffer.pool !== this.#pool) continue;
      const bytes = sizeOf(node.shape) * elementBytes[dtypeInfo[node.dtype].id]!;
      if (view.offset !== 0 || buffer.bytes !== bytes) continue;
      if (this.donatable.length === 0 && this.#isNeededElsewhere()) return;
      this.donatable.reserve(1);
      this.donatable.push(local);
    }
  }
}

/** First element of the buffer that a view of this shape touches. */
export function viewBase(shape: readonly number[], strides: readonly number[], offset: number): number {
  let base = offset;
  for (let axis = 0; axis < shape.length; axis++) {
    const stride = strides[axis]!;
    if (stride < 0) base += stride * (shape[axis]! - 1);
  }
  return base;
}

// Copies of leaves that transfers (runtime/transfers.ts) have left on other engines.

/** Where a leaf's value is in this pool's engine, or null if it is not there. */
export function storageIn(node: Node, pool: BufferPool): NodeStorage | null {
  const storage = node.storage!;
  const buffer = storage.buffer as PoolBuffer;
  if (buffer.pool === pool) return storage;
  const there = pool.lost === null ? buffer.copies?.find(node, pool) : null;
  return there ?? (node.shape.includes(0) ? storage : null);
}
