/** The gamma and error functions against series that the library does not use, with derivatives, in intervals of their own. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { map } from '../../oracle/ndarray.ts';
import { type Random, sample, uniform } from '../../oracle/random.ts';
import { polygamma } from '../../oracle/special.ts';
import { isFloat, type Made, type Pool, ref } from '../../programs/pool.ts';
import { floats, type Instance, type OpSpec } from '../../spec.ts';
import { functionOf, type OperationRow, smooth } from '../row.ts';

type Intervals = readonly (readonly [number, number])[];

/** Where the functions of the gamma family have moderate values: beside the poles 0, -1, -2 ... */
const around = [
  [0.3, 1],
  [1, 2.6],
  [2.6, 12],
  [-0.8, -0.2],
  [-2.8, -2.2],
] as const;

const beside: Intervals = [...around, [12, 200], [0.01, 0.1]];

const intervals: Readonly<Record<'lgamma' | 'digamma' | 'erfc' | 'erfinv', Intervals>> = {
  lgamma: beside,
  digamma: beside,
  erfc: [
    [-3, 0],
    [0, 1],
    [1, 5],
  ],
  erfinv: [
    [-0.95, 0],
    [0, 0.6],
    [0.6, 0.95],
  ],
};

function specOf(name: string, run: (x: Tensor) => Tensor, f: (x: number) => number, from: Intervals): OpSpec<1> {
  return {
    name,
    dtypes: floats,
    instances: [
      ...from.map(
        ([low, high]): Instance<1> => ({
          label: `${low} to ${high}`,
          small: Math.abs(low) < 10,
          draw: (r) => [sample(r, [5], uniform(low, high))],
        }),
      ),
      {
        label: '[4,33]',
        draw: (r: Random) => [sample(r, [4, 33], uniform(...from[1]!))],
      },
    ],
    run: ([x]) => run(x),
    oracle: ([x]) => map(x, f),
    gradient: { of: [0], order: 2 },
  };
}

/** What the suite checks of one of them whose formula stands in the table of operations of one operand. */
export const inIntervals = (name: keyof typeof intervals, f: (x: number) => number): OpSpec =>
  specOf(name, (x) => functionOf(name)(x), f, intervals[name]);

function polygammaCall(pool: Pool): Made | null {
  const n = pool.c.pick([1, 0, 2, 3]);
  const x = pool.pick((v) => isFloat(v.dtype) && v.data.every((y) => y > 0.3 && y < 1e3));
  if (x === null) return null;
  return { args: [n, ref(x)], dtype: x.dtype, formula: (a) => map(a, (y) => polygamma(n, y)), noise: 'all' };
}

export const gammaRows: readonly OperationRow[] = [
  {
    name: 'polygamma',
    specs: [1, 2, 3, 5].map((n) =>
      specOf(
        `polygamma of order ${n}`,
        (x) => pg.polygamma(n, x),
        (x) => polygamma(n, x),
        [...around.slice(1), [0.5, 1]],
      ),
    ),
    calls: smooth(polygammaCall),
    notes: { goldens: 'formula to any order' },
  },
];
