/** Elements and slices named by coordinates of several axes: picked, and put into zeros. */
import * as pg from '@polygrad/core';
import { at, build, count, indices, nd, type NDArray, ravel } from '../../oracle/ndarray.ts';
import { integer, type Random, sample } from '../../oracle/random.ts';
import { small, sums } from '../../programs/operands.ts';
import { isNumber, type Made, type Pool, ref } from '../../programs/pool.ts';
import { numeric, type OpSpec, spec } from '../../spec.ts';
import { type OperationRow, smooth } from '../row.ts';

const whole = integer(-4, 4);

/** The coordinates in every row of an index. */
function rowsOf(index: NDArray): number[][] {
  const depth = index.shape.at(-1) as number;
  return Array.from({ length: count(index.shape.slice(0, -1)) }, (_, r) =>
    index.data.slice(r * depth, (r + 1) * depth),
  );
}

function gathered(x: NDArray, index: NDArray): NDArray {
  const rest = x.shape.slice(index.shape.at(-1));
  const data = rowsOf(index).flatMap((row) => [...indices(rest)].map((place) => at(x, [...row, ...place])));
  return nd([...index.shape.slice(0, -1), ...rest], data);
}

/** What is put at one place is added. */
function scattered(index: NDArray, updates: NDArray, shape: readonly number[]): NDArray {
  const depth = index.shape.at(-1) as number;
  const width = count(shape.slice(depth));
  const data = new Array<number>(count(shape)).fill(0);
  for (const [r, row] of rowsOf(index).entries()) {
    const to = ravel(row, shape.slice(0, depth)) * width;
    for (let k = 0; k < width; k++) data[to + k] = data[to + k]! + updates.data[r * width + k]!;
  }
  return nd(shape, data);
}

function coordinateSpecs(): [OpSpec, OpSpec] {
  const draws: readonly { shape: readonly number[]; lead: readonly number[]; depth: number }[] = [
    { shape: [5], lead: [4], depth: 1 },
    { shape: [3, 4], lead: [6], depth: 2 },
    { shape: [3, 4], lead: [2, 2], depth: 1 },
    { shape: [2, 3, 4], lead: [5], depth: 2 },
  ];
  const coordinates = (r: Random, shape: readonly number[], lead: readonly number[], depth: number): NDArray =>
    build([...lead, depth], (index) => Math.floor(r() * shape[index.at(-1) as number]!));
  return [
    spec<2>({
      name: 'gatherNd',
      dtypes: numeric,
      inputDTypes: { 1: 'int32' },
      instances: draws.map(({ shape, lead, depth }) => ({
        label: `[${shape}] by [${lead}] of ${depth}`,
        small: true,
        draw: (r) => [sample(r, shape, whole), coordinates(r, shape, lead, depth)],
      })),
      run: ([x, i]) => pg.gatherNd(x, i),
      oracle: ([x, index]) => gathered(x, index),
      gradient: { of: [0], order: 2 },
    }),
    spec<2>({
      name: 'scatterNd',
      dtypes: numeric,
      inputDTypes: { 0: 'int32' },
      instances: draws.map(({ shape, lead, depth }) => ({
        label: `[${lead}] of ${depth} into [${shape}]`,
        small: true,
        options: { shape },
        draw: (r) => [coordinates(r, shape, lead, depth), sample(r, [...lead, ...shape.slice(depth)], whole)],
      })),
      run: ([i, u], o) => pg.scatterNd(i, u, o.shape as number[]),
      oracle: ([index, updates], o) => scattered(index, updates, o.shape as number[]),
      gradient: { of: [1], order: 2 },
    }),
  ];
}

function gatherNd(pool: Pool): Made | null {
  const x = pool.pick((v) => v.shape.length > 0 && v.shape.length < 7 && count(v.shape) > 0);
  if (x === null) return null;
  const depth = pool.c.between(1, Math.min(3, x.shape.length));
  const least = Math.min(...x.shape.slice(0, depth));
  const rows = pool.c.pick([3, 1, 0]);
  const index = pool.indices([rows, depth], 0, least - 1);
  return {
    args: [ref(x), ref(index)],
    dtype: x.dtype,
    formula: (a, i) => gathered(a, i),
  };
}

function scatterNd(pool: Pool): Made | null {
  const updates = pool.pick((v) => v.shape.length > 0 && v.shape.length < 6 && isNumber(v) && small(v));
  if (updates === null) return null;
  const depth = pool.c.between(1, 2);
  const rest = updates.shape.slice(1);
  const shape = [...Array.from({ length: depth }, () => pool.c.pick([3, 2, 5])), ...rest];
  const rows = updates.shape[0]!;
  const index = pool.indices([rows, depth], 0, Math.min(...shape.slice(0, depth)) - 1);
  return {
    args: [ref(index), ref(updates), shape],
    dtype: updates.dtype,
    formula: (i, u) => scattered(i, u, shape),
    ...sums(updates.dtype),
  };
}

const [gatherSpec, scatterSpec] = coordinateSpecs();

export const coordinateRows: readonly OperationRow[] = [
  { name: 'gatherNd', specs: [gatherSpec], calls: smooth(gatherNd) },
  { name: 'scatterNd', specs: [scatterSpec], calls: smooth(scatterNd) },
];
