/**
 * `optimize`: shapes a loop nest for an engine before it is linearized.
 *
 * Merges loops, then lets the engine's kind (`caps.lowering`) choose vectors, order and groups (`shapeVectors`, axes-simt.ts). The meaning of
 * the kernel does not change; the order in which a reduction adds does.
 */
import type { EngineCaps } from '../engine/engine.ts';
import { shapeNest } from './axes-cpu.ts';
import { mergeRanges } from './axes-merge.ts';
import { cutSegments } from './axes-segments.ts';
import { cutRows, cutStreams } from './axes-streams.ts';
import { cutTransposes } from './axes-tile.ts';
import { inlineStages } from './axes-stage.ts';
import { reduceWhileStaging } from './axes-staged.ts';
import { Exprs } from './expr.ts';
import type { LoopKernel, LoopStore } from './ir.ts';
import { splitNests } from './nests.ts';

/** The kernel with the kinds, order and splits of its ranges chosen for the engine. Ranges must all be undecided. */
export function optimize(kernel: LoopKernel, caps: EngineCaps): LoopKernel {
  const e = new Exprs();
  const merged = mergeRanges(inlineStages(kernel, e, caps), e);
  const nests = splitNests(merged.stores);
  return { ...merged, stores: caps.lowering.shape(nests, e, caps) };
}

/** The shapes of nests for engines where a group is one thread. */
export function shapeVectors(nests: readonly (readonly LoopStore[])[], e: Exprs, caps: EngineCaps): LoopStore[] {
  return nests.flatMap((nest) =>
    splitNests(cutSegments(reduceWhileStaging(nest, e), e))
      .flatMap((part) => splitNests(cutStreams(part, e)))
      .flatMap((part) => splitNests(cutRows(part, e)))
      .flatMap((part) => splitNests(cutTransposes(part, e)))
      .flatMap((part) => shapeNest(part, e, caps)),
  );
}
