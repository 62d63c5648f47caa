/** Lengths, angles and distances of vectors, by their definitions written out. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { broadcastTo, count, map, type NDArray, reduce, reshape, zip } from '../oracle/ndarray.ts';
import { type Random, sample, uniform } from '../oracle/random.ts';
import type { OpSpec } from '../spec.ts';
import { total } from '../oracle/sums.ts';

const floats: readonly DType[] = ['float32', 'float64'];
const any = uniform(-1, 1);
type Shape = readonly number[];

const orders = [2, 1, Number.POSITIVE_INFINITY, 3, 1.5] as const;

function length(v: readonly number[], p: number): number {
  const sizes = v.map(Math.abs);
  if (p === Number.POSITIVE_INFINITY) return Math.max(0, ...sizes);
  if (p === Number.NEGATIVE_INFINITY) return Math.min(...sizes);
  return total(sizes.map((x) => x ** p)) ** (1 / p);
}

export function distanceSpecs(): OpSpec[] {
  return [
    {
      name: 'cdist',
      dtypes: floats,
      instances: orders.flatMap((p) =>
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
      run: ([a, b], o) => pg.cdist(a as Tensor, b as Tensor, { p: o.p as number }),
      oracle: ([a, b], o) => {
        const difference = zip(
          (x, y) => (x as number) - (y as number),
          reshape(a as NDArray, [...(a as NDArray).shape.slice(0, -1), 1, (a as NDArray).shape.at(-1) as number]),
          reshape(b as NDArray, [...(b as NDArray).shape.slice(0, -2), 1, ...(b as NDArray).shape.slice(-2)]),
        );
        return reduce(difference, [difference.shape.length - 1], (v) => length(v, o.p as number));
      },
      gradient: { of: [0, 1], order: 2 },
    },
    {
      name: 'normalize',
      dtypes: floats,
      instances: [...orders, -1, -2.5, Number.NEGATIVE_INFINITY].flatMap((p) =>
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
      run: ([x], o) => pg.normalize(x as Tensor, o),
      oracle: ([x], o) =>
        zip(
          (v, n) => (v as number) / (n as number),
          x as NDArray,
          reduce(x as NDArray, [o.axis as number], (v) => length(v, o.p as number), true),
        ),
      gradient: { of: [0], order: 2 },
    },
    {
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
      run: ([a, b], o) => pg.cosineSimilarity(a as Tensor, b as Tensor, { axis: o.axis as number }),
      oracle: ([a, b], o) => {
        const product = zip((x, y) => (x as number) * (y as number), a as NDArray, b as NDArray);
        const rank = product.shape.length;
        const axis = ((o.axis as number) + rank) % rank;
        const size = (x: NDArray): NDArray => reduce(broadcastTo(x, product.shape), [axis], (v) => length(v, 2));
        return zip(
          (p, m, n) => (p as number) / ((m as number) * (n as number)),
          reduce(product, [axis], total),
          size(a as NDArray),
          size(b as NDArray),
        );
      },
      gradient: { of: [0, 1], order: 2 },
    },
    {
      name: 'norm of an order',
      dtypes: floats,
      instances: [...orders, Number.NEGATIVE_INFINITY, 0.5, -1, 0].map((p) => ({
        label: `p ${p}`,
        small: p !== 0,
        options: { p },
        draw: (r: Random) => [map(sample(r, [3, 5], uniform(0.2, 1)), (x) => (r() < 0.5 ? -x : x))],
      })),
      run: ([x], o) => pg.norm(x as Tensor, { p: o.p as number, axis: 1 }),
      oracle: ([x], o) =>
        reduce(x as NDArray, [1], (v) => {
          if (o.p === 0) return v.length;
          if (o.p === Number.NEGATIVE_INFINITY) return Math.min(...v.map(Math.abs));
          return length(v, o.p as number);
        }),
      gradient: { of: [0], order: 2 },
    },
  ];
}
