/** In what blocks contractions go by threads with some rows and columns each. Who has what of a block is in thread-tiles.ts. */
import { unitOf } from '../../codegen/linearize/products.ts';
import type { CodegenCaps } from '../../codegen/lowering.ts';
import { type DType, dtypeInfo } from '../../shape/dtype.ts';
import { depthOf, type Size } from './blocks.ts';
import type { Problem } from './problem.ts';
import { type ThreadBlock, threadsOfBlock } from './thread-tiles.ts';

/** Sizes of blocks and what a thread has of them, the largest first. */
const sizes: readonly (readonly [block: Size, own: Size])[] = [
  [[128, 128], [8, 8]],
  [[128, 64], [8, 8]],
  [[64, 128], [8, 8]],
  [[128, 64], [8, 4]],
  [[64, 64], [8, 4]],
  [[64, 64], [4, 4]],
  [[64, 32], [4, 4]],
  [[32, 64], [4, 4]],
  [[32, 32], [4, 4]],
  [[16, 64], [4, 4]],
  [[64, 16], [4, 4]],
]; // biome-ignore format: a table

/** Bytes of results that a thread holds at most. */
const mostBytes = 256;

/** Blocks that may do a problem, without stages or parts, the largest first. */
export function threadBlocks(problem: Problem, dtype: DType, caps: CodegenCaps): ThreadBlock[] {
  const { bytes } = dtypeInfo[dtype];
  const depth = depthOf(dtype);
  if (bytes < 4 || problem.depth < depth) return [];
  return sizes
    .map(([[rows, columns], own]): ThreadBlock => ({ dtype, rows, columns, own, depth, stages: 2, parts: 1 }))
    .filter(
      (block) =>
        block.own[0] * block.own[1] * bytes <= mostBytes &&
        block.own.every((n) => n % unitOf(dtype) === 0) &&
        threadsOfBlock(block) <= caps.maxGroup,
    );
}
