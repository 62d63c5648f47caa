/**
 * Handles that wait for a flush, the limits that start one, and the backstop for Tensors that are never disposed.
 *
 * Nothing here counts nodes (node.ts) or computes (runtime/runtime.ts). Strong references keep young handles from the garbage collector, as
 * registering each with the backstop would cost more than recording it.
 */
import { dtypeInfo } from '@polygrad/compiler/shape/dtype';
import { ArgumentError } from '@polygrad/compiler/shape/errors';
import { checkFields, numberFrom, shown } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { sizeOf } from '@polygrad/compiler/shape/view';
import { type GradientSlot, type Node, release, type TrackedHandle, type Watched } from './node.ts';
import { type GraphState, graph, leastBytes } from './state.ts';

/** Marks a node whose history `backward()` has used up: it still says requiresGrad, but cannot be walked again. */
export const releasedSlot: GradientSlot = { grad: null };

/** True for a leaf made with requiresGrad. */
export const isLeaf = (node: Node): node is Node & { slot: GradientSlot } =>
  node.slot !== null && node.slot !== releasedSlot;

/**
 * Sets how many nodes, and how many bytes of results, may be pending before a flush starts by itself.
 *
 * @param limits nodes (4096); bytes: an eighth of the engine's memory, but at least 64 MiB, by default; 512 MiB if the engine does not know its
 *   memory. `bytes: null` restores the default; what is left out stays
 * @throws ArgumentError unless they are numbers of at least 1
 *
 * @example
 * setPendingLimits({ bytes: 256 * 2 ** 20 });
 */
export function setPendingLimits(limits: { readonly nodes?: number; readonly bytes?: number | null } = {}): void {
  const [isBytes, wanted] = numberFrom(1);
  const bytesRule = [(x: unknown) => x === null || isBytes(x), `${wanted}, or null`] as const;
  checkFields('setPendingLimits', limits, { nodes: numberFrom(1), bytes: bytesRule });
  const { nodes = Math.abs(graph.limits.nodes), bytes = graph.limits.bytes } = limits;
  graph.limits = { nodes: nodes * Math.sign(graph.limits.nodes), bytes };
  graph.mostBytes = bytes ?? leastBytes;
}

/**
 * With `true`, every operation is flushed as soon as it is recorded, by the same code: for debugging and for tests that compare the two.
 *
 * @throws ArgumentError unless `on` is a boolean
 *
 * @example
 * setEager(true);
 * const y = ones([2]).add(1); // computed here, not when it is read
 * setEager(false);
 */
export function setEager(on: boolean): void {
  if (typeof on !== 'boolean') throw new ArgumentError('setEager', say`bad on: ${shown(on)}; must be true or false`);
  const { nodes, bytes } = graph.limits;
  graph.limits = { nodes: on ? -Math.abs(nodes) : Math.abs(nodes), bytes };
}

/** Adds a new Tensor to those waiting for the next flush. Does not retain the node. */
export function trackHandle(handle: TrackedHandle): void {
  const g = graph;
  g.pending.push(handle);
  const { shape, dtype } = handle.node;
  let { bytes }: { bytes: number } = dtypeInfo[dtype];
  for (let axis = 0; axis < shape.length; axis++) bytes *= shape[axis]!;
  g.pendingBytes += bytes;
}

/** Removes disposed handles recorded since `from` (a length of the list in the same epoch). */
export function sweepPending(from: number): void {
  const { pending } = graph;
  let write = from;
  for (let read = from; read < pending.length; read++) {
    const handle = pending[read]!;
    if (!handle.disposed) pending[write++] = handle;
  }
  // One by one: setting `length` may copy the whole list.
  while (pending.length > write) pending.pop();
}

/** Recounts the bytes of pending handles, because disposed ones are not subtracted one by one. */
function recountBytes(): void {
  graph.pendingBytes = 0;
  for (const { disposed, node } of graph.pending)
    if (!disposed) graph.pendingBytes += sizeOf(node.shape) * dtypeInfo[node.dtype].bytes;
}

/** Starts a flush if too much is pending. Only called between operations, never inside one. */
export function checkLimits(): void {
  const g = graph;
  if (g.pendingNodes >= g.limits.nodes) g.flush(true);
  else if (g.pendingBytes >= g.mostBytes) checkBytes(g);
}

/** Asks for the limit of bytes, once between two flushes, and starts a flush if it is reached. */
function checkBytes(g: GraphState): void {
  g.mostBytes = g.limits.bytes ?? g.engineLimit();
  if (g.pendingBytes < g.mostBytes) return;
  recountBytes();
  // Half of the limit, so that recounting stays rare.
  if (g.pendingBytes >= g.mostBytes / 2) g.flush(true);
}

/** Called at the end of a user's outermost scope: flushes what is pending. */
export function scopeEnded(): void {
  if (graph.pending.length > 0) graph.flush(false);
}

/**
 * The backstop for Tensors that are never disposed: drops a handle's count when the handle is garbage collected.
 *
 * All graphs share it, so that it is never collected itself. Up to Node 24, V8 runs no finalisation of the process any more once a registry
 * was collected for which it was about to run one.
 */
export const backstop: FinalizationRegistry<Watched> = new FinalizationRegistry(({ node, live }) => {
  live.tensors--;
  release(node!);
});

/** Registers the survivors of the last flush with the backstop. */
function watchYoung(g: GraphState): void {
  const { young } = g;
  for (let i = 0; i < young.length; i++) {
    const handle = young[i]!;
    if (handle.disposed || handle.watched) continue;
    handle.watched = { node: handle.node, live: g.live };
    backstop.register(handle, handle.watched, handle);
  }
  empty(young);
}

/** Empties a short list: faster than setting its length. */
function empty(list: unknown[]): void {
  if (list.length > 16) list.length = 0;
  else while (list.length > 0) list.pop();
}

/**
 * The runtime calls this at the end of a global flush: nothing is pending any more. Handles that survive are held strongly until the next flush
 * or the next microtask. From then on the backstop watches them.
 */
export function finishFlush(): void {
  const g = graph;
  const { pending, young } = g;
  if (young.length > 0) watchYoung(g);
  // The lists change places: most of what was pending is young now, and disposed ones are passed over when it is watched.
  g.young = pending;
  g.pending = young;
  watchSoon();
  g.pendingNodes = 0;
  g.pendingBytes = 0;
  // The engine may be another one next time.
  g.mostBytes = g.limits.bytes ?? leastBytes;
  g.epoch++;
}

function watchSoon(): void {
  const g = graph;
  if (g.young.length === 0 || g.watching) return;
  g.watching = true;
  queueMicrotask(() => {
    g.watching = false;
    watchYoung(g);
  });
}

/** Removes handles from the pending list: their nodes stay unrealised until they are read. */
export function setAside(test: (handle: TrackedHandle) => boolean): void {
  const { pending, young } = graph;
  for (const handle of pending.splice(0)) {
    if (handle.disposed) continue;
    if (!test(handle)) pending.push(handle);
    else if (!handle.watched) young.push(handle);
  }
  recountBytes();
  watchSoon();
}
