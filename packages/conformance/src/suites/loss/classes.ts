/** Losses of class numbers and of probabilities of classes, from the formulas of PyTorch 1.13's documentation. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { at, broadcastTo, build, count, map, type NDArray, nd, reduce, reshape, zip } from '../../oracle/ndarray.ts';
import { sample, uniform } from '../../oracle/random.ts';
import { total } from '../../oracle/sums.ts';
import type { Options } from '../../spec.ts';
import { any, chance, type Loss } from './options.ts';

function logSoftmax(x: NDArray, axis: number): NDArray {
  const logSum = reduce(x, [axis], (v) => Math.log(total(v.map(Math.exp))), true);
  return zip((v, s) => (v as number) - (s as number), x, logSum);
}

/** -w[t] log p[t] over axis 1 with label smoothing; ignored targets count nothing. */
function lossesOfClasses(logs: NDArray, target: NDArray, weight: NDArray | undefined, o: Options) {
  const classes = logs.shape[1] as number;
  const smoothing = (o.labelSmoothing as number | undefined) ?? 0;
  const w = (c: number): number => (weight === undefined ? 1 : at(weight, [c]));
  const place = (index: number[], c: number): number[] => [index[0] as number, c, ...index.slice(1)];
  const ignored = (t: number): boolean => t === o.ignoreIndex;
  return {
    losses: build(target.shape, (index) => {
      const t = at(target, index);
      if (ignored(t)) return 0;
      const spread = total(Array.from({ length: classes }, (_, c) => -w(c) * at(logs, place(index, c))));
      return (1 - smoothing) * -w(t) * at(logs, place(index, t)) + (smoothing / classes) * spread;
    }),
    weights: map(target, (t) => (ignored(t) ? 0 : w(t))),
  };
}

export const classLosses: readonly Loss[] = [
  ...[pg.nllLoss, pg.crossEntropy].flatMap((loss): Loss[] =>
    [
      [4, 3],
      [2, 3, 2],
      [2, 3, 1, 2],
    ].map((shape) => ({
      name: `${loss.name} of [${shape}]`,
      options: [
        {},
        { weighted: true },
        { ignoreIndex: 1 },
        { weighted: true, ignoreIndex: 1 },
        ...(loss === pg.crossEntropy
          ? [{ labelSmoothing: 0.2 }, { labelSmoothing: 0.2, weighted: true, ignoreIndex: 1 }]
          : []),
      ],
      draw: (r) => [
        sample(r, shape, any),
        nd(
          [shape[0] as number, ...shape.slice(2)],
          Array.from({ length: count(shape) / 3 }, (_, i) => (i * 5 + 2) % 3),
        ),
        sample(r, [3], uniform(0.5, 2)),
      ],
      inputDTypes: { 1: 'int32' as const },
      run: ([x, t, w], { weighted, ...o }) =>
        loss(x as Tensor, t as Tensor, weighted ? { ...o, weight: w as Tensor } : o),
      losses: ([x, t, w], o) =>
        lossesOfClasses(
          loss === pg.crossEntropy ? logSoftmax(x as NDArray, 1) : (x as NDArray),
          t as NDArray,
          o.weighted ? (w as NDArray) : undefined,
          o,
        ),
      of: [0],
    })),
  ),
  ...[[3, 4], [2, 3, 2], [3]].map(
    (shape): Loss => ({
      name: `crossEntropy of probabilities [${shape}]`,
      options: [{}, { weighted: true }, { labelSmoothing: 0.3 }],
      draw: (r) => [
        sample(r, shape, any),
        sample(r, shape, chance),
        sample(r, [shape[shape.length > 1 ? 1 : 0] as number], uniform(0.5, 2)),
      ],
      run: ([x, t, w], { weighted, ...o }) =>
        pg.crossEntropy(x as Tensor, t as Tensor, weighted ? { ...o, weight: w as Tensor } : o),
      losses: ([x, t, w], o) => {
        const axis = shape.length > 1 ? 1 : 0;
        const classes = shape[axis] as number;
        const smoothing = (o.labelSmoothing as number | undefined) ?? 0;
        const weight = broadcastTo(
          reshape(
            w as NDArray,
            shape.map((n, i) => (i === axis ? n : 1)),
          ),
          shape,
        );
        const terms = zip(
          (log, y, v) =>
            -(o.weighted ? (v as number) : 1) *
            ((1 - smoothing) * (y as number) + smoothing / classes) *
            (log as number),
          logSoftmax(x as NDArray, axis),
          t as NDArray,
          weight,
        );
        return reduce(terms, [axis], total);
      },
      of: [0, 1],
    }),
  ),
];
