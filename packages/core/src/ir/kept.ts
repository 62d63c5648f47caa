/**
 * The stores of a kernel where only some of the results computed may be kept.
 */
import type { Exprs } from './expr.ts';
import type { Range } from './free-ranges.ts';
import type { KNode, KNodeOf, LoopStore } from './ir.ts';
import type { Rewriter } from './rewrite.ts';
import { nodesOf } from './traverse.ts';

/** The stores rewritten, over `ranges`, done where `kept` holds (null: everywhere). */
export function storesWhere(
  e: Exprs,
  stores: readonly LoopStore[],
  rewriter: Rewriter,
  kept: KNode | null,
  ranges: readonly Range[],
): LoopStore[] {
  if (kept === null) return stores.map((s) => ({ store: rewriter.store(s).store, ranges }));
  const gated = (gate: KNode | undefined): KNode => (gate === undefined ? kept : e.and(gate, kept));
  // What is updated in place must not even be read where another group may have written it.
  for (const load of mutableLoads(stores)) {
    const [memory, index, gate, alt] = load.src.map((s) => rewriter.node(s)) as [KNode, KNode, KNode?, KNode?];
    rewriter.set(load, e.load(memory, index, gated(gate), alt));
  }
  return stores.map((s) => {
    const { store } = rewriter.store(s);
    const [memory, index, value, gate] = store.src;
    return { store: e.store(memory, index, value, gated(gate)), ranges };
  });
}

/** Reads of tensors that the stores write, outside the sum. */
function mutableLoads(stores: readonly LoopStore[]): KNodeOf<'LOAD'>[] {
  const outside = nodesOf(
    stores.map((s) => s.store),
    (n) => (n.op === 'REDUCE' ? [] : n.src),
  );
  return [...outside].filter((n): n is KNodeOf<'LOAD'> => {
    const memory = n.src[0];
    return n.op === 'LOAD' && memory?.op === 'PARAM' && memory.arg.access === 'readwrite';
  });
}
