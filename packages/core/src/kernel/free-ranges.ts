/**
 * Which loop variables an expression of stage A depends on.
 *
 * REDUCE and STAGE bind their own ranges, so these are not free in them. Lists are sorted by node number and shared between
 * nodes with equal lists.
 */
import type { KNode, KNodeOf } from './ir.ts';
import { idOf } from './node.ts';
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
      out.push(x as Range);
      i++;
      if (x === y) j++;
    } else {
      out.push(y);
      j++;
    }
  }
  return out.length === a.length ? a : out.length === b.length ? b : out;
}

/** Ranges a REDUCE or STAGE binds. */
export function ownRanges(n: KNode): RangeList {
  return n.src.slice(1) as readonly KNode[] as RangeList;
}

/** Computes free ranges with a memory; one instance per kernel. */
export class FreeRanges {
  readonly #known = new Map<KNode, RangeList>();

  of(root: KNode): RangeList {
    const known = this.#known.get(root);
    if (known !== undefined) return known;
    sourcesFirst(
      root,
      (n) => this.#known.has(n),
      (n) => (n.op === 'RANGE' ? none : n.src),
      (n) => this.#known.set(n, this.#compute(n)),
    );
    return this.#known.get(root) as RangeList;
  }

  #compute(n: KNode): RangeList {
    if (n.op === 'RANGE') return [n];
    if (n.op === 'REDUCE' || n.op === 'STAGE') {
      const inner = this.#known.get(n.src[0] as KNode) as RangeList;
      return inner.length === 0 ? none : inner.filter((r) => !n.src.includes(r, 1));
    }
    let all = none;
    for (const s of n.src) all = union(all, this.#known.get(s) as RangeList);
    return all;
  }

  /** True if the expression depends on the range. */
  has(n: KNode, range: Range): boolean {
    return this.of(n).includes(range);
  }
}
