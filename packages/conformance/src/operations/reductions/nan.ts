/** Sums and means that leave NaN out: what the suite checks of them. */
import * as pg from '@polygrad/core';
import { at, nd, type NDArray, reduce } from '../../oracle/ndarray.ts';
import { type Random, sample, uniform } from '../../oracle/random.ts';
import { average, total } from '../../oracle/sums.ts';
import { floats, type OpSpec } from '../../spec.ts';
import { functionOf } from '../row.ts';

const any = uniform(-3, 3);

const holed =
  (shape: readonly number[]) =>
  (r: Random): [NDArray] => [sample(r, shape, (q) => (q() < 0.2 ? Number.NaN : any(q)))];

const some =
  (shape: readonly number[]) =>
  (r: Random): [NDArray] => [sample(r, shape, any)];
const numbers = (v: readonly number[]): number[] => v.filter((x) => !Number.isNaN(x));

export const nanSumSpec: OpSpec<1> = {
  name: 'nanSum',
  dtypes: floats,
  instances: [
    { label: '[4,6]', draw: some([4, 6]), small: true },
    { label: '[4,6] with NaN', draw: holed([4, 6]) },
  ],
  run: ([x]) => pg.nanSum(x, { axis: 1 }),
  oracle: ([x]) => reduce(x, [1], (all) => total(numbers(all))),
  gradient: { of: [0], order: 2 },
};

export const nanMeanSpec: OpSpec<1> = {
  name: 'nanMean',
  dtypes: floats,
  instances: [
    { label: '[3,4]', small: true, draw: some([3, 4]) },
    { label: '[5,9] with NaN', small: false, draw: holed([5, 9]) },
  ],
  run: ([x]) => pg.nanMean(x, { axis: 0 }),
  oracle: ([x]) => reduce(x, [0], (all) => average(numbers(all))),
  gradient: { of: [0], order: 2 },
};

const isGap = (i: number): boolean => i % 3 === 1;

/** Squares, of which some are NaN, at fixed places, so that finite differences may be taken of the rest. */
export const gaps = (name: 'nanSum' | 'nanMean'): OpSpec<1> => ({
  name: `${name} with gaps`,
  dtypes: floats,
  instances: [{ label: '[2,6]', small: true, draw: (r) => [sample(r, [2, 6], any)] }],
  run: ([x]) => {
    const holes = pg.tensor([0, 1, 2, 3, 4, 5].map(isGap));
    return functionOf(name)(pg.square(pg.where(holes, Number.NaN, x)), 1);
  },
  oracle: ([x]) =>
    nd(
      [2],
      [0, 1].map((row) => {
        const kept = [0, 1, 2, 3, 4, 5].filter((i) => !isGap(i)).map((i) => at(x, [row, i]) ** 2);
        return name === 'nanSum' ? total(kept) : average(kept);
      }),
    ),
  gradient: { of: [0], order: 2 },
});
