/** Blocks of contractions by threads with a few rows and columns each. thread-tiles.ts assigns the results of a block to threads. */
import { unitOf } from '../../codegen/linearize/products.ts';
import type { CodegenCaps } from '../../codegen/lowering.ts';
import { type DType, dtypeInfo } from '../../shape/dtype.ts';
import { type Candidate, depthOf, type Size } from './blocks.ts';
import { type Problem, readAlongSum } from './problem.ts';
import { type ThreadBlock, threadsOfBlock } from './thread-tiles.ts';

/** Sizes of blocks and of the part of each thread, the largest first. */
// biome-ignore format: a table
const sizes: readonly (readonly [block: Size, own: Size])[] = [
  [[128, 128], [8, 8]],
  [[128, 64], [8, 8]],
  [[64, 128], [8, 8]],
  [[128, 64], [8, 4]],
  [[64, 64], [8, 4]],
  [[64, 64], [8, 8]],
  [[64, 64], [4, 4]],
  [[64, 32], [4, 4]],
  [[32, 64], [4, 4]],
  [[16, 64], [4, 4]],
  [[64, 16], [4, 4]],
  [[32, 32], [4, 4]],
  [[32, 16], [4, 4]],
  [[16, 32], [4, 4]],
];

/** Most results of a thread, with four bytes and with eight; and where both sides are gathered element by element. */
const mostResults = { narrow: 64, wide: 16, single: 32 };
/** Most threads of a group where elements are gathered: the addresses wait in registers, and smaller groups have more of those. */
const mostGathering = 128;
/** Sides shorter than this get narrow blocks. */
const narrow = 32;

/** Blocks that may compute a problem, without stages or parts, the largest first. */
export function threadBlocks(
  { rows, columns, k, depth: steps, depthStep }: Problem,
  dtype: DType,
  caps: CodegenCaps,
): Candidate<ThreadBlock>[] {
  const { bytes } = dtypeInfo[dtype];
  const depth = depthOf(dtype);
  if (bytes < 4 || steps < depth) return [];
  const gathers = k.length > 1 || [rows, columns].some((s) => s.ranges.length > 1 || s.factor.value.op !== 'LOAD');
  const isSingle = gathers && (depthStep % unitOf(dtype) !== 0 || (readAlongSum(rows, k) && readAlongSum(columns, k)));
  const most = bytes > 4 ? mostResults.wide : isSingle ? mostResults.single : mostResults.narrow;
  return sizes
    .map(([[height, width], own]): Candidate<ThreadBlock> => {
      const block = { dtype, rows: height, columns: width, own, depth, stages: 2, parts: 1 };
      return { block, threads: threadsOfBlock(block) };
    })
    .filter(
      ({ block, threads }) =>
        block.own[0] * block.own[1] <= most &&
        !(gathers && block.own[0] * block.own[1] === mostResults.narrow && threads > mostGathering) &&
        (block.rows >= narrow || rows.extent < narrow) &&
        (block.columns >= narrow || columns.extent < narrow) &&
        block.own.every((n) => n % unitOf(dtype) === 0) &&
        threads <= caps.maxGroup,
    );
}
