/** Losses of rankings, of rows with one label or several, and of overlaps, from the formulas of PyTorch 1.13's documentation and of the papers. */
import * as pg from '@polygrad/core';
import { at, build, nd, type NDArray, reduce, reshape, zip } from '../../oracle/ndarray.ts';
import { type Random, sample, uniform } from '../../oracle/random.ts';
import { softplus } from '../../oracle/special.ts';
import { average, total } from '../../oracle/sums.ts';
import { drawn, parts, sums, vectors } from '../../programs/operands.ts';
import { isFloat, type Made, type Pool, ref } from '../../programs/pool.ts';
import type { Options } from '../../spec.ts';
import { type OperationRow, smooth } from '../row.ts';
import { any, chance, drawnReduction, type Loss, lossSpec, mate, pairOf, loss } from './row.ts';

const option = (o: Options, name: string, usual: number): number => (o[name] as number | undefined) ?? usual;
const sign = (r: Random): number => (r() < 0.5 ? -1 : 1);

const ranking = (margin: number, a: NDArray, b: NDArray, target: NDArray): NDArray =>
  zip((x, y, t) => Math.max(0, margin - t * (x - y)), a, b, target);

/** Scores of rows, whether there is a batch or not. */
const rowsOf = (x: NDArray): NDArray => (x.shape.length === 1 ? reshape(x, [1, x.data.length]) : x);

interface Margin {
  readonly margin: number;
  readonly p: number;
  readonly weight: NDArray | undefined;
}

function multiMargin(scores: NDArray, target: NDArray, { margin, p, weight }: Margin): NDArray {
  const rows = rowsOf(scores);
  const count = rows.shape[1]!;
  return build(target.shape, (index) => {
    const row = index[0] ?? 0;
    const own = target.data[row]!;
    const lacks = Array.from({ length: count }, (_, c) =>
      c === own ? 0 : Math.max(0, margin - at(rows, [row, own]) + at(rows, [row, c])) ** p,
    );
    return ((weight === undefined ? 1 : at(weight, [own])) * total(lacks)) / count;
  });
}

function multiLabelMargin(scores: NDArray, target: NDArray): NDArray {
  const [rows, labels] = [rowsOf(scores), rowsOf(target)];
  const count = rows.shape[1]!;
  return build(scores.shape.slice(0, -1), (index) => {
    const row = index[0] ?? 0;
    const listed: number[] = [];
    for (let i = 0; i < count && at(labels, [row, i]) >= 0; i++) listed.push(at(labels, [row, i]));
    const others = Array.from({ length: count }, (_, c) => c).filter((c) => !listed.includes(c));
    const lacks = listed.flatMap((own) =>
      others.map((other) => Math.max(0, 1 - at(rows, [row, own]) + at(rows, [row, other]))),
    );
    return total(lacks) / count;
  });
}

const manyLabels = (x: NDArray, y: NDArray, weight: NDArray): NDArray =>
  reduce(
    zip((z, t, w) => w * (t * softplus(-z) + (1 - t) * softplus(z)), x, y, weight),
    [x.shape.length - 1],
    average,
  );

const dice = (x: NDArray, y: NDArray, smoothing: number): NDArray => {
  const axes = x.shape.slice(1).map((_, i) => i + 1);
  const summed = (a: NDArray): NDArray => (axes.length === 0 ? a : reduce(a, axes, total));
  return zip(
    (both, all) => 1 - (2 * both + smoothing) / (all + smoothing),
    summed(zip((a, b) => a * b, x, y)),
    summed(zip((a, b) => a + b, x, y)),
  );
};

const int32 = { 1: 'int32' as const };

const losses: Readonly<Record<string, readonly Loss[]>> = {
  marginRankingLoss: [
    loss<3>({
      name: 'marginRankingLoss',
      options: [{}, { margin: 0.4 }],
      draw: (r) => [...pairOf([3, 4])(r), sample(r, [3, 4], sign)],
      run: ([a, b, t], o) => pg.marginRankingLoss(a, b, t, o),
      losses: ([a, b, t], o) => ranking(option(o, 'margin', 0), a, b, t),
      of: [0, 1],
    }),
  ],
  multiMarginLoss: [[4, 3], [3]].map((shape) =>
    loss<3>({
      name: `multiMarginLoss of [${shape}]`,
      options: [{}, { margin: 0.4 }, { p: 2 }, { p: 2, weighted: true }],
      draw: (r: Random) => [
        sample(r, shape, any),
        shape.length === 1 ? nd([], [1]) : nd([4], [2, 0, 1, 2]),
        sample(r, [3], uniform(0.5, 2)),
      ],
      inputDTypes: int32,
      run: ([x, t, w], { weighted, ...o }) => pg.multiMarginLoss(x, t, weighted ? { ...o, weight: w } : o),
      losses: ([x, t, w], o) =>
        multiMargin(x, t, {
          margin: option(o, 'margin', 1),
          p: option(o, 'p', 1),
          weight: o.weighted ? w : undefined,
        }),
      of: [0],
    }),
  ),
  multiLabelMarginLoss: [[4, 3], [3]].map((shape) =>
    loss<2>({
      name: `multiLabelMarginLoss of [${shape}]`,
      options: [{}],
      draw: (r: Random) => [
        sample(r, shape, any),
        shape.length === 1 ? nd([3], [1, 2, -1]) : nd([4, 3], [1, -1, 2, 0, 2, -1, 2, 1, 0, -1, 1, 1]),
      ],
      inputDTypes: int32,
      run: ([x, t], o) => pg.multiLabelMarginLoss(x, t, o),
      losses: ([x, t]) => multiLabelMargin(x, t),
      of: [0],
    }),
  ),
  multiLabelSoftMarginLoss: [
    loss<3>({
      name: 'multiLabelSoftMarginLoss',
      options: [{}, { weighted: true }],
      draw: (r) => [...pairOf([4, 3], any, chance)(r), sample(r, [3], uniform(0.5, 2))],
      run: ([x, t, w], { weighted, ...o }) => pg.multiLabelSoftMarginLoss(x, t, weighted ? { ...o, weight: w } : o),
      losses: ([x, t, w], o) => manyLabels(x, t, o.weighted ? w : nd([], [1])),
      of: [0, 1],
    }),
  ],
  diceLoss: [[3, 4], [2, 3, 2, 2], [5]].map((shape) =>
    loss<2>({
      name: `diceLoss of [${shape}]`,
      options: [{}, { smooth: 0.1 }],
      draw: pairOf(shape, chance, chance),
      run: ([x, t], o) => pg.diceLoss(x, t, o),
      losses: ([x, t], o) => dice(x, t, option(o, 'smooth', 1)),
      of: [0, 1],
    }),
  ),
};

function marginRankingLoss(pool: Pool): Made | null {
  const x = vectors(pool, 0, 4);
  if (x === null) return null;
  const [y, target] = [mate(pool, x), parts(pool, x.dtype, x.shape)];
  const way = drawnReduction(pool);
  return {
    args: [ref(x), ref(y), ref(target), { margin: 0.3, ...way.written }],
    dtype: x.dtype,
    formula: (a, b, t) => way.f(ranking(0.3, a, b, t)),
    ...sums(x.dtype),
  };
}

/** New scores [N, C], which lie on no margin. */
function scores(pool: Pool): { x: ReturnType<typeof drawn>; rows: number; classes: number } | null {
  const dtype = pool.pick((v) => isFloat(v.dtype))?.dtype;
  if (dtype === undefined) return null;
  const [rows, classes] = [pool.c.pick([3, 1, 5]), pool.c.pick([4, 2, 7])];
  return { x: drawn(pool, dtype, [rows, classes]), rows, classes };
}

function multiMarginLoss(pool: Pool): Made | null {
  const found = scores(pool);
  if (found === null) return null;
  const { x, rows, classes } = found;
  const target = pool.indices([rows], 0, classes - 1);
  const [way, p] = [drawnReduction(pool), pool.c.pick([1, 2])];
  return {
    args: [ref(x), ref(target), { margin: 0.7, p, ...way.written }],
    dtype: x.dtype,
    formula: (a, t) => way.f(multiMargin(a, t, { margin: 0.7, p, weight: undefined })),
    ...sums(x.dtype),
  };
}

function multiLabelMarginLoss(pool: Pool): Made | null {
  const found = scores(pool);
  if (found === null) return null;
  const { x, rows, classes } = found;
  const labels = Array.from({ length: rows * classes }, (_, i) => (i * 5 + Math.floor(i / classes)) % (classes + 1));
  const data = labels.map((label) => (label === classes ? -1 : label));
  const target = pool.input('int32', [rows, classes], data);
  const way = drawnReduction(pool);
  return {
    args: [ref(x), ref(target), way.written],
    dtype: x.dtype,
    formula: (a, t) => way.f(multiLabelMargin(a, t)),
    ...sums(x.dtype),
  };
}

function multiLabelSoftMarginLoss(pool: Pool): Made | null {
  const x = vectors(pool, 1, 3);
  if (x === null) return null;
  const y = parts(pool, x.dtype, x.shape);
  const way = drawnReduction(pool);
  return {
    args: [ref(x), ref(y), way.written],
    dtype: x.dtype,
    formula: (a, t) => way.f(manyLabels(a, t, nd([], [1]))),
    ...sums(x.dtype),
  };
}

function diceLoss(pool: Pool): Made | null {
  const dtype = pool.pick((v) => isFloat(v.dtype))?.dtype;
  if (dtype === undefined) return null;
  const shape = pool.c.pick([[3, 4], [2, 3, 2], [5]]);
  const [x, y] = [parts(pool, dtype, shape), parts(pool, dtype, shape)];
  const way = drawnReduction(pool);
  return {
    args: [ref(x), ref(y), { smooth: 0.5, ...way.written }],
    dtype,
    formula: (a, t) => way.f(dice(a, t, 0.5)),
    ...sums(dtype),
  };
}

const calls = { marginRankingLoss, multiMarginLoss, multiLabelMarginLoss, multiLabelSoftMarginLoss, diceLoss };

export const marginLossRows: readonly OperationRow[] = Object.entries(calls).map(([name, call]) => ({
  name,
  specs: (losses[name] as readonly Loss[]).map(lossSpec),
  calls: smooth(call),
  ...(name === 'diceLoss' ? { notes: { goldens: 'PyTorch 1.13 has none' } } : {}),
}));
