/**
 * Which nodes share a kernel, and which are written to memory. This file has the decisions so far, what the rules for each role share
 * (decide.ts), and the changes before another try where a kernel became too large.
 *
 * A node is computed in place by the kernels that need it, or stored: by a kernel that visits its elements anyway, by a similar kernel, or by a
 * new one. Kernels never depend on each other in a circle: every join is checked against the readers known so far, and later decisions only
 * add kernels that run earlier.
 */
import { Exprs, type Range } from '@polygrad/compiler/ir/expr';
import { FreeRanges, sizeOf } from '@polygrad/compiler/ir/free-ranges';
import type { KNode } from '@polygrad/compiler/ir/ir';
import { isBakedIn, type PlanGraph, type PlanNode } from '../capture/plan-graph.ts';
import { bothGates, type Index } from '../lowering/index-map.ts';
import { needSources } from '../lowering/rules.ts';
import { type Facts, factsOf } from './cost.ts';
import { type Demand, type DraftContext, KernelDraft, lengthOf, loopsOver, Reach, reaches } from './draft.ts';
import { anchorLoops, loopsAround, placeOf, rangesOf, rowFits } from './places.ts';

/** Most parts of a concatenation that one kernel stores, if the engine can bind so many and the result. */
const mostParts = 7;

export class Partition {
  readonly #mostParts: number;
  readonly graph: PlanGraph;
  readonly facts: Facts;
  readonly context: DraftContext;
  readonly kernels: KernelDraft[] = [];
  /** Demands on each node, by its index. */
  readonly demands: readonly Demand[][];
  /** For each node in memory the demand that stores it. */
  readonly homes: (Demand | null)[];
  /** Nodes that kernels of other nodes must not store, because they would bind too much. */
  readonly alone: ReadonlySet<PlanNode>;
  /** Kernels that read a node at indices not known in advance (gather). */
  readonly #readers: Set<KernelDraft>[];
  /** Kernels by what they compute, so that similar nodes are stored together. */
  readonly #kin = new Map<string, KernelDraft[]>();

  constructor(graph: PlanGraph, alone: ReadonlySet<PlanNode>, maxBindings: number) {
    this.graph = graph;
    this.context = { e: new Exprs(), size: graph.size, free: new FreeRanges(), reach: new Reach() };
    this.#mostParts = Math.min(mostParts, maxBindings - 1);
    this.alone = alone;
    this.facts = factsOf(graph);
    this.demands = graph.nodes.map(() => []);
    this.homes = graph.nodes.map(() => null);
    this.#readers = graph.nodes.map(() => new Set());
  }

  /** True if the node must be in memory whatever its rule would choose. */
  mustStore(node: PlanNode): boolean {
    return node.forced || this.#readers[node.index]!.size > 0;
  }

  /** Kernels that read the node from memory at indices not known in advance. */
  readersOf(node: PlanNode): ReadonlySet<KernelDraft> {
    return this.#readers[node.index]!;
  }

  demandsOf(node: PlanNode): readonly Demand[] {
    return this.demands[node.index]!;
  }

  /** The kernel's only demand on the node, or null if it has none or several. */
  onlyDemand(kernel: KernelDraft, node: PlanNode): Demand | null {
    let only: Demand | null = null;
    for (const demand of this.demandsOf(node)) {
      if (demand.kernel !== kernel) continue;
      if (only !== null) return null;
      only = demand;
    }
    return only;
  }

  /** True if no kernel that needs the node must run before this one. */
  canServe(kernel: KernelDraft, node: PlanNode): boolean {
    for (const demand of this.demandsOf(node))
      if (demand.kernel !== kernel && reaches(demand.kernel, kernel)) return false;
    for (const reader of this.#readers[node.index]!) if (reader === kernel || reaches(reader, kernel)) return false;
    return true;
  }

  /** A demand of the kernel on an element that no rule asked for. */
  demand(kernel: KernelDraft, node: PlanNode, index: Index, scope: readonly Range[]): Demand {
    const made = kernel.demand(node, index, null, scope, false);
    if (made.isNew) this.demands[node.index]!.push(made.demand);
    return made.demand;
  }

  /** Computes the demand in place. */
  inline(demand: Demand): void {
    if (demand.inline) return;
    demand.inline = true;
    const { kernel, node } = demand;
    const { e } = this.context;
    const parts: Demand[] = [];
    const notes: KNode[] = [];
    let own: readonly KNode[] = [];
    const around = loopsAround(this.context, demand);
    const need = (
      source: PlanNode,
      index: Index,
      gate: KNode | null,
      scope: readonly Range[],
      operand: boolean,
    ): void => {
      const made = kernel.demand(source, index, bothGates(e, demand.gate, gate), scope, operand);
      if (made.isNew) this.demands[source.index]!.push(made.demand);
      parts.push(made.demand);
    };
    const loops = (extents: readonly number[], place: string): readonly KNode[] => {
      const real = kernel.reductionLoops(
        extents.filter((n) => n !== 1),
        place,
      );
      let at = 0;
      own = real.axes;
      return extents.map((n) => (n === 1 ? e.i32(0) : real.index[at++]!));
    };
    needSources({
      e,
      demand,
      need: (source, index, gate = null) => need(source, index, gate, demand.scope, demand.operand),
      needInside: (source, index, gate, ranges, operand) =>
        need(source, index, gate, [...around, ...ranges], operand || demand.operand),
      loops: (extents) => loops(extents, placeOf(this.context, demand, this.facts.depth[node.index]!)),
      ownLoops: (extents) => loops(extents, `own${node.index}.${kernel.demands.length}`),
      note: (condition) => notes.push(condition),
      needInMemory: (source) => {
        this.#readers[source.index]!.add(kernel);
      },
    });
    demand.parts = parts;
    demand.notes = notes;
    demand.ranges = own as readonly Range[];
  }

  inlineAll(node: PlanNode): void {
    for (const demand of this.demandsOf(node)) this.inline(demand);
  }

  /** Adds a store for a demand that is computed in place; all other kernels read the stored value. */
  store(demand: Demand, ranges: readonly Range[]): Demand {
    const { kernel, node } = demand;
    const loops = kernel.axes.filter((axis) => ranges.includes(axis));
    kernel.stores.push({ demand, ranges: loops, target: node, at: demand.index });
    this.homes[node.index] = demand;
    this.#addReaders(kernel, node);
    this.inline(demand);
    return demand;
  }

  /** Makes every kernel that needs the node a reader of this one. */
  #addReaders(kernel: KernelDraft, node: PlanNode): void {
    for (const other of this.demandsOf(node)) if (other.kernel !== kernel) kernel.readBy(other.kernel);
    for (const reader of this.#readers[node.index]!) kernel.readBy(reader);
  }

  /** Stores each part of a concatenation by itself, side by side, so that no element chooses between parts. */
  storeParts(node: PlanNode, axis: number): void {
    const { e } = this.context;
    let start: KNode = e.i32(0);
    for (let first = 0; first < node.src.length; first += this.#mostParts) {
      const kernel = new KernelDraft(this.context, []);
      kernel.closed = true;
      this.kernels.push(kernel);
      for (const part of node.src.slice(first, first + this.#mostParts)) {
        const { axes, index } = loopsOver(this.context, part.shape);
        const demand = this.demand(kernel, part, index, axes);
        const at = index.map((i, k) => (k === axis ? e.add(i, start) : i));
        kernel.stores.push({ demand, ranges: axes, target: node, at });
        start = e.add(start, lengthOf(this.context, part.shape[axis]!));
      }
      this.#addReaders(kernel, node);
    }
  }

  /** Stores the node in a new kernel. */
  storeInNewKernel(node: PlanNode): Demand {
    const anchor = this.facts.anchor[node.index] as PlanNode | null;
    const { axes, index } = loopsOver(this.context, node.shape, anchorLoops(this.facts, node));
    const kernel = new KernelDraft(this.context, axes);
    this.kernels.push(kernel);
    kernel.anchor = anchor;
    const { demand } = kernel.demand(node, index, null, axes, false);
    return this.store(demand, axes);
  }

  /** Kernels from the program builder (planner/lowering/rules.ts) hold one node, and their operands are in memory. */
  storeProgram(node: PlanNode): void {
    const { axes, index } = loopsOver(this.context, node.shape);
    const kernel = new KernelDraft(this.context, axes);
    kernel.closed = true;
    kernel.handwritten = true;
    this.kernels.push(kernel);
    const { demand } = kernel.demand(node, index, null, axes, false);
    for (const source of node.src) if (!isBakedIn(node, source)) this.#readers[source.index]!.add(kernel);
    demand.inline = true;
    this.store(demand, axes);
  }

  /** Stores the node in a similar kernel if there is one, else in a new one that similar nodes may join. */
  storeWithKin(node: PlanNode, key: string, fits: (kernel: KernelDraft) => boolean): Demand {
    const kin = this.#kin.get(key) ?? [];
    if (!this.alone.has(node)) {
      for (const kernel of kin) {
        const first = kernel.stores[0] as { demand: Demand; ranges: readonly Range[] };
        const whole = first.ranges.length === kernel.axes.length && first.demand.node.size === node.size;
        if (
          !whole ||
          !fits(kernel) ||
          this.demandsOf(node).some((d) => d.kernel === kernel) ||
          !this.canServe(kernel, node)
        )
          continue;
        const { demand } = kernel.demand(node, first.demand.index, null, kernel.axes, false);
        return this.store(demand, kernel.axes);
      }
    }
    const demand = this.storeInNewKernel(node);
    kin.push(demand.kernel);
    this.#kin.set(key, kin);
    return demand;
  }

  /** True if the kernel may store the node at this demand, and has no other demand on it. */
  mayStoreAt(demand: Demand): boolean {
    return this.onlyDemand(demand.kernel, demand.node) === demand && this.runsThrough(demand);
  }

  /** True if the demand's kernel visits every element of the node exactly once, in loops where it may store it. */
  runsThrough(demand: Demand): boolean {
    const { kernel, node } = demand;
    if (kernel.closed || demand.operand || demand.gate !== null) return false;
    const ranges = rangesOf(this.context, demand);
    if (ranges === null || sizeOf(ranges) !== node.size || !ranges.every((range) => kernel.axes.includes(range)))
      return false;
    if (ranges.length === kernel.axes.length) return true;
    // The epilogue of a contraction has no smaller stores.
    return kernel.contraction === null && kernel.anchor === null && rowFits(kernel, ranges, 1);
  }
}

// Kernels that bind more than an engine allows, or are too long: what changes before the next try.
//
// A kernel that binds too much first loses its further outputs to other kernels; then part of what it computes is forced into memory.

/**
 * Adds to `alone` (nodes that other kernels must not store), or forces a node. `forced` has the nodes forced in this round for
 * other kernels: a kernel that computes one of them waits for the next partition, which shows the effect.
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

/** True if a node forced for another kernel is computed here too, so that the next partition will differ. */
function waits(kernel: KernelDraft, forced: ReadonlySet<PlanNode>): boolean {
  for (const { inline, node } of kernel.demands) if (inline && forced.has(node)) return true;
  return false;
}

/** Forces a node of a kernel with more than `most` values, so that about as many remain in a separate kernel. True if the next partition will differ. */
export function shorten(kernel: KernelDraft, most: number, alone: Set<PlanNode>, forced: Set<PlanNode>): boolean {
  if (waits(kernel, forced)) return true;
  const below = new Map<Demand, number>();
  let best: Demand | null = null;
  let largest = 1;
  for (const demand of inOrder(kernel).slice(0, most)) {
    // Upper bound of the values below a node: all values before it, or the sum below if none were shared.
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

/** The largest subexpression of the kernel that fits into a kernel by itself. */
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
