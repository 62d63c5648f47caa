/**
 * Contractions as products of matrices: both factors are read in place, with one loop each for rows, columns, sum and batch, and one stride of 1.
 */
import type { Range } from '../../ir/free-ranges.ts';
import type { KNode, KNodeOf, MatrixOperand, MatrixProduct } from '../../ir/ir.ts';
import type { DType } from '../../shape/dtype.ts';
import { isFixed, type LinearAccess, linearAccess } from '../access.ts';
import type { Contraction } from '../contraction.ts';
import { flatProblem } from '../simt/problem.ts';
import type { Factors, ProductForm, OwnStore } from './forms.ts';

export function matricesOf(c: Contraction, { stored, dtype, own, apart: sums }: Factors): ProductForm | null {
  const { rows, columns } = flatProblem(c);
  const [row, column, k, batch] = [rows.ranges[0], columns.ranges[0], c.k[0], c.batch[0]];
  if (row === undefined || column === undefined || k === undefined) return null;
  if (rows.ranges.length > 1 || columns.ranges.length > 1 || c.k.length > 1 || c.batch.length > 1) return null;
  if (![row, column, k, ...c.batch].every(isFixed)) return null;
  const [x, y] = rows.factor === c.factors[0] ? stored : [stored[1], stored[0]];
  const a = operand(x, batch, row, k);
  const b = operand(y, batch, k, column);
  if (a === null || b === null) return null;
  const order = batch === undefined ? [row, column] : [batch, row, column];
  const matrix = own === null ? null : ownMatrix(own, batch, row, column);
  const [m, n] = [row.arg.extent, column.arg.extent];
  const apart = { slot: -1, offset: 0, stride: n, distance: m * n, transposed: false };
  const sizes = { m, n, k: k.arg.extent, batch: batch?.arg.extent ?? 1 };
  const result = (matrix === null ? sums.dtype : own!.dtype) as DType;
  const product: MatrixProduct = { kind: 'matrices', dtype, result, ...sizes, a, b, c: matrix ?? apart };
  return { product, direct: matrix !== null, order };
}

/** A factor as a matrix of `down` x `across`. */
function operand(value: KNode, batch: Range | undefined, down: Range, across: Range): MatrixOperand | null {
  const access = linearAccess(value);
  return access === null ? null : matrixOf(access, batch, down, across);
}

function matrixOf(access: LinearAccess, batch: Range | undefined, down: Range, across: Range): MatrixOperand | null {
  const { memory, offset, strides } = access;
  const stride = (r: Range | undefined): number => (r === undefined ? 0 : (strides.get(r) ?? 0));
  const distance = stride(batch);
  for (const transposed of [false, true]) {
    const [outer, inner] = transposed ? [across, down] : [down, across];
    if (stride(inner) !== 1 || stride(outer) < inner.arg.extent || offset < 0 || distance < 0) continue;
    return { slot: (memory as KNodeOf<'PARAM'>).arg.slot, offset, stride: stride(outer), distance, transposed };
  }
  return null;
}

/** The store as a matrix in rows that do not overlap. */
function ownMatrix({ access }: OwnStore, batch: Range | undefined, row: Range, column: Range): MatrixOperand | null {
  const matrix = matrixOf(access, batch, row, column);
  if (matrix === null || matrix.transposed) return null;
  const overlaps = batch !== undefined && matrix.distance < row.arg.extent * matrix.stride;
  return overlaps ? null : matrix;
}
