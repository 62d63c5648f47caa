/**
 * Reductions over the elements of a STAGE run while it is filled: softmax sums its exponentials while storing them.
 *
 * Such a REDUCE reads each element of the stage once, in order. In terms of the stage's own range it is a reduction of the staged value. linearize
 * computes it in the same loop, where equal expressions are computed once. For engines without SIMT. Pages load this with the first STAGE.
 */
import type { Exprs } from '../../ir/expr.ts';
import { endsAlone, FreeRanges, ownRanges, type Range } from '../../ir/free-ranges.ts';
import type { KNode, KNodeOf, LoopStore } from '../../ir/ir.ts';
import { isPosition, nodesOf } from '../../ir/node.ts';
import { type Replacement, Rewriter } from '../../ir/rewrite.ts';
import type { LoopNest } from './transforms.ts';

/** The nest with every such REDUCE over the range of its stage. */
export function reduceWhileStaging(nest: LoopNest): LoopNest {
  const { e } = nest;
  for (let now = nest; ; ) {
    const found = findReduce(now.stores, e);
    if (found === null) return now;
    now = now.with(found.from, found.to, 'fuse', ownRanges(found.from));
  }
}

function findReduce(stores: readonly LoopStore[], e: Exprs): { from: KNode; to: KNode } | null {
  const nodes = [...nodesOf(stores.map((s) => s.store))];
  const free = new FreeRanges();
  for (const n of nodes) {
    if (n.op !== 'REDUCE' || isPosition(n)) continue;
    const to = overStage(n, e, free);
    if (to !== null) return { from: n, to };
  }
  return null;
}

/** The reduction over the stage's range, if it reads the stage element by element; else null. */
function overStage(n: KNodeOf<'REDUCE'>, e: Exprs, free: FreeRanges): KNode | null {
  const [r, ...others] = ownRanges(n);
  const value = n.src[0];
  if (r === undefined || others.length > 0) return null;
  const read = [...nodesOf([value])].find((x) => x.op === 'LOAD' && x.src[0]?.op === 'STAGE' && x.src[1] === r);
  if (read === undefined || read.src.length > 2) return null;
  const stage = read.src[0];
  const [own, ...more] = ownRanges(stage);
  if (own === undefined || more.length > 0 || own.arg.extent !== r.arg.extent) return null;
  if (!endsAlone(own) || own.src[0] !== r.src[0]) return null;
  if (captures(value, r, own, free)) return null;
  const rewriter = new Rewriter(e, new Map<Range, Replacement>([[r, { value: own, ranges: [own] }]]), free);
  rewriter.set(read, stage.src[0]);
  const staged = rewriter.node(value);
  // Reads at another position of the stage must wait until it is full.
  if (nodesOf([staged]).has(stage)) return null;
  return e.reduce(n.arg.op, staged, [own]);
}

/**
 * True if `own` in place of `r` would capture another loop: an outer one, or an inner one with the same id. An inner one that depends on no
 * loop of the value is computed before all of them.
 */
function captures(value: KNode, r: Range, own: Range, free: FreeRanges): boolean {
  if (own === r) return false;
  if (free.has(value, own)) return true;
  const binders = [...nodesOf([value])].filter((n) => n.op === 'REDUCE' || n.op === 'STAGE');
  const bound = new Set([r, ...binders.flatMap(ownRanges)]);
  return binders.some((n) => ownRanges(n).includes(own) && free.of(n).some((q) => bound.has(q)));
}
