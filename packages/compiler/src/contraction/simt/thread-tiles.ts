/** Blocks whose results are computed by threads with some rows and columns each: who has what of them. The nest is in staged-tiles.ts. */
import { byThreadsAlone, placeInBlock, threadPlace, unitOf } from '../../codegen/linearize/products.ts';
import type { CodegenCaps } from '../../codegen/lowering.ts';
import { isFloat } from '../../shape/dtype.ts';
import { type Problem, readAlongSum } from './problem.ts';
import type { Layout, StagedBlock } from './staged-tiles.ts';

/** More sums than this take most of the registers that a thread should have. */
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
  // Two sides along the sum wait in registers in vectors: many sums leave no room for whole ones.
  const steps = alongSum.every(Boolean) && own[0] * own[1] > manySums ? unit / 2 : unit;
  const muladd = isFloat(dtype) && caps.nativeOps.has('MULADD');
  return {
    threads: threadsOfBlock(block),
    // Neighbours of a thread lie apart where it reads them along the sum.
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
        placeInBlock(e, ty, down, unit, alongSum[0], group, row),
        placeInBlock(e, tx, across, unit, alongSum[1], vector, inVectors ? e.i32(0) : lane),
      ];
    },
    multiply: (inVectors) =>
      byThreadsAlone({ dtype, depth, across, down, rows: own[0], columns: own[1], steps, inVectors }, muladd),
  };
}
