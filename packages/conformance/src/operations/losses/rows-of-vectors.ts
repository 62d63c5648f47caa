/** Losses that compare whole rows by their angle or their distance, from the formulas of PyTorch 1.13's documentation. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { drawn, parts, sums, vectors } from '../../programs/operands.ts';
import { type Made, type Pool, ref } from '../../programs/pool.ts';
import type { Value } from '../../programs/program.ts';
import { any, drawnReduction, type Loss, lossSpec } from './row.ts';
import { type OperationRow, smooth } from '../row.ts';
import { at, build, nd, type NDArray, reduce, zip } from '../../oracle/ndarray.ts';
import { sample } from '../../oracle/random.ts';
import { total } from '../../oracle/sums.ts';

const distance = (a: NDArray, b: NDArray, p: number, eps: number): NDArray =>
  reduce(
    zip((x, y) => Math.abs((x as number) - (y as number) + eps), a, b),
    [a.shape.length - 1],
    (v) => (p === Number.POSITIVE_INFINITY ? Math.max(...v) : total(v.map((x) => x ** p)) ** (1 / p)),
  );

const embeddingLosses: readonly [Loss, Loss] = [
  {
    name: 'cosineEmbeddingLoss',
    options: [{}, { margin: -0.3 }],
    draw: (r) => [sample(r, [4, 3], any), sample(r, [4, 3], any), nd([4], [1, -1, -1, 1])],
    run: ([a, b, t], o) => pg.cosineEmbeddingLoss(a as Tensor, b as Tensor, t as Tensor, o),
    losses: ([a, b, t], o) =>
      build([4], ([row]) => {
        const line = (x: NDArray): number[] => [0, 1, 2].map((j) => at(x, [row as number, j]));
        const [x, y] = [line(a as NDArray), line(b as NDArray)];
        const cos = total(x.map((v, j) => v * (y[j] as number))) / (Math.hypot(...x) * Math.hypot(...y));
        if (at(t as NDArray, [row as number]) === 1) return 1 - cos;
        return Math.max(0, cos - ((o.margin as number | undefined) ?? 0));
      }),
    of: [0, 1],
  },
  {
    name: 'tripletMarginLoss',
    options: [{}, { margin: 0.3, p: 1 }, { p: 3 }, { swap: true }],
    draw: (r) => [0, 1, 2].map(() => sample(r, [4, 3], any)),
    run: ([a, b, c], o) => pg.tripletMarginLoss(a as Tensor, b as Tensor, c as Tensor, o),
    losses: ([a, b, c], o) => {
      const p = (o.p as number | undefined) ?? 2;
      const between = (x: NDArray, y: NDArray): NDArray => distance(x, y, p, 1e-6);
      const [anchor, near, far] = [a, b, c] as [NDArray, NDArray, NDArray];
      return zip(
        (own, other, swapped) =>
          Math.max(
            0,
            (own as number) -
              (o.swap ? Math.min(other as number, swapped as number) : (other as number)) +
              ((o.margin as number | undefined) ?? 1),
          ),
        between(anchor, near),
        between(anchor, far),
        between(near, far),
      );
    },
    of: [0, 1, 2],
  },
];

const norm2 = (v: readonly number[]): number => Math.hypot(...v);

const rowOf = (a: NDArray, r: number): number[] => {
  const width = a.shape.at(-1) as number;
  return a.data.slice(r * width, (r + 1) * width) as number[];
};

const away = (v: Value): boolean => v.data.every((x) => Math.abs(x) > 0.05);

function tripletMarginLoss(pool: Pool): Made | null {
  const x = vectors(pool, 1, 2, (v) => v.data.length < 300);
  if (x === null) return null;
  const [near, far] = [drawn(pool, x.dtype, x.shape), drawn(pool, x.dtype, x.shape)];
  const swap = pool.c.seldom(3);
  const way = drawnReduction(pool);
  return {
    args: [ref(x), ref(near), ref(far), { margin: 2, eps: 0.125, ...(swap ? { swap } : {}), ...way.written }],
    dtype: x.dtype,
    formula: (...xs) => {
      const d = (p: readonly number[], q: readonly number[]): number =>
        norm2(p.map((v, i) => v - (q[i] as number) + 0.125));
      return way.f(
        build(x.shape.slice(0, -1), ([r = 0]) => {
          const [a, b, c] = xs.map((t) => rowOf(t, r)) as [number[], number[], number[]];
          const other = swap ? Math.min(d(a, c), d(b, c)) : d(a, c);
          return Math.max(0, d(a, b) - other + 2);
        }),
      );
    },
    ...sums(x.dtype),
  };
}

function cosineEmbeddingLoss(pool: Pool): Made | null {
  const x = vectors(pool, 2, 2, (v) => v.data.length < 300 && away(v));
  if (x === null) return null;
  const y = parts(pool, x.dtype, x.shape);
  const rows = x.shape[0] as number;
  const target = pool.input(
    x.dtype,
    [rows],
    Array.from({ length: rows }, (_, i) => (i % 2 === 0 ? 1 : -1)),
  );
  const way = drawnReduction(pool);
  return {
    args: [ref(x), ref(y), ref(target), { margin: 0.25, ...way.written }],
    dtype: x.dtype,
    formula: (a, b, t) =>
      way.f(
        build([rows], ([r]) => {
          const [p, q] = [rowOf(a as NDArray, r as number), rowOf(b as NDArray, r as number)];
          const cosine = total(p.map((v, i) => v * (q[i] as number))) / (norm2(p) * norm2(q));
          return ((t as NDArray).data[r as number] as number) > 0 ? 1 - cosine : Math.max(0, cosine - 0.25);
        }),
      ),
    ...sums(x.dtype),
  };
}

const [cosineLoss, tripletLoss] = embeddingLosses;

export const vectorLossRows: readonly OperationRow[] = [
  { name: 'cosineEmbeddingLoss', specs: [lossSpec(cosineLoss)], calls: smooth(cosineEmbeddingLoss) },
  { name: 'tripletMarginLoss', specs: [lossSpec(tripletLoss)], calls: smooth(tripletMarginLoss) },
];
