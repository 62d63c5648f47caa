/**
 * Kernels that bind more than an engine allows, or are too long: what to change before the partition is tried again.
 *
 * Of what binds too much, first the kernel's further outputs are stored elsewhere; then part of what it computes is forced into memory.
 */
import type { Demand, KernelDraft } from './draft.ts';
import type { PlanNode } from '../capture/plan-graph.ts';

/**
 * Adds to `alone` (nodes not to be stored by kernels of others), or forces a node. `forced` has the nodes that other kernels of the
 * same partition were relieved of: where one of them is computed here too, the next partition will show what that has done.
 */
export function relieve(kernel: KernelDraft, maxBindings: number, alone: Set<PlanNode>, forced: Set<PlanNode>): void {
  const joined = kernel.closed ? [] : kernel.stores.slice(1).map((s) => s.target);
  if (joined.some((node) => !alone.has(node))) {
    for (const node of joined) alone.add(node);
    return;
  }
  if (waits(kernel, forced)) return;
  const part = largestPart(kernel, maxBindings);
  if (part === null) {
    const node = kernel.stores[0]!.target;
    throw new Error(
      `[plan] ${node.op} needs more tensors at once than the ${maxBindings} this engine can bind; join or split in steps`,
    );
  }
  part.node.forced = true;
  forced.add(part.node);
}

/** True where the next partition shows what has been done for another kernel. */
function waits(kernel: KernelDraft, forced: ReadonlySet<PlanNode>): boolean {
  for (const { inline, node } of kernel.demands) if (inline && forced.has(node)) return true;
  return false;
}

/** Forces a node of a kernel of more than `most` values, so that about as many are left to a kernel of their own. True if the next partition will differ. */
export function shorten(kernel: KernelDraft, most: number, alone: Set<PlanNode>, forced: Set<PlanNode>): boolean {
  if (waits(kernel, forced)) return true;
  const below = new Map<Demand, number>();
  let best: Demand | null = null;
  let largest = 1;
  for (const demand of inOrder(kernel).slice(0, most)) {
    // What lies below is at most what comes before, and at most as much as if nothing were shared.
    const size = Math.min(
      below.size + 1,
      demand.parts.reduce((sum, part) => sum + (below.get(part) ?? 0), 1),
    );
    below.set(demand, size);
    if (isMovable(demand) && size > largest) {
      best = demand;
      largest = size;
    }
  }
  if (best === null) return false;
  best.node.forced = true;
  alone.add(best.node);
  forced.add(best.node);
  return true;
}

const inOrder = ({ demands }: KernelDraft): Demand[] => [...demands].sort((a, b) => a.node.index - b.node.index);

const isMovable = ({ inline, node }: Demand): boolean =>
  inline && !node.forced && (node.role !== 'movement' || node.op === 'concat') && node.role !== 'leaf';

/** The largest part of the kernel's expressions that fits a kernel of its own. */
function largestPart(kernel: KernelDraft, maxBindings: number): Demand | null {
  const below = new Map<Demand, ReadonlySet<PlanNode>>();
  let best: Demand | null = null;
  let most = 2;
  for (const demand of inOrder(kernel)) {
    const { node } = demand;
    const bound = new Set<PlanNode>();
    if (!demand.inline) bound.add(node);
    for (const part of demand.parts) for (const source of below.get(part) ?? []) bound.add(source);
    below.set(demand, bound);
    if (isMovable(demand) && bound.size < maxBindings && bound.size >= most) {
      best = demand;
      most = bound.size;
    }
  }
  return best;
}
