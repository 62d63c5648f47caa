/** Engines where a group is one thread: the passes that shape loop nests for vectors, one after another. */
import type { CodegenCaps } from '../lowering.ts';
import { shapeNest } from './cpu.ts';
import { cutNarrow, widenNarrow } from './narrow.ts';
import { cutSegments } from './segments.ts';
import { splitRanges } from './split.ts';
import { cutRows, cutStreams } from './streams.ts';
import { cutTransposes } from './tile.ts';
import { reduceWhileStaging } from './reduce-while-staging.ts';
import type { LoopKernel } from '../../ir/ir.ts';
import type { Exprs } from '../../ir/expr.ts';
import { type LoopNest, shaped } from '../transforms/nest.ts';

/** Each takes a nest of stores that share loops. What it makes may be several. */
const passes: readonly ((nest: LoopNest, caps: CodegenCaps) => LoopNest)[] = [
  (nest) => cutSegments(splitRanges(reduceWhileStaging(nest))),
  cutStreams,
  cutRows,
  cutNarrow,
];

/** The shapes of nests for engines where a group is one thread. */
export function shapeVectors(kernel: LoopKernel, e: Exprs, caps: CodegenCaps): LoopKernel {
  return shaped(kernel, e, (nests) =>
    passes
      .reduce((now, pass) => now.flatMap((nest) => partsOf(nest, pass(nest, caps))), nests)
      .flatMap((nest) => cutTransposes(widenNarrow(nest, caps)))
      .map((nest) => shapeNest(nest, caps)),
  );
}

/** What has become of a nest, as nests of stores that share loops. */
function partsOf(before: LoopNest, after: LoopNest): readonly LoopNest[] {
  return after === before ? [after] : after.parts();
}
