/**
 * Eigenvalues of symmetric matrices and singular values, with their vectors; pseudo-inverses and ranks.
 *
 * Reflections make a matrix tridiagonal or bidiagonal, a loop of one step for each column; `rotations.ts` does the rest. All of this is constant for gradients: values, vectors and
 * pseudo-inverses have formulas of their own, made of values and vectors again, so that there are derivatives of every order.
 */
import { customGradient, noGrad } from '../autodiff/custom-gradient.ts';
import { scan } from '../control/scan.ts';
import { GradientError } from '../autodiff/backward.ts';
import { ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkFields, checkNames, numberFrom } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { arange, eye } from '../ops/creation/patterns.ts';
import { ones, zeros } from '../ops/creation/creation.ts';
import { abs, add, cast, div, mul, neg, square, sub } from '../ops/elementwise/arithmetic.ts';
import {
  equal,
  greater,
  greaterEqual,
  isFinite as isNumber,
  isNaN as isMissing,
  less,
  logicalOr,
} from '../ops/elementwise/logic.ts';
import { where } from '../ops/elementwise/recording.ts';
import { sqrt } from '../ops/elementwise/transcendental.ts';
import { take } from '../ops/indexing/indexing.ts';
import { diagonal, tril } from '../ops/movement/diagonals.ts';
import { concat } from '../ops/movement/joining.ts';
import { broadcastTo, permute, reshape, squeeze, transpose, unsqueeze } from '../ops/movement/shape.ts';
import { narrow } from '../ops/movement/slicing.ts';
import { matmul } from '../ops/products/matmul.ts';
import { all, countNonZero, max, sum } from '../ops/reduction/reduction.ts';
import type { Tensor } from '../tensor/types.ts';
import { bidiagonal, mostColumns, tridiagonal, turned } from './rotations.ts';
import { checkMatrices, checkSquare, flat, precisely, solved } from './triangular.ts';

/** Throws where a group's memory is too small for the diagonals. */
function checkColumns(op: string, a: Tensor, n: number): void {
  const most = mostColumns(a.dtype);
  const rule = say`a has shape ${showShape(a.shape)}: takes at most ${most} rows or columns, the fewer, of ${a.dtype}`;
  if (n > most) throw new ShapeError(op, rule, [a.shape]);
}

/** Matrices [batch, m, n] divided by a power of two, so that squares neither overflow nor vanish; 0 where a number is not finite. */
interface Scaled {
  readonly a: Tensor;
  /** What to multiply values by, [batch, 1]: NaN for matrices with numbers that are not finite. */
  readonly scale: Tensor;
}

function scaledOf(a: Tensor): Scaled {
  const isWide = a.dtype === 'float64';
  let size = max(abs(a), { axis: [1, 2], keepDims: true });
  const isGood = all(isNumber(a), { axis: [1, 2], keepDims: true });
  const { dtype } = a;
  let [factor, scale] = [ones(size.shape, { dtype }), ones(size.shape, { dtype })];
  for (const power of isWide ? [512, 256, 128, 64] : [64, 32, 16]) {
    const [big, small] = [2 ** power, 2 ** -power];
    const [isLarge, isSmall] = [greaterEqual(size, big), less(size, small)];
    const by = (x: Tensor, large: number, little: number): Tensor =>
      where(isLarge, mul(x, large), where(isSmall, mul(x, little), x));
    size = by(size, small, big);
    factor = by(factor, small, big);
    scale = by(scale, big, small);
  }
  return {
    a: where(isGood, mul(a, factor), 0),
    scale: reshape(where(isGood, scale, Number.NaN), [a.shape[0]!, 1]),
  };
}

/**
 * Vectors v [batch, n] whose reflections 1 - v vᵀ make what lines have from a place on a multiple of its first element. Their length is √2; those of lines with nothing behind it are 0.
 */
function reflectionOf(line: Tensor, from: Tensor): Tensor {
  const places = arange(line.shape[1]!, { dtype: 'int32' });
  const rest = where(greater(places, from), line, 0);
  const first = where(equal(places, from), line, 0);
  const tail = sum(square(rest), { axis: 1, keepDims: true });
  const head = sum(first, { axis: 1, keepDims: true });
  const size = sqrt(add(tail, square(head)));
  const moved = where(equal(places, from), where(less(head, 0), neg(size), size), 0);
  // What is so small has squares that are no longer exact; beside the rest of a matrix that was scaled it is nothing.
  const isSmall = less(tail, line.dtype === 'float64' ? 2 ** -900 : 2 ** -104);
  return where(isSmall, 0, div(add(rest, add(first, moved)), sqrt(mul(size, add(size, abs(head))))));
}

/** The product of two vectors of each matrix as a matrix. */
const outer = (x: Tensor, y: Tensor): Tensor => mul(unsqueeze(x, 2), unsqueeze(y, 1));

/** Matrices times vectors. */
const times = (a: Tensor, x: Tensor): Tensor => squeeze(matmul(a, unsqueeze(x, 2)), 2);

/**
 * The product of reflections, transposed: rows of its columns. `vectors` are [steps, batch, n]. Source: Puglisi, "Modification of the Householder method based on the compact
 * WY representation" (1992).
 */
function reflected(vectors: Tensor, first: number, count: number): Tensor {
  const rows = permute(vectors, [1, 0, 2]);
  const columns = transpose(rows);
  const lower = tril(matmul(rows, columns), { diagonal: -1 });
  const one = eye(rows.shape[2]!, { dtype: rows.dtype });
  const product = add(lower, eye(rows.shape[1]!, { dtype: rows.dtype }));
  return sub(narrow(one, 0, first, count), matmul(narrow(columns, 1, first, count), solved(product, rows, false)));
}

/** With 0 behind the last element. */
function padded(x: Tensor): Tensor {
  return concat([x, zeros([x.shape[0]!, 1], { dtype: x.dtype })], 1);
}

/** Signs [batch, n] that make the largest element of each row positive. */
function signsOf(rows: Tensor): Tensor {
  return where(less(max(rows, 2), max(neg(rows), 2)), -1, 1);
}

/** Eigenvalues [batch, n] and eigenvectors, in columns, of symmetric [batch, n, n]. */
function eigen(given: Tensor): readonly [values: Tensor, vectors: Tensor] {
  const [, n] = given.shape as [number, number];
  const { a, scale } = scaledOf(given);
  let [left, columns] = [a, broadcastTo(eye(n, { dtype: a.dtype }), a.shape)];
  if (n > 2) {
    const step = (matrix: Tensor, at: Tensor): readonly [Tensor, Tensor] => {
      const v = reflectionOf(take(matrix, at, 1), add(at, 1));
      const moved = times(matrix, v);
      const w = sub(moved, mul(v, mul(sum(mul(v, moved), { axis: 1, keepDims: true }), 0.5)));
      return [sub(matrix, add(outer(v, w), outer(w, v))), v];
    };
    const [reduced, vectors] = scan(step, a, arange(n - 2, { dtype: 'int32' }));
    [left, columns] = [reduced, reflected(vectors, 0, n)];
  }
  const { values, places, sweeps, turns } = tridiagonal({
    d: diagonal(left),
    e: padded(diagonal(left, { offset: 1 })),
  });
  const rows = turned({ columns, places, sweeps, turns }).result;
  const scaled = mul(values, scale);
  const vectors = mul(rows, unsqueeze(where(isMissing(scaled), Number.NaN, signsOf(rows)), 2));
  return [scaled, transpose(vectors)];
}

/** Singular values of [batch, m, n], m >= n, and vectors: those of the left, of the right and the other columns of the left, all as rows. */
interface Singular {
  readonly s: Tensor;
  readonly u: Tensor;
  readonly v: Tensor;
  readonly others: Tensor;
}

function singular(given: Tensor): Singular {
  const [, m, n] = given.shape as [number, number, number];
  const { a, scale } = scaledOf(given);
  const step = (matrix: Tensor, at: Tensor): readonly [Tensor, { readonly u: Tensor; readonly v: Tensor }] => {
    const u = reflectionOf(take(matrix, at, 2), at);
    const across = times(transpose(matrix), u);
    const factor = unsqueeze(take(u, at, 1), 1);
    const v = reflectionOf(sub(take(matrix, at, 1), mul(factor, across)), add(at, 1));
    const along = sub(times(matrix, v), mul(u, sum(mul(across, v), { axis: 1, keepDims: true })));
    return [sub(matrix, add(outer(u, across), outer(along, v))), { u, v }];
  };
  const [reduced, vectors] = scan(step, a, arange(n, { dtype: 'int32' }));
  const { values, places, signs, sweeps, left, right } = bidiagonal({
    d: diagonal(reduced),
    e: padded(diagonal(narrow(reduced, 1, 0, n), { offset: 1 })),
  });
  const u = turned({ columns: reflected(vectors.u, 0, n), places, sweeps, turns: left }).result;
  const v = turned({ columns: reflected(vectors.v, 0, n), places, sweeps, turns: right }).result;
  const s = mul(values, scale);
  const sign = where(isMissing(s), Number.NaN, signsOf(u));
  return {
    s,
    u: mul(u, unsqueeze(sign, 2)),
    v: mul(v, unsqueeze(mul(sign, signs), 2)),
    others: mul(reflected(vectors.u, n, m - n), unsqueeze(where(isMissing(scale), Number.NaN, 1), 2)),
  };
}

export interface EighOptions {
  /** What is on and above the diagonal is read; otherwise on and below. Default false. */
  readonly upper?: boolean;
}

/** Eigenvalues in ascending order, and eigenvectors of length 1 in the columns, in the order of the values. */
export interface Eigen {
  readonly values: Tensor;
  readonly vectors: Tensor;
}

/** The values of matrices as a function of them, where w and v are what values and vectors are. */
function valuesOf(a: Tensor, w: Tensor, v: Tensor): Tensor {
  const values = customGradient(
    (...[, known]: Tensor[]) => mul(known!, 1),
    (grad, { inputs }) => {
      const vectors = vectorsOf(...(inputs as [Tensor, Tensor, Tensor]));
      return [matmul(mul(vectors, unsqueeze(grad, 1)), transpose(vectors)), null, null];
    },
  );
  return values(a, w, v);
}

/** 1 / x beside the diagonal, and 0 on it. */
function inverted(x: Tensor): Tensor {
  const one = eye(x.shape[2]!, { dtype: x.dtype });
  return div(sub(1, one), add(mul(x, sub(1, one)), one));
}

function vectorsOf(a: Tensor, w: Tensor, v: Tensor): Tensor {
  const vectors = customGradient(
    (...[, , known]: Tensor[]) => mul(known!, 1),
    (grad, { inputs, output }) => {
      const values = valuesOf(...(inputs as [Tensor, Tensor, Tensor]));
      const slopes = inverted(sub(unsqueeze(values, 1), unsqueeze(values, 2)));
      const inner = mul(matmul(transpose(output), grad), slopes);
      const both = mul(add(inner, transpose(inner)), 0.5);
      return [matmul(matmul(output, both), transpose(output)), null, null];
    },
  );
  return vectors(a, w, v);
}

/**
 * Eigenvalues and eigenvectors of symmetric matrices: a = V diag(values) Vᵀ. One triangle is read, and has the gradients. The largest element of each vector is positive;
 * where several are, rounding decides. Where only values are used, vectors are not computed, and gradients are finite for equal values too. Gradients through vectors divide
 * by differences of values: for equal ones they are infinite or NaN. A matrix with a number that is not finite gives NaN. Sources: NumPy `numpy.linalg.eigh`, PyTorch
 * `torch.linalg.eigh`; Golub and Van Loan, "Matrix Computations" (2013), section 8.3.
 *
 * @param a shape [..., n, n], float32 of up to 2048 rows or float64 of up to 1024
 * @param options upper
 * @returns values [..., n], ascending, and vectors [..., n, n], in columns; the same dtype
 * @throws ShapeError for other shapes, DTypeError for other dtypes
 *
 * @example
 * const { values, vectors } = eigh(tensor([[2, 1], [1, 2]]));
 * values; // [1, 3]
 * vectors.mul(values).matmul(vectors.transpose()); // [[2, 1], [1, 2]]
 */
export function eigh(a: Tensor, options: EighOptions = {}): Eigen {
  checkNames('eigh', options, 'upper?');
  return precisely('eigh', () => {
    checkSquare('eigh', 'a', a);
    const { dtype, shape } = a;
    checkColumns('eigh', a, shape.at(-1)!);
    if (a.size === 0) return { values: zeros(shape.slice(0, -1), { dtype }), vectors: mul(a, 1) };
    const lower = options.upper === true ? transpose(a) : a;
    const whole = flat(add(tril(lower), transpose(tril(lower, { diagonal: -1 }))));
    const [w, v] = noGrad(() => eigen(whole));
    return {
      values: reshape(valuesOf(whole, w, v), shape.slice(0, -1)),
      vectors: reshape(vectorsOf(whole, w, v), shape),
    };
  });
}

export interface SvdOptions {
  /** Square matrices of vectors: also those that belong to no value. They have no derivatives. Default false. */
  readonly full?: boolean;
}

/** Singular values in descending order, and what they come with: a = u diag(s) vt. */
export interface Svd {
  readonly u: Tensor;
  readonly s: Tensor;
  readonly vt: Tensor;
}

/** What is known of [batch, m, n], m >= n: values s and vectors u and v, in columns. */
type Known = readonly [a: Tensor, s: Tensor, u: Tensor, v: Tensor];

function known(which: number, parts: Known, gradient: (grad: Tensor, parts: Known, own: Tensor) => Tensor): Tensor {
  const result = customGradient(
    (...given: Tensor[]) => mul(given[which]!, 1),
    (grad, { inputs, output }) => [gradient(grad, inputs as unknown as Known, output), null, null, null],
  );
  return result(...parts);
}

function sOf(parts: Known): Tensor {
  return known(1, parts, (grad, all) => matmul(mul(uOf(all), unsqueeze(grad, 1)), transpose(vOf(all))));
}

/** What turns vectors into each other: the part of vectorsᵀ grad that changes its sign with its indices, by differences of squares. */
function turning(vectors: Tensor, grad: Tensor, s: Tensor): Tensor {
  const product = matmul(transpose(vectors), grad);
  const [row, column] = [unsqueeze(s, 1), unsqueeze(s, 2)];
  return mul(sub(product, transpose(product)), inverted(mul(sub(row, column), add(row, column))));
}

// Source: Townsend, "Differentiating the singular value decomposition" (2016).
function uOf(parts: Known): Tensor {
  return known(2, parts, (grad, all, u) => {
    const [s, v] = [unsqueeze(sOf(all), 1), transpose(vOf(all))];
    const inside = matmul(u, mul(turning(u, grad, squeeze(s, 1)), s));
    if (u.shape[1] === u.shape[2]) return matmul(inside, v);
    return matmul(add(inside, div(sub(grad, matmul(u, matmul(transpose(u), grad))), s)), v);
  });
}

function vOf(parts: Known): Tensor {
  return known(3, parts, (grad, all, v) => {
    const s = sOf(all);
    return matmul(matmul(uOf(all), mul(unsqueeze(s, 2), turning(v, grad, s))), transpose(v));
  });
}

/** Orthonormal columns beside those of u; gradients that ask for theirs are refused. */
function completed(op: string, a: Tensor, u: Tensor, others: Tensor): Tensor {
  const beside = customGradient(
    (...[, columns]: Tensor[]) => mul(columns!, 1),
    () => {
      throw new GradientError(op, 'vectors that belong to no value have no gradient: leave out full, or detach() them');
    },
  );
  return concat([u, beside(a, others)], 2);
}

/**
 * Singular values and vectors: a = u diag(s) vt, where u and vtᵀ have orthonormal columns. The largest element of each column of u (for matrices wider than high, of each row
 * of vt) is positive; where several are, rounding decides. Vectors that are not used are not computed. Values have finite gradients, but where one is 0 those of matrices of full rank
 * alone are unique. Gradients through vectors divide by differences of squared values, and by values if a is not square: for equal ones they are infinite or NaN. A matrix with a
 * number that is not finite gives NaN. Sources: PyTorch `torch.linalg.svd`, whose matrices are full unless told otherwise; Golub and Van Loan, "Matrix Computations" (2013),
 * section 8.6.
 *
 * @param a shape [..., m, n], float32 with m or n up to 2048, or float64 with m or n up to 1024
 * @param options full
 * @returns u [..., m, k], s [..., k], descending, and vt [..., k, n] with k = min(m, n); full: u [..., m, m] and vt [..., n, n]
 * @throws ShapeError for other shapes, DTypeError for other dtypes
 *
 * @example
 * const { u, s, vt } = svd(tensor([[3, 0], [0, 4]]));
 * s; // [4, 3]
 * u.mul(s).matmul(vt); // [[3, 0], [0, 4]]
 */
export function svd(a: Tensor, options: SvdOptions = {}): Svd {
  checkNames('svd', options, 'full?');
  return precisely('svd', () => {
    checkMatrices('svd', 'a', a);
    const { dtype, shape } = a;
    const [m, n] = shape.slice(-2) as [number, number];
    const [batch, k] = [shape.slice(0, -2), Math.min(m, n)];
    checkColumns('svd', a, k);
    const isFull = options.full === true;
    if (a.size === 0) {
      const one = (rows: number, columns: number): Tensor =>
        broadcastTo(eye(rows, columns, { dtype }), [...batch, rows, columns]);
      return { u: one(m, isFull ? m : k), s: zeros([...batch, k], { dtype }), vt: one(isFull ? n : k, n) };
    }
    const isWide = n > m;
    const tall = flat(isWide ? transpose(a) : a);
    const { others, ...rows } = noGrad(() => singular(tall));
    const parts: Known = noGrad(() => [tall, rows.s, transpose(rows.u), transpose(rows.v)]);
    const left = uOf(parts);
    const high = isFull && m !== n ? completed('svd', tall, left, transpose(others)) : left;
    const [u, v] = isWide ? [vOf(parts), high] : [high, vOf(parts)];
    const many = (x: Tensor): Tensor => reshape(x, [...batch, ...x.shape.slice(1)]);
    return { u: many(u), s: many(sOf(parts)), vt: many(transpose(v)) };
  });
}

export interface RankOptions {
  /** Singular values up to this times the largest count as 0. Default max(m, n) times the distance from 1 to the next number of the dtype. */
  readonly rcond?: number;
}

const rankRules = { rcond: numberFrom(0) };

/** Singular values that count, given those of matrices like a. */
function counting(a: Tensor, s: Tensor, { rcond }: RankOptions): Tensor {
  const [m, n] = a.shape.slice(-2) as [number, number];
  const least = rcond ?? Math.max(m, n) * (a.dtype === 'float64' ? 2 ** -52 : 2 ** -23);
  return greater(s, mul(max(s, { axis: -1, keepDims: true }), least));
}

/**
 * The pseudo-inverse (Moore and Penrose): for equations without a solution it gives that of least squares, for equations with several the shortest. Derivatives of every order
 * are those at constant rank. A matrix with a number that is not finite gives NaN. Source: PyTorch `torch.linalg.pinv`; Golub and Pereyra, "The differentiation of
 * pseudo-inverses and nonlinear least squares problems" (1973).
 *
 * @param a shape [..., m, n], float32 or float64, as for `svd`
 * @param options rcond
 * @returns shape [..., n, m], the same dtype
 * @throws ShapeError for other shapes, DTypeError for other dtypes
 *
 * @example
 * pinv(tensor([[1, 0], [0, 2], [0, 0]])); // [[1, 0, 0], [0, 0.5, 0]]
 */
export function pinv(a: Tensor, options: RankOptions = {}): Tensor {
  checkFields('pinv', options, rankRules);
  return precisely('pinv', () => {
    checkMatrices('pinv', 'a', a);
    if (a.size === 0) return transpose(mul(a, 1));
    const constant = noGrad(() => {
      const { u, s, vt } = svd(a, {});
      const isCounting = logicalOr(counting(a, s, options), isMissing(s));
      const inverse = div(where(isCounting, 1, 0), where(isCounting, s, 1));
      return matmul(mul(transpose(vt), unsqueeze(inverse, -2)), transpose(u));
    });
    return pseudo(a, constant);
  });
}

/** A pseudo-inverse as a function of a. */
function pseudo(a: Tensor, constant: Tensor): Tensor {
  const result = customGradient(
    (...[, value]: Tensor[]) => mul(value!, 1),
    (grad, { inputs, output }) => {
      const [matrix] = inputs as [Tensor];
      const [turned, across] = [transpose(output), transpose(grad)];
      const inside = matmul(matmul(turned, grad), turned);
      const left = matmul(across, matmul(output, turned));
      const right = matmul(matmul(turned, output), across);
      const outside = sub(
        add(left, right),
        add(matmul(matrix, matmul(output, left)), matmul(matmul(right, output), matrix)),
      );
      return [sub(outside, inside), null];
    },
  );
  return result(a, constant);
}

/**
 * How many singular values of matrices count: a constant for gradients. A matrix with a number that is not finite gives 0. Source: PyTorch `torch.linalg.matrix_rank`.
 *
 * @param a shape [..., m, n], float32 or float64, as for `svd`
 * @param options rcond
 * @returns shape [...], int32
 * @throws ShapeError for other shapes, DTypeError for other dtypes
 *
 * @example
 * matrixRank(tensor([[1, 2], [2, 4]])); // 1
 */
export function matrixRank(a: Tensor, options: RankOptions = {}): Tensor {
  checkFields('matrixRank', options, rankRules);
  return precisely('matrixRank', () => {
    checkMatrices('matrixRank', 'a', a);
    if (a.size === 0) return zeros(a.shape.slice(0, -2), { dtype: 'int32' });
    return noGrad(() => cast(countNonZero(counting(a, svd(a).s, options), -1), 'int32'));
  });
}
