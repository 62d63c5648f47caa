/**
 * Contractions as products of matrices: both factors are read in place, with one loop each for rows, columns, sum and batch, and one stride of 1.
 * Loops may end at sizes given at dispatch, and strides may hang on them.
 */
import type { Range } from '../../ir/free-ranges.ts';
import type { Count, KNode, MatrixOperand, MatrixProduct } from '../../ir/ir.ts';
import type { DType } from '../../shape/dtype.ts';
import type { Contraction } from '../contraction.ts';
import { flatProblem } from '../simt/problem.ts';
import { type Counts, type SizedAccess, times } from './counts.ts';
import type { Factors, ProductForm, OwnStore } from './forms.ts';

/** A loop, and how often it runs; an axis of one element has none. */
interface Axis {
  readonly loop: Range | undefined;
  readonly length: Count;
}

export function matricesOf(c: Contraction, { counts, stored, dtype, own, apart: sums }: Factors): ProductForm | null {
  const { rows, columns } = flatProblem(c);
  if (rows.ranges.length !== 1 || columns.ranges.length !== 1 || c.k.length !== 1 || c.batch.length > 1) return null;
  const axes = [rows.ranges[0], columns.ranges[0], c.k[0], c.batch[0]].map((loop): Axis | null => {
    const length = loop === undefined ? 1 : counts.lengthOf(loop);
    return length === null ? null : { loop, length };
  });
  const [row, column, k, batch] = axes;
  if (!row || !column || !k || !batch) return null;
  const [x, y] = rows.factor === c.factors[0] ? stored : [stored[1], stored[0]];
  const a = operand(counts, x, batch, row, k);
  const b = operand(counts, y, batch, k, column);
  if (a === null || b === null) return null;
  const order = [batch, row, column].flatMap(({ loop }) => loop ?? []);
  const matrix = own === null ? null : ownMatrix(counts, own, batch, row, column);
  // Memory of its own is laid out for the greatest sizes.
  const [m, n] = [row.loop!.arg.extent, column.loop!.arg.extent];
  const apart = { slot: -1, offset: 0, stride: n, distance: m * n, transposed: false };
  const sizes = { m: row.length, n: column.length, k: k.length, batch: batch.length };
  const result = (matrix === null ? sums.dtype : own!.dtype) as DType;
  const product: MatrixProduct<Count> = { kind: 'matrices', dtype, result, ...sizes, a, b, c: matrix ?? apart };
  return { product, direct: matrix !== null, order };
}

/** A factor as a matrix of `down` x `across`. */
function operand(counts: Counts, value: KNode, batch: Axis, down: Axis, across: Axis): MatrixOperand<Count> | null {
  if (value.op !== 'LOAD' || value.src.length !== 2) return null;
  const access = counts.accessOf(value.src[0], value.src[1]);
  return access?.memory.arg.access === 'read' ? matrixOf(counts, access, batch, down, across) : null;
}

function matrixOf(
  counts: Counts,
  { memory, offset, strides }: SizedAccess,
  batch: Axis,
  down: Axis,
  across: Axis,
): MatrixOperand<Count> | null {
  const stride = ({ loop }: Axis): Count => (loop === undefined ? 0 : (strides.get(loop) ?? 0));
  const distance = stride(batch);
  for (const transposed of [false, true]) {
    const [outer, inner] = transposed ? [across, down] : [down, across];
    const isInOrder = stride(inner) === 1 && counts.isAtLeast(stride(outer), inner.length);
    if (!isInOrder || !counts.isAtLeast(offset, 0) || !counts.isAtLeast(distance, 0)) continue;
    return { slot: memory.arg.slot, offset, stride: stride(outer), distance, transposed };
  }
  return null;
}

/** The store as a matrix in rows that do not overlap. */
function ownMatrix(
  counts: Counts,
  { access }: OwnStore,
  batch: Axis,
  row: Axis,
  column: Axis,
): MatrixOperand<Count> | null {
  const matrix = matrixOf(counts, access, batch, row, column);
  if (matrix === null || matrix.transposed) return null;
  const isApart = batch.loop === undefined || counts.isAtLeast(matrix.distance, times(row.length, matrix.stride));
  return isApart ? matrix : null;
}
