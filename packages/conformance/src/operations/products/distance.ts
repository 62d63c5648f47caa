/** Lengths, angles and distances of vectors, by their definitions written out, and the kernel of distances. */
import * as pg from '@polygrad/core';
import { radialBasis } from '../../oracle/attention.ts';
import { alongLines } from '../../oracle/lines.ts';
import { broadcastTo, count, type NDArray, reduce, reshape, zip } from '../../oracle/ndarray.ts';
import { type Random, sample, uniform } from '../../oracle/random.ts';
import { length, normOrders, total } from '../../oracle/sums.ts';
import { away, drawn, operand, parts, sums, vectors } from '../../programs/operands.ts';
import { isFloat, type Made, type Pool, ref } from '../../programs/pool.ts';
import type { Value } from '../../programs/program.ts';
import { floats, type OpSpec } from '../../spec.ts';
import { lineCall } from '../lines/softmax.ts';
import { type OperationRow, smooth } from '../row.ts';

const any = uniform(-1, 1);
type Shape = readonly number[];

/** Of every row of the one to every row of the other. */
function distances(a: NDArray, b: NDArray, p: number): NDArray {
  const difference = zip(
    (x, y) => x - y,
    reshape(a, [...a.shape.slice(0, -1), 1, a.shape.at(-1) as number]),
    reshape(b, [...b.shape.slice(0, -2), 1, ...b.shape.slice(-2)]),
  );
  return reduce(difference, [difference.shape.length - 1], (v) => length(v, p));
}

function cosines(a: NDArray, b: NDArray, along: number): NDArray {
  const product = zip((x, y) => x * y, a, b);
  const rank = product.shape.length;
  const axis = (along + rank) % rank;
  const size = (x: NDArray): NDArray => reduce(broadcastTo(x, product.shape), [axis], (v) => length(v, 2));
  return zip((p, m, n) => p / (m * n), reduce(product, [axis], total), size(a), size(b));
}

/** A line divided by its length. */
const normalized =
  (p: number) =>
  (v: number[]): number[] => {
    const norm = length(v, p);
    return v.map((x) => x / norm);
  };

const cdistSpec: OpSpec<2> = {
  name: 'cdist',
  dtypes: floats,
  instances: normOrders.flatMap((p) =>
    [
      [
        [3, 2],
        [2, 2],
      ],
      [
        [2, 1, 2, 3],
        [2, 3, 3],
      ],
      [
        [33, 5],
        [17, 5],
      ],
    ].map(([l, r]) => ({
      label: `[${l}] to [${r}] p ${p}`,
      small: count(l as Shape) < 20,
      options: { p },
      draw: (random: Random) => [sample(random, l as Shape, any), sample(random, r as Shape, any)],
    })),
  ),
  run: ([a, b], o) => pg.cdist(a, b, { p: o.p as number }),
  oracle: ([a, b], o) => distances(a, b, o.p as number),
  gradient: { of: [0, 1], order: 2 },
};

const normalizeSpec: OpSpec<1> = {
  name: 'normalize',
  dtypes: floats,
  instances: [...normOrders, -1, -2.5, Number.NEGATIVE_INFINITY].flatMap((p) =>
    [
      { shape: [5], axis: 0 },
      { shape: [3, 4], axis: 1 },
      { shape: [2, 3, 2], axis: 0 },
    ].map(({ shape, axis }) => ({
      label: `[${shape}] along ${axis} p ${p}`,
      small: true,
      options: { p, axis },
      draw: (r: Random) => [sample(r, shape, any)],
    })),
  ),
  run: ([x], o) => pg.normalize(x, o),
  oracle: ([x], o) => alongLines(x, o.axis as number, normalized(o.p as number)),
  gradient: { of: [0], order: 2 },
};

const cosineSpec: OpSpec<2> = {
  name: 'cosineSimilarity',
  dtypes: floats,
  instances: [
    { a: [4], b: [4], axis: 0 },
    { a: [2, 3], b: [2, 3], axis: 1 },
    { a: [2, 3, 2], b: [3, 1], axis: 1 },
    { a: [2, 1], b: [2, 3], axis: -1 },
  ].map(({ a, b, axis }) => ({
    label: `[${a}] and [${b}] along ${axis}`,
    // Stretched along the axis, a vector has one direction whatever its component: its gradient is 0 but for rounding.
    small: axis >= 0,
    options: { axis },
    draw: (r: Random) => [sample(r, a, any), sample(r, b, any)],
  })),
  run: ([a, b], o) => pg.cosineSimilarity(a, b, { axis: o.axis as number }),
  oracle: ([a, b], o) => cosines(a, b, o.axis as number),
  gradient: { of: [0, 1], order: 2 },
};

const rbfSpec: OpSpec<2> = {
  name: 'rbfKernel',
  dtypes: floats,
  instances: [
    { x: [1, 1], y: [1, 1] },
    { x: [3, 2], y: [4, 2], gamma: 0.3 },
    { x: [2, 3, 2], y: [1, 2, 2], gamma: 1.5 },
    { x: [2, 3, 2], y: [4, 2] },
    { x: [0, 2], y: [3, 2] },
    { x: [33, 17], y: [29, 17], gamma: 0.1 },
  ].map(({ x, y, ...options }) => ({
    label: `[${x}] [${y}] ${JSON.stringify(options)}`,
    small: count(x) > 0 && count(x) < 20,
    options,
    draw: (r: Random) => [sample(r, x, any), sample(r, y, any)],
  })),
  run: ([x, y], o) => pg.rbfKernel(x, y, o as { gamma?: number }),
  oracle: ([x, y], o) => radialBasis(x, y, (o.gamma as number | undefined) ?? 1 / (x.shape.at(-1) as number)),
  gradient: { of: [0, 1], order: 2 },
};

function cdist(pool: Pool): Made | null {
  const a = operand(pool, 2, 2, (v) => isFloat(v.dtype) && v.data.length < 200);
  if (a === null) return null;
  const b = drawn(pool, a.dtype, [pool.c.pick([3, 1]), a.shape[1]!]);
  return {
    args: [ref(a), ref(b), { p: 1 }],
    dtype: a.dtype,
    formula: (x, y) => distances(x, y, 1),
    ...sums(a.dtype),
  };
}

function cosineSimilarity(pool: Pool): Made | null {
  const x = vectors(pool, 1, 4, away);
  if (x === null) return null;
  const y = parts(pool, x.dtype, x.shape);
  const [axis, written] = pool.axis(x.shape.length);
  return {
    args: [ref(x), ref(y), { axis: written }],
    dtype: x.dtype,
    formula: (a, b) => cosines(a, b, axis),
    ...sums(x.dtype),
  };
}

function rbfKernel(pool: Pool): Made | null {
  const x = vectors(pool, 2, 2, (v) => v.data.length < 300);
  if (x === null) return null;
  const y = drawn(pool, x.dtype, [pool.c.pick([3, 1, 5]), x.shape[1]!]);
  return {
    args: [ref(x), ref(y), { gamma: 0.25 }],
    dtype: x.dtype,
    formula: (a, b) => radialBasis(a, b, 0.25),
    ...sums(x.dtype),
  };
}

const noZero = (v: Value): boolean => v.data.every((x) => Math.abs(x) > 1e-3);

export const distanceRows: readonly OperationRow[] = [
  { name: 'cdist', specs: [cdistSpec], calls: smooth(cdist) },
  { name: 'normalize', specs: [normalizeSpec], calls: smooth(lineCall(normalized(2), { fits: noZero })) },
  { name: 'cosineSimilarity', specs: [cosineSpec], calls: smooth(cosineSimilarity) },
  {
    name: 'rbfKernel',
    specs: [rbfSpec],
    calls: smooth(rbfKernel),
    notes: { goldens: 'PyTorch 1.13 has none' },
  },
];
