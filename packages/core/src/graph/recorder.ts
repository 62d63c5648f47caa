/**
 * Who needs which node: counting, the list of handles waiting for a flush, and the limits that start one.
 *
 * The rules: a Tensor holds its node (`retain`, `release`). A node that somebody needs holds its sources, until it is
 * realised without history (`realise`) or dead. A node without handles and uses is dead at once: its storage goes
 * back and its sources are let go in turn. Nothing here runs kernels; schedule/runtime.ts does, through hooks.
 */
import { dtypeInfo } from '../shape/dtype.ts';
import { checkFields, numberFrom } from '../shape/options.ts';
import { sizeOf } from '../shape/view.ts';
import type { GradientSlot, Handle, Node, NodeStorage } from './node.ts';

const noNodes: readonly Node[] = [];

/** Stands in a node whose history `backward()` has used up: it still says requiresGrad, but cannot be walked again. */
export const releasedSlot: GradientSlot = { grad: null };

/** A handle as the recorder tracks it: Tensor adds two fields of book-keeping. */
export interface TrackedHandle extends Handle {
  /** True while the finalisation backstop watches the handle. */
  watched: boolean;
  /** True once `keep` took it out of every scope. */
  kept: boolean;
  /** Number of the scope exit that lets it survive. */
  stamp: number;
  /** True while a flush that fails would take an assignment back (assigned.ts). */
  assigned?: boolean;
  dispose(): void;
}

/** What the recorder asks of the scheduler. */
export interface FlushHooks {
  /** Too much is pending: realise every pending handle now. Called between operations, never inside one. */
  onLimit(): void;
  /** The outermost user scope ended: submit what is pending. */
  onScopeEnd(): void;
}

/** Handles recorded since the last global flush. Strong references until then. May contain disposed ones. */
export const pendingHandles: TrackedHandle[] = [];

let hooks: FlushHooks = { onLimit: () => undefined, onScopeEnd: () => undefined };
let pendingNodes = 0;
let pendingBytes = 0;
let nodeLimit = 4096;
let byteLimit = 512 * 2 ** 20;
let eager = false;
let epoch = 0;
let live = 0;

/** Connects the scheduler. */
export function setFlushHooks(next: FlushHooks): void {
  hooks = next;
}

/**
 * How many nodes and how many bytes of results may wait before a flush starts by itself.
 *
 * @throws ArgumentError unless they are numbers of at least 1
 *
 * @example
 * setPendingLimits({ bytes: 256 * 2 ** 20 });
 */
export function setPendingLimits(limits: { readonly nodes?: number; readonly bytes?: number } = {}): void {
  checkFields('setPendingLimits', limits, { nodes: numberFrom(1), bytes: numberFrom(1) });
  nodeLimit = limits.nodes ?? nodeLimit;
  byteLimit = limits.bytes ?? byteLimit;
}

/**
 * With `true`, every operation is flushed as soon as it is recorded: the same path, for debugging and differential tests.
 *
 * @example
 * setEager(true);
 * const y = ones([2]).add(1); // computed here, not when it is read
 * setEager(false);
 */
export function setEager(on: boolean): void {
  eager = on;
}

/** Called by makeNode. */
export function countNode(): void {
  pendingNodes++;
}

/** Number of global flushes so far. */
export function flushEpoch(): number {
  return epoch;
}

/** Nodes recorded since the last global flush. */
export function pendingCount(): number {
  return pendingNodes;
}

function bytesOf(node: Node): number {
  return sizeOf(node.shape) * dtypeInfo[node.dtype].bytes;
}

/** Tensors that exist and are not disposed. */
export function liveHandles(): number {
  return live;
}

/** Counts Tensors made (1) and disposed (-1). */
export function countHandle(change: 1 | -1): void {
  live += change;
}

/** A Tensor has been made: waits for the next flush. Does not retain the node. */
export function trackHandle(handle: TrackedHandle): void {
  pendingHandles.push(handle);
  pendingBytes += bytesOf(handle.node);
}

/** Takes disposed handles recorded since `from` (a length of the list in the same epoch) off the list. */
export function sweepPending(from: number): void {
  let write = from;
  const count = pendingHandles.length;
  for (let read = from; read < count; read++) {
    const handle = pendingHandles[read] as TrackedHandle;
    if (!handle.disposed) pendingHandles[write++] = handle;
  }
  // One by one: setting the length may copy the whole list.
  for (let rest = count - write; rest > 0; rest--) pendingHandles.pop();
}

/** Counts again what handles on the list stand for: those disposed since are not subtracted one by one. */
function recountBytes(): void {
  pendingBytes = 0;
  for (const handle of pendingHandles) if (!handle.disposed) pendingBytes += bytesOf(handle.node);
}

/** Starts a flush if too much is pending. Only called where no operation is half recorded. */
export function checkLimits(): void {
  if (eager || pendingNodes >= nodeLimit) hooks.onLimit();
  else if (pendingBytes >= byteLimit) {
    recountBytes();
    // Half of the limit, so that counting again stays rare.
    if (pendingBytes >= byteLimit / 2) hooks.onLimit();
  }
}

/** The end of the outermost user scope. */
export function scopeEnded(): void {
  if (pendingHandles.length > 0) hooks.onScopeEnd();
}

/** Backstop for Tensors that nobody disposed: collects a forgotten handle's count when JavaScript collects the handle. */
const backstop = new FinalizationRegistry<Node>((node) => {
  live--;
  release(node);
});

/** Survivors of the last flush that are not watched yet: watching is dear, and most handles are disposed soon. */
const young: TrackedHandle[] = [];
let watching = false;

function watchYoung(): void {
  for (const handle of young) {
    if (handle.disposed || handle.watched) continue;
    handle.watched = true;
    backstop.register(handle, handle.node, handle);
  }
  empty(young);
}

/** Setting the length of a short list costs more than taking out what is in it. */
function empty(list: unknown[]): void {
  if (list.length > 16) list.length = 0;
  else while (list.length > 0) list.pop();
}

function watchLater(): void {
  watching = false;
  watchYoung();
}

/**
 * The scheduler calls this at the end of a global flush: nothing is pending any more. Handles that survive are held strongly
 * until the next flush, or until the running JavaScript returns to its event loop, and watched from then on.
 */
export function finishFlush(): void {
  if (young.length > 0) watchYoung();
  for (const handle of pendingHandles) if (!handle.disposed && !handle.watched) young.push(handle);
  watchSoon();
  empty(pendingHandles);
  pendingNodes = 0;
  pendingBytes = 0;
  epoch++;
}

function watchSoon(): void {
  if (young.length > 0 && !watching) {
    watching = true;
    queueMicrotask(watchLater);
  }
}

/** These handles wait for no flush any more: their nodes stay recipes until somebody asks for them. */
export function setAside(test: (handle: TrackedHandle) => boolean): void {
  const all = pendingHandles.splice(0);
  for (const handle of all) {
    if (handle.disposed) continue;
    if (!test(handle)) pendingHandles.push(handle);
    else if (!handle.watched) young.push(handle);
  }
  recountBytes();
  watchSoon();
}

/** The handle has been disposed or points to another node now. */
export function unwatch(handle: TrackedHandle): void {
  if (handle.watched) {
    handle.watched = false;
    backstop.unregister(handle);
  }
}

/** True if the node must keep its sources after it is realised. A leaf has no history of its own. */
export function keepsHistory(node: Node): boolean {
  return node.pins !== 0 || (node.requiresGrad && node.slot === null);
}

/** One more handle needs the node. */
export function retain(node: Node): void {
  node.handles++;
  if (node.edges === 'floating') own(node);
  else if (node.edges === 'dead')
    throw new Error(`[recorder] node ${node.id} (${node.op}) was released before it was retained`);
}

/** A floating node becomes needed: it counts in its sources from now on, and floating sources become needed too. */
function own(start: Node): void {
  let node: Node | undefined = start;
  let stack: Node[] | null = null;
  while (node !== undefined) {
    const { src } = node;
    const history = keepsHistory(node);
    node.edges = history ? 'handles' : 'uses';
    // A leaf brings the count it was made with; a realised view of another node's buffer takes its own.
    if (node.storage !== null && node.op !== 'buffer') node.storage.buffer.retain();
    for (let i = 0; i < src.length; i++) {
      const source = src[i] as Node;
      if (source.edges === 'dead')
        throw new Error(
          `[recorder] node ${source.id} (${source.op}) was released while node ${node.id} (${node.op}) needs it`,
        );
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

/** Keeps a node that somebody needs alive, without a name: a reader sees no difference, a flush does not write over it. */
export function holdUse(node: Node): void {
  node.uses++;
}

/** Ends what `holdUse` began. */
export function dropUse(node: Node): void {
  if (--node.uses === 0 && node.handles === 0) bury(node);
}

/** One handle less needs the node. */
export function release(node: Node): void {
  if (--node.handles === 0 && node.uses === 0) bury(node);
}

/** Nobody needs the node: gives its storage back and lets its sources go. */
function bury(start: Node): void {
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
        const source = src[i] as Node;
        if (edges === 'handles') source.handles--;
        else source.uses--;
        if (source.handles === 0 && source.uses === 0) (stack ??= []).push(source);
      }
    }
    node = stack?.pop();
  }
}

/**
 * The scheduler calls this for every node whose value is in memory now. Takes over one count of the buffer. The node lets
 * its sources go unless it keeps its history.
 */
export function realise(node: Node, storage: NodeStorage): void {
  // A result realised just before may have been the last that needed this one.
  if (node.edges === 'dead') {
    storage.buffer.release();
    return;
  }
  node.storage = storage;
  if (!keepsHistory(node)) dropSources(node);
}

/** Lets the sources of a realised node go. */
function dropSources(node: Node): void {
  const { edges, src } = node;
  node.src = noNodes;
  if (edges !== 'uses' && edges !== 'handles') return;
  for (const source of src) {
    if (edges === 'handles') source.handles--;
    else source.uses--;
    if (source.handles === 0 && source.uses === 0) bury(source);
  }
}

/**
 * The node keeps no history any more (its tape ended, or backward() has used it): realised, it lets its sources go;
 * otherwise they stay for computing only.
 */
export function forgetHistory(node: Node): void {
  if (keepsHistory(node)) return;
  if (node.storage !== null) {
    dropSources(node);
    return;
  }
  if (node.edges !== 'handles') return;
  node.edges = 'uses';
  for (const source of node.src) {
    source.handles--;
    source.uses++;
  }
}
