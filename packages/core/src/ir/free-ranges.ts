/**
 * Which loop variables an expression of stage A depends on, through which linear forms, and which stores share them.
 *
 * REDUCE and STAGE bind their own ranges, so these are not free in them. Lists are sorted by node number and shared between
 * nodes with equal lists.
 */
import type { KNode, KNodeOf, LoopStore } from './ir.ts';
import { idOf, type Known, type Linear } from './node.ts';
import { linearOf } from './simplify/integers.ts';
import { nodesOf, sourcesFirst } from './traverse.ts';

export type Range = KNodeOf<'RANGE'>;
export type RangeList = readonly Range[];

const none: RangeList = [];

function union(a: RangeList, b: RangeList): RangeList {
  if (a === b || b.length === 0) return a;
  if (a.length === 0) return b;
  let i = 0;
  let j = 0;
  const out: Range[] = [];
  while (i < a.length || j < b.length) {
    const x = a[i];
    const y = b[j];
    if (x === y || y === undefined || (x !== undefined && idOf(x) < idOf(y))) {
      out.push(x!);
      i++;
      if (x === y) j++;
    } else {
      out.push(y);
      j++;
    }
  }
  return out.length === a.length ? a : out.length === b.length ? b : out;
}

/** How many elements loops go through: the product of their extents. */
export function sizeOf(ranges: Iterable<Range>): number {
  let product = 1;
  for (const range of ranges) product *= range.arg.extent;
  return product;
}

/**
 * Where a loop ends whose length is only known at dispatch: an int32 expression of scalars, at most the extent of the loop. Null for
 * loops of fixed length, and for those whose end depends on other loops (the last chunk of a loop that was split).
 */
export function sizeLimit(r: Range): KNode | null {
  const [limit] = r.src;
  if (limit === undefined) return null;
  for (const n of nodesOf([limit])) if (n.op === 'RANGE') return null;
  return limit;
}

/** True if both lists are of the same loops in the same order. */
export function sameRanges(a: RangeList, b: RangeList): boolean {
  return a.length === b.length && a.every((r, i) => r === b[i]);
}

/** Ranges a REDUCE or STAGE binds. */
export function ownRanges(n: KNode): RangeList {
  return n.src.slice(1) as readonly KNode[] as RangeList;
}

const isKnown = (n: KNode): boolean => (n as Known).free !== null;
const sources = (n: KNode): readonly KNode[] => (n.op === 'RANGE' ? none : n.src);
const remember = (n: KNode): void => {
  (n as Known).free = compute(n);
};

function known(n: KNode): RangeList {
  return (n as Known).free as RangeList;
}

function compute(n: KNode): RangeList {
  if (n.op === 'RANGE') return [n];
  if (n.op === 'REDUCE' || n.op === 'STAGE') {
    const within = known(n.src[0]);
    return within.length === 0 ? none : within.filter((r) => !n.src.includes(r, 1));
  }
  let all = none;
  for (let i = 0; i < n.src.length; i++) all = union(all, known(n.src[i]!));
  return all;
}

/** Computes free ranges; every node remembers its own. */
export class FreeRanges {
  of(root: KNode): RangeList {
    if ((root as Known).free === null) sourcesFirst(root, isKnown, sources, remember);
    return (root as Known).free as RangeList;
  }

  /** True if the expression depends on the range. */
  has(n: KNode, range: Range): boolean {
    const list = ((n as Known).free as RangeList | null) ?? this.of(n);
    for (let i = 0; i < list.length; i++) if (list[i] === range) return true;
    return false;
  }
}

// The linear forms through which expressions depend on ranges: one for each place where an index is used.
//
// Two ranges that stand in one proportion in all of them can be treated as one: merged where they walk memory without gaps,
// or seen as a window that slides.

function isIndex(n: KNode): boolean {
  return n.dtype === 'int32' && n.lanes === 1;
}

/** True for a node that is only a part of a larger linear form. */
function isLinearPart(n: KNode): boolean {
  if (!isIndex(n)) return false;
  return n.op === 'ADD' || n.op === 'SUB' || n.op === 'NEG' || n.op === 'MUL' ? !linearOf(n).terms.includes(n) : false;
}

/** All forms with ranges among their terms; `onBound` gets the ranges of every REDUCE and STAGE on the way. */
export function indexForms(roots: readonly KNode[], onBound?: (ranges: RangeList) => void): readonly Linear[] {
  const forms = new Set<Linear>();
  const seen = new Set<KNode>();
  const stack: KNode[] = [];
  const visit = (n: KNode, part: boolean): void => {
    stack.push(n);
    if (part || !isIndex(n)) return;
    const form = linearOf(n);
    if (form.terms.some((t) => t.op === 'RANGE')) forms.add(form);
  };
  for (const root of roots) visit(root, false);
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (seen.has(n)) continue;
    seen.add(n);
    const binds = n.op === 'REDUCE' || n.op === 'STAGE';
    if (binds) onBound?.(ownRanges(n));
    const part = isLinearPart(n);
    for (let i = 0; i < (binds ? 1 : n.src.length); i++) visit(n.src[i]!, part);
  }
  return [...forms];
}

/** Coefficient of a node in a form. */
export function coefficient(f: Linear, n: KNode): number {
  const i = f.terms.indexOf(n);
  return i < 0 ? 0 : f.coefs[i]!;
}

// Which stores of a kernel belong together.
//
// Stores are of one nest if they share a loop, or if they are outside all loops and share a reduction's ranges. Nests
// are independent of each other and may run in different groups at the same time.

/** The stores of a kernel by nest, in order of first appearance. */
export function splitNests(stores: readonly LoopStore[]): LoopStore[][] {
  const nests: { keys: Set<Range>; stores: LoopStore[] }[] = [];
  for (const s of stores) {
    const keys = s.ranges.length > 0 ? [s.ranges[0] as Range] : reduceRanges(s.store);
    const same = nests.filter((n) => keys.some((k) => n.keys.has(k)));
    const target = same[0] ?? { keys: new Set<Range>(), stores: [] };
    if (same.length === 0) nests.push(target);
    for (const other of same.slice(1)) {
      for (const k of other.keys) target.keys.add(k);
      target.stores.push(...other.stores);
      nests.splice(nests.indexOf(other), 1);
    }
    for (const k of keys) target.keys.add(k);
    target.stores.push(s);
  }
  return nests.map((n) => n.stores);
}

/** Ranges bound by the reductions of a store. */
export function reduceRanges(store: KNode): Range[] {
  return [...nodesOf([store])].flatMap((n) => (n.op === 'REDUCE' ? ownRanges(n) : []));
}
