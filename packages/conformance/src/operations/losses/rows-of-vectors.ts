/** Losses that compare whole rows by their angle or their distance, from the formulas of PyTorch 1.13's documentation. */
import * as pg from '@polygrad/core';
import { build, nd, type NDArray, reduce, zip } from '../../oracle/ndarray.ts';
import { sample } from '../../oracle/random.ts';
import { total } from '../../oracle/sums.ts';
import { away, drawn, parts, sums, vectors } from '../../programs/operands.ts';
import { type Made, type Pool, ref } from '../../programs/pool.ts';
import { type OperationRow, smooth } from '../row.ts';
import { any, drawnReduction, type Loss, lossSpec } from './row.ts';

const distance = (a: NDArray, b: NDArray, p: number, eps: number): NDArray =>
  reduce(
    zip((x, y) => Math.abs(x - y + eps), a, b),
    [a.shape.length - 1],
    (v) => (p === Number.POSITIVE_INFINITY ? Math.max(...v) : total(v.map((x) => x ** p)) ** (1 / p)),
  );

interface Triplet {
  readonly p?: number;
  readonly eps: number;
  readonly margin: number;
  readonly swap?: boolean;
}

/** How much nearer than the far ones, by less than a margin, anchors lie to the near ones. */
function triplets(xs: readonly NDArray[], { p = 2, eps, margin, swap }: Triplet): NDArray {
  const [anchor, near, far] = xs as [NDArray, NDArray, NDArray];
  const between = (x: NDArray, y: NDArray): NDArray => distance(x, y, p, eps);
  return zip(
    (own, other, swapped) => Math.max(0, own - (swap ? Math.min(other, swapped) : other) + margin),
    between(anchor, near),
    between(anchor, far),
    between(near, far),
  );
}

/** 1 minus the cosine of rows that belong together; what it is above a margin of others. */
function angles(a: NDArray, b: NDArray, target: NDArray, margin: number): NDArray {
  const width = a.shape.at(-1) as number;
  const row = (x: NDArray, r: number): readonly number[] => x.data.slice(r * width, (r + 1) * width);
  return build(target.shape, ([r = 0]) => {
    const [x, y] = [row(a, r), row(b, r)];
    const cosine = total(x.map((v, j) => v * y[j]!)) / (Math.hypot(...x) * Math.hypot(...y));
    return target.data[r]! > 0 ? 1 - cosine : Math.max(0, cosine - margin);
  });
}

const embeddingLosses: readonly [Loss<3>, Loss<3>] = [
  {
    name: 'cosineEmbeddingLoss',
    options: [{}, { margin: -0.3 }],
    draw: (r) => [sample(r, [4, 3], any), sample(r, [4, 3], any), nd([4], [1, -1, -1, 1])],
    run: ([a, b, t], o) => pg.cosineEmbeddingLoss(a, b, t, o),
    losses: ([a, b, t], o) => angles(a, b, t, (o.margin as number | undefined) ?? 0),
    of: [0, 1],
  },
  {
    name: 'tripletMarginLoss',
    options: [{}, { margin: 0.3, p: 1 }, { p: 3 }, { swap: true }],
    draw: (r) => [sample(r, [4, 3], any), sample(r, [4, 3], any), sample(r, [4, 3], any)],
    run: ([a, b, c], o) => pg.tripletMarginLoss(a, b, c, o),
    losses: (xs, o) => triplets(xs, { p: 2, eps: 1e-6, margin: 1, ...o }),
    of: [0, 1, 2],
  },
];

function tripletMarginLoss(pool: Pool): Made | null {
  const x = vectors(pool, 1, 2, (v) => v.data.length < 300);
  if (x === null) return null;
  const [near, far] = [drawn(pool, x.dtype, x.shape), drawn(pool, x.dtype, x.shape)];
  const swap = pool.c.seldom(3);
  const way = drawnReduction(pool);
  return {
    args: [ref(x), ref(near), ref(far), { margin: 2, eps: 0.125, ...(swap ? { swap } : {}), ...way.written }],
    dtype: x.dtype,
    formula: (...xs) => way.f(triplets(xs, { eps: 0.125, margin: 2, swap })),
    ...sums(x.dtype),
  };
}

function cosineEmbeddingLoss(pool: Pool): Made | null {
  const x = vectors(pool, 2, 2, (v) => v.data.length < 300 && away(v));
  if (x === null) return null;
  const y = parts(pool, x.dtype, x.shape);
  const rows = x.shape[0]!;
  const target = pool.input(
    x.dtype,
    [rows],
    Array.from({ length: rows }, (_, i) => (i % 2 === 0 ? 1 : -1)),
  );
  const way = drawnReduction(pool);
  return {
    args: [ref(x), ref(y), ref(target), { margin: 0.25, ...way.written }],
    dtype: x.dtype,
    formula: (a, b, t) => way.f(angles(a, b, t, 0.25)),
    ...sums(x.dtype),
  };
}

const [cosineLoss, tripletLoss] = embeddingLosses;

export const vectorLossRows: readonly OperationRow[] = [
  { name: 'cosineEmbeddingLoss', specs: [lossSpec(cosineLoss)], calls: smooth(cosineEmbeddingLoss) },
  { name: 'tripletMarginLoss', specs: [lossSpec(tripletLoss)], calls: smooth(tripletMarginLoss) },
];
