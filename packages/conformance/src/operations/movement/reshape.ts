/** Other shapes for the same elements in the same order. */
import * as pg from '@polygrad/core';
import { count, reshape } from '../../oracle/ndarray.ts';
import { integer, sample } from '../../oracle/random.ts';
import { withAxis } from '../../programs/operands.ts';
import type { Made, Pool } from '../../programs/pool.ts';
import type { OpSpec } from '../../spec.ts';
import { type OperationRow, smooth } from '../row.ts';
import { inserted, moved, movementRow, moveSpec, part } from './row.ts';

/** Factors of a size in some order, as a shape. */
function factors(pool: Pool, size: number): number[] {
  const found: number[] = [];
  let rest = size;
  for (const p of [2, 3, 5, 7, 11, 13]) {
    while (rest > 1 && rest % p === 0 && found.length < 6) {
      found.push(p);
      rest /= p;
    }
  }
  if (rest !== 1) found.push(rest);
  const shape: number[] = [];
  for (const f of pool.c.shuffled(found)) {
    if (shape.length > 0 && pool.c.nat(3) === 0) shape[shape.length - 1] = shape[shape.length - 1]! * f;
    else shape.push(f);
  }
  if (shape.length < 8 && pool.c.seldom(3)) shape.splice(pool.c.nat(shape.length + 1), 0, 1);
  return shape;
}

function unflatten(pool: Pool): Made | null {
  const found = withAxis(pool, (v) => v.shape.length < 8);
  if (found === null || found.n === 0) return null;
  const { x, axis, written, n } = found;
  const k = pool.c.pick([1, 2, 3, n].filter((f) => n % f === 0));
  const sizes = pool.c.nat(2) === 0 ? [k, n / k] : [n / k, k];
  const given = pool.c.seldom(3) ? [sizes[0]!, -1] : sizes;
  return moved(x, [written, given], (a) =>
    reshape(a, [...a.shape.slice(0, axis), ...sizes, ...a.shape.slice(axis + 1)]),
  );
}

function flattened(pool: Pool): Made | null {
  const x = pool.pick((v) => v.shape.length >= 2);
  if (x === null) return null;
  const [start, end] = [pool.c.nat(x.shape.length), pool.c.nat(x.shape.length)].sort((a, b) => a - b) as [
    number,
    number,
  ];
  const shape = [...x.shape.slice(0, start), count(x.shape.slice(start, end + 1)), ...x.shape.slice(end + 1)];
  return moved(x, [{ start, end }], (a) => reshape(a, shape));
}

const contiguousSpec: OpSpec<1> = {
  name: 'contiguous',
  dtypes: ['float32', 'float64', 'int32'],
  instances: [{ label: '[4,5]', draw: (r) => [sample(r, [4, 5], integer(-99, 99))], small: true }],
  run: ([x]) => pg.contiguous(x),
  oracle: ([x]) => x,
  gradient: { of: [0], order: 2 },
};

export const reshapeRows: readonly OperationRow[] = [
  movementRow({
    name: 'reshape',
    large: true,
    cases: [
      {
        name: 'reshape [2,6] to [3,4]',
        shape: [2, 6],
        run: (x) => pg.reshape(x, [3, 4]),
        f: (x) => reshape(x, [3, 4]),
      },
      { name: 'reshape with -1', shape: [2, 3, 4], run: (x) => pg.reshape(x, [4, -1]), f: (x) => reshape(x, [4, 6]) },
    ],
    make: (pool, x) => {
      const shape = factors(pool, count(x.shape));
      return moved(x, [shape], (a) => reshape(a, shape));
    },
  }),
  movementRow({
    name: 'flatten',
    cases: [{ name: 'flatten', shape: [2, 3, 4], run: (x) => pg.flatten(x), f: (x) => reshape(x, [24]) }],
    make: (_, x) => moved(x, [], (a) => reshape(a, [count(a.shape)])),
    others: [flattened],
  }),
  {
    name: 'unflatten',
    specs: [
      moveSpec(
        part({
          name: 'unflatten',
          shape: [2, 6],
          run: (x) => pg.unflatten(x, 1, [3, 2]),
          shapeOf: [2, 3, 2],
          from: ([i = 0, j = 0, k = 0]) => [i, 2 * j + k],
        }),
      ),
    ],
    calls: smooth(unflatten),
  },
  movementRow({
    name: 'squeeze',
    cases: [{ name: 'squeeze', shape: [1, 3, 1], run: (x) => pg.squeeze(x), f: (x) => reshape(x, [3]) }],
    make: (_, x) =>
      moved(x, [], (a) =>
        reshape(
          a,
          a.shape.filter((n) => n !== 1),
        ),
      ),
  }),
  movementRow({
    name: 'unsqueeze',
    cases: [{ name: 'unsqueeze', shape: [3, 2], run: (x) => pg.unsqueeze(x, 1), f: (x) => reshape(x, [3, 1, 2]) }],
    most: 7,
    make: (pool, x) => {
      const axis = pool.c.nat(x.shape.length + 1);
      return moved(x, [axis], (a) => reshape(a, inserted(a.shape, axis, 1)));
    },
  }),
  {
    ...movementRow({ name: 'contiguous', cases: [], specs: [contiguousSpec], make: (_, x) => moved(x, [], (a) => a) }),
    notes: { goldens: 'a copy' },
  },
];
