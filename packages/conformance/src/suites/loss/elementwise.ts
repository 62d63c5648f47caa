/** Losses that compare element by element, from the formulas of PyTorch 1.13's documentation. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { type NDArray, reshape, zip } from '../../oracle/ndarray.ts';
import { awayFromZero, type Random, sample, uniform } from '../../oracle/random.ts';
import { any, chance, type Loss, pairOf, type Two } from './options.ts';

const signs = (r: Random): number => (r() < 0.5 ? -1 : 1);

const gaussian = (m = 0, y = 0, s = 0): number => 0.5 * (Math.log(s) + (m - y) ** 2 / s);

export const elementwiseLosses: readonly Loss[] = [
  {
    name: 'mseLoss',
    options: [{}],
    draw: pairOf([2, 3]),
    run: ([a, b], o) => pg.mseLoss(a as Tensor, b as Tensor, o),
    losses: ([a, b]) => zip((x, y) => ((x as number) - (y as number)) ** 2, ...([a, b] as unknown as Two)),
    of: [0, 1],
  },
  {
    name: 'l1Loss',
    options: [{}],
    draw: pairOf([2, 3]),
    run: ([a, b], o) => pg.l1Loss(a as Tensor, b as Tensor, o),
    losses: ([a, b]) => zip((x, y) => Math.abs((x as number) - (y as number)), ...([a, b] as unknown as Two)),
    of: [0, 1],
  },
  {
    name: 'huberLoss',
    options: [{}, { delta: 0.3 }, { delta: 2 }],
    draw: pairOf([3, 4]),
    run: ([a, b], o) => pg.huberLoss(a as Tensor, b as Tensor, o),
    losses: ([a, b], o) => {
      const delta = (o.delta as number | undefined) ?? 1;
      return zip(
        (x, y) => {
          const d = Math.abs((x as number) - (y as number));
          return d < delta ? 0.5 * d * d : delta * (d - 0.5 * delta);
        },
        ...([a, b] as unknown as Two),
      );
    },
    of: [0, 1],
  },
  {
    name: 'smoothL1Loss',
    options: [{}, { beta: 0.3 }, { beta: 0 }],
    draw: pairOf([3, 4]),
    run: ([a, b], o) => pg.smoothL1Loss(a as Tensor, b as Tensor, o),
    losses: ([a, b], o) => {
      const beta = (o.beta as number | undefined) ?? 1;
      return zip(
        (x, y) => {
          const d = Math.abs((x as number) - (y as number));
          return d < beta ? (0.5 * d * d) / beta : d - 0.5 * beta;
        },
        ...([a, b] as unknown as Two),
      );
    },
    of: [0, 1],
  },
  {
    name: 'binaryCrossEntropy',
    options: [{}, { weighted: true }],
    draw: (r) => [sample(r, [2, 3], chance), sample(r, [2, 3], uniform(0, 1)), sample(r, [3], uniform(0.5, 2))],
    run: ([x, t, w], { weighted, ...o }) =>
      pg.binaryCrossEntropy(x as Tensor, t as Tensor, weighted ? { ...o, weight: w as Tensor } : o),
    losses: ([x, t, w], o) =>
      zip(
        (p, y, v) =>
          -(o.weighted ? (v as number) : 1) *
          ((y as number) * Math.log(p as number) + (1 - (y as number)) * Math.log(1 - (p as number))),
        ...([x, t, w] as NDArray[]),
      ),
    of: [0, 1],
  },
  {
    name: 'binaryCrossEntropyWithLogits',
    options: [{}, { weighted: true }, { positive: true }, { weighted: true, positive: true }],
    draw: (r) => [
      sample(r, [2, 3], awayFromZero(0.1, 3)),
      sample(r, [2, 3], uniform(0, 1)),
      sample(r, [3], uniform(0.5, 2)),
      sample(r, [3], uniform(0.5, 3)),
    ],
    run: ([x, t, w, q], { weighted, positive, ...o }) =>
      pg.binaryCrossEntropyWithLogits(x as Tensor, t as Tensor, {
        ...o,
        ...(weighted ? { weight: w as Tensor } : {}),
        ...(positive ? { posWeight: q as Tensor } : {}),
      }),
    losses: ([x, t, w, q], o) =>
      zip(
        (z, y, v, pos) => {
          const sigma = 1 / (1 + Math.exp(-(z as number)));
          const factor = o.positive ? (pos as number) : 1;
          return (
            -(o.weighted ? (v as number) : 1) *
            (factor * (y as number) * Math.log(sigma) + (1 - (y as number)) * Math.log(1 - sigma))
          );
        },
        ...([x, t, w, q] as NDArray[]),
      ),
    of: [0, 1],
  },
  {
    name: 'klDiv',
    options: [{}, { reduction: 'batchMean' }],
    draw: pairOf([2, 3], uniform(-3, -0.1), chance),
    run: ([a, b], o) => pg.klDiv(a as Tensor, b as Tensor, o),
    losses: ([a, b]) =>
      zip((x, y) => (y as number) * (Math.log(y as number) - (x as number)), ...([a, b] as unknown as Two)),
    of: [0, 1],
  },
  {
    name: 'klDiv of rows against one target',
    options: [{}, { reduction: 'batchMean' }],
    draw: (r) => [sample(r, [2, 3], uniform(-3, -0.1)), sample(r, [1, 3], chance)],
    run: ([a, b], o) => pg.klDiv(a as Tensor, b as Tensor, o),
    losses: ([a, b]) =>
      zip((x, y) => (y as number) * (Math.log(y as number) - (x as number)), ...([a, b] as unknown as Two)),
    of: [0, 1],
  },
  {
    name: 'klDiv of log targets',
    options: [{}],
    draw: pairOf([2, 3], uniform(-3, -0.1), uniform(-3, -0.1)),
    run: ([a, b], o) => pg.klDiv(a as Tensor, b as Tensor, { ...o, logTarget: true }),
    losses: ([a, b]) =>
      zip((x, y) => Math.exp(y as number) * ((y as number) - (x as number)), ...([a, b] as unknown as Two)),
    of: [0, 1],
  },
  {
    name: 'hingeLoss',
    options: [{}, { margin: 0.4 }],
    draw: pairOf([3, 4], any, signs),
    run: ([a, b], o) => pg.hingeLoss(a as Tensor, b as Tensor, o),
    losses: ([a, b], o) =>
      zip(
        (x, y) => Math.max(0, ((o.margin as number | undefined) ?? 1) - (x as number) * (y as number)),
        ...([a, b] as unknown as Two),
      ),
    of: [0],
  },
  {
    name: 'gaussianNllLoss',
    options: [{}, { full: true }],
    draw: (r) => [...pairOf([2, 3])(r), sample(r, [2, 3], uniform(0.3, 2))],
    run: ([x, t, v], o) => pg.gaussianNllLoss(x as Tensor, t as Tensor, v as Tensor, o),
    losses: ([x, t, v], o) =>
      zip(
        (m, y, s) =>
          0.5 * (Math.log(s as number) + ((m as number) - (y as number)) ** 2 / (s as number)) +
          (o.full ? 0.5 * Math.log(2 * Math.PI) : 0),
        ...([x, t, v] as NDArray[]),
      ),
    of: [0, 1, 2],
  },
  ...(
    [
      ['one variance per column', [2, 3], [2, 3], [1, 3]],
      ['one variance', [2, 3], [2, 3], []],
      ['one prediction per row', [2, 1], [2, 3], [2, 3]],
      ['one target per column', [2, 3], [3], [2, 1]],
    ] as const
  ).map(
    ([what, prediction, target, variance]): Loss => ({
      name: `gaussianNllLoss with ${what}`,
      options: [{}],
      draw: (r) => [sample(r, prediction, any), sample(r, target, any), sample(r, variance, uniform(0.3, 2))],
      run: ([x, t, v], o) => pg.gaussianNllLoss(x as Tensor, t as Tensor, v as Tensor, o),
      losses: ([x, t, v]) => zip(gaussian, ...([x, t, v] as [NDArray, NDArray, NDArray])),
      of: [0, 1, 2],
    }),
  ),
  {
    name: 'gaussianNllLoss with one variance per row',
    options: [{}],
    draw: (r) => [...pairOf([2, 3])(r), sample(r, [2], uniform(0.3, 2))],
    run: ([x, t, v], o) => pg.gaussianNllLoss(x as Tensor, t as Tensor, v as Tensor, o),
    losses: ([x, t, v]) =>
      zip(
        (m, y, s) => 0.5 * (Math.log(s as number) + ((m as number) - (y as number)) ** 2 / (s as number)),
        x as NDArray,
        t as NDArray,
        reshape(v as NDArray, [2, 1]),
      ),
    of: [0, 1, 2],
  },
];
