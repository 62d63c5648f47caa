/** Losses that compare whole rows by their angle or their distance, from the formulas of PyTorch 1.13's documentation. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { at, build, type NDArray, nd, reduce, zip } from '../../oracle/ndarray.ts';
import { sample } from '../../oracle/random.ts';
import { total } from '../../oracle/sums.ts';
import { any, type Loss } from './options.ts';

const distance = (a: NDArray, b: NDArray, p: number, eps: number): NDArray =>
  reduce(
    zip((x, y) => Math.abs((x as number) - (y as number) + eps), a, b),
    [a.shape.length - 1],
    (v) => (p === Number.POSITIVE_INFINITY ? Math.max(...v) : total(v.map((x) => x ** p)) ** (1 / p)),
  );

export const embeddingLosses: readonly Loss[] = [
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
