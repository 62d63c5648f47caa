/** Losses of class numbers and of probabilities of classes, from the formulas of PyTorch 1.13's documentation. */
import * as pg from '@polygrad/core';
import { alongLines } from '../../oracle/lines.ts';
import { at, broadcastTo, build, count, map, nd, type NDArray, reduce, reshape, zip } from '../../oracle/ndarray.ts';
import { integer, type Random, sample, uniform } from '../../oracle/random.ts';
import { average, logSum, total } from '../../oracle/sums.ts';
import { parts, sums, vectors } from '../../programs/operands.ts';
import { type Made, type Pool, ref } from '../../programs/pool.ts';
import type { OpSpec, Options } from '../../spec.ts';
import { type OperationRow, smooth } from '../row.ts';
import { any, chance, type Loss, lossSpec } from './row.ts';

function logSoftmax(x: NDArray, axis: number): NDArray {
  const logSum = reduce(x, [axis], (v) => Math.log(total(v.map(Math.exp))), true);
  return zip((v, s) => v - s, x, logSum);
}

/** -w[t] log p[t] over axis 1 with label smoothing; ignored targets count nothing. */
function lossesOfClasses(logs: NDArray, target: NDArray, weight: NDArray | undefined, o: Options) {
  const classes = logs.shape[1]!;
  const smoothing = (o.labelSmoothing as number | undefined) ?? 0;
  const w = (c: number): number => (weight === undefined ? 1 : at(weight, [c]));
  const place = (index: number[], c: number): number[] => [index[0]!, c, ...index.slice(1)];
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

/** Of class numbers, with weights, a class that does not count, and smoothing where there is any. */
const ofClasses = (loss: typeof pg.crossEntropy | typeof pg.nllLoss): Loss<3>[] =>
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
        [shape[0]!, ...shape.slice(2)],
        Array.from({ length: count(shape) / 3 }, (_, i) => (i * 5 + 2) % 3),
      ),
      sample(r, [3], uniform(0.5, 2)),
    ],
    inputDTypes: { 1: 'int32' as const },
    run: ([x, t, w], { weighted, ...o }) => loss(x, t, weighted ? { ...o, weight: w } : o),
    losses: ([x, t, w], o) =>
      lossesOfClasses(loss === pg.crossEntropy ? logSoftmax(x, 1) : x, t, o.weighted ? w : undefined, o),
    of: [0],
  }));

const ofProbabilities: readonly Loss<3>[] = [[3, 4], [2, 3, 2], [3]].map(
  (shape): Loss<3> => ({
    name: `crossEntropy of probabilities [${shape}]`,
    options: [{}, { weighted: true }, { labelSmoothing: 0.3 }],
    draw: (r) => [
      sample(r, shape, any),
      sample(r, shape, chance),
      sample(r, [shape[shape.length > 1 ? 1 : 0]!], uniform(0.5, 2)),
    ],
    run: ([x, t, w], { weighted, ...o }) => pg.crossEntropy(x, t, weighted ? { ...o, weight: w } : o),
    losses: ([x, t, w], o) => {
      const axis = shape.length > 1 ? 1 : 0;
      const classes = shape[axis]!;
      const smoothing = (o.labelSmoothing as number | undefined) ?? 0;
      const weight = broadcastTo(
        reshape(
          w,
          shape.map((n, i) => (i === axis ? n : 1)),
        ),
        shape,
      );
      const terms = zip(
        (log, y, v) => -(o.weighted ? v : 1) * ((1 - smoothing) * y + smoothing / classes) * log,
        logSoftmax(x, axis),
        t,
        weight,
      );
      return reduce(terms, [axis], total);
    },
    of: [0, 1],
  }),
);

const plainSpec: OpSpec<2> = {
  name: 'crossEntropy',
  dtypes: ['float32', 'float64'],
  inputDTypes: { 1: 'int32' },
  instances: [0, 0.1].flatMap((labelSmoothing) =>
    [
      [1, 2],
      [4, 5],
      [33, 10],
    ].map((shape) => ({
      label: `[${shape}] smoothing ${labelSmoothing}`,
      small: shape[0]! < 10,
      options: { labelSmoothing },
      draw: (r: Random) => [sample(r, shape, any), sample(r, [shape[0]!], integer(0, shape[1]! - 1))],
    })),
  ),
  run: ([x, t], o) => pg.crossEntropy(x, t, o),
  oracle: ([x, t], o) => {
    const smoothing = o.labelSmoothing as number;
    const { losses } = lossesOfClasses(logSoftmax(x, 1), t, undefined, {
      labelSmoothing: smoothing,
    });
    return nd([], [average(losses.data)]);
  },
  gradient: { of: [0], order: 2 },
};

/** Class numbers against scores or log-probabilities [N, C, ...], with weights, smoothing and a class that does not count. */
const classLoss =
  (name: 'crossEntropy' | 'nllLoss') =>
  (pool: Pool): Made | null => {
    const x = vectors(pool, 2, 4);
    if (x === null || x.shape[1]! > 30) return null;
    const classes = x.shape[1]!;
    const target = pool.indices([x.shape[0]!, ...x.shape.slice(2)], 0, classes - 1);
    const weight = pool.c.seldom(3) ? parts(pool, x.dtype, [classes]) : null;
    const labelSmoothing = name === 'crossEntropy' ? pool.c.pick([0, 0.2]) : 0;
    const ignored = pool.c.seldom(3) ? 0 : null;
    if (ignored !== null && target.data.every((t) => t === ignored)) return null;
    const reduction = pool.c.pick(['mean', 'sum', 'none']);
    const options = {
      ...(labelSmoothing > 0 ? { labelSmoothing } : {}),
      ...(ignored === null ? {} : { ignoreIndex: ignored }),
    };
    return {
      args: [ref(x), ref(target), { reduction, ...(weight ? { weight: ref(weight) } : {}), ...options }],
      dtype: x.dtype,
      formula: (a, t, w) => {
        const logs = name === 'nllLoss' ? a : alongLines(a, 1, (line) => line.map((v) => v - logSum(line)));
        const { losses, weights } = lossesOfClasses(logs, t, w, options);
        if (reduction === 'none') return losses;
        return nd([], [total(losses.data) / (reduction === 'sum' ? 1 : total(weights.data))]);
      },
      ...sums(x.dtype),
    };
  };
export const classLossRows: readonly OperationRow[] = [
  {
    name: 'crossEntropy',
    specs: [plainSpec, ...[...ofClasses(pg.crossEntropy), ...ofProbabilities].map(lossSpec)],
    calls: smooth(classLoss('crossEntropy')),
  },
  { name: 'nllLoss', specs: ofClasses(pg.nllLoss).map(lossSpec), calls: smooth(classLoss('nllLoss')) },
];
