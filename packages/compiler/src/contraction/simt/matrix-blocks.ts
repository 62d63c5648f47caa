/**
 * Which contractions use matrix instructions (`caps.matrix`), and in which blocks. matrix-tiles.ts assigns the results of a block to threads.
 *
 * Factors of 16 bits are multiplied as they are and summed in float32. float32 factors are rounded to TF32 where the target lists such a tile.
 */
import type { CodegenCaps } from '../../codegen/lowering.ts';
import type { Exprs } from '../../ir/expr.ts';
import type { KNode } from '../../ir/ir.ts';
import { type MatrixForm, stepsOf } from '../../ir/matrix.ts';
import type { Contraction } from '../contraction.ts';
import { dtypeInfo } from '../../shape/dtype.ts';
import { type Problem, readAlongSum, type Side } from './problem.ts';
import { type MatrixBlock, threadsOfBlock } from './matrix-tiles.ts';
import { type Candidate, depthOf, type Size } from './blocks.ts';

/** The value before a cast from a narrower dtype; null if it is not one. */
function uncast(e: Exprs, value: KNode, dtype: MatrixForm['dtype']): KNode | null {
  if (value.dtype === dtype) return value;
  if (value.op === 'CAST') return value.src[0].dtype === dtype ? value.src[0] : null;
  // Zero, which padding consists of, exists in every dtype.
  if (value.op === 'CONST') return value.arg.value === 0 ? e.constant(dtype, value.arg.value) : null;
  if (value.op !== 'WHERE') return null;
  const [x, y] = [uncast(e, value.src[1], dtype), uncast(e, value.src[2], dtype)];
  return x === null || y === null ? null : e.where(value.src[0], x, y);
}

/** The factors as a tile takes them, rows first, and the tile; null if the target has no tile for them. */
export function formOf(
  { rows, columns }: Problem,
  c: Contraction,
  e: Exprs,
  caps: CodegenCaps,
): { readonly form: MatrixForm; readonly values: readonly [KNode, KNode] } | null {
  if (c.reduce.dtype !== 'float32') return null;
  // Of two tiles for a dtype, the longer one does more per instruction.
  const forms = [...(caps.matrix ?? [])].sort((x, y) => stepsOf(y.tile) - stepsOf(x.tile));
  for (const form of forms) {
    const x = uncast(e, rows.factor.value, form.dtype);
    const y = uncast(e, columns.factor.value, form.dtype);
    if (x !== null && y !== null) return { form, values: [x, y] };
  }
  return null;
}

/** Sizes of blocks, the largest first. */
const sizes: readonly Size[] = [[128, 128], [128, 64], [64, 128], [64, 64], [64, 32], [32, 64], [32, 32], [32, 16], [16, 32], [16, 16]]; // biome-ignore format: pairs

/** Most elements that a thread brings one by one for a stage: they wait in registers, beside up to 64 sums. */
const mostWaiting = 32;

/** Elements that each thread of a block brings one by one: of sides that cannot be read in units of 16 bytes. */
function waitingOf({ block, threads }: Candidate<MatrixBlock>, { rows, columns, k, depthStep }: Problem): number {
  const unit = 16 / dtypeInfo[block.dtype].bytes;
  const single = (side: Side): boolean => (readAlongSum(side, k) ? depthStep : side.step) % unit !== 0;
  const brought = (single(rows) ? block.rows : 0) + (single(columns) ? block.columns : 0);
  return (brought * block.depth) / threads;
}

/** Blocks that may compute a problem, without stages or parts, the largest first. */
export function matrixBlocks(problem: Problem, form: MatrixForm, caps: CodegenCaps): Candidate<MatrixBlock>[] {
  if (problem.depth < stepsOf(form.tile)) return [];
  return sizes
    .map(([rows, columns]): Candidate<MatrixBlock> => {
      const depth = depthOf(form.dtype);
      const block = { dtype: form.dtype, form, rows, columns, depth, stages: 2, parts: 1 };
      return { block, threads: threadsOfBlock(block) };
    })
    .filter((one) => one.threads <= caps.maxGroup && waitingOf(one, problem) <= mostWaiting);
}
