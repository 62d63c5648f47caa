/**
 * Matrix products that a library of the device may compute: found among contractions, with their dispatches.
 *
 * Both factors must be read in place, with one loop each for rows, columns, sum and batch, and one stride of 1. Products of 16-bit
 * floats are summed in float32, and kept in either dtype. Stores that do more than keep the sum become a second dispatch.
 */
import type { CodegenCaps, Lowered } from '../codegen/lowering.ts';
import type { Exprs } from '../ir/expr.ts';
import type { Range } from '../ir/free-ranges.ts';
import type { KNode, KNodeOf, MatrixOperand, MatrixProduct } from '../ir/ir.ts';
import { type DType, isSmallFloat } from '../shape/dtype.ts';
import { isFixed, type LinearAccess, linearAccess, linearPosition } from './access.ts';
import { Assembly } from './assembly.ts';
import { workspaceFor } from './workspace.ts';
import type { Contraction } from './contraction.ts';
import { flatProblem } from './simt/problem.ts';

/** A contraction as a matrix product. */
export interface LibraryProduct {
  readonly product: MatrixProduct;
  /** True if the library writes where the kernel stores; otherwise results go through memory, in this order. */
  readonly direct: boolean;
  readonly order: readonly Range[];
}

/** Products among contractions, and their dispatches. */
export interface LibraryPrograms {
  /** The contraction as a product, or null. */
  find(c: Contraction): LibraryProduct | null;
  lower(c: Contraction, e: Exprs, caps: CodegenCaps, found: LibraryProduct): Lowered;
}

function productOf(c: Contraction): LibraryProduct | null {
  const { rows, columns } = flatProblem(c);
  const [row, column, k, batch] = [rows.ranges[0], columns.ranges[0], c.k[0], c.batch[0]];
  if (row === undefined || column === undefined || k === undefined) return null;
  if (rows.ranges.length > 1 || columns.ranges.length > 1 || c.k.length > 1 || c.batch.length > 1) return null;
  if (![row, column, k, ...c.batch].every(isFixed)) return null;
  const [x, y] = [stored(rows.factor.value), stored(columns.factor.value)];
  const a = operand(x, batch, row, k);
  const b = operand(y, batch, k, column);
  if (a === null || b === null || x.dtype === 'void' || x.dtype !== y.dtype) return null;
  const { dtype } = x;
  const order = batch === undefined ? [row, column] : [batch, row, column];
  const own = ownStore(c, dtype, batch, row, column);
  const [m, n] = [row.arg.extent, column.arg.extent];
  const apart = { slot: -1, offset: 0, stride: n, distance: m * n, transposed: false };
  const result = own?.dtype ?? c.reduce.dtype;
  const sizes = { m, n, k: k.arg.extent, batch: batch?.arg.extent ?? 1 };
  const product = { dtype, result, ...sizes, a, b, c: own?.matrix ?? apart };
  return { product, direct: own !== null, order };
}

/** A factor as memory holds it: sums of 16-bit floats read it through a cast to float32. */
function stored(value: KNode): KNode {
  const isWidened = value.op === 'CAST' && value.dtype === 'float32' && isSmallFloat(value.src[0].dtype as DType);
  return isWidened ? value.src[0] : value;
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

/** The only store, if it keeps the sum unchanged, or rounded to the factors' 16 bits, in rows. */
function ownStore(
  c: Contraction,
  factors: DType,
  batch: Range | undefined,
  row: Range,
  column: Range,
): { readonly matrix: MatrixOperand; readonly dtype: DType } | null {
  const [only, ...more] = c.kernel.stores;
  if (only === undefined || more.length > 0) return null;
  const [memory, index, value, gate] = only.store.src as readonly KNode[];
  const isRounded =
    value?.op === 'CAST' && value.src[0] === c.reduce && value.dtype === factors && isSmallFloat(factors);
  if ((value !== c.reduce && !isRounded) || gate !== undefined) return null;
  if (memory?.op !== 'PARAM' || memory.dtype !== value?.dtype) return null;
  if (memory.arg.access !== 'write') return null;
  const access = linearPosition(memory, index!);
  const matrix = access === null ? null : matrixOf(access, batch, row, column);
  if (matrix === null || matrix.transposed) return null;
  const overlaps = batch !== undefined && matrix.distance < row.arg.extent * matrix.stride;
  return overlaps ? null : { matrix, dtype: memory.dtype };
}

/** The dispatches: a plain program that says which product it is, and the kernel's epilogue. */
function lowerForLibrary(c: Contraction, e: Exprs, caps: CodegenCaps, found: LibraryProduct): Lowered {
  const assembly = new Assembly(c.kernel, e, caps);
  if (found.direct) {
    assembly.add('', c.kernel.stores, null, found.product);
    return assembly.result();
  }
  const memory = workspaceFor(c, e, assembly, found.order, null);
  const { slot } = (memory.store.store.src[0] as KNodeOf<'PARAM'>).arg;
  assembly.add('', [memory.store], null, { ...found.product, c: { ...found.product.c, slot } });
  memory.finish();
  return assembly.result();
}

export const libraryPrograms: LibraryPrograms = { find: productOf, lower: lowerForLibrary };
