/**
 * `optimize`: shapes a loop nest for an engine before it is linearized.
 *
 * Merges loops, then lets the engine's kind (`caps.lowering`) choose vectors, order and groups (vectors.ts, simt.ts). The meaning of
 * the kernel does not change; the order in which a reduction adds does.
 */
import type { CodegenCaps } from '../lowering.ts';
import { Exprs } from '../../ir/expr.ts';
import { inlineStages } from './inline-stages.ts';
import { mergeRanges } from './merge.ts';
import type { LoopKernel } from '../../ir/ir.ts';

/**
 * The kernel with the kinds, order and splits of its ranges chosen for the engine. Ranges must all be undecided.
 *
 * @example
 * const e = new Exprs();
 * const x = e.param(0, 'float32', 'read', 2);
 * const y = e.param(1, 'float32', 'write', 2);
 * const i = e.range(2);
 * const store = e.store(y, i, e.mul(e.load(x, i), 2));
 * const kernel: LoopKernel = { name: 'twice', params: [x, y], scalars: [], stores: [{ store, ranges: [i] }] };
 * const { caps } = createReferenceEngine();
 * optimize(kernel, caps).stores.length; // 1
 */
export function optimize(kernel: LoopKernel, caps: CodegenCaps): LoopKernel {
  const e = new Exprs();
  return caps.lowering.shape(mergeRanges(inlineStages(kernel, e, caps), e), e, caps);
}
