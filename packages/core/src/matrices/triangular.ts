/**
 * Triangles: Cholesky's factor, and equations with triangular matrices.
 *
 * A matrix is halved until its parts are blocks that a kernel takes; all the rest is products of halves. Derivatives of every order and batches are those of
 * products and kernels. What other factors need of matrices is here too: checks, parts, precision.
 */
import type { Node } from '../graph/node.ts';
import { compose, withCasting } from '../graph/scope.ts';
import { DTypeError } from '@polygrad/compiler/shape/dtype';
import { ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkNames } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { eye } from '../ops/creation/patterns.ts';
import { zeros } from '../ops/creation/creation.ts';
import { add, mul, neg, sub } from '../ops/elementwise/arithmetic.ts';
import { tril } from '../ops/movement/diagonals.ts';
import { concat } from '../ops/movement/joining.ts';
import { reshape, squeeze, transpose, unsqueeze } from '../ops/movement/shape.ts';
import { narrow } from '../ops/movement/slicing.ts';
import { matmul } from '../ops/products/matmul.ts';
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
export const blockRows = 32;

/** Parts of a matrix are filled up to multiples of so many rows; those of more than four times as many to multiples of twice that. */
const least = 64;

/** What kernels of matrices take. */
export const matrices = { dtype: ['float32', 'float64'], rank: 3 } as const;
export type Matrices = typeof matrices;

/**
 * The inverse of lower triangles: each column by forward substitution. What is above the diagonal is not read.
 */
export const invertLower: Kernel<{ l: Matrices }, 'inverse'> = /* @__PURE__ */ defineKernel({
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
export function precisely<T>(op: string, body: () => T): T {
  return compose(op, () => withCasting(null, body));
}

/** Throws unless x is float32 or float64 and holds matrices. */
export function checkMatrices(op: string, name: string, x: Tensor): void {
  const { shape } = checkDType(op, name, x);
  const rule = say`${name} has shape ${showShape(shape)}: its last two axes must be those of matrices`;
  if (shape.length < 2) throw new ShapeError(op, rule, [shape]);
}

/** Throws unless x is float32 or float64 and holds square matrices. */
export function checkSquare(op: string, name: string, x: Tensor): void {
  const { shape } = checkDType(op, name, x);
  if (shape.length >= 2 && shape.at(-1) === shape.at(-2)) return;
  const rule = say`${name} has shape ${showShape(shape)}: its last two axes must be those of square matrices`;
  throw new ShapeError(op, rule, [shape]);
}

function checkDType(op: string, name: string, x: Tensor): Node {
  const node = nodeOf(x, op);
  const wrong = say`${name} is ${node.dtype}: needs float32 or float64; convert with cast()`;
  if (node.dtype !== 'float32' && node.dtype !== 'float64') throw new DTypeError(op, wrong, [node.dtype]);
  return node;
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
export function flat(x: Tensor): Tensor {
  return reshape(x, [x.shape.slice(0, -2).reduce((a, b) => a * b, 1), ...x.shape.slice(-2)]);
}

/**
 * [batch, m, n] with rows of zeros at the end, `most` rows at most: parts of a matrix that are equally high share kernels, each of which takes
 * milliseconds to make. Of many matrices, and of small ones, these rows would cost more.
 */
export function filled(x: Tensor, most: number): Tensor {
  const [batch, m] = x.shape as [number, number, number];
  const step = most > 4 * least ? 2 * least : least;
  return batch > 1 || most <= least ? x : withZeros(x, Math.min(Math.ceil(m / step) * step, most));
}

/** [batch, m, n] with rows of zeros at the end, so that it has as many rows as told. */
export function withZeros(x: Tensor, rows: number): Tensor {
  const [batch, m, n] = x.shape as [number, number, number];
  return m === rows ? x : concat([x, zeros([batch, rows - m, n], { dtype: x.dtype })], 1);
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
export function checkRight(op: string, a: Tensor, b: Tensor): Tensor {
  checkSquare(op, 'a', a);
  return columnsOf(op, a, b);
}

/** The right side of equations as columns, a vector as one; throws unless it has as many rows as the matrices. */
export function columnsOf(op: string, a: Tensor, b: Tensor): Tensor {
  const [{ shape, dtype }, rows] = [nodeOf(b, op), a.shape.at(-2)!];
  const wrong = say`a is ${a.dtype} and b ${dtype}: needs one dtype; convert with cast()`;
  if (dtype !== a.dtype) throw new DTypeError(op, wrong, [a.dtype, dtype]);
  const isVector = shape.length === 1;
  const rule = say`a has shape ${showShape(a.shape)} and b ${showShape(shape)}: b must be [..., ${rows}, k], or [${rows}]`;
  if (shape.length === 0 || shape.at(isVector ? -1 : -2) !== rows) throw new ShapeError(op, rule, [a.shape, shape]);
  return isVector ? unsqueeze(b, -1) : b;
}

/** A triangle with ones on its diagonal. */
export function withOnes(a: Tensor, upper: boolean): Tensor {
  const lower = add(tril(upper ? transpose(a) : a, { diagonal: -1 }), eye(a.shape.at(-1)!, { dtype: a.dtype }));
  return upper ? transpose(lower) : lower;
}

export function solved(a: Tensor, b: Tensor, upper: boolean): Tensor {
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

/** A solution as a vector where the right side is one. */
export function shapedAs(b: Tensor, x: Tensor): Tensor {
  return b.ndim === 1 ? squeeze(x, -1) : x;
}
