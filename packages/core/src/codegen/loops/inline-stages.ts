/**
 * STAGEs that an engine cannot hold are computed again where they are read.
 *
 * Group memory is small, and on SIMT engines a stage would need threads to cooperate; recomputing is always correct.
 */
import type { CodegenCaps } from '../lowering.ts';
import { dtypeInfo, type DType } from '../../shape/dtype.ts';
import type { Exprs } from '../../ir/expr.ts';
import { FreeRanges, ownRanges, type Range, sizeOf } from '../../ir/free-ranges.ts';
import type { KNode, LoopKernel } from '../../ir/ir.ts';
import { type Replacement, Rewriter } from '../../ir/rewrite.ts';
import { step } from '../transforms/step.ts';

/** Copies of a stage that vectors of 4-byte elements, unrolled four times, may ask for. */
function copies(caps: CodegenCaps): number {
  return Math.max(1, caps.vectorBytes / 4) * 4;
}

function fits(stage: KNode, caps: CodegenCaps): boolean {
  const length = sizeOf(ownRanges(stage));
  return !caps.simt && length * dtypeInfo[stage.dtype as DType].bytes * copies(caps) <= caps.sharedBytes;
}

/** The kernel with every STAGE that does not fit replaced by its value at the place of each read. */
export function inlineStages(kernel: LoopKernel, e: Exprs, caps: CodegenCaps): LoopKernel {
  for (let now = kernel; ; ) {
    const read = findRead(now, caps);
    if (read === null) return now;
    const [stage, index] = read.src;
    const changes = new Map<Range, Replacement>();
    let rest = index;
    for (const r of [...ownRanges(stage)].reverse()) {
      changes.set(r, { value: e.irem(rest, r.arg.extent), ranges: [r] });
      rest = e.idiv(rest, r.arg.extent);
    }
    const value = new Rewriter(e, changes, new FreeRanges()).node(stage.src[0] as KNode);
    const rewriter = new Rewriter(e, new Map());
    rewriter.set(read, value);
    const done = step('inline', ownRanges(stage));
    now = { ...rewriter.kernel(now), transforms: [...(now.transforms ?? []), done] };
  }
}

/** A read of a stage that does not fit, with no such read inside the stage or the index. */
function findRead(kernel: LoopKernel, caps: CodegenCaps): KNode | null {
  const seen = new Set<KNode>();
  const stack: KNode[] = kernel.stores.map((s) => s.store);
  let found: KNode | null = null;
  for (let n = stack.pop(); n !== undefined; n = stack.pop()) {
    if (seen.has(n)) continue;
    seen.add(n);
    if (n.op === 'LOAD' && n.src[0]?.op === 'STAGE' && !fits(n.src[0], caps)) {
      found = n;
      stack.length = 0;
    }
    stack.push(...n.src);
  }
  return found;
}
