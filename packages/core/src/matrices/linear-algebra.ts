/**
 * Entry point @polygrad/core/linear-algebra: factors of matrices, and equations with them. Pages that do not import it carry none of it.
 *
 * A matrix is halved until its parts are blocks that a kernel takes; all the rest is products of halves. Derivatives of every order and batches are those of products and
 * kernels. Factors with exchanged rows have none of their own: solutions, inverses and determinants have.
 */
import { customGradient, noGrad } from '../autodiff/custom-gradient.ts';
import { compose, withCasting } from '../graph/scope.ts';
import { DTypeError } from '@polygrad/compiler/shape/dtype';
import { ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkNames } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { broadcastShapes } from '@polygrad/compiler/shape/broadcast';
import type { Shape } from '@polygrad/compiler/shape/view';
import { arange, eye } from '../ops/creation/patterns.ts';
import { ones, zeros } from '../ops/creation/creation.ts';
import { abs, add, cast, mul, neg, remainder, sign, sub } from '../ops/elementwise/arithmetic.ts';
import { equal, greater } from '../ops/elementwise/logic.ts';
import { where } from '../ops/elementwise/recording.ts';
import { log } from '../ops/elementwise/transcendental.ts';
import { takeAlongAxis } from '../ops/indexing/indexing.ts';
import { diagonal, tril, triu } from '../ops/movement/diagonals.ts';
import { concat } from '../ops/movement/joining.ts';
import { broadcastTo, permute, reshape, squeeze, transpose, unsqueeze } from '../ops/movement/shape.ts';
import { narrow, select } from '../ops/movement/slicing.ts';
import { argSort } from '../ops/order/sorting.ts';
import { matmul } from '../ops/products/matmul.ts';
import { min, prod, sum } from '../ops/reduction/reduction.ts';
import { defineKernel } from '../custom/define.ts';
import type { Kernel } from '../custom/options.ts';
import { nodeOf } from '../tensor/handle.ts';
import type { Tensor } from '../tensor/types.ts';

export interface CholeskyOptions {
  /** The factor above the diagonal instead: its transpose. Default false. */
  readonly upper?: boolean;
}

export interface TriangularOptions {
  /** The matrix is what is on and above the diagonal; otherwise on and below. Default false. */
  readonly upper?: boolean;
  /** The diagonal is taken for ones, whatever stands there. Default false. */
  readonly unitDiagonal?: boolean;
}

/** Rows of the largest matrix that these kernels take: two times four kilobytes of float64, half of a group's memory. */
const blockRows = 32;

const matrices = { dtype: ['float32', 'float64'], rank: 3 } as const;
type Matrices = typeof matrices;

/**
 * The inverse of lower triangles: each column by forward substitution. What is above the diagonal is not read.
 */
const invertLower: Kernel<{ l: Matrices }, 'inverse'> = /* @__PURE__ */ defineKernel({
  name: 'invertLower',
  form: 'groups',
  threads: blockRows,
  inputs: { l: matrices },
  outputs: { inverse: 'l' },
  grid: ({ l }) => l.shape.slice(0, 1),
  body: (k, { l }, { inverse }) => {
    const [matrix] = k.index;
    const n = l.size(1);
    const known = k.shared(l.dtype, n * n);
    k.each(n, (column) => {
      k.loop(n, (row) => {
        const rest = k.variable(0, l.dtype);
        rest.set(k.where(row.equal(column), k.constant(1, l.dtype), k.constant(0, l.dtype)));
        k.loop(row, (i) => rest.set(rest.value.sub(l.at([matrix, row, i]).mul(known.at(i.mul(n).add(column))))));
        const value = k.where(row.less(column), k.constant(0, l.dtype), rest.value.div(l.at([matrix, row, row])));
        known.set(row.mul(n).add(column), value);
        inverse.set([matrix, row, column], value);
      });
    });
  },
  gradient: ({ outputs: { inverse }, grads }) => {
    const turned = transpose(inverse);
    return { l: neg(tril(matmul(matmul(turned, grads.inverse), turned))) };
  },
});

/**
 * Cholesky's factor L of symmetric matrices L Lᵀ, column by column; what is above the diagonal is not read. Where a matrix is not positive definite the root
 * of a negative number makes NaN of all that depends on it.
 */
const factor: Kernel<{ a: Matrices }, 'l'> = /* @__PURE__ */ defineKernel({
  name: 'cholesky',
  form: 'groups',
  threads: blockRows,
  inputs: { a: matrices },
  outputs: { l: 'a' },
  grid: ({ a }) => a.shape.slice(0, 1),
  body: (k, { a }, { l }) => {
    const [matrix] = k.index;
    const n = a.size(1);
    const zero = k.constant(0, a.dtype);
    const known = k.shared(a.dtype, n * n);
    k.loop(n, (column) => {
      k.each(n, (row) => {
        // Every thread computes the pivot for itself: that costs less than to wait for it.
        const [rest, pivot] = [k.variable(0, a.dtype), k.variable(0, a.dtype)];
        rest.set(a.at([matrix, row, column]));
        pivot.set(a.at([matrix, column, column]));
        k.loop(column, (i) => {
          const across = known.at(column.mul(n).add(i));
          rest.set(rest.value.sub(known.at(row.mul(n).add(i)).mul(across)));
          pivot.set(pivot.value.sub(across.mul(across)));
        });
        const value = k.where(row.less(column), zero, rest.value.div(pivot.value.sqrt()));
        known.set(row.mul(n).add(column), value);
        l.set([matrix, row, column], value);
      });
      k.barrier();
    });
  },
  // Source: Murray, "Differentiation of the Cholesky decomposition" (2016), section 3.1.
  gradient: ({ outputs: { l }, grads }) => {
    const product = tril(matmul(transpose(l), grads.l));
    const halved = mul(add(product, tril(product, { diagonal: -1 })), 0.5);
    const inverse = invertLower({ l }).inverse;
    const half = mul(matmul(matmul(transpose(inverse), halved), inverse), 0.5);
    return { a: add(half, transpose(half)) };
  },
});

/** An operation whose products are not rounded to 16 bits by autocast: factors would lose all their digits. */
function precisely<T>(op: string, body: () => T): T {
  return compose(op, () => withCasting(null, body));
}

/** Throws unless x is float32 or float64 and holds square matrices. */
function checkSquare(op: string, name: string, x: Tensor): void {
  const { dtype, shape } = nodeOf(x, op);
  if (dtype !== 'float32' && dtype !== 'float64')
    throw new DTypeError(op, say`${name} is ${dtype}: needs float32 or float64; convert with cast()`, [dtype]);
  if (shape.length >= 2 && shape.at(-1) === shape.at(-2)) return;
  const rule = say`${name} has shape ${showShape(shape)}: its last two axes must be those of square matrices`;
  throw new ShapeError(op, rule, [shape]);
}

/** Where a matrix is halved: after whole blocks. */
function halfOf(n: number): number {
  return Math.ceil(n / blockRows / 2) * blockRows;
}

/** Rows and columns of matrices. */
function part(x: Tensor, row: number, rows: number, column: number, columns: number): Tensor {
  return narrow(narrow(x, -2, row, rows), -1, column, columns);
}

/** Matrices with one batch axis. */
function flat(x: Tensor): Tensor {
  return reshape(x, [x.shape.slice(0, -2).reduce((a, b) => a * b, 1), ...x.shape.slice(-2)]);
}

/**
 * The Cholesky factor of symmetric positive definite matrices: the lower triangle L with x = L Lᵀ. The symmetric part (x + xᵀ) / 2 is what is factored, so
 * gradients are symmetric. A matrix that is not positive definite gives NaN: nothing waits to find out and raise an error. Where rounding makes it so, add a
 * small multiple of `eye(n)`. Source: PyTorch `torch.linalg.cholesky`.
 *
 * @param x shape [..., n, n], float32 or float64
 * @param options upper
 * @returns the same shape and dtype; zeros on the other side of the diagonal
 * @throws ShapeError for other shapes, DTypeError for other dtypes
 *
 * @example
 * const x = tensor([[4, 2], [2, 5]]);
 * cholesky(x); // [[2, 0], [1, 2]]
 * cholesky(x).diagonal().log().sum().mul(2); // log det x: log 16
 */
export function cholesky(x: Tensor, options: CholeskyOptions = {}): Tensor {
  checkNames('cholesky', options, 'upper?');
  return precisely('cholesky', () => {
    checkSquare('cholesky', 'x', x);
    if (x.size === 0) return mul(x, 1);
    const lower = factored(mul(add(x, transpose(x)), 0.5));
    return options.upper === true ? transpose(lower) : lower;
  });
}

function factored(x: Tensor): Tensor {
  const [n] = x.shape.slice(-1) as [number];
  if (n <= blockRows) return reshape(factor({ a: flat(x) }).l, x.shape);
  const [half, rest] = [halfOf(n), n - halfOf(n)];
  const first = factored(part(x, 0, half, 0, half));
  const below = transpose(solved(first, transpose(part(x, half, rest, 0, half)), false));
  const last = factored(sub(part(x, half, rest, half, rest), matmul(below, transpose(below))));
  const right = zeros([...x.shape.slice(0, -2), half, rest], { dtype: x.dtype });
  return concat([concat([first, right], -1), concat([below, last], -1)], -2);
}

/**
 * Solves a x = b for triangular matrices a, by blocks. What is on the other side of the diagonal is not read. A zero on the diagonal gives infinities or
 * NaN. For equations with `a` on the right, or transposed, transpose the operands: x a = b is aᵀ xᵀ = bᵀ. Source: PyTorch
 * `torch.linalg.solve_triangular`, which has no default for `upper`.
 *
 * @param a shape [..., n, n], float32 or float64
 * @param b shape [..., n, k], of the same dtype, or [n]: one vector; the axes before broadcast
 * @param options upper, unitDiagonal
 * @returns x, in the shape of b
 * @throws ShapeError and DTypeError for operands that do not fit
 *
 * @example
 * const l = tensor([[2, 0], [1, 2]]);
 * triangularSolve(l, tensor([2, 5])); // [1, 2]
 * const half = triangularSolve(l, tensor([[2], [5]]));
 * triangularSolve(l.transpose(), half, { upper: true }); // the solution for l lᵀ: [[0], [1]]
 */
export function triangularSolve(a: Tensor, b: Tensor, options: TriangularOptions = {}): Tensor {
  const op = 'triangularSolve';
  checkNames(op, options, 'upper? unitDiagonal?');
  return precisely(op, () => {
    const right = checkRight(op, a, b);
    const { upper = false, unitDiagonal = false } = options;
    const matrix = unitDiagonal ? withOnes(a, upper) : a;
    return shapedAs(b, a.size === 0 || b.size === 0 ? matmul(matrix, right) : solved(matrix, right, upper));
  });
}

/** The right side of equations as columns, a vector as one; throws unless it fits square matrices. */
function checkRight(op: string, a: Tensor, b: Tensor): Tensor {
  checkSquare(op, 'a', a);
  const [{ shape, dtype }, n] = [nodeOf(b, op), a.shape.at(-1)!];
  const wrong = say`a is ${a.dtype} and b ${dtype}: needs one dtype; convert with cast()`;
  if (dtype !== a.dtype) throw new DTypeError(op, wrong, [a.dtype, dtype]);
  const isVector = shape.length === 1;
  const rule = say`a has shape ${showShape(a.shape)} and b ${showShape(shape)}: b must be [..., ${n}, k], or [${n}]`;
  if (shape.length === 0 || shape.at(isVector ? -1 : -2) !== n) throw new ShapeError(op, rule, [a.shape, shape]);
  return isVector ? unsqueeze(b, -1) : b;
}

/** A triangle with ones on its diagonal. */
function withOnes(a: Tensor, upper: boolean): Tensor {
  const lower = add(tril(upper ? transpose(a) : a, { diagonal: -1 }), eye(a.shape.at(-1)!, { dtype: a.dtype }));
  return upper ? transpose(lower) : lower;
}

function solved(a: Tensor, b: Tensor, upper: boolean): Tensor {
  const [n] = a.shape.slice(-1) as [number];
  if (n <= blockRows) {
    const lower = upper ? transpose(a) : a;
    const inverse = reshape(invertLower({ l: flat(lower) }).inverse, lower.shape);
    return matmul(upper ? transpose(inverse) : inverse, b);
  }
  const [half, rest] = [halfOf(n), n - halfOf(n)];
  const [top, bottom] = [narrow(b, -2, 0, half), narrow(b, -2, half, rest)];
  const [first, last] = [part(a, 0, half, 0, half), part(a, half, rest, half, rest)];
  if (upper) {
    const below = solved(last, bottom, true);
    return concat([solved(first, sub(top, matmul(part(a, 0, half, half, rest), below)), true), below], -2);
  }
  const above = solved(first, top, false);
  return concat([above, solved(last, sub(bottom, matmul(part(a, half, rest, 0, half), above)), false)], -2);
}

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
  const last = eliminated(sub(narrow(right, 1, half, m - half), matmul(multipliers, upper)));
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
  const filled = concat([a, zeros([batch, parts * searched - m, n], { dtype: a.dtype })], 1);
  const best = eliminate({ a: reshape(filled, [batch * parts, searched, n]) }).pivots;
  const first = reshape(mul(arange(parts, { dtype: 'int32' }), searched), [parts, 1]);
  const candidates = reshape(add(reshape(best, [batch, parts, n]), first), [batch, parts * n]);
  const { lu, pivots } = pivotsOf(rowsOf(filled, candidates));
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

/** A solution as a vector where the right side is one. */
function shapedAs(b: Tensor, x: Tensor): Tensor {
  return b.ndim === 1 ? squeeze(x, -1) : x;
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
