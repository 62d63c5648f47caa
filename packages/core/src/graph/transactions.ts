/**
 * What tensors named before they were assigned, until a flush has computed what they name now: a flush that fails takes the
 * assignments back.
 *
 * A value that is still to be replaced is held by one `use`. The hold is let go when a flush begins, where the work itself reads the
 * value, so that its memory may be given to the new one; a flush that fails before it submits has changed nothing, and whoever goes
 * on in parts after that holds again first.
 *
 * A flush that is put off (runtime/queue.ts) keeps its assignments in a record of their own; what is assigned after it was computed
 * from its values, and goes back with them.
 */
import type { Node } from './node.ts';
import { stopGradient } from './primitives.ts';
import { dropUse, holdUse, release, retain } from './counting.ts';
import { type TrackedHandle, unwatch } from './recorder.ts';

interface Assigned {
  readonly before: Node;
  held: boolean;
  /** What the tensor named when its flush was put off; null while it was not. */
  after: Node | null;
}

/** What was assigned between two flushes. */
interface Assignments {
  readonly handles: Map<TrackedHandle, Assigned>;
  readonly undoers: (() => void)[];
}

const none = (): Assignments => ({ handles: new Map(), undoers: [] });

/** The flush in work, then those after it; assignments go to the last one. */
const records: Assignments[] = [none()];
/** Which of them is in work. */
let at = 0;

const newest = (): Assignments => records[records.length - 1] as Assignments;
const inWork = (): Assignments => records[at] as Assignments;

/** The handle is about to name `next`. Since the last flush, the first value counts; one in memory is final. */
export function noteAssigned(handle: TrackedHandle, next: Node): void {
  const { handles } = newest();
  if (next.storage !== null) forgetAssigned(handle);
  else if (!handles.has(handle)) {
    holdUse(handle.node);
    handle.assigned = true;
    handles.set(handle, { before: handle.node, held: true, after: null });
  }
}

/** The handle is disposed, or what it names is final. */
export function forgetAssigned(handle: TrackedHandle): void {
  handle.assigned = false;
  for (const { handles } of records) {
    const known = handles.get(handle);
    if (known === undefined) continue;
    handles.delete(handle);
    if (known.held) dropUse(known.before);
  }
}

/**
 * Calls a function if the values assigned since the last flush cannot be computed and the tensors go back to what they were: for what
 * belongs to them in JavaScript, as an optimizer's count of steps. Forgotten when they are computed.
 *
 * @example
 * let steps = 0;
 * const w = zeros([2]);
 * scope(() => {
 *   w.assign(w.add(1));
 *   steps++;
 *   onRollback(() => steps--);
 * });
 */
export function onRollback(undo: () => void): void {
  newest().undoers.push(undo);
}

/** Handles assigned since the last flush. */
export function assignedHandles(): ReadonlyMap<TrackedHandle, unknown> {
  return inWork().handles;
}

/** What they name, or named when the flush was put off. */
export function assignedNodes(): Set<Node> {
  return new Set([...inWork().handles].map(([{ node }, { after }]) => after ?? node));
}

/** The flush is put off: what is assigned from now on belongs to the next one. */
export function putOffAssigned(): void {
  holdAssigned();
  for (const [{ node }, entry] of inWork().handles) entry.after = node;
  records.push(none());
  at = records.length - 1;
}

/** Works on the oldest flush that was put off. `work` says if it is done, well or not. */
export function resumeAssigned(work: () => boolean): void {
  at = 0;
  try {
    if (work() && records.length > 1) records.shift();
  } finally {
    at = records.length - 1;
  }
}

/** A run begins: values it reads itself are not held beside it. */
export function letGoAssigned(): void {
  if (inWork().handles.size === 0) return;
  for (const entry of inWork().handles.values()) {
    const { before } = entry;
    if (!entry.held || before.handles + before.uses === 1) continue;
    entry.held = false;
    dropUse(before);
  }
}

/** Other runs come first, or the last one failed: nothing may overwrite the old values. */
export function holdAssigned(): void {
  for (const entry of inWork().handles.values()) {
    if (entry.held) continue;
    entry.held = true;
    holdUse(entry.before);
  }
}

/** What was assigned is computed, or nobody will take it back. */
export function settleAssigned(): void {
  settle(inWork());
}

function settle({ handles, undoers }: Assignments): void {
  if (handles.size > 0) {
    for (const [handle, { before, held }] of handles) {
      handle.assigned = records.some((record) => record.handles !== handles && record.handles.has(handle));
      if (held) dropUse(before);
    }
    handles.clear();
  }
  if (undoers.length > 0) undoers.length = 0;
}

/** The handles name again what they named before; all values must be held. True if there were any. */
export function takeBackAssigned(): boolean {
  const found = inWork().handles.size > 0;
  // What was assigned later was computed from these.
  if (found) for (let i = records.length - 1; i > at; i--) takeBack(records[i] as Assignments);
  takeBack(inWork());
  return found;
}

function takeBack(record: Assignments): void {
  for (const [handle, { before }] of record.handles) {
    const dropped = handle.node;
    // Whether it is a leaf with a gradient may have been set since.
    const { slot } = dropped;
    let node = before;
    if (slot !== before.slot) {
      node = stopGradient(before);
      node.slot = slot;
      node.requiresGrad = slot !== null;
    }
    retain(node);
    handle.node = node;
    unwatch(handle);
    release(dropped);
  }
  const undo = record.undoers.splice(0);
  settle(record);
  for (const f of undo.reverse()) f();
}
