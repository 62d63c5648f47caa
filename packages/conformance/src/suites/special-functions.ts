/** Special functions: gamma and error functions against series that the library does not use, with derivatives. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { map, type NDArray } from '../oracle/ndarray.ts';
import { type Random, sample, uniform } from '../oracle/random.ts';
import { rowNamed } from '../operations/row.ts';
import { unaryRows } from '../operations/unary.ts';
import { polygamma } from '../oracle/special.ts';
import type { OpSpec } from '../spec.ts';

const floats: readonly DType[] = ['float32', 'float64'];
const formula = (name: string): ((x: number) => number) => rowNamed(unaryRows, name).f;

interface Special {
  readonly name: string;
  readonly run: (x: Tensor) => Tensor;
  readonly f: (x: number) => number;
  /** Intervals that arguments are drawn from. */
  readonly from: readonly (readonly [number, number])[];
}

/** Where the functions of the gamma family have moderate values: beside the poles 0, -1, -2 ... */
const around = [
  [0.3, 1],
  [1, 2.6],
  [2.6, 12],
  [-0.8, -0.2],
  [-2.8, -2.2],
] as const;

const functions: readonly Special[] = [
  { name: 'lgamma', run: pg.lgamma, f: formula('lgamma'), from: [...around, [12, 200], [0.01, 0.1]] },
  { name: 'digamma', run: pg.digamma, f: formula('digamma'), from: [...around, [12, 200], [0.01, 0.1]] },
  ...[1, 2, 3, 5].map((n) => ({
    name: `polygamma of order ${n}`,
    run: (x: Tensor) => pg.polygamma(n, x),
    f: (x: number) => polygamma(n, x),
    from: [...around.slice(1), [0.5, 1]] as (readonly [number, number])[],
  })),
  {
    name: 'erfc',
    run: pg.erfc,
    f: formula('erfc'),
    from: [
      [-3, 0],
      [0, 1],
      [1, 5],
    ],
  },
  {
    name: 'erfinv',
    run: pg.erfinv,
    f: formula('erfinv'),
    from: [
      [-0.95, 0],
      [0, 0.6],
      [0.6, 0.95],
    ],
  },
];

export function specialFunctionSpecs(): OpSpec[] {
  return functions.map(({ name, run, f, from }) => ({
    name,
    dtypes: floats,
    instances: [
      ...from.map(([low, high]) => ({
        label: `${low} to ${high}`,
        small: Math.abs(low) < 10,
        draw: (r: Random) => [sample(r, [5], uniform(low, high))],
      })),
      {
        label: '[4,33]',
        draw: (r: Random) => [sample(r, [4, 33], uniform(...(from[1] as readonly [number, number])))],
      },
    ],
    run: ([x]) => run(x as Tensor),
    oracle: ([x]) => map(x as NDArray, f),
    gradient: { of: [0], order: 2 },
  }));
}
