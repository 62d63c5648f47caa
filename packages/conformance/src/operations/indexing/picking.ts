/** Elements and slices picked by index tensors. */
import { numeric, spec } from '../../spec.ts';
import * as pg from '@polygrad/core';
import { along } from '../../oracle/lines.ts';
import { at, build, type NDArray } from '../../oracle/ndarray.ts';
import { integer, type Random, sample } from '../../oracle/random.ts';
import { withElements } from '../../programs/operands.ts';
import { type Made, type Pool, ref } from '../../programs/pool.ts';
import { type OperationRow, smooth } from '../row.ts';

const whole = integer(-99, 99);

function take(pool: Pool): Made | null {
  const found = withElements(pool);
  if (found === null) return null;
  const { x, axis, written, n } = found;
  const shape = pool.c.pick([[3], [1], [2, 2], [0], [5]]);
  if (x.shape.length + shape.length > 9) return null;
  const index = pool.indices(shape, 0, n - 1);
  const out = [...x.shape.slice(0, axis), ...shape, ...x.shape.slice(axis + 1)];
  return {
    args: [ref(x), ref(index), written],
    dtype: x.dtype,
    formula: (a, i) =>
      build(out, (position) => {
        const from = at(i, position.slice(axis, axis + shape.length));
        return at(a, [...position.slice(0, axis), from, ...position.slice(axis + shape.length)]);
      }),
  };
}

function indexSelect(pool: Pool): Made | null {
  const found = withElements(pool);
  if (found === null) return null;
  const { x, axis, written, n } = found;
  const size = pool.c.pick([3, 1, 0, 17]);
  const index = pool.indices([size], 0, n - 1);
  return {
    args: [ref(x), ref(index), pool.c.seldom(3) ? { axis: written } : written],
    dtype: x.dtype,
    formula: (a, i) => along(a, axis, size, (k) => i.data[k]!),
  };
}

/** Calls that take each element along an axis from where an index says; `across` draws how long the index is along other axes. */
const picked =
  (across: (pool: Pool, size: number) => number) =>
  (pool: Pool): Made | null => {
    const found = withElements(pool);
    if (found === null) return null;
    const { x, axis, written, n } = found;
    const shape = x.shape.map((size, i) => (i === axis ? pool.c.pick([2, 1, 4]) : across(pool, size)));
    const index = pool.indices(shape, 0, n - 1);
    return {
      args: [ref(x), ref(index), written],
      dtype: x.dtype,
      formula: (a, places) =>
        build(shape, (position) =>
          at(
            a,
            position.map((p, k) => (k === axis ? at(places, position) : p)),
          ),
        ),
    };
  };

/** Operations whose result has a size that depends on data. */
const sized = { kernels: 'waits for the size' };

export const pickingRows: readonly OperationRow[] = [
  { name: 'take', specs: [], calls: smooth(take) },
  {
    name: 'indexSelect',
    specs: [
      spec<2>({
        name: 'indexSelect',
        dtypes: numeric,
        inputDTypes: { 1: 'int32' },
        instances: [0, 1].map((axis) => ({
          label: `[4,5] axis ${axis}`,
          small: true,
          options: { axis },
          draw: (r: Random) => [sample(r, [4, 5], whole), sample(r, [6], integer(0, 3))],
        })),
        run: ([x, i], o) => pg.indexSelect(x, i, { axis: o.axis as number }),
        oracle: ([x, i], o) =>
          o.axis === 0
            ? build([6, 5], ([a, b]) => at(x, [at(i, [a]), b]))
            : build([4, 6], ([a, b]) => at(x, [a, at(i, [b])])),
        gradient: { of: [0], order: 2 },
      }),
      spec<2>({
        name: 'indexSelect of a transpose',
        dtypes: numeric,
        inputDTypes: { 1: 'int32' },
        instances: [
          {
            label: '[21,37] transposed, [27]',
            draw: (r: Random) => [sample(r, [21, 37], whole), sample(r, [27], integer(0, 20))],
          },
        ],
        run: ([x, i]) => pg.indexSelect(pg.transpose(x), i, { axis: 1 }),
        oracle: ([x, i]) => build([37, 27], ([a, b]) => at(x, [at(i, [b]), a])),
        gradient: { of: [0], order: 1 },
      }),
    ],
    calls: smooth(indexSelect),
  },
  {
    name: 'takeAlongAxis',
    specs: [
      spec<2>({
        name: 'takeAlongAxis',
        dtypes: numeric,
        inputDTypes: { 1: 'int32' },
        instances: [
          {
            label: '[3,5] by [3,2]',
            small: true,
            draw: (r: Random) => [sample(r, [3, 5], whole), sample(r, [3, 2], integer(0, 4))],
          },
          {
            label: '[1,5] by [3,2]',
            small: true,
            draw: (r: Random) => [sample(r, [1, 5], whole), sample(r, [3, 2], integer(0, 4))],
          },
          {
            label: '[3,5] by [1,7]',
            small: true,
            draw: (r: Random) => [sample(r, [3, 5], whole), sample(r, [1, 7], integer(0, 4))],
          },
        ],
        run: ([x, i]) => pg.takeAlongAxis(x, i, { axis: 1 }),
        oracle: ([x, i]) => {
          const [from, by] = [x, i];
          const row = (of: NDArray, a: number): number => (of.shape[0] === 1 ? 0 : a);
          const rows = Math.max(from.shape[0]!, by.shape[0]!);
          return build([rows, by.shape[1]!], ([a = 0, b = 0]) => at(from, [row(from, a), at(by, [row(by, a), b])]));
        },
        gradient: { of: [0], order: 2 },
      }),
    ],
    calls: smooth(picked((_, size) => size)),
  },
  {
    name: 'gather',
    specs: [
      spec<2>({
        name: 'gather of fewer rows',
        dtypes: numeric,
        inputDTypes: { 1: 'int32' },
        instances: [
          { label: '[3,4]', small: true, draw: (r) => [sample(r, [3, 4], whole), sample(r, [2, 3], integer(-4, 3))] },
        ],
        run: ([x, index]) => pg.gather(x, index, { axis: 1 }),
        oracle: ([x, index]) => build([2, 3], ([i, j]) => at(x, [i, (at(index, [i, j]) + 4) % 4])),
        gradient: { of: [0], order: 2 },
      }),
    ],
    calls: smooth(picked((pool, size) => pool.c.between(1, size))),
  },
  { name: 'nonZero', specs: [], calls: [], notes: { ...sized, orders: 'none: indices out' } },
  { name: 'maskedSelect', specs: [], calls: [], notes: { ...sized, orders: 'as gather' } },
  { name: 'unique', specs: [], calls: [], notes: { ...sized, orders: 'as gather' } },
];
