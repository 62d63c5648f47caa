/** Tensors put together along an axis, or as the axes of a grid. */
import * as pg from '@polygrad/core';
import { at, build, count, type NDArray, reshape } from '../../oracle/ndarray.ts';
import { integer, type Random, sample } from '../../oracle/random.ts';
import { withAxis } from '../../programs/operands.ts';
import { type Made, type Pool, ref } from '../../programs/pool.ts';
import type { Value } from '../../programs/program.ts';
import { numeric, type OpSpec } from '../../spec.ts';
import { type OperationRow, smooth } from '../row.ts';
import { inserted, type Move, movementRow, moveSpec } from './row.ts';

const whole = integer(-99, 99);

function joinSpec(name: 'concat' | 'stack'): OpSpec {
  return {
    name,
    dtypes: numeric,
    instances: [0, 1].map((axis) => ({
      label: `axis ${axis}`,
      small: true,
      options: { axis },
      draw: (r: Random) => {
        const other = name === 'stack' ? [2, 3] : axis === 0 ? [4, 3] : [2, 5];
        return [sample(r, [2, 3], whole), sample(r, other, whole)];
      },
    })),
    run: (xs, o) =>
      name === 'concat' ? pg.concat(xs, { axis: o.axis as number }) : pg.stack(xs, { axis: o.axis as number }),
    oracle: (xs, o) => (name === 'concat' ? concatenated : stacked)(xs, o.axis as number),
    gradient: { of: [0, 1], order: 2 },
  };
}

/** Others of the same shape but for one axis, at most three in all. */
function alike(pool: Pool, x: Value, axis: number | null): Value[] {
  const found = [x];
  const same = (v: Value): boolean =>
    v.dtype === x.dtype && v.shape.length === x.shape.length && v.shape.every((n, i) => i === axis || n === x.shape[i]);
  for (let i = pool.c.nat(3); i >= 0; i--) found.push(pool.pick(same) ?? x);
  return found;
}

const concatenated = (xs: readonly NDArray[], axis: number): NDArray => {
  const sizes = xs.map((x) => x.shape[axis]!);
  const first = xs[0]!;
  return build(
    first.shape.map((n, i) => (i === axis ? sizes.reduce((a, b) => a + b, 0) : n)),
    (index) => {
      let i = index[axis]!;
      let which = 0;
      while (i >= sizes[which]!) i -= sizes[which++]!;
      return at(
        xs[which]!,
        index.map((j, a) => (a === axis ? i : j)),
      );
    },
  );
};

const stacked = (xs: readonly NDArray[], axis: number): NDArray =>
  concatenated(
    xs.map((x) => reshape(x, inserted(x.shape, axis, 1))),
    axis,
  );

/** Parts of the same value joined again: what was cut may be read where it lies. */
function rejoined(pool: Pool): Made | null {
  const found = withAxis(pool, (v) => v.data.length < 1500);
  if (found === null) return null;
  const { x, axis, written } = found;
  return {
    args: [[ref(x), ref(x), ref(x)], written],
    dtype: x.dtype,
    formula: (a, b, c) => concatenated([a, b, c], axis),
  };
}

function meshgrid(pool: Pool): Made | null {
  const first = pool.pick((v) => v.shape.length === 1 && v.data.length < 40);
  if (first === null) return null;
  const xs = alike(pool, first, 0).slice(0, 3);
  if (count(xs.map((v) => v.data.length)) > 4000) return null;
  const part = pool.c.nat(xs.length);
  const ij = pool.c.nat(2) === 0;
  const axisOf = (i: number): number => (!ij && xs.length > 1 && i < 2 ? 1 - i : i);
  const grid = xs.map((_, i) => xs[axisOf(i)]!.data.length);
  return {
    args: [xs.map(ref), ...(ij ? [{ indexing: 'ij' }] : [])],
    part,
    dtype: first.dtype,
    formula: (...as) => build(grid, (index) => as[part]!.data[index[axisOf(part)]!]!),
  };
}

const grids: readonly Move[] = [
  {
    name: 'meshgrid xy',
    shape: [5],
    run: (x) => pg.concat(pg.meshgrid([pg.narrow(x, 0, 0, 2), pg.narrow(x, 0, 2, 3)])),
    f: (x) => build([6, 2], ([r, c]) => at(x, [r < 3 ? c : 2 + (r % 3)])),
  },
  {
    name: 'meshgrid ij',
    shape: [5],
    run: (x) => pg.concat(pg.meshgrid([pg.narrow(x, 0, 0, 2), pg.narrow(x, 0, 2, 3)], { indexing: 'ij' })),
    f: (x) => build([4, 3], ([r, c]) => at(x, [r < 2 ? r : 2 + c])),
  },
];

export const joinRows: readonly OperationRow[] = [
  movementRow({
    name: 'concat',
    cases: [],
    specs: [joinSpec('concat')],
    rank: 1,
    make: (pool, x) => {
      const [axis, written] = pool.axis(x.shape.length);
      const xs = alike(pool, x, axis);
      return { args: [xs.map(ref), written], dtype: x.dtype, formula: (...as) => concatenated(as, axis) };
    },
    others: [rejoined],
  }),
  movementRow({
    name: 'stack',
    cases: [],
    specs: [joinSpec('stack')],
    most: 7,
    make: (pool, x) => {
      const [axis, written] = pool.axis(x.shape.length + 1);
      const xs = alike(pool, x, null);
      return {
        args: [xs.map(ref), written],
        dtype: x.dtype,
        formula: (...as) => stacked(as, axis),
      };
    },
  }),
  {
    name: 'meshgrid',
    specs: grids.map(moveSpec),
    calls: smooth(meshgrid),
  },
];
