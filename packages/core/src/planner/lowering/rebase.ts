/**
 * Reads and writes that begin late in a tensor, bound from where they begin: the steps of a loop that was written out read one
 * tensor at one place after another, and with the place in the binding they are one kernel.
 */
import type { Exprs } from '../../ir/expr.ts';
import type { KNode, KNodeOf, LoopKernel } from '../../ir/ir.ts';
import { highOf, idOf, lowOf } from '../../ir/node.ts';
import { Rewriter } from '../../ir/rewrite.ts';
import { nodesOf } from '../../ir/traverse.ts';
import { dtypeInfo } from '../../shape/dtype.ts';

/** What an engine allows. */
export interface RebaseOptions {
  readonly elementBytes: readonly number[];
  readonly bindAlign: number;
}

/** A kernel whose PARAMs are bound `shifts` elements later, and what became of its expressions. */
export interface Rebased {
  readonly loop: LoopKernel;
  /** One per PARAM. */
  readonly shifts: readonly number[];
}

/** Which elements of a PARAM are touched, first and last. */
interface Reach {
  first: number;
  last: number;
}

/** The kernel with every PARAM that is only read or only written beginning at the first such element, or null where all do so already. */
export function rebase(loop: LoopKernel, e: Exprs, { elementBytes, bindAlign }: RebaseOptions): Rebased | null {
  const loads: KNodeOf<'LOAD'>[] = [];
  const reaches = new Map<KNode, Reach>();
  for (const n of nodesOf(loop.stores.map(({ store }) => store))) {
    if ((n.op !== 'LOAD' && n.op !== 'STORE') || n.src[0]?.op !== 'PARAM') continue;
    const [param, index] = n.src as readonly [KNodeOf<'PARAM'>, KNode];
    if (n.op === 'LOAD') loads.push(n);
    const reach = reaches.get(param) ?? { first: param.arg.length, last: 0 };
    reach.first = Math.min(reach.first, lowOf(index));
    reach.last = Math.max(reach.last, highOf(index));
    reaches.set(param, reach);
  }
  const shifts = loop.params.map((param) => {
    const { access, length } = param.arg;
    const first = access === 'readwrite' ? 0 : (reaches.get(param)?.first ?? 0);
    const bytes = elementBytes[dtypeInfo[param.dtype].id]!;
    const unit = bindAlign > bytes ? bindAlign / bytes : 1;
    return first > 0 && first < length ? first - (first % unit) : 0;
  });
  if (shifts.every((shift) => shift === 0)) return null;
  const rewriter = new Rewriter(e, new Map());
  const params = loop.params.map((param, slot) => {
    const shift = shifts[slot]!;
    const { access, length } = param.arg;
    if (shift === 0) return param;
    const { last } = reaches.get(param)!;
    return e.param(slot, param.dtype, access, Math.min(length, last + 1) - shift);
  });
  const place = (param: KNodeOf<'PARAM'>, index: KNode): [KNode, KNode] => {
    const { slot } = param.arg;
    return [params[slot] as KNode, e.sub(rewriter.node(index), shifts[slot]!)];
  };
  // Sources first: where one reads may depend on what another has read.
  for (const n of loads.sort((x, y) => idOf(x) - idOf(y))) {
    const [param, index, gate, alt] = n.src as readonly [KNodeOf<'PARAM'>, KNode, KNode?, KNode?];
    const rest = [gate, alt].map((x) => x && rewriter.node(x));
    rewriter.set(n, e.load(...place(param, index), ...(rest as [KNode?, KNode?]), n.lanes));
  }
  const stores = loop.stores.map(({ store, ranges }) => {
    const [param, index, value, gate] = store.src as readonly [KNodeOf<'PARAM'>, KNode, KNode, KNode?];
    return { store: e.store(...place(param, index), rewriter.node(value), gate && rewriter.node(gate)), ranges };
  });
  return { loop: { ...loop, params, stores }, shifts };
}
