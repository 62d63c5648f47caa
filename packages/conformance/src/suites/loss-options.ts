/** Every loss with its options and reductions, from the formulas of PyTorch 1.13's documentation, element by element. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { at, broadcastTo, build, count, map, type NDArray, nd, reduce, reshape, zip } from '../oracle/ndarray.ts';
import { awayFromZero, type Random, sample, uniform } from '../oracle/random.ts';
import type { Options, OpSpec } from '../spec.ts';

const floats: readonly DType[] = ['float32', 'float64'];
const any = uniform(-2, 2);
const chance = uniform(0.05, 0.95);
const sum = (v: readonly number[]): number => v.reduce((a, b) => a + b, 0);

interface Loss {
  readonly name: string;
  readonly options: readonly Options[];
  readonly draw: (r: Random) => NDArray[];
  readonly run: (xs: Tensor[], o: Options) => Tensor;
  /** Losses of the elements; with weights where the mean is weighted. */
  readonly losses: (xs: NDArray[], o: Options) => NDArray | { readonly losses: NDArray; readonly weights: NDArray };
  readonly of: readonly number[];
  readonly inputDTypes?: Readonly<Record<number, DType>>;
}

type Two = readonly [NDArray, NDArray];
const signs = (r: Random): number => (r() < 0.5 ? -1 : 1);
const pairOf =
  (shape: readonly number[], left = any, right = any) =>
  (r: Random): NDArray[] => [sample(r, shape, left), sample(r, shape, right)];

function logSoftmax(x: NDArray, axis: number): NDArray {
  const total = reduce(x, [axis], (v) => Math.log(sum(v.map(Math.exp))), true);
  return zip((v, t) => (v as number) - (t as number), x, total);
}

/** -w[t] log p[t] over axis 1 with label smoothing; ignored targets count nothing. */
function classLosses(logs: NDArray, target: NDArray, weight: NDArray | undefined, o: Options) {
  const classes = logs.shape[1] as number;
  const smoothing = (o.labelSmoothing as number | undefined) ?? 0;
  const w = (c: number): number => (weight === undefined ? 1 : at(weight, [c]));
  const place = (index: number[], c: number): number[] => [index[0] as number, c, ...index.slice(1)];
  const ignored = (t: number): boolean => t === o.ignoreIndex;
  return {
    losses: build(target.shape, (index) => {
      const t = at(target, index);
      if (ignored(t)) return 0;
      const spread = sum(Array.from({ length: classes }, (_, c) => -w(c) * at(logs, place(index, c))));
      return (1 - smoothing) * -w(t) * at(logs, place(index, t)) + (smoothing / classes) * spread;
    }),
    weights: map(target, (t) => (ignored(t) ? 0 : w(t))),
  };
}

const distance = (a: NDArray, b: NDArray, p: number, eps: number): NDArray =>
  reduce(
    zip((x, y) => Math.abs((x as number) - (y as number) + eps), a, b),
    [a.shape.length - 1],
    (v) => (p === Number.POSITIVE_INFINITY ? Math.max(...v) : sum(v.map((x) => x ** p)) ** (1 / p)),
  );

const losses: readonly Loss[] = [
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
    name: 'cosineEmbeddingLoss',
    options: [{}, { margin: -0.3 }],
    draw: (r) => [sample(r, [4, 3], any), sample(r, [4, 3], any), nd([4], [1, -1, -1, 1])],
    run: ([a, b, t], o) => pg.cosineEmbeddingLoss(a as Tensor, b as Tensor, t as Tensor, o),
    losses: ([a, b, t], o) =>
      build([4], ([row]) => {
        const line = (x: NDArray): number[] => [0, 1, 2].map((j) => at(x, [row as number, j]));
        const [x, y] = [line(a as NDArray), line(b as NDArray)];
        const cos = sum(x.map((v, j) => v * (y[j] as number))) / (Math.hypot(...x) * Math.hypot(...y));
        if (at(t as NDArray, [row as number]) === 1) return 1 - cos;
        return Math.max(0, cos - ((o.margin as number | undefined) ?? 0));
      }),
    of: [0, 1],
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
        classLosses(
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
        return reduce(terms, [axis], sum);
      },
      of: [0, 1],
    }),
  ),
];

function reduced(loss: Loss, xs: NDArray[], o: Options): NDArray {
  const result = loss.losses(xs, o);
  const [each, weights] = 'losses' in result ? [result.losses, sum(result.weights.data)] : [result, result.data.length];
  switch (o.reduction ?? 'mean') {
    case 'none':
      return each;
    case 'sum':
      return nd([], [sum(each.data)]);
    case 'batchMean':
      return nd([], [sum(each.data) / ((xs[0] as NDArray).shape[0] as number)]);
    default:
      return nd([], [sum(each.data) / weights]);
  }
}

export function lossOptionSpecs(): OpSpec[] {
  return losses.map((loss) => ({
    name: loss.name,
    dtypes: floats,
    ...(loss.inputDTypes ? { inputDTypes: loss.inputDTypes } : {}),
    instances: loss.options.flatMap((options, which) =>
      // Every set of options with the mean; the other reductions with the first and the last set.
      (options.reduction === undefined && (which === 0 || which === loss.options.length - 1)
        ? ['mean', 'sum', 'none']
        : [options.reduction ?? 'mean']
      ).map((reduction) => ({
        label: JSON.stringify({ ...options, reduction }),
        small: true,
        options: { ...options, reduction },
        draw: loss.draw,
      })),
    ),
    run: loss.run,
    oracle: (xs, o) => reduced(loss, xs, o),
    gradient: { of: loss.of, order: 2 },
  }));
}
