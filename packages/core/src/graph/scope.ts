/**
 * Scopes: which handles end with an operation or a user's `scope`, the name in errors, and what is being differentiated.
 *
 * All scopes share one stack of handles, so an operation costs one entry. `compose` is the scope of a library operation; `userScope` is
 * the user's (`scope` in tensor/scope.ts); `traceScope` is that of a gradient function. A scope ends the handles that its result does not contain.
 */
import { told } from '#shown-as';
import { dtypeInfo } from '@polygrad/compiler/shape/dtype';
import { ArgumentError } from '@polygrad/compiler/shape/errors';
import { eachInside } from '@polygrad/compiler/shape/nested';
import { handleBrand } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { forgetHistory, nextMark, type Node, type TrackedHandle } from './node.ts';
import { checkLimits, releasedSlot, scopeEnded, sweepPending, trackHandle } from './recorder.ts';
import { type Casting, graph, type Recording, type RecordingOwner, type ScopedResource } from './state.ts';

/** The name for errors: of the operation that the user called, or of the given primitive if none is in progress. */
export function opName(primitive: string): string {
  return graph.label === '' ? primitive : graph.label;
}

/** Names the operation in progress. Every public operation calls this first; inside a composite the outermost name stays. */
export function beginOp(name: string): void {
  if (graph.composing !== 0) return;
  graph.label = name;
  graph.begun = graph.newest;
}

/** Nesting depth of library operations. Above zero, JavaScript numbers are the library's own. */
export function composingDepth(): number {
  return graph.composing;
}

/** Adds a new handle to the current scope and to those that wait for a flush; starts the flush if a limit is reached. */
export function adopt(handle: TrackedHandle): void {
  const g = graph;
  if (g.depth !== 0) g.stack.push(handle);
  trackHandle(handle);
  if (g.holding !== 0 || (g.pendingNodes < g.limits.nodes && g.pendingBytes < g.mostBytes)) return;
  try {
    checkLimits();
  } catch (error) {
    // The caller never gets the new handle.
    handle.dispose();
    throw error;
  }
}

/** Lets the current scope, if there is one, end a resource that is not a tensor. */
export function adoptResource(resource: ScopedResource): void {
  if (graph.depth !== 0) graph.stack.push(resource);
}

/** Number of handles and tapes that wait for the end of a scope. */
export function scopeSize(): number {
  return graph.stack.length;
}

/** True if the handle is among those beyond the first `size`, and so ends with its scope. */
export function isLocal(handle: TrackedHandle, size: number): boolean {
  return !handle.kept && graph.stack.lastIndexOf(handle) >= size;
}

/** True for Tensors, by their brand, so that handles of another copy of this library count too. */
export function isHandle(value: unknown): value is TrackedHandle {
  if (typeof value !== 'object' || value === null) return false;
  try {
    return handleBrand in value;
  } catch {
    // A revoked proxy, or one that throws.
    return false;
  }
}

/** Calls `visit` for every handle inside nested arrays, Maps and plain objects. */
export function markAll(value: unknown, visit: (handle: TrackedHandle) => void): void {
  eachInside(value, (item) => {
    if (isHandle(item)) visit(item);
  });
}

/** Marks every handle in the result of a scope as a survivor of exit `stamp`. */
function markSurvivors(value: unknown, stamp: number): void {
  if (isHandle(value)) value.stamp = stamp;
  else if (typeof value === 'object')
    markAll(value, (handle) => {
      handle.stamp = stamp;
    });
}

/** Releases the handles above `bottom` that do not carry `stamp`; survivors go to the enclosing scope. */
function close(bottom: number, pendingBottom: number, epoch: number, stamp: number): void {
  const g = graph;
  const { stack } = g;
  g.depth--;
  let write = bottom;
  for (let read = bottom; read < stack.length; read++) {
    const handle = stack[read]!;
    if (handle.disposed || handle.kept) continue;
    if (handle.stamp !== stamp) handle.dispose();
    else if (g.depth !== 0) stack[write++] = handle;
    else if (g.userDepth !== 0 || g.composing !== 0) g.outlived.push(handle);
  }
  while (stack.length > write) stack.pop();
  if (g.epoch === epoch) sweepPending(pendingBottom);
}

/**
 * Runs `body` as a scope and returns its result; tensors inside the result survive. For bodies of gradient functions, in which operations are
 * the user's, and belong to the enclosing scopes.
 */
export function traceScope<T>(body: () => T): T {
  const g = graph;
  const bottom = g.stack.length;
  const pendingBottom = g.pending.length;
  const { epoch } = g;
  g.depth++;
  let stamp = -1;
  try {
    const result = body();
    stamp = nextMark();
    markSurvivors(result, stamp);
    return result;
  } finally {
    close(bottom, pendingBottom, epoch, stamp);
  }
}

/**
 * Runs the body of a library operation made of other operations, under its name. Handles made inside and not returned are
 * released, also if it throws; numbers passed to operations inside become constants of kernels (see tensor/operand.ts).
 */
export function compose<T>(name: string, body: () => T): T {
  const g = graph;
  const outer = g.label;
  beginOp(name);
  g.composing++;
  g.holding++;
  let result: T;
  try {
    result = traceScope(body);
  } finally {
    g.composing--;
    g.holding--;
    g.label = outer;
  }
  handOn(g.holding === 0 ? checkLimits : null);
  return result;
}

/** Flushes before the results of an outermost scope are returned. If that fails, the caller does not get them, so they are released. */
function handOn(flush: (() => void) | null): void {
  const { outlived } = graph;
  try {
    flush?.();
  } catch (error) {
    for (const handle of outlived) handle.dispose();
    throw error;
  } finally {
    while (outlived.length > 0) outlived.pop();
  }
}

/**
 * Runs `body` without flushes, because it makes nodes that no handle holds yet, or because one flush should compute all of it.
 *
 * @example
 * holdFlushes(() => ones([4]).add(1)); // computed later, whatever the limits are
 */
export function holdFlushes<T>(body: () => T): T {
  const g = graph;
  g.holding++;
  try {
    return body();
  } finally {
    g.holding--;
  }
}

/** Runs a user's function inside a library operation as if it were called outside of one. */
export function callUser<T>(body: () => T): T {
  const g = graph;
  const { composing, label } = g;
  g.composing = 0;
  try {
    return body();
  } finally {
    g.composing = composing;
    g.label = label;
  }
}

/** Runs `body` with these casts of operands (mixed precision), or with none. */
export function withCasting<T>(casting: Casting | null, body: () => T): T {
  const outer = graph.casting;
  graph.casting = casting;
  try {
    return body();
  } finally {
    graph.casting = outer;
  }
}

/** Runs a user's scope; when the outermost one ends, everything pending is submitted. */
export function userScope<T>(body: () => T): T {
  const g = graph;
  g.userDepth++;
  let result: T;
  try {
    result = traceScope(body);
  } finally {
    g.userDepth--;
  }
  handOn(g.userDepth === 0 && g.holding === 0 && !hasRecordings() ? scopeEnded : null);
  return result;
}

// What is being differentiated: whether requiresGrad propagates, and which tapes record.
//
// Each tape or gradient function has one bit of `Node.pins` while it exists. A new node gets those bits of its sources whose tapes record
// now, and goes to the list of each such tape. Lists are in order of creation, so sources come before users.

/** Most tapes at once: one bit each, without the sign bit. */
const mostRecordings = 31;
const allBits = 2 ** mostRecordings - 1;

/** Number of open recordings. */
export function openRecordings(): number {
  return graph.recordings.reduce((count, r) => (r === null ? count : count + 1), 0);
}

/** True while any tape or gradient function exists: a flush now would cut its graph in two. */
export function hasRecordings(): boolean {
  return graph.taken !== 0;
}

/** Starts a recording. `watchLeaves`: it also follows everything that depends on requiresGrad leaves. */
export function startRecording(op: string, watchLeaves: boolean, owner: RecordingOwner | null = null): Recording {
  const g = graph;
  const { recordings } = g;
  // Tapes that were garbage collected, but not finalised yet, free their bits.
  if (g.taken === allBits) for (const r of recordings) if (r?.owner?.origin() === null) endRecording(r);
  for (let i = 0; i < mostRecordings; i++) {
    const bit = 1 << i;
    if ((g.taken & bit) !== 0) continue;
    g.taken |= bit;
    g.recording |= bit;
    if (watchLeaves) g.watchingLeaves |= bit;
    return (recordings[i] = { op, graph: g, bit, nodes: [], watched: [], owner });
  }
  throw new ArgumentError(
    op,
    say`too many tapes are open: ${mostRecordings}; end those no longer needed by gradient(), dispose() or 'using'${told ? listOf(recordings as Recording[]) : ''}`,
  );
}

/** The recordings, for a person. */
function listOf(recordings: readonly Recording[]): string {
  const open = new Map<string, number>();
  for (const { op, owner } of recordings) {
    const line = `${op}, ${owner === null ? 'running' : `made ${owner.origin()}`}`;
    open.set(line, (open.get(line) ?? 0) + 1);
  }
  const lines = Array.from(open, ([line, count]) => `\n  ${count === 1 ? '' : `${count} times `}${line}`);
  return `. Open are:${lines.join('')}`;
}

/** From now on the recording follows operations on this node. */
export function watchNode(recordingOf: Recording, node: Node): void {
  if ((node.pins & recordingOf.bit) !== 0) return;
  node.pins |= recordingOf.bit;
  recordingOf.watched.push(node);
}

/** New nodes are no longer recorded; what was recorded stays. */
export function pauseRecording({ bit }: Recording): void {
  graph.recording &= ~bit;
}

/** Continues a paused recording. */
export function resumeRecording({ bit }: Recording): void {
  graph.recording |= bit & graph.taken;
}

/** Ends a recording, once: its nodes keep their history only if something else needs it. */
export function endRecording(ended: Recording): void {
  // A garbage-collected tape may end while another runtime is in use.
  const { bit, nodes, watched, graph: g } = ended;
  const at = 31 - Math.clz32(bit);
  if (g.recordings[at] !== ended) return;
  g.recording &= ~bit;
  g.watchingLeaves &= ~bit;
  g.taken &= ~bit;
  g.recordings[at] = null;
  for (const node of watched) {
    node.pins &= ~bit;
    forgetHistory(node);
  }
  // Latest first, so that an unused chain is freed link by link.
  for (let i = nodes.length - 1; i >= 0; i--) {
    const node = nodes[i]!;
    node.pins &= ~bit;
    forgetHistory(node);
  }
  nodes.length = 0;
  watched.length = 0;
}

/**
 * Called by `recordKind` for a node with a tracked source: gives it requiresGrad and pins, if it is a float. What is made of nothing but sources
 * whose history an earlier `backward()` released is as they are: it keeps no history, and another `backward()` that meets it throws.
 */
export function track(node: Node, fromLeaf: boolean, released: boolean, pins: number): void {
  if (dtypeInfo[node.dtype].kind !== 'float') return;
  const g = graph;
  if (g.collector !== null) g.collector(node);
  let bits = pins & g.recording;
  if (fromLeaf) bits |= g.watchingLeaves & g.recording;
  node.requiresGrad = (fromLeaf || released) && g.leaves;
  if (node.requiresGrad && !fromLeaf) node.slot = releasedSlot;
  node.pins = bits;
  while (bits !== 0) {
    const index = 31 - Math.clz32(bits);
    g.recordings[index]!.nodes.push(node);
    bits &= ~(1 << index);
  }
}

/** Runs a function and calls `visit` for every float node it records that has a tracked source, whether or not the node is tracked itself. */
export function collecting<T>(visit: (node: Node) => void, body: () => T): T {
  const outer = graph.collector;
  graph.collector = visit;
  try {
    return body();
  } finally {
    graph.collector = outer;
  }
}

/**
 * Runs a function and asks `visit` about every tensor that is an operand meanwhile: it may name a node that stands in for that of the tensor, which may
 * be disposed then. Whoever asked before is asked first, and `visit` is told the answer.
 */
export function withOperands<T>(visit: (handle: TrackedHandle, instead: Node | null) => Node | null, body: () => T): T {
  const outer = graph.operand;
  graph.operand = (handle) => visit(handle, outer?.(handle) ?? null);
  try {
    return body();
  } finally {
    graph.operand = outer;
  }
}

/** State of tracking, for `restoreTracking`. */
export interface TrackingState {
  readonly leaves: boolean;
  readonly recording: number;
}

/** Turns off requiresGrad propagation, and with 'nothing' also all recordings. */
export function suspendTracking(keep: 'recordings' | 'nothing'): TrackingState {
  const { leaves, recording } = graph;
  const state = { leaves, recording };
  graph.leaves = false;
  if (keep === 'nothing') graph.recording = 0;
  return state;
}

/** Restores the state before a suspension; recordings that ended meanwhile stay ended. */
export function restoreTracking(state: TrackingState): void {
  graph.leaves = state.leaves;
  graph.recording = state.recording & graph.taken;
}
