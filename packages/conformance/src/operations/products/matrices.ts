/** Matrix products in their usual forms, by their definitions written out. */
import * as pg from '@polygrad/core';
import { einsum, matmul } from '../../oracle/linear.ts';
import { count, map, nd, type NDArray, permute, reshape, zip } from '../../oracle/ndarray.ts';
import { type Random, sample, uniform } from '../../oracle/random.ts';
import { drawn, operand, small, sums } from '../../programs/operands.ts';
import { broadcast, isFloat, type Made, type Pool, ref } from '../../programs/pool.ts';
import type { Value } from '../../programs/program.ts';
import { floats, type OpSpec } from '../../spec.ts';
import { type OperationRow, smooth } from '../row.ts';
import { ofFactors, productSpecs } from './row.ts';

const any = uniform(-1, 1);

const products: readonly (readonly [readonly number[], readonly number[]])[] = [
  [
    [2, 3],
    [3, 2],
  ],
  [
    [1, 1],
    [1, 1],
  ],
  [[3], [3]],
  [[3], [3, 2]],
  [[2, 3], [3]],
  [
    [0, 3],
    [3, 2],
  ],
  [
    [2, 0],
    [0, 3],
  ],
  [
    [5, 7],
    [7, 9],
  ],
  [
    [17, 33],
    [33, 19],
  ],
  [
    [64, 64],
    [64, 64],
  ],
  [
    [65, 67],
    [67, 63],
  ],
  [
    [1, 130],
    [130, 71],
  ],
  [
    [71, 130],
    [130, 1],
  ],
  [
    [4, 3, 5],
    [4, 5, 2],
  ],
  [
    [2, 1, 3, 5],
    [4, 5, 2],
  ],
];

const matmulSpec: OpSpec<2> = {
  name: 'matmul',
  dtypes: floats,
  instances: products.map(([l, r]) => ({
    label: `[${l}] by [${r}]`,
    small: count(l) <= 64 && count(r) <= 64 && count(l) > 0,
    draw: (random: Random) => [sample(random, l, any), sample(random, r, any)],
  })),
  run: ([a, b]) => pg.matmul(a, b),
  oracle: ([a, b]) => matmul(a, b),
  terms: ([a]) => a.shape[a.shape.length - 1]!,
  gradient: { of: [0, 1], order: 2 },
};

const gemmSpec: OpSpec<3> = {
  name: 'gemm',
  dtypes: floats,
  instances: [false, true].flatMap((transA) =>
    [false, true].map((transB) => ({
      label: `${transA ? 'T' : 'N'}${transB ? 'T' : 'N'}`,
      small: true,
      options: { transA, transB },
      draw: (r: Random) => [
        sample(r, transA ? [5, 3] : [3, 5], any),
        sample(r, transB ? [2, 5] : [5, 2], any),
        sample(r, [3, 2], any),
      ],
    })),
  ),
  run: ([a, b, c], o) => pg.gemm(a, b, { ...o, alpha: 0.5, beta: 2, c: c }),
  oracle: ([a, b, c], o) => combined(0.5, matmul(turnedIf(o.transA, a), turnedIf(o.transB, b)), 2, c),
  terms: () => 6,
  gradient: { of: [0, 1, 2], order: 2 },
};

const turnedIf = (transposed: unknown, a: NDArray): NDArray => (transposed ? turned(a) : a);

/** alpha * product + beta * addend, where there is one. */
const combined = (alpha: number, product: NDArray, beta: number, addend?: NDArray): NDArray =>
  addend === undefined || beta === 0
    ? map(product, (x) => alpha * x)
    : zip((x, y) => alpha * x + beta * y, product, addend);

function product(pool: Pool): Made | null {
  const a = operand(pool, 1);
  if (a === null) return null;
  const k = a.shape.at(-1) as number;
  const fits = (v: Value): boolean =>
    v.dtype === a.dtype &&
    small(v) &&
    v.shape.length > 0 &&
    (v.shape.length === 1
      ? v.shape[0] === k
      : v.shape.at(-2) === k &&
        (a.shape.length < 3 || v.shape.length < 3 || broadcast(a.shape.slice(0, -2), v.shape.slice(0, -2)) !== null));
  const b = pool.c.nat(2) === 0 ? pool.pick(fits) : null;
  const n = pool.c.pick([3, 1, 8, 17, 0]);
  const other = b ?? drawn(pool, a.dtype, pool.c.seldom(4) ? [k] : [k, n]);
  return {
    args: [ref(a), ref(other)],
    dtype: a.dtype,
    formula: (x, y) => matmul(x, y),
    ...sums(a.dtype),
  };
}

const turned = (a: NDArray): NDArray =>
  permute(a, [...a.shape.slice(0, -2).keys(), a.shape.length - 1, a.shape.length - 2]);

const isFloating = (v: Value): boolean => isFloat(v.dtype);
const reversed = (shape: readonly number[]): number[] => [...shape].reverse();

/** Sizes next to those that kernels are cut by. */
const edges = [3, 1, 8, 17, 4, 16, 33, 64, 5];

function gemm(pool: Pool): Made | null {
  const a = operand(pool, 2, 3, isFloating);
  if (a === null) return null;
  const [transA, transB] = [pool.c.nat(2) === 1, pool.c.nat(2) === 1];
  const [rows, k] = (transA ? reversed(a.shape.slice(-2)) : a.shape.slice(-2)) as [number, number];
  const n = pool.c.pick(edges);
  const b = drawn(pool, a.dtype, transB ? [n, k] : [k, n]);
  const addend = pool.c.pick(['none', 'row', 'full'] as const);
  const c = addend === 'none' ? null : drawn(pool, a.dtype, addend === 'row' ? [n] : [rows, n]);
  const [alpha, beta] = [pool.c.pick([1, 0.5, -2]), pool.c.pick([1, 2, 0])];
  return {
    args: [
      ref(a),
      ref(b),
      {
        ...(transA ? { transA } : {}),
        ...(transB ? { transB } : {}),
        ...(alpha === 1 ? {} : { alpha }),
        ...(c ? { c: ref(c), beta } : {}),
      },
    ],
    dtype: a.dtype,
    formula: (x, y, z) => combined(alpha, matmul(turnedIf(transA, x), turnedIf(transB, y)), beta, z),
    ...sums(a.dtype),
  };
}

function gemv(pool: Pool): Made | null {
  const a = operand(pool, 2, 2, isFloating);
  if (a === null) return null;
  const transA = pool.c.nat(2) === 1;
  const x = drawn(pool, a.dtype, [a.shape[transA ? 0 : 1]!]);
  const y = pool.c.nat(2) === 0 ? null : drawn(pool, a.dtype, [a.shape[transA ? 1 : 0]!]);
  return {
    args: [ref(a), ref(x), { alpha: 2, ...(transA ? { transA } : {}), ...(y ? { y: ref(y), beta: 0.5 } : {}) }],
    dtype: a.dtype,
    formula: (p, q, r) => combined(2, matmul(turnedIf(transA, p), q), 0.5, r),
    ...sums(a.dtype),
  };
}

/** Sums of products over the last axis of both. */
function inner(pool: Pool): Made | null {
  const a = operand(pool, 1, 3);
  if (a === null) return null;
  const k = a.shape.at(-1) as number;
  const b = drawn(pool, a.dtype, pool.c.nat(2) === 0 ? [k] : [pool.c.pick(edges), k]);
  return {
    args: [ref(a), ref(b)],
    dtype: a.dtype,
    formula: (x, y) => matmul(x, b.shape.length === 1 ? y : turned(y)),
    ...sums(a.dtype),
  };
}

function dot(pool: Pool): Made | null {
  const a = operand(pool, 0, 3);
  if (a === null) return null;
  const k = a.shape.at(-1);
  const b = drawn(pool, a.dtype, k === undefined ? [3] : pool.c.nat(2) === 0 ? [k] : [k, pool.c.pick(edges)]);
  return {
    args: [ref(a), ref(b)],
    dtype: a.dtype,
    formula: (x, y) => (k === undefined ? zip((v, w) => v * w, x, y) : matmul(x, y)),
    ...sums(a.dtype),
  };
}

function vdot(pool: Pool): Made | null {
  const a = operand(pool, 1, 4);
  if (a === null) return null;
  const b = drawn(pool, a.dtype, reversed(a.shape));
  return {
    args: [ref(a), ref(b)],
    dtype: a.dtype,
    formula: (x, y) => nd([], [x.data.reduce((s, v, i) => s + v * y.data[i]!, 0)]),
    ...sums(a.dtype),
  };
}

export const matrixRows: readonly OperationRow[] = [
  // Twice as often as the others.
  { name: 'matmul', specs: [matmulSpec], calls: smooth(product, product) },
  { name: 'gemm', specs: [gemmSpec], calls: smooth(gemm) },
  {
    name: 'gemv',
    specs: productSpecs([
      ofFactors<3>({
        name: 'gemv',
        shapes: [
          [[3, 4], [4], [3]],
          [[33, 17], [17], [33]],
        ],
        run: ([a, x, y]) => pg.gemv(a, x, { alpha: 2, beta: -0.5, y: y }),
        f: ([a, x, y]) => combined(2, matmul(a, x), -0.5, y),
        terms: ([, x]) => 2 * count(x.shape) + 2,
      }),
      ofFactors<2>({
        name: 'gemv of a transpose',
        shapes: [[[4, 3], [4]]],
        run: ([a, x]) => pg.gemv(a, x, { transA: true }),
        f: ([a, x]) => matmul(turned(a), x),
        terms: () => 4,
      }),
    ]),
    calls: smooth(gemv),
  },
  {
    name: 'dot',
    specs: productSpecs([
      ofFactors<2>({
        name: 'dot',
        shapes: [
          [[5], [5]],
          [[2, 3], [3]],
          [
            [2, 3],
            [3, 2],
          ],
          [
            [2, 3],
            [2, 3, 2],
          ],
          [[], [3]],
        ],
        run: ([a, b]) => pg.dot(a, b),
        f: ([a, b]) => {
          const [x, y] = [a, b];
          const letters = 'abcdef';
          if (x.shape.length === 0) return zip((p, q) => p * q, x, y);
          const left = `${letters.slice(0, x.shape.length - 1)}z`;
          const right = [...'pqrs'.slice(0, y.shape.length)];
          right[Math.max(0, y.shape.length - 2)] = 'z';
          return einsum([left, right.join('')], (left + right.join('')).replaceAll('z', ''), [x, y]);
        },
        terms: () => 6,
      }),
    ]),
    calls: smooth(dot),
  },
  {
    name: 'inner',
    specs: productSpecs([
      ofFactors<2>({
        name: 'inner',
        shapes: [
          [[5], [5]],
          [
            [2, 3],
            [4, 3],
          ],
        ],
        run: ([a, b]) => pg.inner(a, b),
        f: ([a, b]) => (a.shape.length === 1 ? einsum(['z', 'z'], '', [a, b]) : einsum(['az', 'bz'], 'ab', [a, b])),
        terms: () => 5,
      }),
    ]),
    calls: smooth(inner),
  },
  {
    name: 'vdot',
    specs: productSpecs([
      ofFactors<2>({
        name: 'vdot',
        shapes: [
          [
            [2, 3],
            [3, 2],
          ],
        ],
        run: ([a, b]) => pg.vdot(a, b),
        f: ([a, b]) => einsum(['z', 'z'], '', [reshape(a, [6]), reshape(b, [6])]),
        terms: () => 6,
      }),
    ]),
    calls: smooth(vdot),
  },
];
