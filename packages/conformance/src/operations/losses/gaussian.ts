/** The likelihood of targets under normal distributions whose variances broadcast. */
import * as pg from '@polygrad/core';
import { reshape, zip } from '../../oracle/ndarray.ts';
import { sample, uniform } from '../../oracle/random.ts';
import { parts, sums, vectors } from '../../programs/operands.ts';
import { type Made, type Pool, ref } from '../../programs/pool.ts';
import { type OperationRow, smooth } from '../row.ts';
import { any, drawnReduction, type Loss, lossSpec, mate, pairOf } from './row.ts';

const gaussian = (m = 0, y = 0, s = 0): number => 0.5 * (Math.log(s) + (m - y) ** 2 / s);
const variance = uniform(0.3, 2);

const losses: readonly Loss<3>[] = [
  {
    name: 'gaussianNllLoss',
    options: [{}, { full: true }],
    draw: (r) => [...pairOf([2, 3])(r), sample(r, [2, 3], variance)],
    run: ([x, t, v], o) => pg.gaussianNllLoss(x, t, v, o),
    losses: (xs, o) => zip((m, y, s) => gaussian(m, y, s) + (o.full ? 0.5 * Math.log(2 * Math.PI) : 0), ...xs),
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
    ([what, prediction, target, spread]): Loss<3> => ({
      name: `gaussianNllLoss with ${what}`,
      options: [{}],
      draw: (r) => [sample(r, prediction, any), sample(r, target, any), sample(r, spread, variance)],
      run: ([x, t, v], o) => pg.gaussianNllLoss(x, t, v, o),
      losses: (xs) => zip(gaussian, ...xs),
      of: [0, 1, 2],
    }),
  ),
  {
    name: 'gaussianNllLoss with one variance per row',
    options: [{}],
    draw: (r) => [...pairOf([2, 3])(r), sample(r, [2], variance)],
    run: ([x, t, v], o) => pg.gaussianNllLoss(x, t, v, o),
    losses: ([x, t, v]) => zip(gaussian, x, t, reshape(v, [2, 1])),
    of: [0, 1, 2],
  },
];

function gaussianNllLoss(pool: Pool): Made | null {
  const x = vectors(pool, 1, 3);
  if (x === null) return null;
  const y = mate(pool, x);
  const wide = pool.c.nat(2) === 0;
  const variance = parts(pool, x.dtype, wide ? x.shape : [...x.shape.slice(0, -1), 1]);
  const way = drawnReduction(pool);
  return {
    args: [ref(x), ref(y), ref(variance), way.written],
    dtype: x.dtype,
    formula: (a, b, v) => way.f(zip(gaussian, a, b, v)),
    ...sums(x.dtype),
  };
}

export const gaussianRows: readonly OperationRow[] = [
  { name: 'gaussianNllLoss', specs: losses.map(lossSpec), calls: smooth(gaussianNllLoss) },
];
