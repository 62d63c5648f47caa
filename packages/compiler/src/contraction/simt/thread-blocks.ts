/** In what blocks contractions go by threads with some rows and columns each. Who has what of a block is in thread-tiles.ts. */
import { unitOf } from '../../codegen/linearize/products.ts';
import type { CodegenCaps } from '../../codegen/lowering.ts';
import { type DType, dtypeInfo } from '../../shape/dtype.ts';
import { type Candidate, depthOf, type Size } from './blocks.ts';
import { type Problem, readAlongSum } from './problem.ts';
import { type ThreadBlock, threadsOfBlock } from './thread-tiles.ts';

/** Sizes of blocks and what a thread has of them, the largest first. */
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

/** Results that a thread holds at most, of four bytes and of eight; and where both sides are brought element by element. */
const mostResults = { narrow: 64, wide: 16, single: 32 };
/** Threads of a group with the most of them, where elements are gathered: their addresses wait in registers, of which smaller groups have more. */
const mostGathering = 128;
/** Narrow blocks are for sides shorter than this. */
const narrow = 32;

/** Blocks that may do a problem, without stages or parts, the largest first. */
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
