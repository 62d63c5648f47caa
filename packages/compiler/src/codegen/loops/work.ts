/**
 * The work of a nest, as the choice of loops needs it: loads and arithmetic with the ranges each depends on.
 *
 * Index arithmetic does not count, except reductions in it. Every value is assumed to be computed once for each combination of
 * the ranges it depends on, as linearize does if loops are ordered well.
 */
import type { KNode, KNodeOf, KOp, LoopStore } from '../../ir/ir.ts';
import { isArithmetic, sameNodes } from '../../ir/node.ts';
import { isArg } from '../../ir/operations.ts';
import {
  countOf,
  FreeRanges,
  ownRanges,
  productOf,
  type Range,
  type RangeList,
  sizedStrideOf,
  sizeOf,
  typicalOf,
  typicalStride,
} from '../../ir/free-ranges.ts';
import { linearOf } from '../../ir/simplify/integers.ts';
import { isFloat } from '../../shape/dtype.ts';

/** A load, an operation or a store. */
interface Item {
  readonly free: RangeList;
  readonly weight: number;
  /** Its weight outside of vectors, relative to one vector operation for all lanes. */
  readonly single?: number;
  /** For memory accesses: the index, the gate. */
  readonly index: KNode | null;
  readonly gate: KNode | null;
}

/** Steps along a number of elements; if they are reduced, a last vector cannot be moved back. */
export type Steps = (elements: number, reduced: boolean) => number;

/** The vector width, and the steps along a number of elements. */
export interface Width {
  readonly lanes: number;
  readonly steps: Steps;
  /** Steps for each element along the loops of a nest that have been asked for. */
  readonly each: Map<Range, number>;
}

/** A REDUCE or STAGE. */
export interface Binder {
  readonly node: KNode;
  readonly own: readonly Range[];
  readonly free: RangeList;
  /** Work of one instance. */
  readonly work: number;
}

/** Operations in three classes: besides the choice of vectors, only the order of magnitude of the work matters. */
function weightOf(n: KNode): number {
  const cost = operationCost(n.op);
  if (cost > 2) return cost < 8 ? 4 : 16;
  // A comparison, negated.
  if (n.op === 'CAST' && n.dtype === 'bool') return 2;
  return isArithmetic(n.op) || n.op === 'CAST' || n.op === 'LOAD' || n.op === 'REDUCE' || n.op === 'STAGE' ? 1 : 0;
}

/**
 * Cost of a reduction's scalar steps, and of combining the lanes of vectors, in scalar operations. An
 * extremum of floats handles NaN and the sign of zero at each scalar step, but only once for vectors.
 */
function stepsOf(n: KNodeOf<'REDUCE'>, lanes = 4): { readonly single: number; readonly together: number } {
  const { op } = n.arg;
  if (isArg(op)) return { single: 6, together: lanes > 4 ? 100 : 40 };
  if (op === 'sum' || op === 'prod' || !isFloat(n.dtype)) return { single: 1, together: 4 };
  return { single: 6, together: 24 };
}

/** The outermost REDUCEs and STAGEs of index arithmetic that are not in `seen` yet. */
function bindersIn(roots: readonly KNode[], seen: Set<KNode>): KNode[] {
  const found: KNode[] = [];
  const stack = [...roots];
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (seen.has(n)) continue;
    seen.add(n);
    if (n.op === 'REDUCE' || n.op === 'STAGE') found.push(n);
    else stack.push(...n.src);
  }
  return found;
}

/** Cost of an access for each lane, relative to one outside of vectors; and where loops around a reduction repeat it, in a near cache. */
const apart = 1.25;
const apartAgain = 0.5;
/** With less work, a kernel takes as long as its launch. */
const leastRepeated = 48 * 1024;

/** Lengths of a loop that ends at a size by which steps for each element are reckoned. */
const sampled = 8;

/** Steps for each element along a loop; where it ends at a size, the mean of several sizes: one may be a whole number of vectors by chance. */
function stepsEach(r: Range, steps: Steps, reduced: boolean): number {
  const { least, most } = countOf(r);
  const typical = typicalOf(r);
  if (r.src.length === 0 || least === 0) return typical === 0 ? 1 : steps(typical, reduced) / typical;
  let sum = 0;
  for (let i = 0; i <= sampled; i++) {
    const n = Math.round(least * (most / least) ** (i / sampled));
    sum += steps(n, reduced) / n;
  }
  return sum / (sampled + 1);
}

function activeRange(free: RangeList, along: ReadonlySet<Range>, own: ReadonlySet<Range>): Range | null {
  let other: Range | null = null;
  for (let i = 0; i < free.length; i++) {
    const r = free[i]!;
    if (along.has(r)) return r;
    if (other === null && own.has(r)) other = r;
  }
  return other;
}

/** The work of a nest, computed once. */
export function workOf(nest: { readonly stores: readonly LoopStore[]; work: NestWork | undefined }): NestWork {
  nest.work ??= new NestWork(nest.stores);
  return nest.work;
}

export class NestWork {
  readonly stores: readonly LoopStore[];
  readonly free: FreeRanges = new FreeRanges();
  readonly binders: Binder[] = [];
  /** Ranges of reductions. */
  readonly #reduced = new Set<Range>();
  readonly #items: Item[] = [];
  /** Their weights times how often each is computed. */
  #typical: readonly number[] | null = null;
  /** The same where no loop around a reduction leaves its elements in registers (`#repeats`), once a choice of loops asks for it. */
  #outside: readonly number[] | null = null;
  #inside: readonly number[] | null = null;

  constructor(stores: readonly LoopStore[]) {
    this.stores = stores;
    const seen = new Set<KNode>();
    const stack: KNode[] = [];
    const pending: KNode[] = [];
    const indices = new Set<KNode>();
    for (const { store } of stores) {
      const [, index, value, gate] = store.src;
      this.#items.push({ free: this.free.of(store), weight: 1, index, gate: gate ?? null });
      stack.push(value, ...bindersIn(gate === undefined ? [index] : [index, gate], indices));
    }
    for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
      if (seen.has(n)) continue;
      seen.add(n);
      const weight = weightOf(n);
      if (n.op === 'LOAD') {
        const [mem, index, gate, alt] = n.src;
        this.#items.push({ free: this.free.of(n), weight, index, gate: gate ?? null });
        if (mem.op === 'STAGE') stack.push(mem);
        if (alt !== undefined) stack.push(alt);
        stack.push(...bindersIn(gate === undefined ? [index] : [index, gate], indices));
        continue;
      }
      if (n.op === 'REDUCE' || n.op === 'STAGE') {
        pending.push(n);
        const value = n.src[0];
        const single = n.op === 'REDUCE' ? stepsOf(n).single : 1;
        this.#items.push({ free: this.free.of(value), weight, single, index: null, gate: null });
        stack.push(value);
        continue;
      }
      if (weight > 0) this.#items.push({ free: this.free.of(n), weight, index: null, gate: null });
      stack.push(...n.src);
    }
    for (const node of pending) {
      const free = this.free.of(node);
      const own = ownRanges(node);
      const inside = this.#items.filter((x) => own.some((r) => x.free.includes(r)));
      const work = inside.reduce((sum, x) => sum + x.weight * sizeOf(x.free.filter((r) => !free.includes(r))), 0);
      this.binders.push({ node, own, free, work });
      for (const r of own) this.#reduced.add(r);
    }
  }

  /** The loops of the stores, or null if they differ. */
  common(): RangeList | null {
    const list = this.stores[0]?.ranges ?? [];
    return this.stores.every((s) => sameNodes(s.ranges, list)) ? list : null;
  }

  /** The common loop along which all stores write consecutive elements. */
  unitRange(): Range | undefined {
    return this.common()?.find((r) => this.writes(r, 1));
  }

  /** True if all stores write along a range with this stride. */
  writes(r: Range, stride: number): boolean {
    return this.stores.every(({ store }) => this.strideOf(store.src[1], r) === stride);
  }

  /** All work, in scalar operations; `count` says how many iterations loops have, their extents where it is left out. */
  total(count: (r: Range) => number = (r) => r.arg.extent): number {
    return this.#items.reduce((sum, x) => sum + x.weight * productOf(x.free, count), 0);
  }

  /** Number of values computed in the loop over a range. */
  countIn(r: Range): number {
    return this.#items.filter((x) => x.free.includes(r)).length;
  }

  /** Number of memory accesses that are contiguous along a range; null if one depends on it in another way. */
  accessesAlong(r: Range): number | null {
    let count = 0;
    for (const { index, gate } of this.#items) {
      if (gate !== null && this.free.has(gate, r)) return null;
      if (index === null) continue;
      const stride = this.strideOf(index, r);
      if (stride === 1) count++;
      else if (stride !== 0) return null;
    }
    return count;
  }

  /** Cost if each value is a vector along one of its ranges that is in `along`, or else in `own`; scalar if none is. Sizes count as typical ones. */
  cost(width: Width, along: ReadonlySet<Range>, own: ReadonlySet<Range>): number {
    let sum = 0;
    this.#typical ??= this.#items.map((x) => x.weight * productOf(x.free, typicalOf));
    // All choices of loops are weighed by it, in the first plan too: no iterators.
    const items = this.#items;
    for (let i = 0; i < items.length; i++) {
      const x = items[i]!;
      const v = activeRange(x.free, along, own);
      sum += v === null ? this.#typical[i]! * (x.single ?? 1) : this.#along(i, v, width);
    }
    for (let i = 0; i < this.binders.length; i++) {
      const { node, own: bound, free } = this.binders[i]!;
      if (node.op !== 'REDUCE') continue;
      const v = activeRange(this.free.of(node.src[0]), along, own);
      if (v !== null && bound.includes(v)) sum += stepsOf(node, width.lanes).together * productOf(free, typicalOf);
    }
    return sum;
  }

  /** Cost of an item as vectors along a range. */
  #along(i: number, v: Range, width: Width): number {
    const { index, gate } = this.#items[i]!;
    const typical = this.#typical![i]!;
    if (gate !== null && this.free.has(gate, v)) return typical * 1.5;
    if (index === null || !this.free.has(index, v) || this.strideOf(index, v) === 1)
      return typical * this.#stepsEach(v, width);
    const again = this.#reduced.has(v)
      ? (this.#inside ??= this.#repeats(true))
      : (this.#outside ??= this.#repeats(false));
    return Math.max(typical * apart, again[i]! * apartAgain);
  }

  #stepsEach(v: Range, { steps, each }: Width): number {
    const found = each.get(v) ?? stepsEach(v, steps, this.#reduced.has(v));
    each.set(v, found);
    return found;
  }

  /**
   * The weights of values times how often each is computed in loops around its reductions; `inside`: in their innermost loops too, as where
   * vectors run along one of those.
   */
  #repeats(inside: boolean): readonly number[] {
    if (this.total(typicalOf) < leastRepeated) return this.#typical!;
    const around = ({ free }: Item): RangeList => {
      const all = new Set(free);
      for (const { own, free: outer } of this.binders) {
        const last = own.findLastIndex((r) => free.includes(r));
        if (last >= 0) for (const r of [...outer, ...(inside ? own : own.slice(0, last))]) all.add(r);
      }
      return [...all];
    };
    return this.#items.map((x) => x.weight * productOf(around(x), typicalOf));
  }

  /** Stride of an index along a range, or null if the index is not linear in it. */
  strideOf(index: KNode, r: Range): number | null {
    if (!this.free.has(index, r)) return 0;
    const form = linearOf(index);
    const at = form.terms.indexOf(r);
    if (at < 0 || form.terms.some((t, i) => i !== at && this.free.has(t, r))) return null;
    return form.coefs[at]!;
  }

  /** The stride of an index that depends on a range, through sizes as well: then a typical one. */
  typicalStrideOf(index: KNode, r: Range): number | null {
    const stride = sizedStrideOf(this.free, index, r);
    return stride && typicalStride(stride);
  }
}

// Costs of operations of loop nests, in units of one addition on one element. The planner reads the same costs from the definitions of
// primitives, which this room cannot see; primitives/costs.test.ts compares the two.
//
// The numbers count instructions of decomposed functions on vectors (arithmetic/decompose/), rounded; divisions and
// roots by their reciprocal throughput relative to additions on x86-64 cores since Skylake (3 to 6). They only affect choices between kernels
// with equal results.

/** Operations that cost more than an addition. */
// biome-ignore format: a table of operations reads better grouped
const costs: Partial<Readonly<Record<KOp, number>>> = {
  ROUND: 2, FMA: 2, ISNAN: 2,
  DIV: 3, SQRT: 3, RECIP: 3, RSQRT: 4, IDIV: 6, IREM: 6, FREM: 8,
  EXP2: 9, EXP: 10, LOG: 12, LOG2: 12, LOG10: 12, EXPM1: 14, LOG1P: 14, TANH: 14,
  ASIN: 16, ACOS: 16, ATAN: 16, SINH: 18, COSH: 18, SIN: 20, COS: 20, ERF: 20, ATAN2: 24, TAN: 28, POW: 30,
};

/** The cost of a value operation. */
export function operationCost(op: KOp): number {
  return costs[op] ?? 1;
}
