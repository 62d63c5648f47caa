/** Results whose size depends on data: what is there, what a mask picks, what differs. They come when they are known. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import type { ConformanceCase } from '../../case.ts';
import { compared, t, type Expected } from './values.ts';

const { NaN: nan } = Number;

interface LateValue extends Expected {
  readonly name: string;
  readonly inputs: () => Tensor[];
  readonly run: (...inputs: [Tensor, Tensor]) => Promise<Tensor>;
}

const nonZero = (x: Tensor): Promise<Tensor> => pg.nonZero(x);
const unique = (x: Tensor): Promise<Tensor> => pg.unique(x);
const part =
  (which: 'indices' | 'inverse' | 'counts', options: pg.UniqueOptions) =>
  async (x: Tensor): Promise<Tensor> => {
    const found = await pg.unique(x, options);
    found.values.dispose();
    return found[which]!;
  };

const lateValues: readonly LateValue[] = [
  {
    name: 'nonZero',
    inputs: () => [
      pg.tensor([
        [0, nan, -0],
        [2, 0, 1],
      ]),
    ],
    run: nonZero,
    expected: [0, 1, 1, 0, 1, 2],
    shape: [3, 2],
  },
  { name: 'nonZero of zeros', inputs: () => [pg.zeros([2, 3])], run: nonZero, expected: [], shape: [0, 2] },
  { name: 'nonZero of nothing', inputs: () => [pg.zeros([0])], run: nonZero, expected: [], shape: [0, 1] },
  { name: 'nonZero of a scalar', inputs: () => [pg.tensor(3)], run: nonZero, expected: [], shape: [1, 0] },
  {
    name: 'nonZero of a view',
    inputs: () => [
      pg.scope(() =>
        pg.transpose(
          pg.tensor([
            [0, 1, 0],
            [1, 0, 2],
          ]),
        ),
      ),
    ],
    run: nonZero,
    expected: [0, 1, 1, 0, 2, 1],
    shape: [3, 2],
  },
  {
    name: 'maskedSelect broadcasts',
    inputs: () => [
      pg.tensor([
        [1, 2],
        [3, 4],
      ]),
      pg.tensor([true, false]),
    ],
    run: pg.maskedSelect,
    expected: [1, 3],
  },
  {
    name: 'maskedSelect of none',
    inputs: () => [t(1, 2), pg.tensor([false, false])],
    run: pg.maskedSelect,
    expected: [],
  },
  {
    name: 'unique: zeros are one value, every NaN is one',
    inputs: () => [t(2, nan, -0, 2, 0, nan)],
    run: unique,
    expected: [0, 2, nan, nan],
  },
  { name: 'unique of nothing', inputs: () => [pg.zeros([0])], run: unique, expected: [] },
  { name: 'unique of bool', inputs: () => [pg.tensor([true, true, false])], run: unique, expected: [0, 1] },
  {
    name: 'unique: first positions',
    inputs: () => [t(2, 1, 2)],
    run: part('indices', { returnIndices: true }),
    expected: [1, 0],
  },
  {
    name: 'unique: inverse',
    inputs: () => [
      pg.tensor([
        [2, 1],
        [2, 7],
      ]),
    ],
    run: part('inverse', { returnInverse: true }),
    expected: [1, 0, 1, 2],
    shape: [2, 2],
  },
  { name: 'unique: counts', inputs: () => [t(2, 1, 2)], run: part('counts', { returnCounts: true }), expected: [1, 2] },
];

export function dataSizedCases(): ConformanceCase[] {
  const values = lateValues.map(
    (value): ConformanceCase => ({
      name: `order / ${value.name}`,
      run: async () => {
        const inputs = value.inputs();
        await compared(await value.run(...(inputs as [Tensor, Tensor])), value);
        for (const x of inputs) x.dispose();
        return undefined;
      },
    }),
  );
  const gradient: ConformanceCase = {
    name: 'order / gradient of maskedSelect',
    run: async () => {
      const x = t(1, 2, 3);
      const mask = pg.tensor([true, false, true]);
      const tape = new pg.GradientTape();
      tape.watch(x);
      const picked = await pg.maskedSelect(x, mask);
      const y = pg.scope(() => pg.sum(pg.square(picked)));
      const g = tape.gradient(y, x);
      await compared(g, { expected: [2, 0, 6] });
      for (const tensor of [x, mask, picked, y]) tensor.dispose();
      return undefined;
    },
  };
  return [...values, gradient];
}
