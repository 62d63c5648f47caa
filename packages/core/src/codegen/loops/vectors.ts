/** Engines where a group is one thread: the passes that shape loop nests for vectors, one after another. */
import type { CodegenCaps } from '../lowering.ts';
import { shapeNest } from './cpu.ts';
import { cutNarrow, widenNarrow } from './narrow.ts';
import { cutSegments } from './segments.ts';
import { splitRanges } from './split.ts';
import { cutRows, cutStreams } from './streams.ts';
import { cutTransposes } from './tile.ts';
import { reduceWhileStaging } from './reduce-while-staging.ts';
import type { Exprs } from '../../ir/expr.ts';
import type { LoopStore } from '../../ir/ir.ts';
import { splitNests } from '../../ir/nests.ts';

/** The shapes of nests for engines where a group is one thread. */
export function shapeVectors(nests: readonly (readonly LoopStore[])[], e: Exprs, caps: CodegenCaps): LoopStore[] {
  return nests.flatMap((nest) =>
    splitNests(cutSegments(splitRanges(reduceWhileStaging(nest, e), e), e))
      .flatMap((part) => splitNests(cutStreams(part, e)))
      .flatMap((part) => splitNests(cutRows(part, e)))
      .flatMap((part) => splitNests(cutNarrow(part, e, caps)))
      .flatMap((part) => splitNests(cutTransposes(widenNarrow(part, e, caps), e)))
      .flatMap((part) => shapeNest(part, e, caps)),
  );
}
