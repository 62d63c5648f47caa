/**
 * Householder's factors of matrices, and least squares.
 *
 * Columns go in panels. A panel of few rows is factored by one kernel; of many, blocks of rows are, and then their triangles, one
 * above the other. From the orthonormal columns of a panel come its reflections I - Y T Yᵀ; everything else is products with them.
 *
 * Sources: Demmel, Grigori, Hoemmen and Langou, "Communication-optimal parallel and sequential QR" (2012); Ballard and others,
 * "Reconstructing Householder vectors from tall-skinny QR" (2014); Schreiber and Van Loan, "A storage-efficient WY representation" (1989).
 */
import { GradientError } from '../autodiff/backward.ts';
import { customGradient, noGrad } from '../autodiff/custom-gradient.ts';
import { checkFields, oneOf } from '@polygrad/compiler/shape/options';
import { broadcastTo, reshape, transpose, unsqueeze } from '../ops/movement/shape.ts';
import { zeros } from '../ops/creation/creation.ts';
import { eye } from '../ops/creation/patterns.ts';
import { abs, add, mul, neg, sub } from '../ops/elementwise/arithmetic.ts';
import { diagonal, tril } from '../ops/movement/diagonals.ts';
import { concat } from '../ops/movement/joining.ts';
import { narrow } from '../ops/movement/slicing.ts';
import { matmul } from '../ops/products/matmul.ts';
import { max } from '../ops/reduction/reduction.ts';
import { defineKernel } from '../custom/define.ts';
import type { Kernel } from '../custom/options.ts';
import type { KernelValue } from '../custom/value.ts';
import type { Tensor } from '../tensor/types.ts';
import {
  checkMatrices,
  columnsOf,
  filled,
  flat,
  matrices,
  type Matrices,
  precisely,
  shapedAs,
  solved,
  withZeros,
} from './triangular.ts';

/** Which parts of the factors `qr` gives. */
export interface QROptions {
  /**
   * 'reduced': of m rows and n columns, q has min(m, n) columns and r as many rows. 'complete': q is square, and r has zeros below.
   * 'r': the reduced r alone. Default
   * 'reduced'.
   */
  readonly mode?: 'reduced' | 'complete' | 'r';
}

/** Columns of a panel: three squares of float64 of this size are 6 of the 16 kilobytes of a group. */
const panelColumns = 16;
/** Columns whose reflections are put together before the rest of the matrix meets them. */
const blockColumns = 64;
/** Rows of a panel that a kernel takes: with a column more, 13 of these 16 kilobytes in float64. */
const panelRows = 96;

const rows = { dtype: ['float32', 'float64'], rank: 2 } as const;
type Rows = typeof rows;

/** Orthonormal columns and an upper triangle. */
type Factors = Readonly<Record<'q' | 'r', Tensor>>;

/**
 * Factors of few columns, m >= n, as LAPACK: the diagonal of r has the sign opposite to that of the element that its reflection meets,
 * and where nothing but zeros is below this element nothing is reflected. Norms are of columns divided by about their largest
 * magnitude, so squares do not overflow.
 */
const reflect: Kernel<{ a: Matrices }, 'q' | 'r'> = /* @__PURE__ */ defineKernel({
  name: 'reflect',
  form: 'groups',
  threads: 32,
  inputs: { a: matrices },
  outputs: { q: 'a', r: ({ a }) => ({ shape: [a.shape[0]!, a.shape[2]!, a.shape[2]!], dtype: a.dtype }) },
  grid: ({ a }) => a.shape.slice(0, 1),
  body: (k, { a }, { q, r }) => {
    const [matrix] = k.index;
    const [m, n] = [a.size(1), a.size(2)];
    const number = (value: number) => k.constant(value, a.dtype);
    // Reciprocals of numbers between these are finite, and not so small that engines take them for 0.
    const [least, most] = (a.dtype === 'float32' ? [2 ** -126, 2 ** 125] : [2 ** -1022, 2 ** 1021]).map(number) as [
      KernelValue,
      KernelValue,
    ];
    // By rows: threads have columns of their own, neighbouring ones read neighbouring elements. All loops are over all rows:
    // bounds that depend on the column cost more.
    const known = k.shared(a.dtype, m * n);
    const at = (row: KernelValue, column: KernelValue) => row.mul(n).add(column);
    const vector = k.shared(a.dtype, m);
    const [scales, sizes, products] = [k.shared(a.dtype, n), k.shared(a.dtype, n), k.shared(a.dtype, n)];
    /** The largest magnitude with another one; NaN counts as infinity. */
    const larger = (size: KernelValue, value: KernelValue) => {
      return size.maximum(k.where(value.isNaN(), number(Number.POSITIVE_INFINITY), value.abs()));
    };
    /** Columns times the vector; a loop of its own, as lanes take one walk through memory that they change. */
    const multiply = () =>
      k.each(n, (i) => {
        const product = k.variable(0, a.dtype);
        k.loop(m, (row) => product.set(product.value.add(vector.at(row).mul(known.at(at(row, i))))));
        products.set(i, product.value);
      });
    k.each(n, (i) => {
      const size = k.variable(0, a.dtype);
      k.loop(m, (row) => {
        const value = a.at([matrix, row, i]);
        known.set(at(row, i), value);
        size.set(k.where(row.greater(0), larger(size.value, value), size.value));
      });
      sizes.set(i, size.value);
    });
    k.barrier();
    k.loop(n, (column) => {
      const below = sizes.at(column);
      const first = known.at(at(column, column));
      const factor = k.constant(1, a.dtype).div(below.maximum(first.abs()).maximum(least).minimum(most));
      const { squares } = k.fold(m, {
        start: { squares: number(0) },
        step: ({ squares }, row) => {
          const value = known.at(at(row, column)).mul(factor);
          return { squares: k.where(row.less(column), squares, squares.add(value.mul(value))) };
        },
        combine: (x, y) => ({ squares: x.squares.add(y.squares) }),
      });
      const norm = squares.sqrt().div(factor);
      const reflected = k.where(first.less(0), norm, norm.neg());
      const isKept = below.equal(0);
      const pivot = k.where(isKept, first, reflected);
      const scale = k.where(isKept, number(0), reflected.sub(first).div(reflected));
      const length = k.where(isKept, number(1), first.sub(reflected));
      k.each(m, (row) => {
        const value = known.at(at(row, column)).div(length);
        vector.set(row, k.where(row.less(column), number(0), k.where(row.equal(column), number(1), value)));
      });
      k.barrier();
      k.each(1, () => scales.set(column, scale));
      multiply();
      k.each(n, (i) => {
        const size = k.variable(0, a.dtype);
        const product = products.at(i).mul(scale);
        k.loop(m, (row) => {
          const old = known.at(at(row, i));
          const next = old.sub(product.mul(vector.at(row)));
          const own = k.where(row.less(column), old, k.where(row.equal(column), pivot, vector.at(row)));
          known.set(at(row, i), k.where(i.less(column), old, k.where(i.equal(column), own, next)));
          size.set(k.where(row.greater(column.add(1)), larger(size.value, next), size.value));
        });
        sizes.set(i, size.value);
      });
      k.barrier();
    });
    k.loop(n, (row) => {
      k.each(n, (column) => {
        const value = known.at(at(row, column));
        r.set([matrix, row, column], k.where(column.less(row), number(0), value));
        known.set(at(row, column), k.where(column.less(row), value, number(0)));
      });
    });
    k.barrier();
    // From the last reflection to the first: what the reflections make of the first columns of the identity.
    k.loop(n, (step) => {
      const column = k.constant(n - 1, 'int32').sub(step);
      k.each(m, (row) => {
        const value = known.at(at(row, column));
        vector.set(row, k.where(row.less(column), number(0), k.where(row.equal(column), number(1), value)));
      });
      k.barrier();
      const scale = scales.at(column);
      multiply();
      k.each(n, (i) => {
        const product = k.where(i.equal(column), scale, products.at(i).mul(scale));
        k.loop(m, (row) => {
          const old = known.at(at(row, i));
          const one = k.where(row.equal(column), number(1), number(0));
          const base = k.where(i.equal(column), one, old);
          known.set(at(row, i), k.where(i.less(column), old, base.sub(product.mul(vector.at(row)))));
        });
      });
      k.barrier();
    });
    k.loop(m, (row) => k.each(n, (column) => q.set([matrix, row, column], known.at(row.mul(n).add(column)))));
  },
});

/**
 * Reflections from the first rows of orthonormal columns q, which may be those of r with other signs: q - e s = y u by elimination
 * without exchanged rows, with signs s that make
 * no pivot less than 1. `y` are the first rows of their vectors, t their triangle, `inverse` that of u, for the rows below. `below` is
 * the largest magnitude of a column
 * in the rows below, `diagonal` is that of r: it says how zeros of q are signed.
 */
const reconstruct: Kernel<{ q: Matrices; below: Rows; diagonal: Rows }, 'y' | 't' | 'inverse' | 'signs'> =
  /* @__PURE__ */ defineKernel({
    name: 'reconstruct',
    form: 'groups',
    threads: 16,
    inputs: { q: matrices, below: rows, diagonal: rows },
    outputs: { y: 'q', t: 'q', inverse: 'q', signs: 'below' },
    grid: ({ q }) => q.shape.slice(0, 1),
    body: (k, { q, below, diagonal }, { y, t, inverse, signs }) => {
      const [matrix] = k.index;
      const n = q.size(1);
      const number = (value: number) => k.constant(value, q.dtype);
      const [known, left, right] = [k.shared(q.dtype, n * n), k.shared(q.dtype, n * n), k.shared(q.dtype, n * n)];
      const [factors, sides, hidden] = [k.shared(q.dtype, n), k.shared(q.dtype, n), k.shared(q.dtype, n)];
      k.loop(n, (row) => k.each(n, (column) => known.set(row.mul(n).add(column), q.at([matrix, row, column]))));
      k.barrier();
      k.loop(n, (column) => {
        // Nothing is reflected where nothing is below, in these rows nor in others: those have what their columns before leave.
        const [others, rest] = [k.variable(0, q.dtype), k.variable(0, q.dtype)];
        others.set(below.at([matrix, column]));
        k.loop(n, (row) => {
          const value = known.at(row.mul(n).add(column));
          const isEmpty = value.equal(0);
          const left = k.where(isEmpty, others.value, others.value.add(hidden.at(row)));
          others.set(k.where(row.less(column), left, others.value));
          rest.set(k.where(row.greater(column), rest.value.add(value.abs()), rest.value));
        });
        const first = known.at(column.mul(n).add(column));
        const isNone = others.value.equal(0);
        const isKept = isNone.logicalAnd(rest.value.equal(0)).logicalAnd(first.isNaN().logicalNot());
        const own = k.where(first.less(0), number(-1), number(1));
        const tie = k.where(diagonal.at([matrix, column]).greater(0), number(-1), number(1));
        const opposite = k.where(first.equal(0), tie, own.neg());
        const side = k.where(isKept, own, opposite);
        const pivot = k.where(isKept, number(0), first.sub(side));
        const divisor = k.where(isKept, number(1), pivot);
        k.each(n, (row) => {
          const value = known.at(row.mul(n).add(column)).div(divisor);
          factors.set(row, k.where(row.greater(column), value, number(0)));
        });
        k.barrier();
        k.each(1, () => {
          sides.set(column, side);
          hidden.set(column, k.where(isNone, number(0), number(1)));
        });
        k.each(n, (i) => {
          const upper = k.variable(0, q.dtype);
          upper.set(known.at(column.mul(n).add(i)));
          k.loop(n, (row) => {
            const old = known.at(row.mul(n).add(i));
            const isOwn = i.equal(column);
            const next = old.sub(factors.at(row).mul(upper.value));
            const ofRow = k.where(isOwn, pivot, k.where(isKept, number(0), old));
            const later = k.where(isOwn, factors.at(row), next);
            const changed = k.where(row.equal(column), ofRow, k.where(row.greater(column), later, old));
            known.set(row.mul(n).add(i), k.where(i.less(column), old, changed));
          });
        });
        k.barrier();
      });
      k.each(n, (i) => signs.set([matrix, i], sides.at(i)));
      // Rows i of t and of the inverse, from the left to the right: t y1ᵀ = -u s, and inverse u = 1.
      k.each(n, (i) => {
        k.loop(n, (column) => {
          const isBefore = i.lessEqual(column);
          const [first, second] = [k.variable(0, q.dtype), k.variable(0, q.dtype)];
          first.set(k.where(isBefore, known.at(i.mul(n).add(column)).mul(sides.at(column)).neg(), number(0)));
          second.set(k.where(i.equal(column), number(1), number(0)));
          k.loop(column, (j) => {
            first.set(first.value.sub(left.at(j.mul(n).add(i)).mul(known.at(column.mul(n).add(j)))));
            second.set(second.value.sub(right.at(j.mul(n).add(i)).mul(known.at(j.mul(n).add(column)))));
          });
          const divisor = known.at(column.mul(n).add(column));
          left.set(column.mul(n).add(i), first.value);
          right.set(column.mul(n).add(i), second.value.div(k.where(divisor.equal(0), number(1), divisor)));
        });
      });
      k.barrier();
      k.loop(n, (row) => {
        k.each(n, (column) => {
          const value = known.at(row.mul(n).add(column));
          const one = k.where(row.equal(column), number(1), number(0));
          y.set([matrix, row, column], k.where(column.less(row), value, one));
          t.set([matrix, row, column], left.at(column.mul(n).add(row)));
          inverse.set([matrix, row, column], right.at(column.mul(n).add(row)));
        });
      });
    },
  });

/** Reflections I - Y T Yᵀ: y [batch, m, n], ones on its diagonal and zeros above; t [batch, n, n], upper. */
type Reflections = Readonly<Record<'y' | 't', Tensor>>;

/** What reflections make of matrices, or their transpose. */
function reflected({ y, t }: Reflections, x: Tensor, isTransposed: boolean): Tensor {
  return sub(x, matmul(y, matmul(isTransposed ? transpose(t) : t, matmul(transpose(y), x))));
}

/** Orthonormal columns and triangles of few columns [batch, m, n], m >= n. Of many rows, signs are as they fall. */
function panelOf(a: Tensor): Factors {
  const [batch, m, n] = a.shape as [number, number, number];
  const parts = Math.ceil(m / panelRows);
  // All panels are of one form, as each form takes time to make: rows of zeros at the end stay zeros.
  const all = withZeros(a, parts * panelRows);
  const each = reflect({ a: reshape(all, [batch * parts, panelRows, n]) });
  if (parts === 1) return { q: narrow(each.q, 1, 0, m), r: each.r };
  const { q, r } = panelOf(reshape(each.r, [batch, parts * n, n]));
  const columns = matmul(each.q, reshape(q, [batch * parts, n, n]));
  return { q: narrow(reshape(columns, [batch, parts * panelRows, n]), 1, 0, m), r };
}

/** Reflections of few columns, and their factors with the signs of LAPACK. */
function panelReflections(a: Tensor): Reflections & Factors {
  const [batch, m, n] = a.shape as [number, number, number];
  const { q, r } = panelOf(a);
  const rest = narrow(q, 1, n, m - n);
  const below = m === n ? zeros([batch, n], { dtype: a.dtype }) : max(abs(rest), 1);
  const first = reconstruct({ q: narrow(q, 1, 0, n), below, diagonal: diagonal(r) });
  const y = m === n ? first.y : concat([first.y, matmul(rest, first.inverse)], 1);
  return { y, t: first.t, q: mul(q, unsqueeze(first.signs, 1)), r: mul(unsqueeze(first.signs, 2), r) };
}

/** Reflections of columns of a block, halved until they are panels, and their triangle. */
function blockOf(a: Tensor): Reflections & { readonly r: Tensor } {
  const [batch, m, n] = a.shape as [number, number, number];
  if (n <= panelColumns) return panelReflections(a);
  const half = Math.ceil(n / panelColumns / 2) * panelColumns;
  const left = blockOf(narrow(a, 2, 0, half));
  const right = reflected(left, narrow(a, 2, half, n - half), true);
  const none = (rows: number, columns: number): Tensor => zeros([batch, rows, columns], { dtype: a.dtype });
  // Rows of zeros at the end stay zeros.
  const last = blockOf(filled(narrow(right, 1, half, m - half), m));
  const below = concat([none(half, n - half), narrow(last.y, 1, 0, m - half)], 1);
  const across = neg(matmul(left.t, matmul(matmul(transpose(left.y), below), last.t)));
  const stacked = (first: Tensor, second: Tensor, third: Tensor): Tensor =>
    concat([concat([first, second], 2), concat([none(n - half, half), third], 2)], 1);
  return {
    y: concat([left.y, below], 2),
    t: stacked(left.t, across, last.t),
    r: stacked(left.r, narrow(right, 1, 0, half), last.r),
  };
}

/** The triangle of [batch, m, n], m >= n, and the reflections of its blocks of columns. */
function blocksOf(a: Tensor): { readonly r: Tensor; readonly blocks: readonly Reflections[] } {
  const [batch, m, n] = a.shape as [number, number, number];
  const blocks: Reflections[] = [];
  const triangle: Tensor[] = [];
  let rest = a;
  for (let start = 0; start < n; start += blockColumns) {
    const width = Math.min(blockColumns, n - start);
    const whole = blockOf(filled(narrow(rest, 2, 0, width), m));
    const block = { ...whole, y: narrow(whole.y, 1, 0, m - start) };
    blocks.push(block);
    const lines = start === 0 ? [block.r] : [zeros([batch, width, start], { dtype: a.dtype }), block.r];
    const more = n - start - width;
    if (more > 0) {
      const right = reflected(block, narrow(rest, 2, width, more), true);
      lines.push(narrow(right, 1, 0, width));
      rest = narrow(right, 1, width, right.shape[1]! - width);
    }
    triangle.push(lines.length === 1 ? block.r : concat(lines, 2));
  }
  return { r: triangle.length === 1 ? triangle[0]! : concat(triangle, 1), blocks };
}

/** What reflections make of columns of the identity: of the first ones, or of all. */
function columnsOfBlocks(blocks: readonly Reflections[], isComplete: boolean): Tensor {
  const [batch, m] = blocks[0]!.y.shape as [number, number, number];
  const n = blocks.reduce((sum, { t }) => sum + t.shape[1]!, 0);
  const { dtype } = blocks[0]!.y;
  const one = (size: number): Tensor => broadcastTo(eye(size, { dtype }), [batch, size, size]);
  let q = isComplete && m > n ? one(m - n) : null;
  for (const { y, t } of [...blocks].reverse()) {
    const [, height, width] = y.shape as [number, number, number];
    const first = transpose(narrow(y, 1, 0, width));
    const none = (r: number, c: number): Tensor => zeros([batch, r, c], { dtype });
    const below = height - width;
    if (q === null) {
      const identity = below === 0 ? one(width) : concat([one(width), none(below, width)], 1);
      q = sub(identity, matmul(y, matmul(t, first)));
      continue;
    }
    const columns = q.shape[2]!;
    const across = concat([first, matmul(transpose(narrow(y, 1, width, below)), q)], 2);
    const top = concat([one(width), none(width, columns)], 2);
    const wide: Tensor = concat([top, concat([none(below, width), q], 2)], 1);
    q = sub(wide, matmul(y, matmul(t, across)));
  }
  return q!;
}

/** Factors of [batch, m, n], m >= n >= 1. */
function factorsOf(a: Tensor, isComplete: boolean, needsQ: boolean): { readonly q: Tensor | null; readonly r: Tensor } {
  const [, m, n] = a.shape as [number, number, number];
  if (n <= panelColumns && (!isComplete || m === n)) {
    return m <= panelRows ? reflect({ a }) : panelReflections(a);
  }
  const { r, blocks } = blocksOf(a);
  return { q: needsQ ? columnsOfBlocks(blocks, isComplete) : null, r };
}

/**
 * The gradient of a by those of its factors. Sources: Walter and Lehmann, "Walter Gander's QR differentiation" (2018); Roberts and
 * Roberts, "QR and LQ decomposition matrix
 * backpropagation algorithms" (2020).
 */
function slopeOf({ q, r }: Factors, ofQ: Tensor | null, ofR: Tensor): Tensor {
  const product = matmul(r, transpose(ofR));
  const m = ofQ === null ? product : sub(product, matmul(transpose(ofQ), q));
  const symmetric = add(tril(m), transpose(tril(m, { diagonal: -1 })));
  const side = matmul(q, symmetric);
  return transpose(solved(r, transpose(ofQ === null ? side : add(ofQ, side)), true));
}

/** Factors of [batch, m, n], m >= n, as functions of a: one below the other, as a function has one result. */
function followed(a: Tensor, { q, r }: Factors): Factors {
  const [, m, n] = a.shape as [number, number, number];
  const split = (x: Tensor): Factors => ({ q: narrow(x, 1, 0, m), r: narrow(x, 1, m, n) });
  const both = customGradient(
    (...[, columns, triangle]: Tensor[]) => concat([columns!, triangle!], 1),
    (grad, { output }) => {
      const grads = split(grad);
      return [slopeOf(split(output), grads.q, grads.r), null, null];
    },
  );
  return split(both(a, q, r));
}

/** The triangle alone, as a function of a: its gradient needs the orthonormal columns again. */
function triangleOf(a: Tensor): Tensor {
  const triangle = customGradient(
    (x) => factorsOf(x!, false, false).r,
    (grad, { inputs, output }) => {
      const [matrix] = inputs as [Tensor];
      return slopeOf({ q: reducedOf(matrix).q, r: output }, null, grad);
    },
  );
  return triangle(a);
}

/** Factors of [batch, m, n], m >= n >= 1, with derivatives. */
function reducedOf(a: Tensor): Factors {
  return followed(
    a,
    noGrad(() => factorsOf(a, false, true) as Factors),
  );
}

const modes = { mode: oneOf('reduced', 'complete', 'r') } as const;

/**
 * The factors of matrices x = q r: q has orthonormal columns, r is an upper triangle. Householder's reflections keep q orthonormal to
 * rounding whatever x is, also of rank less than full.
 * Signs are those of LAPACK, so those of NumPy and PyTorch: an element of the diagonal of r has the sign opposite to that of the
 * element that its reflection met. For a diagonal that is
 * not negative, which makes the factors unique, multiply columns of q and rows of r by its signs. NaN and infinities in x make q NaN.
 *
 * Derivatives of every order, where the first min(m, n) columns of x are independent; otherwise they have infinities or NaN. Where m > n,
 * the q of 'complete' has none: its further columns are any basis of what is left. Source: PyTorch `torch.linalg.qr`.
 *
 * @param x shape [..., m, n], float32 or float64
 * @param options mode: 'reduced' (the default), 'complete' or 'r'
 * @returns with k = min(m, n): q of shape [..., m, k] and r [..., k, n]; for 'complete' [..., m, m] and [..., m, n]; for 'r' r alone
 * @throws ShapeError for other shapes, DTypeError for other dtypes; GradientError for a gradient through the q of 'complete' with m > n,
 *   and for forward derivatives of its r
 *
 * @example
 * const { q, r } = qr(tensor([[3, 1], [4, 2]]));
 * r; // [[-5, -2.2], [0, 0.4]]
 * q.matmul(r); // [[3, 1], [4, 2]]
 */
export function qr(x: Tensor, options?: QROptions & { readonly mode?: 'reduced' | 'complete' }): Factors;
export function qr(x: Tensor, options: QROptions & { readonly mode: 'r' }): { readonly r: Tensor };
export function qr(x: Tensor, options: QROptions): { readonly q?: Tensor; readonly r: Tensor };
export function qr(x: Tensor, options: QROptions = {}): { readonly q?: Tensor; readonly r: Tensor } {
  checkFields('qr', options, modes);
  const { mode = 'reduced' } = options;
  return precisely('qr', () => {
    checkMatrices('qr', 'x', x);
    const [m, n] = x.shape.slice(-2) as [number, number];
    const batch = x.shape.slice(0, -2);
    const k = Math.min(m, n);
    const shaped = (y: Tensor): Tensor => reshape(y, [...batch, ...y.shape.slice(1)]);
    if (x.size === 0) {
      const [columns, lines] = mode === 'complete' ? [m, m] : [k, k];
      const r = zeros([...batch, lines, n], { dtype: x.dtype });
      if (mode === 'r') return { r };
      return { q: broadcastTo(narrow(eye(m, { dtype: x.dtype }), 1, 0, columns), [...batch, m, columns]), r };
    }
    const many = flat(x);
    if (mode === 'r' && m >= n) return { r: shaped(triangleOf(many)) };
    if (mode === 'complete' && m > n) {
      const factors = noGrad(() => factorsOf(many, true, true) as Factors);
      const reduced = { q: narrow(factors.q, 2, 0, n), r: factors.r };
      const below = zeros([factors.r.shape[0]!, m - n, n], { dtype: x.dtype });
      return { q: shaped(withoutSlope(many, factors.q)), r: shaped(concat([followed(many, reduced).r, below], 1)) };
    }
    // Of a wide matrix the columns behind the square have no part in q.
    const { q, r } = reducedOf(narrow(many, 2, 0, k));
    const whole = m >= n ? r : concat([r, matmul(transpose(q), narrow(many, 2, k, n - k))], 2);
    return mode === 'r' ? { r: shaped(whole) } : { q: shaped(q), r: shaped(whole) };
  });
}

/** Columns that depend on a, but have no derivative. */
function withoutSlope(a: Tensor, q: Tensor): Tensor {
  const rule = customGradient(
    (...[, columns]: Tensor[]) => mul(columns!, 1),
    () => {
      const [m, n] = a.shape.slice(1) as [number, number];
      throw new GradientError(
        'qr',
        `q of mode 'complete' has no derivative for ${m} rows and ${n} columns: use 'reduced'`,
      );
    },
  );
  return rule(a, q);
}

/**
 * Solves equations a x = b in the sense of least squares: of all x, one with the least |a x - b|². Of more equations than unknowns it
 * is R⁻¹ Qᵀ b with the factors of a; of fewer
 * it is the shortest of the solutions, by the factors of aᵀ. Matrices must have full rank: otherwise there are infinities, NaN or huge
 * numbers, and nothing waits to find out and raise an error.
 * Derivatives of every order. Source: PyTorch `torch.linalg.lstsq` (its `solution`), with `gels`.
 *
 * @param a shape [..., m, n], float32 or float64
 * @param b shape [..., m, k], of the same dtype, or [m]: one vector; the axes before broadcast
 * @returns x of shape [..., n, k], or [..., n] for a vector
 * @throws ShapeError and DTypeError for operands that do not fit
 *
 * @example
 * // A line through three points: 1 + 2 t.
 * lstsq(tensor([[1, 0], [1, 1], [1, 2]]), tensor([1, 3, 5])); // [1, 2]
 */
export function lstsq(a: Tensor, b: Tensor): Tensor {
  return precisely('lstsq', () => {
    checkMatrices('lstsq', 'a', a);
    const right = columnsOf('lstsq', a, b);
    const [m, n] = a.shape.slice(-2) as [number, number];
    if (a.size === 0 || right.size === 0) return shapedAs(b, matmul(transpose(a), right));
    const isWide = m < n;
    const { q, r } = qr(isWide ? transpose(a) : a);
    if (isWide) return shapedAs(b, matmul(q, solved(transpose(r), right, false)));
    return shapedAs(b, solved(r, matmul(transpose(q), right), true));
  });
}
