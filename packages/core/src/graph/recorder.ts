/**
 * Handles waiting for a flush, the limits that start one, and the backstop for Tensors that nobody disposed.
 *
 * Nothing here runs kernels; runtime/runtime.ts does, through hooks. What handles and nodes hold is counted in counting.ts.
 */
import { dtypeInfo } from '../shape/dtype.ts';
import { checkFields, numberFrom } from '../shape/options.ts';
import { sizeOf } from '../shape/view.ts';
import { release } from './counting.ts';
import type { GradientSlot, Handle, Node } from './node.ts';

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
  /** True while a flush that fails would take an assignment back (transactions.ts). */
  assigned?: boolean;
  dispose(): void;
}

/** What the recorder asks of the runtime. */
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
/** What may wait where nobody says otherwise. */
export const usualLimits: { readonly nodes: number; readonly bytes: number } = { nodes: 4096, bytes: 512 * 2 ** 20 };
let nodeLimit = usualLimits.nodes;
let byteLimit = usualLimits.bytes;
let eager = false;
let epoch = 0;
let live = 0;

/** Connects the runtime. */
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
    const handle = pendingHandles[read]!;
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
 * The runtime calls this at the end of a global flush: nothing is pending any more. Handles that survive are held strongly
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
