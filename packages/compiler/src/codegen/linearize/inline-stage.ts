/** A STAGE that does not fit in group memory, recomputed where it is read. */
import type { Exprs } from '../../ir/expr.ts';
import { FreeRanges, ownRanges, type Range } from '../../ir/free-ranges.ts';
import type { KNode, KNodeOf, LoopKernel } from '../../ir/ir.ts';
import { type Replacement, Rewriter, step } from '../../ir/rewrite.ts';

/** The kernel with a read of a stage replaced by the value that the stage has there. */
export function inlineStage(kernel: LoopKernel, e: Exprs, read: KNodeOf<'LOAD'>): LoopKernel {
  const [stage, index] = read.src;
  const changes = new Map<Range, Replacement>();
  let rest: KNode = index;
  for (const r of [...ownRanges(stage)].reverse()) {
    changes.set(r, { value: e.irem(rest, r.arg.extent), ranges: [r] });
    rest = e.idiv(rest, r.arg.extent);
  }
  const value = new Rewriter(e, changes, new FreeRanges()).node(stage.src[0] as KNode);
  const rewriter = new Rewriter(e, new Map());
  rewriter.set(read, value);
  const done = step('inline', ownRanges(stage));
  return { ...rewriter.kernel(kernel), transforms: [...(kernel.transforms ?? []), done] };
}
