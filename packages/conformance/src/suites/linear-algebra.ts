/** Products of vectors and matrices, by their definitions written out. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { einsum } from '../oracle/einsum.ts';
import { matmul } from '../oracle/linear.ts';
import { at, broadcastTo, build, count, type NDArray, permute, reshape, zip } from '../oracle/ndarray.ts';
import type { OpSpec } from '../spec.ts';
import { type Product, productSpecs } from './products.ts';

function kron(a: NDArray, b: NDArray): NDArray {
  const rank = Math.max(a.shape.length, b.shape.length);
  const lifted = (x: NDArray): NDArray => reshape(x, [...new Array(rank - x.shape.length).fill(1), ...x.shape]);
  const [x, y] = [lifted(a), lifted(b)];
  return build(
    x.shape.map((n, i) => n * (y.shape[i] as number)),
    (index) =>
      at(
        x,
        index.map((v, i) => Math.floor(v / (y.shape[i] as number))),
      ) *
      at(
        y,
        index.map((v, i) => v % (y.shape[i] as number)),
      ),
  );
}

function cross(a: NDArray, b: NDArray, axis: number): NDArray {
  const { shape } = zip((p) => p as number, a, b);
  const [x, y] = [broadcastTo(a, shape), broadcastTo(b, shape)];
  const along = (index: number[], by: number): number[] => index.map((v, i) => (i === axis ? (v + by) % 3 : v));
  return build(
    shape,
    (index) => at(x, along(index, 1)) * at(y, along(index, 2)) - at(x, along(index, 2)) * at(y, along(index, 1)),
  );
}

const products: readonly Product[] = [
  {
    name: 'kron',
    shapes: [
      [[3], [2]],
      [
        [2, 3],
        [3, 2],
      ],
      [[2], [2, 1, 3]],
      [[], [3]],
    ],
    run: ([a, b]) => pg.kron(a as Tensor, b as Tensor),
    f: ([a, b]) => kron(a as NDArray, b as NDArray),
  },
  {
    name: 'cross',
    shapes: [
      [[3], [3]],
      [[2, 3], [3]],
      [
        [2, 1, 3],
        [4, 3],
      ],
    ],
    run: ([a, b]) => pg.cross(a as Tensor, b as Tensor),
    f: ([a, b]) =>
      cross(a as NDArray, b as NDArray, Math.max((a as NDArray).shape.length, (b as NDArray).shape.length) - 1),
    terms: () => 2,
  },
  {
    name: 'cross along the first axis',
    shapes: [
      [
        [3, 2],
        [3, 1],
      ],
    ],
    run: ([a, b]) => pg.cross(a as Tensor, b as Tensor, 0),
    f: ([a, b]) => cross(a as NDArray, b as NDArray, 0),
    terms: () => 2,
  },
  {
    name: 'bilinear',
    shapes: [
      [[2, 3], [2, 4], [2, 3, 4], [2]],
      [[3], [2], [4, 3, 2], [4]],
      [[2, 2, 3], [2, 2, 2], [1, 3, 2], [1]],
    ],
    run: ([a, b, w, bias]) => pg.bilinear(a as Tensor, b as Tensor, w as Tensor, bias),
    f: ([a, b, w, bias]) => {
      const [x, y, weight, c] = [a, b, w, bias] as [NDArray, NDArray, NDArray, NDArray];
      return build([...x.shape.slice(0, -1), weight.shape[0] as number], (index) => {
        const [row, o] = [index.slice(0, -1), index[index.length - 1] as number];
        let sum = at(c, [o]);
        for (let i = 0; i < (weight.shape[1] as number); i++)
          for (let j = 0; j < (weight.shape[2] as number); j++)
            sum += at(x, [...row, i]) * at(weight, [o, i, j]) * at(y, [...row, j]);
        return sum;
      });
    },
    terms: ([a, b]) => ((a as NDArray).shape.at(-1) as number) * ((b as NDArray).shape.at(-1) as number) + 1,
  },
  {
    name: 'gemv',
    shapes: [
      [[3, 4], [4], [3]],
      [[33, 17], [17], [33]],
    ],
    run: ([a, x, y]) => pg.gemv(a as Tensor, x as Tensor, { alpha: 2, beta: -0.5, y: y as Tensor }),
    f: ([a, x, y]) =>
      zip((p, q) => 2 * (p as number) - 0.5 * (q as number), matmul(a as NDArray, x as NDArray), y as NDArray),
    terms: ([, x]) => 2 * count((x as NDArray).shape) + 2,
  },
  {
    name: 'gemv of a transpose',
    shapes: [[[4, 3], [4]]],
    run: ([a, x]) => pg.gemv(a as Tensor, x as Tensor, { transA: true }),
    f: ([a, x]) => matmul(permute(a as NDArray, [1, 0]), x as NDArray),
    terms: () => 4,
  },
  {
    name: 'dot',
    shapes: [
      [[5], [5]],
      [[2, 3], [3]],
      [
        [2, 3],
        [3, 2],
      ],
      [
        [2, 3],
        [2, 3, 2],
      ],
      [[], [3]],
    ],
    run: ([a, b]) => pg.dot(a as Tensor, b as Tensor),
    f: ([a, b]) => {
      const [x, y] = [a as NDArray, b as NDArray];
      const letters = 'abcdef';
      if (x.shape.length === 0) return zip((p, q) => (p as number) * (q as number), x, y);
      const left = `${letters.slice(0, x.shape.length - 1)}z`;
      const right = [...'pqrs'.slice(0, y.shape.length)];
      right[Math.max(0, y.shape.length - 2)] = 'z';
      return einsum([left, right.join('')], (left + right.join('')).replaceAll('z', ''), [x, y]);
    },
    terms: () => 6,
  },
  {
    name: 'inner',
    shapes: [
      [[5], [5]],
      [
        [2, 3],
        [4, 3],
      ],
    ],
    run: ([a, b]) => pg.inner(a as Tensor, b as Tensor),
    f: ([a, b]) =>
      (a as NDArray).shape.length === 1
        ? einsum(['z', 'z'], '', [a, b] as NDArray[])
        : einsum(['az', 'bz'], 'ab', [a, b] as NDArray[]),
    terms: () => 5,
  },
  {
    name: 'vdot',
    shapes: [
      [
        [2, 3],
        [3, 2],
      ],
    ],
    run: ([a, b]) => pg.vdot(a as Tensor, b as Tensor),
    f: ([a, b]) => einsum(['z', 'z'], '', [reshape(a as NDArray, [6]), reshape(b as NDArray, [6])]),
    terms: () => 6,
  },
  {
    name: 'outer',
    shapes: [
      [[3], [4]],
      [[2, 2], [3]],
    ],
    run: ([a, b]) => pg.outer(a as Tensor, b as Tensor),
    f: ([a, b]) =>
      einsum(
        ['a', 'b'],
        'ab',
        [a, b].map((x) => reshape(x as NDArray, [count((x as NDArray).shape)])),
      ),
  },
  {
    name: 'tensordot',
    shapes: [
      [
        [2, 3, 4],
        [4, 3, 2],
      ],
    ],
    run: ([a, b]) =>
      pg.tensordot(a as Tensor, b as Tensor, [
        [1, -1],
        [1, 0],
      ]),
    f: ([a, b]) => einsum(['ayz', 'zyb'], 'ab', [a, b] as NDArray[]),
    terms: () => 12,
  },
];

export function linearAlgebraSpecs(): OpSpec[] {
  return productSpecs(products);
}
