/**
 * Flushes and reads that fail: what else is pending is computed, what failed waits for no flush any more.
 *
 * Pending work falls into parts that share no node still to be computed. A part is done as a whole or not at all; tensors assigned
 * since the last flush make one part, so that a step of training is either done or not begun: they go back to the values they had
 * (graph/transactions.ts). Nodes that failed stay recipes: reading one tries again, and tells.
 */
import { hintCollector } from '../engine/collector.ts';
import { DeviceLostError, OutOfMemoryError } from '../engine/errors.ts';
import { getEngine } from '../engine/registry.ts';
import {
  assignedHandles,
  assignedNodes,
  holdAssigned,
  settleAssigned,
  takeBackAssigned,
} from '../graph/transactions.ts';
import type { Node } from '../graph/node.ts';
import { pendingHandles, setAside } from '../graph/recorder.ts';
import { stateOf } from './engine-state.ts';
import { isFree } from './holding.ts';
import { advance, isWord } from './realise.ts';
import type { Patience } from './run.ts';
import { wait } from './waiting.ts';

/** What a flush throws when it is over. */
export interface Failure {
  readonly error: unknown;
}

/** The rest of what a flush wants is computed when `arrival` says so. */
export function waitFor(wanted: readonly Node[], arrival: Promise<void>): void {
  // Counts as work in flight, so that loops come to a halt in throttle() when nothing else does it.
  stateOf(getEngine()).inFlight++;
  wait(
    wanted.filter((node) => node.storage === null),
    arrival,
  );
}

/** Roots in groups that share no node still to be computed; those of `together` are in one group. In the order of their first roots. */
function partsOf(roots: readonly Node[], together: ReadonlySet<Node>): Node[][] {
  const parent = roots.map((_, i) => i);
  const top = (i: number): number => {
    let at = i;
    while (parent[at] !== at) at = parent[at] = parent[parent[at] as number] as number;
    return at;
  };
  const owner = new Map<Node, number>();
  let first = -1;
  const join = (i: number, j: number): void => {
    const [a, b] = [top(i), top(j)];
    parent[Math.max(a, b)] = Math.min(a, b);
  };
  roots.forEach((root, i) => {
    if (together.has(root)) {
      if (first >= 0) join(first, i);
      else first = i;
    }
    const stack = [root];
    for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
      if (node.storage !== null || (isFree(node) && node !== root)) continue;
      const other = owner.get(node);
      if (other !== undefined) {
        join(other, i);
        continue;
      }
      owner.set(node, i);
      stack.push(...node.src);
    }
  });
  const parts = new Map<number, Node[]>();
  roots.forEach((root, i) => {
    const part = parts.get(top(i));
    if (part === undefined) parts.set(top(i), [root]);
    else part.push(root);
  });
  return [...parts.values()];
}

/** Tensors assigned since the last flush go back, and the error says so. */
function takeBack(error: unknown): void {
  holdAssigned();
  if (!takeBackAssigned() || !(error instanceof Error)) return;
  const told = '; tensors assigned since the last flush have the values they had before';
  if (!error.message.endsWith(told)) error.message += told;
}

/** A flush that failed as a whole, and how far its parts are. */
export interface Apart {
  /** Still to be tried, the next one last; `known`: how they failed together. */
  readonly open: { readonly parts: readonly (readonly Node[])[]; readonly known: Failure | null }[];
  readonly together: ReadonlySet<Node>;
  failure: Failure | null;
  broken: boolean;
}

/** The whole flush has failed: it is done in parts from now on. */
export function beginApart(wanted: readonly Node[], error: unknown): Apart {
  holdAssigned();
  if (error instanceof OutOfMemoryError) hintCollector();
  const together = assignedNodes();
  return { open: [{ parts: partsOf(wanted, together), known: { error } }], together, failure: null, broken: false };
}

/**
 * Does the parts one by one, or many at once where that goes well. Returns a promise of when to go on where the device must first say
 * whether it has the memory, else null: `endApart` tells how it went.
 */
export function goOnApart(apart: Apart, patience: Patience): Promise<void> | null {
  const { open, together } = apart;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { parts } = next;
    let failed = next.known;
    if (failed === null) {
      const nodes = parts.flat().filter((node) => node.storage === null && node.edges !== 'dead');
      try {
        const arrival = nodes.length === 0 ? null : advance(nodes, 'global', patience);
        if (arrival !== null && isWord(arrival)) {
          open.push(next);
          return arrival;
        }
        if (arrival !== null) waitFor(nodes, arrival);
        continue;
      } catch (found) {
        failed = { error: found };
      }
    }
    if (parts.length > 1) {
      const half = parts.length >> 1;
      open.push({ parts: parts.slice(half), known: null }, { parts: parts.slice(0, half), known: null });
      continue;
    }
    apart.failure ??= failed;
    apart.broken ||= (parts[0] as readonly Node[]).some((node) => together.has(node));
  }
  return null;
}

/** Null if all parts could be computed; else the error of the oldest that could not, and assigned tensors go back if they are among those. */
export function endApart({ failure, broken }: Apart): Failure | null {
  // What a lost device leaves is restored from copies, or gone: runtime/shadow.ts.
  if (failure !== null && broken && !(failure.error instanceof DeviceLostError)) takeBack(failure.error);
  return failure;
}

/**
 * A node cannot be computed for a reader: what is pending and shares work with it waits for no flush any more. Assigned tensors
 * among that are computed now, or go back. Returns the error.
 */
export function readFailed(node: Node, error: unknown): unknown {
  if (error instanceof DeviceLostError) return error;
  const roots = new Set([node]);
  for (const { disposed, node: pending } of pendingHandles)
    if (!disposed && pending.storage === null) roots.add(pending);
  const together = assignedNodes();
  const part = new Set(partsOf([...roots], together).find((nodes) => nodes.includes(node)));
  const changed = [...part].filter((n) => together.has(n) && n.storage === null);
  setAside((handle) => part.has(handle.node) && !assignedHandles().has(handle));
  if (changed.length === 0) return error;
  try {
    // Where the device must be asked first, the next flush does it.
    if (advance(changed, 'partial', 'memory') === null) settleAssigned();
  } catch {
    takeBack(error);
    setAside(({ node: pending }) => part.has(pending) || pending.storage !== null);
  }
  return error;
}
