/** Parts of tensors taken, put and replaced: cuts, diagonals, rolls, masks, single elements by index, and sums that skip NaN. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { at, build, type NDArray, map, nd } from '../oracle/ndarray.ts';
import { integer, type Random, sample, uniform } from '../oracle/random.ts';
import type { OpSpec } from '../spec.ts';
import { average, total } from '../oracle/sums.ts';

const numeric: readonly DType[] = ['float32', 'float64', 'int32'];
const floats: readonly DType[] = ['float32', 'float64'];
const whole = integer(-99, 99);
const any = uniform(-3, 3);

interface Part {
  readonly name: string;
  readonly shape: readonly number[];
  readonly run: (x: Tensor) => Tensor;
  readonly shapeOf: readonly number[];
  /** The element of x that an element of the result is; null for 0. */
  readonly from: (index: number[]) => number[] | null;
}

const n = (index: readonly number[], axis: number): number => index[axis] as number;

const parts: readonly Part[] = [
  {
    name: 'split, the second of three',
    shape: [2, 7],
    run: (x) => pg.split(x, [2, 4, 1], 1)[1] as Tensor,
    shapeOf: [2, 4],
    from: (i) => [n(i, 0), n(i, 1) + 2],
  },
  {
    name: 'chunk, the last smaller one',
    shape: [7, 2],
    run: (x) => pg.chunk(x, 3)[2] as Tensor,
    shapeOf: [1, 2],
    from: (i) => [n(i, 0) + 6, n(i, 1)],
  },
  {
    name: 'unbind, put together the other way',
    shape: [3, 2],
    run: (x) => pg.stack(pg.unbind(x, 1), 0),
    shapeOf: [2, 3],
    from: (i) => [n(i, 1), n(i, 0)],
  },
  {
    name: 'unflatten',
    shape: [2, 6],
    run: (x) => pg.unflatten(x, 1, [3, 2]),
    shapeOf: [2, 3, 2],
    from: (i) => [n(i, 0), 2 * n(i, 1) + n(i, 2)],
  },
  {
    name: 'roll along two axes',
    shape: [3, 4],
    run: (x) => pg.roll(x, [1, -1], [0, 1]),
    shapeOf: [3, 4],
    from: (i) => [(n(i, 0) + 2) % 3, (n(i, 1) + 1) % 4],
  },
  {
    name: 'repeatInterleave',
    shape: [2, 3],
    run: (x) => pg.repeatInterleave(x, 2, { axis: 1 }),
    shapeOf: [2, 6],
    from: (i) => [n(i, 0), Math.floor(n(i, 1) / 2)],
  },
  {
    name: 'diagonal below the main one',
    shape: [2, 4, 3],
    run: (x) => pg.diagonal(x, { offset: -1, axis1: 1, axis2: 2 }),
    shapeOf: [2, 3],
    from: (i) => [n(i, 0), n(i, 1) + 1, n(i, 1)],
  },
  {
    name: 'triu above the diagonal',
    shape: [3, 4],
    run: (x) => pg.triu(x, { diagonal: 1 }),
    shapeOf: [3, 4],
    from: (i) => (n(i, 1) > n(i, 0) ? i : null),
  },
];

/** Numbers with a NaN here and there. */
function spotted(r: Random): number {
  const value = any(r);
  return r() < 0.25 ? Number.NaN : value;
}

const isGap = (i: number): boolean => i % 3 === 1;

export function partSpecs(): OpSpec[] {
  return [
    ...parts.map(
      ({ name, shape, run, shapeOf, from }): OpSpec => ({
        name,
        dtypes: numeric,
        instances: [{ label: `[${shape}]`, small: true, draw: (r) => [sample(r, shape, whole)] }],
        run: ([x]) => run(x as Tensor),
        oracle: ([x]) =>
          build(shapeOf, (index) => {
            const source = from(index);
            return source === null ? 0 : at(x as NDArray, source);
          }),
        gradient: { of: [0], order: 2 },
      }),
    ),
    {
      name: 'trace of matrices',
      dtypes: numeric,
      instances: [{ label: '[2,3,3]', small: true, draw: (r) => [sample(r, [2, 3, 3], whole)] }],
      run: ([x]) => pg.trace(x as Tensor),
      oracle: ([x]) =>
        build([2], ([b]) => [0, 1, 2].reduce((sum, i) => sum + at(x as NDArray, [b as number, i, i]), 0)),
      result: (dtype) => (dtype === 'int8' || dtype === 'int16' ? 'int32' : dtype),
      gradient: { of: [0], order: 2 },
    },
    {
      name: 'maskedFill',
      dtypes: numeric,
      inputDTypes: { 1: 'bool' },
      instances: [
        { label: '[3,4]', small: true, draw: (r) => [sample(r, [3, 4], whole), sample(r, [4], integer(0, 1))] },
      ],
      run: ([x, mask]) => pg.maskedFill(x as Tensor, mask as Tensor, 7),
      oracle: ([x, mask]) =>
        build([3, 4], ([i, j]) =>
          at(mask as NDArray, [j as number]) !== 0 ? 7 : at(x as NDArray, [i as number, j as number]),
        ),
      gradient: { of: [0], order: 2 },
    },
    {
      name: 'gather of fewer rows',
      dtypes: numeric,
      inputDTypes: { 1: 'int32' },
      instances: [
        { label: '[3,4]', small: true, draw: (r) => [sample(r, [3, 4], whole), sample(r, [2, 3], integer(-4, 3))] },
      ],
      run: ([x, index]) => pg.gather(x as Tensor, index as Tensor, { axis: 1 }),
      oracle: ([x, index]) =>
        build([2, 3], ([i, j]) =>
          at(x as NDArray, [i as number, (at(index as NDArray, [i as number, j as number]) + 4) % 4]),
        ),
      gradient: { of: [0], order: 2 },
    },
    {
      name: 'scatterAdd, repeated indices',
      dtypes: numeric,
      inputDTypes: { 1: 'int32' },
      instances: [
        {
          label: '[4,3]',
          small: true,
          draw: (r) => [sample(r, [4, 3], whole), sample(r, [5, 2], integer(0, 3)), sample(r, [5, 2], whole)],
        },
      ],
      run: ([x, index, updates]) => pg.scatterAdd(x as Tensor, index as Tensor, updates as Tensor, { axis: 0 }),
      oracle: ([x, index, updates]) =>
        build([4, 3], ([i, j]) => {
          let sum = at(x as NDArray, [i as number, j as number]);
          for (let u = 0; u < 5 && (j as number) < 2; u++)
            if (at(index as NDArray, [u, j as number]) === i) sum += at(updates as NDArray, [u, j as number]);
          return sum;
        }),
      gradient: { of: [0, 2], order: 2 },
    },
    {
      name: 'nanToNum',
      dtypes: floats,
      instances: [{ label: '[3,5]', draw: (r) => [sample(r, [3, 5], spotted)] }],
      run: ([x]) => pg.nanToNum(x as Tensor, { nan: 9 }),
      oracle: ([x]) => map(x as NDArray, (v) => (Number.isNaN(v) ? 9 : v)),
    },
    ...(['nanSum', 'nanMean'] as const).map(
      (name): OpSpec => ({
        name: `${name} with gaps`,
        dtypes: floats,
        instances: [{ label: '[2,6]', small: true, draw: (r) => [sample(r, [2, 6], any)] }],
        // The gaps come in at fixed places, so that finite differences may be taken of the rest.
        run: ([x]) => {
          const gaps = pg.tensor([0, 1, 2, 3, 4, 5].map(isGap));
          const squares = pg.square(pg.where(gaps, Number.NaN, x as Tensor));
          return name === 'nanSum' ? pg.nanSum(squares, 1) : pg.nanMean(squares, 1);
        },
        oracle: ([x]) =>
          nd(
            [2],
            [0, 1].map((row) => {
              const kept = [0, 1, 2, 3, 4, 5].filter((i) => !isGap(i)).map((i) => at(x as NDArray, [row, i]) ** 2);
              return name === 'nanSum' ? total(kept) : average(kept);
            }),
          ),
        gradient: { of: [0], order: 2 },
      }),
    ),
  ];
}
