/**
 * Sums of which one element counts: the sum over r of `where(r == t, x, 0)` is x with t in place of r, and 0 where no r is t. Losses by class number
 * are such sums, as the kernel that they share with softmax and its gradient goes through all classes anyway; theirs is one element of a row.
 */
import type { Exprs } from '../../ir/expr.ts';
import { FreeRanges, ownRanges, type Range } from '../../ir/free-ranges.ts';
import type { KNode, KNodeOf, LoopKernel } from '../../ir/ir.ts';
import { Rewriter } from '../../ir/rewrite.ts';
import { combine, linearOf } from '../../ir/simplify/integers.ts';

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
    const pick = findPick(now, e, free);
    if (pick === null) return now;
    const { sum, range, at, value } = pick;
    const last = range.arg.extent - 1;
    const changes = new Map([[range, { value: e.min(e.max(at, 0), last), ranges: [] }]]);
    const element = new Rewriter(e, changes, free).node(value);
    const inside = e.and(e.le(e.i32(0), at), e.le(at, e.i32(last)));
    const zero = e.constant(value.dtype as 'float32', 0);
    const rewriter = new Rewriter(e, new Map());
    // A sum is never -0.
    rewriter.set(sum, e.add(e.where(inside, element, zero), zero));
    now = rewriter.kernel(now);
  }
}

function findPick(kernel: LoopKernel, e: Exprs, free: FreeRanges): Pick | null {
  const seen = new Set<KNode>();
  const stack: KNode[] = kernel.stores.map((s) => s.store);
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (seen.has(n)) continue;
    seen.add(n);
    if (n.op === 'REDUCE' && n.arg.op === 'sum') {
      const pick = pickOf(n, e, free);
      if (pick !== null) return pick;
    }
    stack.push(...n.src);
  }
  return null;
}

/** Only sums over one loop: where others are left, what they add would come in another order. */
function pickOf(sum: KNodeOf<'REDUCE'>, e: Exprs, free: FreeRanges): Pick | null {
  const [chosen] = sum.src;
  const [range, ...others] = ownRanges(sum);
  if (range === undefined || range.src.length > 0 || others.length > 0 || chosen.op !== 'WHERE') return null;
  const [condition, value, other] = chosen.src;
  if (condition.op !== 'EQ' || other.op !== 'CONST' || Number(other.arg.value) !== 0) return null;
  const [x, y] = condition.src;
  if (x.dtype !== 'int32') return null;
  // range - at, or at - range, is 0.
  const form = combine(linearOf(x), 1, linearOf(y), -1);
  const own = form?.coefs[form.terms.indexOf(range)];
  if (form == null || (own !== 1 && own !== -1)) return null;
  if (form.terms.some((t) => t !== range && free.has(t, range))) return null;
  const at = form.terms.reduce<KNode>(
    (all, t, i) => (t === range ? all : e.add(all, e.mul(t, -own * form.coefs[i]!))),
    e.i32(-own * form.offset),
  );
  return { sum, range, at, value };
}
