/** Tensors made from nothing or in the likeness of others, in every dtype; copies and single elements; sums without NaN. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { at, build, map, type NDArray, reduce } from '../oracle/ndarray.ts';
import { integer, type Random, sample, uniform } from '../oracle/random.ts';
import type { OpSpec } from '../spec.ts';

// biome-ignore format: a list
const every: readonly DType[] = [
  'float16', 'bfloat16', 'float32', 'float64', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64', 'bool',
];
const numbers = every.filter((d) => d !== 'bool');
const floats: readonly DType[] = ['float32', 'float64'];

interface Made {
  readonly name: string;
  readonly shape: readonly number[];
  readonly make: (dtype: DType) => Tensor;
  readonly f: (index: readonly number[]) => number;
  readonly dtypes?: readonly DType[];
}

const [i, j] = [0, 1];
const made: readonly Made[] = [
  { name: 'zeros', shape: [3, 5], make: (dtype) => pg.zeros([3, 5], { dtype }), f: () => 0 },
  { name: 'ones', shape: [2, 1, 9], make: (dtype) => pg.ones([2, 1, 9], { dtype }), f: () => 1 },
  { name: 'empty', shape: [4], make: (dtype) => pg.empty([4], { dtype }), f: () => 0 },
  { name: 'full', shape: [7, 2], make: (dtype) => pg.full([7, 2], 3, { dtype }), f: () => 3, dtypes: numbers },
  { name: 'eye', shape: [3, 4], make: (dtype) => pg.eye(3, 4, { dtype }), f: (q) => Number(q[i] === q[j]) },
  {
    name: 'eye above the diagonal',
    shape: [4, 4],
    make: (dtype) => pg.eye(4, { diagonal: 2, dtype }),
    f: (q) => Number((q[i] as number) + 2 === q[j]),
  },
  {
    name: 'tri',
    shape: [5, 3],
    make: (dtype) => pg.tri(5, 3, { diagonal: -1, dtype }),
    f: (q) => Number((q[j] as number) <= (q[i] as number) - 1),
  },
  {
    name: 'arange',
    shape: [11],
    make: (dtype) => pg.arange(2, 24, 2, { dtype }),
    f: (q) => 2 + 2 * (q[i] as number),
    dtypes: numbers,
  },
  {
    name: 'arange downwards',
    shape: [4],
    make: (dtype) => pg.arange(3, -5, -2, { dtype }),
    f: (q) => 3 - 2 * (q[i] as number),
    dtypes: numbers.filter((d) => !d.startsWith('u')),
  },
  {
    name: 'linspace',
    shape: [13],
    make: (dtype) => pg.linspace(-1, 2, 13, { dtype }),
    f: (q) => -1 + (q[i] as number) / 4,
    dtypes: numbers.slice(0, 4),
  },
  {
    name: 'tensor',
    shape: [2, 2],
    make: (dtype) =>
      pg.tensor(
        [
          [1, 0],
          [0, 1],
        ],
        { dtype },
      ),
    f: (q) => Number(q[i] === q[j]),
  },
  {
    name: 'onesLike',
    shape: [3, 2],
    make: (dtype) => pg.scope(() => pg.onesLike(pg.zeros([3, 2], { dtype }))),
    f: () => 1,
  },
  {
    name: 'zerosLike',
    shape: [3, 2],
    make: (dtype) => pg.scope(() => pg.zerosLike(pg.ones([3, 2], { dtype }))),
    f: () => 0,
  },
  {
    name: 'fullLike',
    shape: [3, 2],
    make: (dtype) => pg.scope(() => pg.fullLike(pg.ones([3, 2], { dtype }), 2)),
    f: () => 2,
    dtypes: numbers,
  },
];

const whole = integer(-99, 99);
const some =
  (shape: readonly number[], draw = uniform(-3, 3)) =>
  (r: Random): NDArray[] => [sample(r, shape, draw)];
const holed = (r: Random): NDArray[] => [sample(r, [4, 6], (q) => (q() < 0.2 ? Number.NaN : uniform(-3, 3)(q)))];
const withoutNaN = (x: number): number => (Number.isNaN(x) ? 0 : x);

export function creationSpecs(): OpSpec[] {
  const fromNothing = made.flatMap(({ name, shape, make, f, dtypes = every }) =>
    dtypes.map(
      (dtype): OpSpec => ({
        name,
        dtypes: [dtype],
        more: [],
        instances: [{ label: `[${shape}]`, draw: () => [] }],
        run: () => make(dtype),
        oracle: () => build(shape, f),
      }),
    ),
  );
  return [
    ...fromNothing,
    {
      name: 'contiguous',
      dtypes: [...floats, 'int32'],
      instances: [{ label: '[4,5]', draw: some([4, 5], whole), small: true }],
      run: ([x]) => pg.contiguous(x as Tensor),
      oracle: ([x]) => x as NDArray,
      gradient: { of: [0], order: 2 },
    },
    {
      name: 'at',
      dtypes: [...floats, 'int32'],
      instances: [{ label: '[4,5]', draw: some([4, 5], whole), small: true }],
      run: ([x]) => pg.at(x as Tensor, -1, { start: 1, stop: 4 }),
      oracle: ([x]) => build([3], ([k]) => at(x as NDArray, [3, 1 + (k as number)])),
      gradient: { of: [0], order: 2 },
    },
    {
      name: 'nanSum',
      dtypes: floats,
      instances: [
        { label: '[4,6]', draw: some([4, 6]), small: true },
        { label: '[4,6] with NaN', draw: holed },
      ],
      run: ([x]) => pg.nanSum(x as Tensor, { axis: 1 }),
      oracle: ([x]) => reduce(map(x as NDArray, withoutNaN), [1], (all) => all.reduce((a, b) => a + b, 0)),
      gradient: { of: [0], order: 2 },
    },
  ];
}
