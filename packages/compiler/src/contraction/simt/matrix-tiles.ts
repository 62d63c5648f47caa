/** Blocks computed by matrix instructions: which thread has which results. staged-tiles.ts has the nest, matrix-blocks.ts chooses the block. */
import { byMatrices } from '../../codegen/linearize/matrix.ts';
import { type MatrixForm, matrixThreads } from '../../ir/matrix.ts';
import type { Layout, StagedBlock } from './staged-tiles.ts';

export interface MatrixBlock extends StagedBlock {
  readonly form: MatrixForm;
}

/** Rows and columns of a block that each set of 32 threads computes. */
export function shareOf({ rows, columns }: MatrixBlock): readonly [number, number] {
  return [rows >= 128 ? 64 : rows >= 64 ? 32 : 16, columns >= 64 ? 32 : columns >= 32 ? 16 : 8];
}

export function threadsOfBlock(block: MatrixBlock): number {
  const [rows, columns] = shareOf(block);
  return (block.rows / rows) * (block.columns / columns) * matrixThreads;
}

export function matrixLayout(block: MatrixBlock): Layout {
  const [down, right] = shareOf(block);
  const across = block.columns / right;
  const tiles = [down / 16, right / 8] as const;
  return {
    threads: threadsOfBlock(block),
    vector: 2,
    // Tiles along rows and columns, the upper and lower half of a tile's rows, and two neighbouring columns.
    inTile: (e, inPairs) => [
      e.range(tiles[0], 'unroll'),
      e.range(tiles[1], 'unroll'),
      e.range(2, 'unroll'),
      e.range(2, inPairs ? 'vector' : 'unroll'),
    ],
    place: (e, thread, inTile, inPairs) => {
      const [i, j, half, pair] = inTile as [
        (typeof inTile)[0],
        (typeof inTile)[0],
        (typeof inTile)[0],
        (typeof inTile)[0],
      ];
      const [set, lane] = [e.idiv(thread, matrixThreads), e.irem(thread, matrixThreads)];
      const row = e.add(e.add(e.mul(e.idiv(set, across), down), e.mul(i, 16)), e.add(e.idiv(lane, 4), e.mul(half, 8)));
      const column = e.add(e.add(e.mul(e.irem(set, across), right), e.mul(j, 8)), e.mul(e.irem(lane, 4), 2));
      return [row, inPairs ? column : e.add(column, pair)];
    },
    multiply: (inPairs) => byMatrices({ form: block.form, depth: block.depth, across, tiles, inPairs }),
  };
}
