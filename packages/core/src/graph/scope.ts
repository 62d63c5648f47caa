/**
 * Scopes: which handles live on when an operation or a user's `scope` returns, and the name errors are told under.
 *
 * Handles made inside a scope wait on one stack. `compose` is the scope of one library operation, `scope` (tensor/scope.ts)
 * the user's, `holding` that of a gradient function. Nothing is allocated per recorded operation but the stack entry.
 */
import { checkLimits, scopeEnded, sweepPending, trackHandle, type TrackedHandle } from './recorder.ts';
import { nextMark } from './node.ts';
import { graph } from './state.ts';
import { eachInside } from '../shape/nested.ts';
import { handleBrand } from '../shape/options.ts';
import { hasRecordings } from './tracking.ts';

/** What a scope can end: handles, and tapes. */
export interface ScopedResource {
  readonly disposed: boolean;
  readonly kept: boolean;
  readonly stamp: number;
  dispose(): void;
}

/** Name of the operation the user called, or the given primitive's where none is in progress. */
export function opName(primitive: string): string {
  return graph.label === '' ? primitive : graph.label;
}

/** Every public operation names itself first; inside a composite the outermost name stays. */
export function beginOp(name: string): void {
  if (graph.composing === 0) graph.label = name;
}

/** How many library operations are in progress, one inside the other. Above zero, JavaScript numbers are the library's own. */
export function composingDepth(): number {
  return graph.composing;
}

/** Puts a new handle where it will be released and flushed in time. */
export function adopt(handle: TrackedHandle): void {
  const g = graph;
  if (g.depth !== 0) g.stack.push(handle);
  trackHandle(handle);
  if (g.holding !== 0) return;
  try {
    checkLimits();
  } catch (error) {
    // Nobody gets the new handle.
    handle.dispose();
    throw error;
  }
}

/** Lets the scope in progress, if there is one, end something that is no tensor. */
export function adoptResource(resource: ScopedResource): void {
  if (graph.depth !== 0) graph.stack.push(resource);
}

/** Handles and tapes that wait for the end of a scope. */
export function scopeSize(): number {
  return graph.stack.length;
}

/** True if the handle is one of those beyond the first `size`, and ends with its scope. */
export function isLocal(handle: TrackedHandle, size: number): boolean {
  return !handle.kept && graph.stack.lastIndexOf(handle) >= size;
}

/** True for Tensors, by their brand: handles of another copy of this library count too. */
export function isHandle(value: unknown): value is TrackedHandle {
  if (typeof value !== 'object' || value === null) return false;
  try {
    return handleBrand in value;
  } catch {
    // A proxy that was revoked, or whose maker refuses to say.
    return false;
  }
}

/** Calls `visit` for every handle inside nested arrays, Maps and plain objects. */
export function markAll(value: unknown, visit: (handle: TrackedHandle) => void): void {
  eachInside(value, (item) => {
    if (isHandle(item)) visit(item);
  });
}

/** Marks every handle in the result of a scope as surviving the exit `stamp`. */
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
 * the user's own, and part of the scopes below.
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
 * released, also if it throws; numbers given to operations inside are baked into kernels (see tensor/operand.ts).
 */
export function compose<T>(name: string, body: () => T): T {
  const g = graph;
  const outer = g.label;
  if (g.composing === 0) g.label = name;
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

/** Flushes before results are handed on. Where that fails, nobody gets them. */
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

/** Runs `body` with flushes held back: it makes nodes that no handle holds yet. */
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
