/**
 * Kernels of small matrices: the factor of Cholesky, and the inverse of a triangle. Larger matrices are made of these and of products (triangular.ts).
 *
 * A group has a matrix to itself, in shared memory. Its threads take the rows, or the columns, side by side.
 */
import { defineKernel } from '../custom/define.ts';
import type { Kernel } from '../custom/options.ts';
import { add, mul, neg, sub } from '../ops/elementwise/arithmetic.ts';
import { tril } from '../ops/movement/diagonals.ts';
import { transpose } from '../ops/movement/shape.ts';
import { matmul } from '../ops/products/matmul.ts';
import type { Tensor } from '../tensor/types.ts';

/** Rows of the largest matrix that these kernels take: two times four kilobytes of float64, half of a group's memory. */
export const blockRows = 32;

const matrices = { dtype: ['float32', 'float64'], rank: 3 } as const;
type Matrices = typeof matrices;

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
export const factor: Kernel<{ a: Matrices }, 'l'> = /* @__PURE__ */ defineKernel({
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
    const halved = sub(product, mul(diagonals(product), 0.5));
    const inverse = invertLower({ l }).inverse;
    const half = mul(matmul(matmul(transpose(inverse), halved), inverse), 0.5);
    return { a: add(half, transpose(half)) };
  },
});

/** Lower triangles without what is below the diagonal. */
function diagonals(lower: Tensor): Tensor {
  return sub(lower, tril(lower, { diagonal: -1 }));
}
