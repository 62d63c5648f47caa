/**
 * Kernels while they are being decided: which nodes they store, at which indices they need which others, and which have to run first.
 *
 * A Demand is "kernel K needs node N at index I (where gate G holds)". Equal demands are one object. A demand is either
 * computed in place, from demands on the node's sources, or loaded from memory that another kernel (or nobody) wrote.
 */
import type { Exprs, Range } from '@polygrad/compiler/ir/expr';
import type { FreeRanges } from '@polygrad/compiler/ir/free-ranges';
import type { KNode, RangeKind } from '@polygrad/compiler/ir/ir';
import { idOf } from '@polygrad/compiler/ir/node';
import type { Shape } from '@polygrad/compiler/shape/view';
import { type PlanNode, type PlanSize, sizeFactor, SizesRefused } from '../capture/plan-graph.ts';
import type { Index } from '../lowering/index-map.ts';

export interface Demand {
  readonly node: PlanNode;
  readonly kernel: KernelDraft;
  readonly index: Index;
  /** Where false, the value may be anything and memory must not be touched. */
  readonly gate: KNode | null;
  /** Loops around the place of use, outermost first; loops of reductions come after those of the store. */
  readonly scope: readonly Range[];
  /** True inside the operands of a contraction. */
  readonly operand: boolean;
  /** Decided later: computed here from `parts`, or loaded. */
  inline: boolean;
  /** Demands on sources, in the order the node's rule gives them. */
  parts: readonly Demand[];
  /** Ranges of the node's own reduction, and conditions its rule wants back when it makes the value. */
  ranges: readonly Range[];
  notes: readonly KNode[];
  value: KNode | null;
  /** Another demand of the kernel with the same hash. */
  readonly next: Demand | null;
  /** Read from a row kept inside the kernel (decide.ts): computed as `from` over `ranges`, this element at `at`. */
  staged: { readonly from: Demand; readonly ranges: readonly Range[]; readonly at: KNode } | null;
}

/**
 * One store of a kernel: the demand's value, for every point of `ranges`, to element `at` of `target`. That is the demand's own
 * node and index, except where a node is put together from parts.
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
  /** The size of the plan, if it is bound at each run. */
  readonly size: PlanSize | null;
  readonly free: FreeRanges;
  readonly reach: Reach;
}

export class KernelDraft {
  /** Its number among the plan's, in the order they were made. */
  readonly id: number;
  readonly context: DraftContext;
  /** The loops of full stores, outermost first. */
  readonly axes: readonly Range[];
  readonly stores: StoreDraft[] = [];
  readonly demands: Demand[] = [];
  /** Demands by what they ask for. */
  readonly #known = new Map<number, Demand>();
  /** Kernels that read what this one writes. */
  readonly readers: Set<KernelDraft> = new Set();
  /** Sets of axes over which reductions or smaller stores are computed once, each containing the one before. */
  rows: ReadonlySet<Range>[] = [];
  /** The contraction whose loops these are, if any. */
  contraction: Demand | null = null;
  /** How many reductions are computed in this kernel, and how many elements they read. */
  reductions = 0;
  reduced = 0;
  /** A contraction that could become this kernel's, found beforehand. */
  anchor: PlanNode | null = null;
  /** True for kernels that other nodes may not be stored by and that compute no reductions. */
  closed = false;
  /** True for kernels that are written by hand instead of being lowered from demands (planner/lowering/rules.ts). */
  handwritten = false;
  /** Reduction loops by extents and place. */
  readonly loops: Map<string, Loops> = new Map();

  constructor(context: DraftContext, axes: readonly Range[]) {
    this.id = context.reach.join();
    this.context = context;
    this.axes = axes;
  }

  /** Another kernel reads what this one writes. */
  readBy(reader: KernelDraft): void {
    this.readers.add(reader);
    this.context.reach.connect(this.id, reader.id);
  }

  /** The demand with this index and gate; made on first request. The caller adds new ones to the node's list. */
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
      if (known.node === node && known.gate === gate && sameIndex(known.index, index))
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

  /** Loops for a reduction over `extents` at a place: shared by reductions that may run together. */
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

/** Loops, outermost first, and the index that they make, which has an element for each axis. */
export interface Loops {
  readonly axes: readonly Range[];
  readonly index: readonly KNode[];
}

/** A loop over an axis: of a sized one it ends at the size. Sizes are the first scalars of every kernel. */
export function loop(context: DraftContext, n: number, kind: RangeKind = 'loop'): Range {
  const isSized = sizeFactor(context.size, n) > 0;
  return context.e.range(n, kind, isSized ? lengthOf(context, n) : undefined);
}

/** How many elements an axis of one stretch has: for a sized one, a number that is bound. */
export function lengthOf({ e, size }: Pick<DraftContext, 'e' | 'size'>, n: number): KNode {
  return size?.bound(e, n) ?? e.i32(n);
}

/** Where along an axis something begins: on a sized one, as far from the end as at capacity, if not at its beginning. */
export function startAt(context: Pick<DraftContext, 'e' | 'size'>, n: number, start: number): KNode {
  const { e, size } = context;
  return start === 0 || sizeFactor(size, n) === 0 ? e.i32(start) : e.add(lengthOf(context, n), start - n);
}

/** Adds loops over an axis; the position along it. Axes of several stretches of the size have a loop over the stretches too. */
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
 * Loops over a shape (none for axes of size 1), and the index they make. `parts[axis]`, where there is more than one, are the extents of the
 * loops that this axis is cut into, outermost first.
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

function sameIndex(a: Index, b: Index): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** True if `to` reads, directly or through others, what `from` writes. */
export function reaches(from: KernelDraft, to: KernelDraft): boolean {
  return from === to || from.context.reach.leads(from.id, to.id);
}

/**
 * Which kernels of a partition have to run before which others, directly or through others.
 *
 * A set of bits per kernel, brought up to date at each new edge. The partition asks for almost every pair of kernels, so a walk for each
 * question would make plans of long chains (a recurrent network's) cost the cube of their length.
 */
export class Reach {
  /** Kernels after each kernel, a bit each. */
  readonly #after: Int32Array[] = [];
  /** Kernels right before each kernel. */
  readonly #before: number[][] = [];

  /** Another kernel; its number. */
  join(): number {
    this.#before.push([]);
    return this.#after.push(new Int32Array(0)) - 1;
  }

  /** True if `from` is before `to`. */
  leads(from: number, to: number): boolean {
    return ((this.#after[from]![to >>> 5] ?? 0) & (1 << to)) !== 0;
  }

  /** From now on, `from` is before `to`, and so is everything before `from`. */
  connect(from: number, to: number): void {
    this.#before[to]!.push(from);
    const added = this.#after[to]!;
    const stack = [from];
    for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
      // What is before `to` already is before everything after it too, and so is what comes before that.
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

/** True if `to` is `from`, or among what its sources lead to. */
export function isBelow<T>(from: T, to: T, sourcesOf: (at: T) => readonly T[]): boolean {
  const seen = new Set([from]);
  // A Set visits what is added while it is walked.
  for (const at of seen) {
    if (at === to) return true;
    for (const source of sourcesOf(at)) seen.add(source);
  }
  return false;
}
