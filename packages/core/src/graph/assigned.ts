/**
 * What tensors named before they were assigned, until a flush has computed what they name now: a flush that fails takes the
 * assignments back.
 *
 * A value that is still to be replaced is held by one `use`. The hold is let go when a flush begins, where the work itself reads the
 * value, so that its memory may be given to the new one; a flush that fails before it submits has changed nothing, and whoever goes
 * on in parts after that holds again first.
 */
import type { Node } from './node.ts';
import { stopGradient } from './primitives.ts';
import { dropUse, holdUse, release, retain, type TrackedHandle, unwatch } from './recorder.ts';

interface Assigned {
  readonly before: Node;
  held: boolean;
}

const assigned = new Map<TrackedHandle, Assigned>();
const undoers: (() => void)[] = [];

/** The handle is about to name `next`. Since the last flush, the first value counts; one in memory is final. */
export function noteAssigned(handle: TrackedHandle, next: Node): void {
  if (next.storage !== null) forgetAssigned(handle);
  else if (!assigned.has(handle)) {
    holdUse(handle.node);
    handle.assigned = true;
    assigned.set(handle, { before: handle.node, held: true });
  }
}

/** The handle is disposed, or what it names is final. */
export function forgetAssigned(handle: TrackedHandle): void {
  const known = assigned.get(handle);
  if (known === undefined) return;
  assigned.delete(handle);
  handle.assigned = false;
  if (known.held) dropUse(known.before);
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
  undoers.push(undo);
}

/** Handles assigned since the last flush. */
export function assignedHandles(): ReadonlyMap<TrackedHandle, unknown> {
  return assigned;
}

/** A run begins: values it reads itself are not held beside it. */
export function letGoAssigned(): void {
  if (assigned.size === 0) return;
  for (const entry of assigned.values()) {
    const { before } = entry;
    if (!entry.held || before.handles + before.uses === 1) continue;
    entry.held = false;
    dropUse(before);
  }
}

/** Other runs come first, or the last one failed: nothing may overwrite the old values. */
export function holdAssigned(): void {
  for (const entry of assigned.values()) {
    if (entry.held) continue;
    entry.held = true;
    holdUse(entry.before);
  }
}

/** What was assigned is computed, or nobody will take it back. */
export function settleAssigned(): void {
  if (assigned.size > 0) {
    for (const [handle, { before, held }] of assigned) {
      handle.assigned = false;
      if (held) dropUse(before);
    }
    assigned.clear();
  }
  if (undoers.length > 0) undoers.length = 0;
}

/** The handles name again what they named before; all values must be held. True if there were any. */
export function takeBackAssigned(): boolean {
  const found = assigned.size > 0;
  for (const [handle, { before }] of assigned) {
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
  const undo = undoers.splice(0);
  settleAssigned();
  for (const f of undo.reverse()) f();
  return found;
}
