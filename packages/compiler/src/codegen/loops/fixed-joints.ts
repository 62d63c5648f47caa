/**
 * Reductions of joined and padded rows of fixed length, cut as those are that end at a size (joined-reductions.ts). Pages do not load this:
 * their programs for one size stay as they are.
 */
import type { Exprs } from '../../ir/expr.ts';
import { sizeLimit, typicalOf } from '../../ir/free-ranges.ts';
import type { LoopKernel } from '../../ir/ir.ts';
import { assumeBounds, highOf, idOf, lowOf } from '../../ir/node.ts';
import { flattened, Rewriter, step } from '../../ir/rewrite.ts';
import { linearOf } from '../../ir/simplify/integers.ts';
import { cutReductions } from './joined-reductions.ts';

const tools = { Rewriter, flattened, step, linearOf, sizeLimit, typicalOf, lowOf, highOf, idOf, assumeBounds };

/** The kernel with such reductions in parts. */
export function cutFixedReductions(kernel: LoopKernel, e: Exprs): LoopKernel {
  return cutReductions(kernel, e, tools, new Rewriter(e, new Map()), true);
}
