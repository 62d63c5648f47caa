/**
 * Sums of which one element counts: the sum over r of `where(r == t, x, 0)` is x with t in place of r, and 0 where no r is t. Losses by class number
 * are such sums, as the kernel that they share with softmax and its gradient goes through all classes anyway; theirs is one element of a row.
 */
import type { Exprs } from '../../ir/expr.ts';
import { FreeRanges, ownRanges, type Range, type RangeList } from '../../ir/free-ranges.ts';
import type { KNode, KNodeOf, LoopKernel } from '../../ir/ir.ts';
import { Rewriter } from '../../ir/rewrite.ts';

/** A sum over `range`, in which only the element at `at` counts. */
interface Pick {
  readonly sum: KNodeOf<'REDUCE'>;
  readonly range: Range;
  readonly at: KNode;
  readonly value: KNode;
}

/** The kernel with each such sum replaced by its element. */
export function readPicks(kernel: LoopKernel, e: Exprs): LoopKernel {
  for (let now = kernel; ; ) {
    const free = new FreeRanges();
    const pick = findPick(now, free);
    if (pick === null) return now;
    const { sum, range, at, value } = pick;
    const last = range.arg.extent - 1;
    const changes = new Map([[range, { value: e.min(e.max(at, 0), last), ranges: [] }]]);
    const element = new Rewriter(e, changes, free).node(value);
    const inside = e.and(e.le(e.i32(0), at), e.le(at, e.i32(last)));
    const rest = ownRanges(sum).filter((r) => r !== range);
    const zero = e.constant(value.dtype as 'float32', 0);
    // A sum is never -0.
    const found = e.add(e.where(inside, element, zero), zero);
    const rewriter = new Rewriter(e, new Map());
    rewriter.set(sum, rest.length === 0 ? found : e.reduce('sum', found, rest));
    now = rewriter.kernel(now);
  }
}

function findPick(kernel: LoopKernel, free: FreeRanges): Pick | null {
  const seen = new Set<KNode>();
  const stack: KNode[] = kernel.stores.map((s) => s.store);
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (seen.has(n)) continue;
    seen.add(n);
    if (n.op === 'REDUCE' && n.arg.op === 'sum') {
      const pick = pickOf(n, free);
      if (pick !== null) return pick;
    }
    stack.push(...n.src);
  }
  return null;
}

function pickOf(sum: KNodeOf<'REDUCE'>, free: FreeRanges): Pick | null {
  const [chosen] = sum.src;
  if (chosen.op !== 'WHERE') return null;
  const [condition, value, other] = chosen.src;
  if (condition.op !== 'EQ' || other.op !== 'CONST' || Number(other.arg.value) !== 0) return null;
  const own: RangeList = ownRanges(sum);
  const [x, y] = condition.src;
  for (const [range, at] of [
    [x, y],
    [y, x],
  ] as const) {
    if (range.op !== 'RANGE' || !own.includes(range) || range.src.length > 0) continue;
    if (at.dtype === 'int32' && own.every((r) => !free.has(at, r))) return { sum, range, at, value };
  }
  return null;
}
