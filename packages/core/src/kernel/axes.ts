/**
 * `optimize`: shapes a loop nest for an engine before it is linearized.
 *
 * Merges loops, then lets the engine's kind (`caps.lowering`) choose vectors, order and groups (axes-vectors.ts, axes-simt.ts). The meaning of
 * the kernel does not change; the order in which a reduction adds does.
 */
import type { EngineCaps } from '../engine/engine.ts';
import { mergeRanges } from './axes-merge.ts';
import { inlineStages } from './axes-stage.ts';
import { Exprs } from './expr.ts';
import type { LoopKernel } from './ir.ts';
import { splitNests } from './nests.ts';

/** The kernel with the kinds, order and splits of its ranges chosen for the engine. Ranges must all be undecided. */
export function optimize(kernel: LoopKernel, caps: EngineCaps): LoopKernel {
  const e = new Exprs();
  const merged = mergeRanges(inlineStages(kernel, e, caps), e);
  const nests = splitNests(merged.stores);
  return { ...merged, stores: caps.lowering.shape(nests, e, caps) };
}
