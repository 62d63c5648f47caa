/**
 * Which loop variables an expression of stage A depends on, through which linear forms, and which stores share them.
 *
 * REDUCE and STAGE bind their own ranges, so these are not free in them. Lists are sorted by node number and shared between
 * nodes with equal lists.
 */
import type { Exprs } from './expr.ts';
import type { KNode, KNodeOf, LoopStore } from './ir.ts';
import { highOf, idOf, type Known, type Linear, lowOf, nodesOf, sourcesFirst } from './node.ts';
import { linearOf } from './simplify/integers.ts';

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
  const limit = r.src[0];
  return limit === undefined || freeOf(limit).length > 0 ? null : limit;
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

function freeOf(root: KNode): RangeList {
  if ((root as Known).free === null) sourcesFirst(root, isKnown, sources, remember);
  return (root as Known).free as RangeList;
}

/** Computes free ranges; every node remembers its own. */
export class FreeRanges {
  of(root: KNode): RangeList {
    return freeOf(root);
  }

  /** True if the expression depends on the range. */
  has(n: KNode, range: Range): boolean {
    const list = ((n as Known).free as RangeList | null) ?? freeOf(n);
    for (let i = 0; i < list.length; i++) if (list[i] === range) return true;
    return false;
  }
}

/** What an index grows by with each iteration of a loop: a number times sizes. */
export interface SizedStride {
  readonly number: number;
  readonly sizes: readonly KNode[];
}

/** The stride of an index that depends on a range, through sizes as well; null where it is not linear in it. */
export function sizedStrideOf(free: FreeRanges, index: KNode, r: Range): SizedStride | null {
  const sizes: KNode[] = [];
  let number = 1;
  for (let n = index; n !== r; ) {
    const { terms, coefs } = linearOf(n);
    const own = terms.filter((t) => free.has(t, r));
    const [term] = own;
    if (term === undefined || own.length > 1) return null;
    number *= coefs[terms.indexOf(term)]!;
    if (term.op === 'MUL') {
      const [a, b] = term.src;
      const size = free.has(a, r) ? b : a;
      for (const { op } of nodesOf([size])) if (!/^(SCALAR|MUL|MIN|MAX|CONST)$/.test(op)) return null;
      sizes.push(size);
      n = size === a ? b : a;
    } else if (term === r) n = r;
    else return null;
  }
  return { number, sizes };
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
    const keys = s.ranges.length > 0 ? [s.ranges[0]!] : reduceRanges(s.store);
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

// Loops that end at a size given at dispatch (`sizeLimit`): how long they are for certain, at most, and in which steps.
//
// The extent of such a loop is its capacity, the greatest size. Strides, stages and costs go by that; what is read and written ends at
// the limit.

/** True unless the end of a loop depends on other loops, as that of a last chunk does. */
export function endsAlone(r: Range): boolean {
  return r.src.length === 0 || sizeLimit(r) !== null;
}

/** The loop ends at a size that is given at dispatch. */
export function isSized(r: Range): boolean {
  return sizeLimit(r) !== null;
}

/** How many iterations a loop has that ends alone. */
export function lengthOf(e: Exprs, r: Range): KNode {
  return sizeLimit(r) ?? e.i32(r.arg.extent);
}

/** Where neighbouring loops as one end, if the first of them ends at a size; the others are of fixed length. */
export function limitOf(e: Exprs, loops: readonly Range[]): KNode | undefined {
  const [first, ...inner] = loops;
  const limit = first === undefined ? null : sizeLimit(first);
  return limit === null ? undefined : e.mul(limit, sizeOf(inner));
}

/** How many elements loops go through at most: of a size, the greatest that may be bound. */
export function mostOf(ranges: readonly Range[]): number {
  return ranges.reduce((n, r) => n * countOf(r).most, 1);
}

/** How many iterations loops have together. */
export function iterationsOf(e: Exprs, loops: readonly Range[]): KNode {
  return loops.reduce((n: KNode, r) => e.mul(n, lengthOf(e, r)), e.i32(1));
}

/** The same where one of them ends at a size; null where they are all of fixed length. */
export function endOf(e: Exprs, loops: readonly Range[]): KNode | null {
  return loops.some(isSized) ? iterationsOf(e, loops) : null;
}

/** How many stretches of `by` iterations there are up to `end`; the last one may be shorter. */
export function stretchesOf(e: Exprs, end: KNode, by: number): KNode {
  return divisorOf(end) % by === 0 ? e.idiv(end, by) : e.idiv(e.add(end, by - 1), by);
}

/** True if a loop that ends alone is always a multiple of `by` iterations. */
export function isMultiple(r: Range, by: number): boolean {
  const limit = sizeLimit(r);
  return r.arg.extent % by === 0 && (limit === null || divisorOf(limit) % by === 0);
}

/** A number that an int32 expression is always a multiple of; 0 for zero. */
export function divisorOf(n: KNode): number {
  if (lowOf(n) === highOf(n)) return Math.abs(lowOf(n));
  if (n.op === 'MIN' || n.op === 'MAX') return greatestDivisor(divisorOf(n.src[0]), divisorOf(n.src[1]));
  const { terms, coefs, offset } = linearOf(n);
  return terms.reduce(
    (all, term, i) => greatestDivisor(all, Math.abs(coefs[i]!) * (term === n ? 1 : divisorOf(term))),
    Math.abs(offset),
  );
}

/** The greatest number that divides both. */
export function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}

/** How many iterations a loop takes. */
export interface Count {
  readonly most: number;
  readonly least: number;
  /** A number that it is always a multiple of. */
  readonly step: number;
}

/** True if where a loop ends depends on a number given at dispatch. */
export function isSizedEnd(limit: KNode): boolean {
  return limit.op === 'SCALAR' || [...nodesOf([limit])].some(({ op }) => op === 'SCALAR');
}

/** How many iterations a loop takes. Of chunks only those of sizes are looked into: others end early once, in the last chunk. */
export function countOf(r: Range): Count {
  const { extent } = r.arg;
  const [limit] = r.src;
  if (limit === undefined) return { most: extent, least: extent, step: Math.max(1, extent) };
  if (!isSizedEnd(limit)) return { most: extent, least: 0, step: 1 };
  const most = Math.min(extent, highOf(limit));
  return { most, least: Math.max(0, Math.min(most, lowOf(limit))), step: Math.max(1, divisorOf(limit)) };
}

/**
 * Iterations by which is reckoned what pays: of a loop that ends at a size as much above the least as below the most, as parts of these. A plan
 * for several sizes is made for one in between. Chunks of such a loop are whole but for the last one.
 */
export function typicalOf(r: Range): number {
  const { extent } = r.arg;
  const limit = sizeLimit(r);
  if (limit === null || lowOf(limit) <= 0 || !isSizedEnd(limit)) return extent;
  return Math.round(Math.sqrt(Math.min(extent, lowOf(limit)) * Math.min(extent, highOf(limit))));
}

/** A stride by which is reckoned what pays. */
export function typicalStride({ number, sizes }: SizedStride): number {
  return Math.round(sizes.reduce((n, size) => n * Math.sqrt(Math.max(1, lowOf(size)) * highOf(size)), number));
}

/** How many elements loops go through, by iterations that `count` says. */
export function productOf(ranges: readonly Range[], count: (r: Range) => number): number {
  return ranges.reduce((product, r) => product * count(r), 1);
}
