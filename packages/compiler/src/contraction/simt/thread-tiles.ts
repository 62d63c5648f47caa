/** Blocks computed by threads with a few rows and columns each: which thread has which results. staged-tiles.ts has the nest. */
import { byThreadsAlone, placeInBlock, threadPlace, unitOf } from '../../codegen/linearize/products.ts';
import type { CodegenCaps } from '../../codegen/lowering.ts';
import { isFloat } from '../../shape/dtype.ts';
import { type Problem, readAlongSum } from './problem.ts';
import type { Layout, StagedBlock } from './staged-tiles.ts';

/** With more sums, most of a thread's registers are taken. */
const manySums = 32;

export interface ThreadBlock extends StagedBlock {
  /** Results of a thread. */
  readonly own: readonly [rows: number, columns: number];
}

export function threadsOfBlock({ rows, columns, own }: Pick<ThreadBlock, 'rows' | 'columns' | 'own'>): number {
  return (rows / own[0]) * (columns / own[1]);
}

export function threadLayout(block: ThreadBlock, problem: Problem, caps: CodegenCaps): Layout {
  const { dtype, depth, own } = block;
  const [down, across] = [block.rows / own[0], block.columns / own[1]];
  const unit = unitOf(dtype);
  const alongSum = [problem.rows, problem.columns].map((side) => readAlongSum(side, problem.k)) as [boolean, boolean];
  // Two sides along the sum wait in registers as vectors: with many sums there is no room for whole ones.
  const steps = alongSum.every(Boolean) && own[0] * own[1] > manySums ? unit / 2 : unit;
  const muladd = isFloat(dtype) && caps.nativeOps.has('MULADD');
  return {
    threads: threadsOfBlock(block),
    // A thread's columns are not adjacent if it reads them along the sum.
    vector: alongSum[1] ? 1 : unit,
    inTile: (e, inVectors) => [
      e.range(own[0] / unit, 'unroll'),
      e.range(unit, 'unroll'),
      e.range(own[1] / unit, 'unroll'),
      e.range(unit, inVectors ? 'vector' : 'unroll'),
    ],
    place: (e, thread, inTile, inVectors) => {
      const [group, row, vector, lane] = inTile as [
        (typeof inTile)[0],
        (typeof inTile)[0],
        (typeof inTile)[0],
        (typeof inTile)[0],
      ];
      const [ty, tx] = threadPlace(e, { across, down }, thread);
      return [
        placeInBlock(e, { threads: down, unit, alongSum: alongSum[0] }, ty, group, row),
        placeInBlock(e, { threads: across, unit, alongSum: alongSum[1] }, tx, vector, inVectors ? e.i32(0) : lane),
      ];
    },
    multiply: (inVectors) =>
      byThreadsAlone({ dtype, depth, across, down, rows: own[0], columns: own[1], steps, inVectors }, muladd),
  };
}
