/** Axes, sizes, indices and options that operations of this folder refuse, and what their messages name. */
import * as pg from '@polygrad/core';
import type { ConformanceCase } from '../../case.ts';
import { type Refusal, refusalCases } from '../errors.ts';
import { i32, t } from './values.ts';

const refused: readonly Refusal[] = [
  { name: 'cumSum along a missing axis', run: () => pg.cumSum(pg.zeros([2, 3]), 2), says: [/\[cumSum\]/, /2/] },
  { name: 'cumProd along a missing axis', run: () => pg.cumProd(pg.zeros([2]), -2), says: [/\[cumProd\]/, /-2/] },
  { name: 'cumMax along a missing axis', run: () => pg.cumMax(pg.zeros([2]), 1), says: [/\[cumMax\]/, /1/] },
  { name: 'cumMin along half an axis', run: () => pg.cumMin(pg.zeros([2]), 0.5), says: [/\[cumMin\]/, /0\.5/] },
  {
    name: 'logCumSumExp along a missing axis',
    run: () => pg.logCumSumExp(pg.zeros([2]), 3),
    says: [/\[logCumSumExp\]/, /3/],
  },
  { name: 'diff of a scalar', run: () => pg.diff(pg.tensor(1)), says: [/\[diff\]/, /axis/] },
  { name: 'diff taken -1 times', run: () => pg.diff(t(1, 2), { n: -1 }), says: [/\[diff\]/, /-1/] },
  { name: 'sort along a missing axis', run: () => pg.sort(pg.zeros([2]), { axis: 1 }), says: [/\[sort\]/, /1/] },
  { name: 'argSort along a missing axis', run: () => pg.argSort(pg.zeros([2]), -3), says: [/\[argSort\]/, /-3/] },
  { name: 'topK of more than there are', run: () => pg.topK(pg.zeros([2, 3]), 4), says: [/\[topK\]/, /4/, /3/] },
  { name: 'topK of 1.5', run: () => pg.topK(pg.zeros([3]), 1.5), says: [/\[topK\]/, /1\.5/] },
  { name: 'topK of a scalar', run: () => pg.topK(pg.tensor(1), 1), says: [/\[topK\]/, /axis/] },
  { name: 'median of nothing', run: () => pg.median(pg.zeros([0])), says: [/\[median\]/, /empty/] },
  { name: 'quantile above 1', run: () => pg.quantile(t(1, 2), 1.5), says: [/\[quantile\]/, /1\.5/] },
  { name: 'no quantiles', run: () => pg.quantile(t(1, 2), []), says: [/\[quantile\]/, /none|no /] },
  {
    name: 'quantile of unknown interpolation',
    run: () => pg.quantile(t(1, 2), 0.5, { interpolation: 'cubic' as 'linear' }),
    says: [/\[quantile\]/, /cubic/],
  },
  {
    name: 'searchSorted line by line of other lines',
    run: () => pg.searchSorted(pg.zeros([2, 3]), pg.zeros([3, 3])),
    says: [/\[searchSorted\]/, /2, 3/, /3, 3/],
  },
  {
    name: 'searchSorted in a scalar',
    run: () => pg.searchSorted(pg.tensor(1), t(1)),
    says: [/\[searchSorted\]/, /axis/],
  },
  { name: 'bucketize by a matrix', run: () => pg.bucketize(t(1), pg.zeros([2, 2])), says: [/\[bucketize\]/, /2, 2/] },
  { name: 'histogram of no bins', run: () => pg.histogram(t(1), { bins: 0 }), says: [/\[histogram\]/, /0/] },
  {
    name: 'histogram of a range backwards',
    run: () => pg.histogram(t(1), { range: [2, 1] }),
    says: [/\[histogram\]/, /2 to 1/],
  },
  { name: 'histogram of nothing', run: () => pg.histogram(pg.zeros([0])), says: [/\[histogram\]/, /empty/] },
  { name: 'histogram with one edge', run: () => pg.histogram(t(1), { bins: t(1) }), says: [/\[histogram\]/, /two/] },
  {
    name: 'histogram with weights of another shape',
    run: () => pg.histogram(t(1, 2), { weights: t(1, 2, 3) }),
    says: [/\[histogram\]/, /3/],
  },
  {
    name: 'scatter at host indices out of range',
    run: () => pg.scatter(t(1, 2), [2], 1),
    says: [/\[scatter\]/, /2/, /-2 to 1/],
  },
  { name: 'scatter at 0.5', run: () => pg.scatter(t(1, 2), [0.5], 1), says: [/\[scatter\]/, /0\.5/] },
  {
    name: 'scatter at float indices',
    run: () => pg.scatter(t(1, 2), t(1), 1),
    says: [/\[scatter\]/, /float32/, /integers/],
  },
  {
    name: 'scatter of another rank',
    run: () => pg.scatter(pg.zeros([2, 2]), i32(1), 1),
    says: [/\[scatter\]/, /2, 2/],
  },
  {
    name: 'scatter of updates of another dtype',
    run: () => pg.scatter(t(1, 2), i32(1), i32(1)),
    says: [/\[scatter\]/, /int32/, /float32/],
  },
  {
    name: 'scatter of updates of another shape',
    run: () => pg.scatter(t(1, 2), i32(1), t(1, 2, 3)),
    says: [/\[scatter\]/, /3/],
  },
  {
    name: 'scatterReduce by an unknown reduction',
    run: () => pg.scatterReduce(t(1), i32(0), t(1), 'median' as 'max'),
    says: [/\[scatterReduce\]/, /median/, /max/],
  },
  {
    name: 'scatterReduce mean of integers',
    run: () => pg.scatterReduce(i32(1), i32(0), i32(1), 'mean'),
    says: [/\[scatterReduce\]/, /int32/],
  },
  {
    name: 'indexCopy at a matrix of indices',
    run: () => pg.indexCopy(t(1, 2), [[0]], t(1)),
    says: [/\[indexCopy\]/, /1, 1/],
  },
  {
    name: 'indexCopy into an empty axis',
    run: () => pg.indexCopy(pg.zeros([0]), i32(0), t(1)),
    says: [/\[indexCopy\]/, /empty/],
  },
  {
    name: 'indexFill with several values',
    run: () => pg.indexFill(t(1, 2), [0], t(1, 2)),
    says: [/\[indexFill\]/, /2/],
  },
  {
    name: 'indexFill at host indices out of range',
    run: () => pg.indexFill(t(1, 2), [-3], 0),
    says: [/\[indexFill\]/, /-3/],
  },
  {
    name: 'gatherNd by too many coordinates',
    run: () => pg.gatherNd(t(1, 2), [[0, 0]]),
    says: [/\[gatherNd\]/, /1, 2/],
  },
  {
    name: 'scatterNd of updates of another shape',
    run: () => pg.scatterNd([[0]], t(1, 2, 3), [4]),
    says: [/\[scatterNd\]/, /3/],
  },
  { name: 'scatterNd into a bad shape', run: () => pg.scatterNd([[0]], t(1), [-4]), says: [/\[scatterNd\]/, /-4/] },
  { name: 'take at host indices out of range', run: () => pg.take(t(1, 2), [5]), says: [/\[take\]/, /5/] },
  { name: 'take at a number out of range', run: () => pg.take(t(1, 2), -3), says: [/\[take\]/, /-3/] },
  {
    name: 'maskedFill of integers with a fraction',
    run: () => pg.maskedFill(i32(1), pg.tensor([true]), 0.5),
    says: [/\[maskedFill\]/, /0\.5/, /int32/],
  },
  {
    name: 'maskedFill with several values',
    run: () => pg.maskedFill(t(1, 2), pg.tensor([true, false]), t(1, 2)),
    says: [/\[maskedFill\]/, /2/],
  },
  {
    name: 'repeatInterleave with too few counts',
    run: () => pg.repeatInterleave(t(1, 2), [1]),
    says: [/\[repeatInterleave\]/, /1/, /2/],
  },
  {
    name: 'repeatInterleave with half a count',
    run: () => pg.repeatInterleave(t(1), [0.5]),
    says: [/\[repeatInterleave\]/, /0\.5/],
  },
  {
    name: 'maskedSelect by numbers',
    run: () => pg.maskedSelect(t(1), t(1)),
    says: [/\[maskedSelect\]/, /float32/, /bool/],
  },
  {
    name: 'maskedSelect of shapes that do not broadcast',
    run: () => pg.maskedSelect(t(1, 2), pg.tensor([true, true, true])),
    says: [/\[maskedSelect\]/, /2/, /3/],
  },
];

export function orderRefusals(): ConformanceCase[] {
  return refusalCases(refused);
}
