/** Tensors made from nothing or in the likeness of others, in every dtype. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { broadcastTo, build, nd, type NDArray } from '../../oracle/ndarray.ts';
import { isFloat, isNumber, type Pool, type RandomCall, ref } from '../../programs/pool.ts';
import type { Arg } from '../../programs/program.ts';
import type { OpSpec } from '../../spec.ts';
import type { OperationRow } from '../row.ts';

// biome-ignore format: a list
const every: readonly DType[] = [
  'float16', 'bfloat16', 'float32', 'float64', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64', 'bool',
];

const numbers = every.filter((d) => d !== 'bool');

/** A tensor of one shape and its elements, in some dtypes. */
interface Made {
  readonly name?: string;
  readonly shape: readonly number[];
  readonly make: (dtype: DType) => Tensor;
  readonly f: (index: readonly number[]) => number;
  readonly dtypes?: readonly DType[];
}

type Drawn = { readonly args: readonly Arg[]; readonly value: NDArray } | null;
const [i, j] = [0, 1];

const shapes: readonly (readonly number[])[] = [[3], [], [2, 4], [0, 3], [2, 1, 5], [130]];

const filled = (shape: readonly number[], value: number): NDArray => broadcastTo(nd([], [value]), shape);

/** A call that no value goes into, of the dtype of one that is there. */
const fromNothing = (draw: (pool: Pool, dtype: DType) => Drawn): RandomCall => ({
  make: (pool) => {
    const dtype = pool.pick(isNumber)?.dtype;
    const found = dtype === undefined ? null : draw(pool, dtype);
    if (found === null || dtype === undefined) return null;
    return { args: [...found.args, { dtype }], dtype, formula: () => found.value, noise: 'out' };
  },
});

const like = (value: number, written: readonly number[] = []): RandomCall => ({
  make: (pool) => {
    const x = pool.pick(isNumber);
    if (x === null) return null;
    return { args: [ref(x), ...written], dtype: x.dtype, formula: () => filled(x.shape, value) };
  },
});

function row(name: string, cases: readonly Made[], calls: readonly RandomCall[]): OperationRow {
  return {
    name,
    specs: cases.flatMap(({ name: of = name, shape, make, f, dtypes = every }) =>
      dtypes.map(
        (dtype): OpSpec => ({
          name: of,
          dtypes: [dtype],
          more: [],
          instances: [{ label: `[${shape}]`, draw: () => [] }],
          run: () => make(dtype),
          oracle: () => build(shape, f),
        }),
      ),
    ),
    calls,
    notes: { orders: 'none: no input', goldens: 'a definition' },
  };
}

export const creationRows: readonly OperationRow[] = [
  row(
    'zeros',
    [{ shape: [3, 5], make: (dtype) => pg.zeros([3, 5], { dtype }), f: () => 0 }],
    [
      fromNothing((pool) => {
        const shape = pool.c.pick(shapes);
        return { args: [shape], value: filled(shape, 0) };
      }),
    ],
  ),
  row(
    'ones',
    [{ shape: [2, 1, 9], make: (dtype) => pg.ones([2, 1, 9], { dtype }), f: () => 1 }],
    [
      fromNothing((pool) => {
        const shape = pool.c.pick(shapes);
        return { args: [shape], value: filled(shape, 1) };
      }),
    ],
  ),
  row('empty', [{ shape: [4], make: (dtype) => pg.empty([4], { dtype }), f: () => 0 }], []),
  row(
    'full',
    [{ shape: [7, 2], make: (dtype) => pg.full([7, 2], 3, { dtype }), f: () => 3, dtypes: numbers }],
    [
      fromNothing((pool) => {
        const shape = pool.c.pick(shapes);
        return { args: [shape, 7], value: filled(shape, 7) };
      }),
    ],
  ),
  row(
    'eye',
    [
      { shape: [3, 4], make: (dtype) => pg.eye(3, 4, { dtype }), f: (q) => Number(q[i] === q[j]) },
      {
        name: 'eye above the diagonal',
        shape: [4, 4],
        make: (dtype) => pg.eye(4, { diagonal: 2, dtype }),
        f: (q) => Number(q[i]! + 2 === q[j]),
      },
    ],
    [
      fromNothing((pool) => {
        const [rows, columns] = [pool.c.pick([3, 1, 5]), pool.c.pick([3, 2, 7])];
        return { args: [rows, columns], value: build([rows, columns], ([i, j]) => (i === j ? 1 : 0)) };
      }),
    ],
  ),
  row(
    'tri',
    [
      {
        shape: [5, 3],
        make: (dtype) => pg.tri(5, 3, { diagonal: -1, dtype }),
        f: (q) => Number(q[j]! <= q[i]! - 1),
      },
    ],
    [
      fromNothing((pool) => {
        const [rows, columns] = [pool.c.pick([3, 1, 5]), pool.c.pick([3, 2, 7])];
        return {
          args: [rows, columns],
          value: build([rows, columns], ([i, j]) => (j <= i ? 1 : 0)),
        };
      }),
    ],
  ),
  row(
    'arange',
    [
      {
        shape: [11],
        make: (dtype) => pg.arange(2, 24, 2, { dtype }),
        f: (q) => 2 + 2 * q[i]!,
        dtypes: numbers,
      },
      {
        name: 'arange downwards',
        shape: [4],
        make: (dtype) => pg.arange(3, -5, -2, { dtype }),
        f: (q) => 3 - 2 * q[i]!,
        dtypes: numbers.filter((d) => !d.startsWith('u')),
      },
    ],
    [
      fromNothing((pool) => {
        const [from, step, n] = [pool.c.pick([0, 2, 5]), pool.c.pick([1, 2, 3]), pool.c.pick([4, 1, 0, 17])];
        return {
          args: [from, from + step * n, step],
          value: nd(
            [n],
            Array.from({ length: n }, (_, i) => from + step * i),
          ),
        };
      }),
    ],
  ),
  row(
    'linspace',
    [
      {
        shape: [13],
        make: (dtype) => pg.linspace(-1, 2, 13, { dtype }),
        f: (q) => -1 + q[i]! / 4,
        dtypes: numbers.slice(0, 4),
      },
    ],
    [
      fromNothing((pool, dtype) => {
        if (!isFloat(dtype)) return null;
        const n = pool.c.pick([5, 2, 9]);
        return {
          args: [-1, 3, n],
          value: nd(
            [n],
            Array.from({ length: n }, (_, i) => -1 + (4 * i) / (n - 1)),
          ),
        };
      }),
    ],
  ),
  row(
    'tensor',
    [
      {
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
    ],
    [],
  ),
  row(
    'onesLike',
    [{ shape: [3, 2], make: (dtype) => pg.scope(() => pg.onesLike(pg.zeros([3, 2], { dtype }))), f: () => 1 }],
    [like(1)],
  ),
  row(
    'zerosLike',
    [{ shape: [3, 2], make: (dtype) => pg.scope(() => pg.zerosLike(pg.ones([3, 2], { dtype }))), f: () => 0 }],
    [like(0)],
  ),
  row(
    'fullLike',
    [
      {
        shape: [3, 2],
        make: (dtype) => pg.scope(() => pg.fullLike(pg.ones([3, 2], { dtype }), 2)),
        f: () => 2,
        dtypes: numbers,
      },
    ],
    [like(3, [3])],
  ),
  // What is computed is a constant to derivatives, and to those who come after.
  {
    name: 'detach',
    specs: [],
    calls: [
      {
        make: (pool) => {
          const x = pool.pick();
          return x === null ? null : { args: [ref(x)], dtype: x.dtype, formula: (a) => a };
        },
      },
    ],
  },
];
