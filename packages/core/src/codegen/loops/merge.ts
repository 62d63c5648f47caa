/**
 * Fewer, longer loops: ranges of one element vanish, neighbouring ranges that walk memory as one are merged.
 *
 * Ranges a (outer) and b (inner) are one range a * |b| + b if every index in which they occur has them in that proportion
 * and every list that binds one of them binds both, next to each other. Most elementwise kernels become one loop.
 */
import type { Exprs } from '../../ir/expr.ts';
import { type Range, sizeOf } from '../../ir/free-ranges.ts';
import { coefficient, indexForms } from '../../ir/index-forms.ts';
import type { KNode, LoopKernel } from '../../ir/ir.ts';
import type { Linear } from '../../ir/node.ts';
import { type Replacement, Rewriter } from '../../ir/rewrite.ts';

interface Uses {
  /** Linear forms with ranges among their terms, one for each place where a range's value is used. */
  readonly forms: readonly Linear[];
  /** Lists of ranges bound together. */
  readonly lists: readonly (readonly Range[])[];
}

function findUses(kernel: LoopKernel): Uses {
  const lists: (readonly Range[])[] = kernel.stores.map((s) => s.ranges);
  const forms = indexForms(
    kernel.stores.map((s) => s.store),
    (ranges) => lists.push(ranges),
  );
  return { forms, lists };
}

function isPlain(r: Range): boolean {
  return r.src.length === 0 && (r.arg.kind === 'loop' || r.arg.kind === 'reduce');
}

/** True if `b` always comes right after `a`, and indices take them as one range. */
function mergeable(a: Range, b: Range, uses: Uses): boolean {
  if (!isPlain(a) || !isPlain(b) || a.arg.kind !== b.arg.kind || a.arg.extent * b.arg.extent > 2 ** 30) return false;
  for (const list of uses.lists) {
    const i = list.indexOf(a);
    const j = list.indexOf(b);
    if (i < 0 ? j >= 0 : j !== i + 1) return false;
  }
  return uses.forms.every((f) => coefficient(f, a) === b.arg.extent * coefficient(f, b));
}

/** The kernel without loops of one element and with mergeable loops merged. */
export function mergeRanges(kernel: LoopKernel, e: Exprs): LoopKernel {
  const dropped = new Map<Range, Replacement>();
  let uses = findUses(kernel);
  for (const list of uses.lists) {
    for (const r of list) if (r.arg.extent === 1 && isPlain(r)) dropped.set(r, { value: e.i32(0), ranges: [] });
  }
  let now = kernel;
  if (dropped.size > 0) {
    now = new Rewriter(e, dropped).kernel(kernel);
    uses = findUses(now);
  }
  const changes = new Map<Range, Replacement>();
  for (const list of uses.lists) {
    let from = 0;
    for (let i = 1; i <= list.length; i++) {
      if (i < list.length && mergeable(list[i - 1] as Range, list[i] as Range, uses)) continue;
      if (i - from > 1 && !changes.has(list[from] as Range)) mergeChain(e, list.slice(from, i), changes);
      from = i;
    }
  }
  return changes.size > 0 || now === kernel ? new Rewriter(e, changes).kernel(now) : now;
}

function mergeChain(e: Exprs, chain: readonly Range[], changes: Map<Range, Replacement>): void {
  const first = chain[0] as Range;
  const merged = e.range(sizeOf(chain), first.arg.kind);
  let rest: KNode = merged;
  for (let i = chain.length - 1; i >= 0; i--) {
    const r = chain[i] as Range;
    const extent = e.i32(r.arg.extent);
    changes.set(r, { value: i === 0 ? rest : e.irem(rest, extent), ranges: i === 0 ? [merged] : [] });
    rest = e.idiv(rest, extent);
  }
}
