/**
 * Rehearsals: a function is recorded so that its kernels can be made, and afterwards everything is as it was. Assignments are
 * remembered here and taken back. tensor/warmup.ts begins and ends one, tensor/handle.ts tells of assignments, and
 * runtime/runtime.ts asks whether one is on before it flushes.
 */
import type { Node } from './node.ts';
import { release, retain } from './counting.ts';
import type { TrackedHandle } from './recorder.ts';

/** What each assigned handle named before; null where nothing is rehearsed. */
let before: Map<TrackedHandle, Node> | null = null;

/**
 * True while `warmup` records a function. Who counts calls in JavaScript (an optimizer its steps) does not count then.
 *
 * @example
 * console.log(isRehearsing()); //=> false
 */
export function isRehearsing(): boolean {
  return before !== null;
}

export function beginRehearsal(): void {
  before = new Map();
}

/** The handle is about to name another node. */
export function rememberAssigned(handle: TrackedHandle): void {
  if (before === null || before.has(handle)) return;
  retain(handle.node);
  before.set(handle, handle.node);
}

/** Runs `plan` with the counts as they would be if nobody remembered anything. */
export function asIfForgotten<T>(plan: () => T): T {
  const held = before === null ? [] : [...before.values()].filter((node) => node.uses > 0);
  for (const node of held) node.handles--;
  try {
    return plan();
  } finally {
    for (const node of held) node.handles++;
  }
}

/** Assigned handles name again what they named before; returns those. */
export function endRehearsal(): ReadonlySet<TrackedHandle> {
  const taken = before ?? new Map<TrackedHandle, Node>();
  before = null;
  for (const [handle, node] of taken) {
    if (handle.disposed) release(node);
    else {
      const dropped = handle.node;
      handle.node = node;
      release(dropped);
    }
  }
  return new Set(taken.keys());
}
