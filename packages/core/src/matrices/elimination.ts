/**
 * Elimination with exchanged rows: equations, inverses and determinants of general matrices.
 *
 * Columns are halved until a kernel takes them. The factors are constants for gradients: solutions, inverses and determinants have formulas of their own.
 */
import { customGradient, noGrad } from '../autodiff/custom-gradient.ts';
import { broadcastShapes } from '@polygrad/compiler/shape/broadcast';
import type { Shape } from '@polygrad/compiler/shape/view';
import { arange, eye } from '../ops/creation/patterns.ts';
import { ones, zeros } from '../ops/creation/creation.ts';
import { abs, add, cast, mul, neg, remainder, sign, sub } from '../ops/elementwise/arithmetic.ts';
import { equal, greater } from '../ops/elementwise/logic.ts';
import { where } from '../ops/elementwise/recording.ts';
import { log } from '../ops/elementwise/transcendental.ts';
import { takeAlongAxis } from '../ops/indexing/indexing.ts';
import { diagonal, triu } from '../ops/movement/diagonals.ts';
import { concat } from '../ops/movement/joining.ts';
import { broadcastTo, permute, reshape, transpose, unsqueeze } from '../ops/movement/shape.ts';
import { narrow, select } from '../ops/movement/slicing.ts';
import { argSort } from '../ops/order/sorting.ts';
import { matmul } from '../ops/products/matmul.ts';
import { min, prod, sum } from '../ops/reduction/reduction.ts';
import { defineKernel } from '../custom/define.ts';
import type { Kernel } from '../custom/options.ts';
import type { Tensor } from '../tensor/types.ts';
import {
  blockRows,
  checkRight,
  checkSquare,
  filled,
  flat,
  invertLower,
  matrices,
  type Matrices,
  precisely,
  shapedAs,
  solved,
  withOnes,
  withZeros,
} from './triangular.ts';

/** How many columns of many rows are searched for pivots at a time: with 64 rows, a quarter of the memory of a group in float32. */
const searchedColumns = 16;

/**
 * Pivots of matrices of up to 64 rows, column by column: of the rows left, that of the largest magnitude, NaN before all, the first of equals. `pivots` are their
 * numbers, `lu` these rows eliminated: above and on the diagonal U, below it the multipliers L. A column of zeros eliminates nothing.
 */
const eliminate: Kernel<{ a: Matrices }, 'lu' | 'pivots'> = /* @__PURE__ */ defineKernel({
  name: 'eliminate',
  form: 'groups',
  threads: 64,
  inputs: { a: matrices },
  outputs: {
    lu: ({ a }) => ({ shape: [a.shape[0]!, a.shape[2]!, a.shape[2]!], dtype: a.dtype }),
    pivots: ({ a }) => ({ shape: [a.shape[0]!, a.shape[2]!], dtype: 'int32' }),
  },
  grid: ({ a }) => a.shape.slice(0, 1),
  body: (k, { a }, { lu, pivots }) => {
    const [matrix] = k.index;
    const [m, n] = [a.size(1), a.size(2)];
    // By columns: neighbouring threads have neighbouring rows.
    const known = k.shared(a.dtype, m * n);
    const line = k.shared(a.dtype, n);
    const order = k.shared('int32', n);
    const taken = k.shared('int32', m);
    k.loop(n, (column) => k.each(m, (row) => known.set(column.mul(m).add(row), a.at([matrix, row, column]))));
    k.barrier();
    k.loop(n, (column) => {
      const { row: pivot } = k.fold(m, {
        start: { size: k.constant(-2, a.dtype), row: k.constant(m, 'int32') },
        step: ({ size, row }, i) => {
          const value = known.at(column.mul(m).add(i)).abs();
          const left = k.where(value.isNaN(), k.constant(Number.POSITIVE_INFINITY, a.dtype), value);
          const found = k.where(taken.at(i).equal(0), left, k.constant(-1, a.dtype));
          const isLarger = found.greater(size);
          return { size: k.where(isLarger, found, size), row: k.where(isLarger, i, row) };
        },
        combine: (x, y) => {
          const isSecond = y.size.greater(x.size).logicalOr(y.size.equal(x.size).logicalAnd(y.row.less(x.row)));
          return { size: k.where(isSecond, y.size, x.size), row: k.where(isSecond, y.row, x.row) };
        },
      });
      k.each(n, (i) => line.set(i, known.at(i.mul(m).add(pivot))));
      k.each(1, () => {
        order.set(column, pivot);
        taken.set(pivot, 1);
      });
      k.barrier();
      const divisor = line.at(column);
      k.each(m, (row) => {
        const at = column.mul(m).add(row);
        const isLeft = taken.at(row).equal(0);
        const factor = k.where(divisor.equal(0), 0, known.at(at).div(divisor));
        known.set(at, k.where(isLeft, factor, known.at(at)));
        k.loop(k.constant(n, 'int32').sub(column).sub(1), (i) => {
          const next = column.add(1).add(i);
          const old = known.at(next.mul(m).add(row));
          known.set(next.mul(m).add(row), k.where(isLeft, old.sub(factor.mul(line.at(next))), old));
        });
      });
      k.barrier();
    });
    k.each(n, (row) => pivots.set([matrix, row], order.at(row)));
    k.loop(n, (row) =>
      k.each(n, (column) => lu.set([matrix, row, column], known.at(column.mul(m).add(order.at(row))))),
    );
  },
});

/** Factors of P A = L U: in `lu` U on and above the diagonal, L without its ones below; `rows` are the numbers (int32) of A's rows in the order of P A. */
type Factors = Readonly<Record<'lu' | 'rows', Tensor>>;

/** Rows of matrices [batch, m, n] by their numbers [batch, k]. */
function rowsOf(x: Tensor, rows: Tensor): Tensor {
  const [batch, k] = rows.shape as [number, number];
  return takeAlongAxis(x, broadcastTo(unsqueeze(rows, -1), [batch, k, x.shape[2]!]), 1);
}

/** Factors of [batch, m, n] with m >= n >= 1; columns are halved. Source: Toledo, "Locality of reference in LU decomposition with partial pivoting" (1997). */
function eliminated(a: Tensor): Factors {
  const [, m, n] = a.shape as [number, number, number];
  if (n <= searchedColumns || (m === n && n <= blockRows)) return eliminatedColumns(a);
  const half = Math.ceil(n / searchedColumns / 2) * searchedColumns;
  const left = eliminated(narrow(a, 2, 0, half));
  const right = rowsOf(narrow(a, 2, half, n - half), left.rows);
  const upper = solved(withOnes(narrow(left.lu, 1, 0, half), false), narrow(right, 1, 0, half), false);
  const multipliers = narrow(left.lu, 1, half, m - half);
  // Rows of zeros at the end are not taken, nor exchanged: there are n others before them.
  const rest = eliminated(filled(sub(narrow(right, 1, half, m - half), matmul(multipliers, upper)), m));
  const last = { lu: narrow(rest.lu, 1, 0, m - half), rows: narrow(rest.rows, 1, 0, m - half) };
  const top = concat([narrow(left.lu, 1, 0, half), upper], 2);
  const bottom = concat([rowsOf(multipliers, last.rows), last.lu], 2);
  const rows = [narrow(left.rows, 1, 0, half), takeAlongAxis(narrow(left.rows, 1, half, m - half), last.rows, 1)];
  return { lu: concat([top, bottom], 1), rows: concat(rows, 1) };
}

/** Factors of few columns. */
function eliminatedColumns(a: Tensor): Factors {
  const [batch, m, n] = a.shape as [number, number, number];
  const { lu, pivots } = pivotsOf(a);
  if (m === n) return { lu, rows: pivots };
  // The pivots in their order, then the other rows in theirs.
  const [row, place] = [unsqueeze(arange(m, { dtype: 'int32' }), -1), arange(n, { dtype: 'int32' })];
  const rows = argSort(min(where(equal(row, unsqueeze(pivots, 1)), place, n), -1));
  const rest = rowsOf(a, narrow(rows, 1, n, m - n));
  // Multipliers are rest U⁻¹. Where U has a zero on its diagonal, nothing is left of that column.
  const isZero = where(equal(unsqueeze(diagonal(lu), -1), 0), 1, 0);
  const l = add(transpose(triu(lu)), mul(eye(n, { dtype: a.dtype }), isZero));
  const multipliers = transpose(matmul(invertLower({ l }).inverse, transpose(rest)));
  return { lu: concat([reshape(lu, [batch, n, n]), multipliers], 1), rows };
}

/**
 * Numbers of pivots [batch, n] of [batch, m, n] in their order, and their rows eliminated. Of many rows, the best of each 64 are searched for the best of all.
 * Source: Grigori, Demmel and Xiang, "CALU" (2011): multipliers may exceed 1, errors stay those of partial pivoting.
 */
function pivotsOf(a: Tensor): Readonly<Record<'lu' | 'pivots', Tensor>> {
  const [batch, m, n] = a.shape as [number, number, number];
  const searched = Math.max(n, (blockRows * blockRows) / searchedColumns);
  if (m <= searched) return eliminate({ a });
  const parts = Math.ceil(m / searched);
  // Rows of zeros at the end are not taken: there are n others before them.
  const all = withZeros(a, parts * searched);
  const best = eliminate({ a: reshape(all, [batch * parts, searched, n]) }).pivots;
  const first = reshape(mul(arange(parts, { dtype: 'int32' }), searched), [parts, 1]);
  const candidates = reshape(add(reshape(best, [batch, parts, n]), first), [batch, parts * n]);
  const { lu, pivots } = pivotsOf(rowsOf(all, candidates));
  return { lu, pivots: takeAlongAxis(candidates, pivots, 1) };
}

/** Factors of square matrices, their batch as one axis: [batch, n, n] and [batch, n]. Constants for gradients. */
function factorsOf(a: Tensor): Factors {
  return noGrad(() => eliminated(flat(a)));
}

/** Solves a x = b, or aᵀ x = b, for [batch, n, n] and [batch, n, k] by the factors of a. */
function solvedBy({ lu, rows }: Factors, a: Tensor, b: Tensor, isTransposed: boolean): Tensor {
  const solve = customGradient(
    (...[, right, factors, order]: Tensor[]) => {
      const [lower, upper] = [withOnes(factors!, false), triu(factors!)];
      if (!isTransposed) return solved(upper, solved(lower, rowsOf(right!, order!), false), true);
      const exchanged = solved(transpose(lower), solved(transpose(upper), right!, false), true);
      return rowsOf(exchanged, argSort(order!));
    },
    (grad, { inputs, output }) => {
      const [matrix, , factors, order] = inputs as [Tensor, Tensor, Tensor, Tensor];
      const right = solvedBy({ lu: factors, rows: order }, matrix, grad, !isTransposed);
      const [rowsSide, columnsSide] = isTransposed ? [output, right] : [right, output];
      return [neg(matmul(rowsSide, transpose(columnsSide))), right, null, null];
    },
  );
  return solve(a, b, lu, rows);
}

/**
 * Solves a x = b for square matrices, by elimination with exchanged rows. A singular matrix gives infinities or NaN: nothing waits to find out and raise an
 * error. Source: PyTorch `torch.linalg.solve`, where an `a` of several matrices takes `b` of its batch shape for vectors; here a vector has one axis.
 *
 * @param a shape [..., n, n], float32 or float64
 * @param b shape [..., n, k], of the same dtype, or [n]: one vector; the axes before broadcast
 * @returns x, in the shape of b, its axes in front as broadcast
 * @throws ShapeError and DTypeError for operands that do not fit
 *
 * @example
 * solve(tensor([[0, 2], [1, 1]]), tensor([2, 3])); // [2, 1]
 */
export function solve(a: Tensor, b: Tensor): Tensor {
  return precisely('solve', () => {
    const right = checkRight('solve', a, b);
    const [n, k] = right.shape.slice(-2) as [number, number];
    const batch = broadcastShapes('solve', a.shape.slice(0, -2), right.shape.slice(0, -2));
    if (n === 0 || k === 0 || batch.includes(0)) return shapedAs(b, matmul(a, right));
    const many = flat(broadcastTo(right, [...batch, n, k]));
    const factors = factorsOf(a);
    if (a.size === n * n) {
      // One matrix for all: its right sides stand side by side.
      const wide = reshape(permute(many, [1, 0, 2]), [1, n, many.shape[0]! * k]);
      const x = reshape(solvedBy(factors, reshape(a, [1, n, n]), wide, false), [n, many.shape[0]!, k]);
      return shapedAs(b, reshape(permute(x, [1, 0, 2]), [...batch, n, k]));
    }
    const spread = (x: Tensor, own: Shape): Tensor =>
      reshape(broadcastTo(reshape(x, [...a.shape.slice(0, -2), ...own]), [...batch, ...own]), [many.shape[0]!, ...own]);
    const each = { lu: spread(factors.lu, [n, n]), rows: spread(factors.rows, [n]) };
    return shapedAs(b, reshape(solvedBy(each, spread(a, [n, n]), many, false), [...batch, n, k]));
  });
}

/**
 * The inverse of square matrices. To solve equations use `solve`: it is faster and loses fewer digits. A singular matrix gives infinities or NaN. Source:
 * PyTorch `torch.linalg.inv`.
 *
 * @param a shape [..., n, n], float32 or float64
 * @returns the same shape and dtype
 * @throws ShapeError for other shapes, DTypeError for other dtypes
 *
 * @example
 * inv(tensor([[0, 2], [1, 1]])); // [[-0.5, 1], [0.5, 0]]
 */
export function inv(a: Tensor): Tensor {
  return precisely('inv', () => {
    checkSquare('inv', 'a', a);
    return a.size === 0 ? mul(a, 1) : reshape(inverseBy(factorsOf(a), flat(a), false), a.shape);
  });
}

/** The inverse of [batch, n, n], or its transpose. */
function inverseBy(factors: Factors, a: Tensor, isTransposed: boolean): Tensor {
  return solvedBy(factors, a, broadcastTo(eye(a.shape[2]!, { dtype: a.dtype }), a.shape), isTransposed);
}

/** The sign of determinants [batch]: of their pivots, and -1 for an odd permutation of rows. */
function signOf({ lu, rows }: Factors): Tensor {
  const isExchanged = triu(cast(greater(unsqueeze(rows, 2), unsqueeze(rows, 1)), 'int32'));
  const exchanges = cast(remainder(sum(isExchanged, [1, 2]), 2), lu.dtype);
  return mul(sub(1, mul(exchanges, 2)), prod(sign(diagonal(lu)), -1));
}

/** A function [batch] of factors, whose gradient by `a` is `slope` times the inverse transposed. */
function ofDeterminant(
  factors: Factors,
  a: Tensor,
  value: (factors: Factors) => Tensor,
  slope: (grad: Tensor, result: Tensor) => Tensor,
): Tensor {
  const result = customGradient(
    (...[, lu, rows]: Tensor[]) => value({ lu: lu!, rows: rows! }),
    (grad, { inputs, output }) => {
      const [matrix, lu, rows] = inputs as [Tensor, Tensor, Tensor];
      const scale = reshape(slope(grad, output), [matrix.shape[0]!, 1, 1]);
      return [mul(scale, inverseBy({ lu, rows }, matrix, true)), null, null];
    },
  );
  return reshape(result(flat(a), factors.lu, factors.rows), a.shape.slice(0, -2));
}

/**
 * The determinant of square matrices; of up to three rows by its formula, otherwise the product of pivots. Of matrices that are not small it overflows soon:
 * use `slogDet`. Gradients are the determinant times the inverse, so those of a singular matrix of more than three rows are NaN. Source: PyTorch
 * `torch.linalg.det`.
 *
 * @param a shape [..., n, n], float32 or float64; of no rows it is 1
 * @returns shape [...], the same dtype
 * @throws ShapeError for other shapes, DTypeError for other dtypes
 *
 * @example
 * det(tensor([[0, 2], [1, 1]])); // -2
 */
export function det(a: Tensor): Tensor {
  return precisely('det', () => {
    checkSquare('det', 'a', a);
    const n = a.shape.at(-1)!;
    const value = (f: Factors) => mul(signOf(f), prod(abs(diagonal(f.lu)), -1));
    if (n > 3 && a.size > 0) return ofDeterminant(factorsOf(a), a, value, mul);
    if (n === 0 || a.size === 0) return ones(a.shape.slice(0, -2), { dtype: a.dtype });
    const at = (row: number, column: number) => select(select(a, -2, row), -1, column);
    const two = (r: number, s: number, c: number, d: number) => sub(mul(at(r, c), at(s, d)), mul(at(r, d), at(s, c)));
    if (n === 1) return at(0, 0);
    if (n === 2) return two(0, 1, 0, 1);
    return add(sub(mul(at(0, 0), two(1, 2, 1, 2)), mul(at(0, 1), two(1, 2, 0, 2))), mul(at(0, 2), two(1, 2, 0, 1)));
  });
}

/**
 * The sign of the determinant of square matrices, and the logarithm of its magnitude, which neither overflows nor vanishes. A singular matrix has sign 0 and
 * -Infinity. Source: NumPy `numpy.linalg.slogdet`.
 *
 * @param a shape [..., n, n], float32 or float64
 * @returns sign (1, -1 or 0; a constant for gradients) and logAbsDet, both of shape [...] and the same dtype
 * @throws ShapeError for other shapes, DTypeError for other dtypes
 *
 * @example
 * slogDet(tensor([[0, 2], [1, 1]])).logAbsDet; // 0.6931472: log 2
 * slogDet(tensor([[0, 2], [1, 1]])).sign; // -1
 */
export function slogDet(a: Tensor): { readonly sign: Tensor; readonly logAbsDet: Tensor } {
  return precisely('slogDet', () => {
    checkSquare('slogDet', 'a', a);
    const shape = a.shape.slice(0, -2);
    if (a.size === 0) return { sign: ones(shape, { dtype: a.dtype }), logAbsDet: zeros(shape, { dtype: a.dtype }) };
    const factors = factorsOf(a);
    const value = ({ lu }: Factors) => sum(log(abs(diagonal(lu))), -1);
    const logAbsDet = ofDeterminant(factors, a, value, (grad) => grad);
    return noGrad(() => ({ sign: reshape(signOf(factors), shape), logAbsDet }));
  });
}
