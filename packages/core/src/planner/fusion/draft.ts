/**
 * Kernels while the partition decides: which nodes they store, which elements of others they need, and which kernels must run first.
 *
 * A Demand is "kernel K needs node N at index I (where gate G holds)". Equal demands are one object. A demand is either
 * computed in place, from demands on the node's sources, or loaded from memory.
 */
import type { Exprs, Range } from '@polygrad/compiler/ir/expr';
import type { FreeRanges } from '@polygrad/compiler/ir/free-ranges';
import type { KNode, RangeKind } from '@polygrad/compiler/ir/ir';
import { idOf, sameNodes } from '@polygrad/compiler/ir/node';
import type { Shape } from '@polygrad/compiler/shape/view';
import { type PlanNode, type PlanSize, sizeFactor, SizesRefused } from '../capture/plan-graph.ts';
import type { Index } from '../lowering/index-map.ts';

export interface Demand {
  readonly node: PlanNode;
  readonly kernel: KernelDraft;
  readonly index: Index;
  /** Where it is false, the value is arbitrary and memory must not be touched. */
  readonly gate: KNode | null;
  /** Loops around the use, outermost first; loops of reductions come after those of the store. */
  readonly scope: readonly Range[];
  /** True inside the operands of a contraction. */
  readonly operand: boolean;
  /** Decided later: true if computed here from `parts`, false if loaded. */
  inline: boolean;
  /** Demands on sources, in the order in which the node's rule asked for them. */
  parts: readonly Demand[];
  /** Loops of the node's reduction, and conditions that `sources` of its rule keeps for `value`. */
  ranges: readonly Range[];
  notes: readonly KNode[];
  value: KNode | null;
  /** The next demand of the kernel with the same hash. */
  readonly next: Demand | null;
  /** Set if the value is read from a staged row (decide.ts): the row computes `from` over `ranges`, and `at` is its element. */
  staged: { readonly from: Demand; readonly ranges: readonly Range[]; readonly at: KNode } | null;
}

/**
 * One store of a kernel: writes the demand's value, for every point of `ranges`, to element `at` of `target`. Target and index are those
 * of the demand, except for parts of a concatenation.
 */
export interface StoreDraft {
  readonly demand: Demand;
  readonly ranges: readonly Range[];
  readonly target: PlanNode;
  readonly at: Index;
}

/** What all kernels of one plan share. */
export interface DraftContext {
  readonly e: Exprs;
  /** The sizes of the plan, if they are bound at each run. */
  readonly size: PlanSize | null;
  readonly free: FreeRanges;
  readonly reach: Reach;
}

export class KernelDraft {
  /** Number of the kernel in the plan, by creation. */
  readonly id: number;
  readonly context: DraftContext;
  /** The loops of stores of full size, outermost first. */
  readonly axes: readonly Range[];
  readonly stores: StoreDraft[] = [];
  readonly demands: Demand[] = [];
  /** Demands by hash. */
  readonly #known = new Map<number, Demand>();
  /** Kernels that read what this one writes. */
  readonly readers: Set<KernelDraft> = new Set();
  /** Sets of axes, each containing the one before: reductions or smaller stores are computed once per point of a set. */
  rows: ReadonlySet<Range>[] = [];
  /** The contraction whose loops the kernel has, if any. */
  contraction: Demand | null = null;
  /** How many reductions are computed in this kernel, and how many elements they read. */
  reductions = 0;
  reduced = 0;
  /** A contraction found beforehand whose loops the kernel could take over. */
  anchor: PlanNode | null = null;
  /** True if the kernel computes no reductions and stores no other nodes. */
  closed = false;
  /** True for kernels from the program builder (planner/lowering/rules.ts) instead of from demands. */
  handwritten = false;
  /** Reduction loops by extents and place. */
  readonly loops: Map<string, Loops> = new Map();

  constructor(context: DraftContext, axes: readonly Range[]) {
    this.id = context.reach.join();
    this.context = context;
    this.axes = axes;
  }

  /** Notes that another kernel reads what this one writes. */
  readBy(reader: KernelDraft): void {
    this.readers.add(reader);
    this.context.reach.connect(this.id, reader.id);
  }

  /** The demand with this index and gate, made at the first request. The caller adds new ones to the node's list. */
  demand(
    node: PlanNode,
    index: Index,
    gate: KNode | null,
    scope: readonly Range[],
    operand: boolean,
  ): { demand: Demand; isNew: boolean } {
    let hash = Math.imul(node.index + 1, 0x9e3779b1) ^ (gate === null ? 0 : idOf(gate));
    for (let i = 0; i < index.length; i++) hash = Math.imul(hash ^ idOf(index[i]!), 0x85ebca6b) ^ (hash >>> 15);
    const first = this.#known.get(hash) ?? null;
    for (let known = first; known !== null; known = known.next)
      if (known.node === node && known.gate === gate && sameNodes(known.index, index))
        return { demand: known, isNew: false };
    const demand: Demand = {
      node,
      kernel: this,
      index,
      gate,
      scope,
      operand,
      inline: false,
      parts: [],
      ranges: [],
      notes: [],
      value: null,
      next: first,
      staged: null,
    };
    this.#known.set(hash, demand);
    this.demands.push(demand);
    return { demand, isNew: true };
  }

  /** Loops for a reduction over `extents` at a place; reductions that may run together share them. */
  reductionLoops(extents: readonly number[], place: string): Loops {
    const key = `${place}|${extents.join()}`;
    let loops = this.loops.get(key);
    if (loops === undefined) {
      const axes: Range[] = [];
      const index = extents.map((n) => open(this.context, n, axes, 'reduce'));
      this.loops.set(key, (loops = { axes, index }));
    }
    return loops;
  }
}

/** Loops, outermost first, and the index they make, one expression per axis. */
export interface Loops {
  readonly axes: readonly Range[];
  readonly index: readonly KNode[];
}

/** A loop over an axis; over a sized axis it ends at the bound size. The sizes are the first scalars of every kernel. */
export function loop(context: DraftContext, n: number, kind: RangeKind = 'loop'): Range {
  const isSized = sizeFactor(context.size, n) > 0;
  return context.e.range(n, kind, isSized ? lengthOf(context, n) : undefined);
}

/** The length of an axis of one stretch; for a sized axis, the bound size. */
export function lengthOf({ e, size }: Pick<DraftContext, 'e' | 'size'>, n: number): KNode {
  return size?.bound(e, n) ?? e.i32(n);
}

/** Where a slice or a padding begins along an axis. In a plan for a class of sizes negative numbers count from the end of a sized axis. */
export function startAt(context: Pick<DraftContext, 'e' | 'size'>, n: number, start: number): KNode {
  const { e } = context;
  return start < 0 ? e.add(lengthOf(context, n), start) : lengthOf(context, start);
}

/** Adds loops over an axis and returns the position along it. Axes of several stretches get a loop over the stretches too. */
function open(context: DraftContext, n: number, axes: Range[], kind?: RangeKind): KNode {
  const { e, size } = context;
  if (n === 1) return e.i32(0);
  return (size?.stretches.get(n) ?? [n]).reduce((at: KNode, length) => {
    const range = loop(context, length, kind);
    axes.push(range);
    return e.add(e.mul(at, length), range);
  }, e.i32(0));
}

/**
 * Loops over a shape (none for axes of size 1), and the index they make. An entry of `parts` with several extents cuts its axis into
 * several loops of these extents, outermost first.
 */
export function loopsOver(
  context: DraftContext,
  shape: Shape,
  parts: readonly (readonly number[])[] = [],
): { axes: Range[]; index: KNode[] } {
  const axes: Range[] = [];
  const { e, size } = context;
  const index = shape.map((n, axis): KNode => {
    const [first = n, ...inner] = size?.stretches.has(n) ? [] : (parts[axis] ?? []);
    if (inner.some((extent) => sizeFactor(size, extent) > 0)) throw new SizesRefused(`loops ${first}, ${inner}`);
    return inner.reduce(
      (at: KNode, extent) => e.add(e.mul(at, extent), open(context, extent, axes)),
      open(context, first, axes),
    );
  });
  return { axes, index };
}

/** True if `to` reads what `from` writes, directly or through other kernels. */
export function reaches(from: KernelDraft, to: KernelDraft): boolean {
  return from === to || from.context.reach.leads(from.id, to.id);
}

/**
 * Reachability: which kernels of a partition must run before which others, directly or through others.
 *
 * One bit set per kernel, updated at each new edge. The partition asks about almost every pair of kernels. So a walk for each
 * question would make planning of long chains (recurrent networks) cubic in their length.
 */
export class Reach {
  /** For each kernel the set of kernels after it, a bit each. */
  readonly #after: Int32Array[] = [];
  /** For each kernel the kernels directly before it. */
  readonly #before: number[][] = [];

  /** Adds a kernel and returns its number. */
  join(): number {
    this.#before.push([]);
    return this.#after.push(new Int32Array(0)) - 1;
  }

  /** True if `from` comes before `to`. */
  leads(from: number, to: number): boolean {
    return ((this.#after[from]![to >>> 5] ?? 0) & (1 << to)) !== 0;
  }

  /** Puts `from`, and everything before it, before `to`. */
  connect(from: number, to: number): void {
    this.#before[to]!.push(from);
    const added = this.#after[to]!;
    const stack = [from];
    for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
      // A kernel before `to` is before everything after it already, and so are its own predecessors.
      if (this.leads(at, to)) continue;
      let own = this.#after[at]!;
      const least = Math.max((to >>> 5) + 1, added.length);
      if (own.length < least) {
        const short = own;
        own = this.#after[at] = new Int32Array(least);
        own.set(short);
      }
      added.forEach((word, i) => {
        own[i]! |= word;
      });
      own[to >>> 5]! |= 1 << to;
      stack.push(...this.#before[at]!);
    }
  }
}

/** True if `to` is `from` or one of its transitive sources. */
export function isBelow<T>(from: T, to: T, sourcesOf: (at: T) => readonly T[]): boolean {
  const seen = new Set([from]);
  // A Set also visits what is added during the walk.
  for (const at of seen) {
    if (at === to) return true;
    for (const source of sourcesOf(at)) seen.add(source);
  }
  return false;
}
