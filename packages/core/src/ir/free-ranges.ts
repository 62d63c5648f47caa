/**
 * Which loop variables an expression of stage A depends on.
 *
 * REDUCE and STAGE bind their own ranges, so these are not free in them. Lists are sorted by node number and shared between
 * nodes with equal lists.
 */
import type { KNode, KNodeOf } from './ir.ts';
import { idOf, type Known } from './node.ts';
import { sourcesFirst } from './traverse.ts';

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
