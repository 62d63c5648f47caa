/** Products other than the matrix product: of vectors, of blocks, over axes that are named. */
import * as pg from '@polygrad/core';
import { einsum, matmul } from '../../oracle/linear.ts';
import { at, broadcastTo, build, count, type NDArray, reshape, zip } from '../../oracle/ndarray.ts';
import { drawn, operand, plain, sums } from '../../programs/operands.ts';
import { isFloat, type Made, type Pool, ref } from '../../programs/pool.ts';
import { type OperationRow, smooth } from '../row.ts';
import { ofFactors, productSpecs } from './row.ts';

function kron(a: NDArray, b: NDArray): NDArray {
  const rank = Math.max(a.shape.length, b.shape.length);
  const lifted = (x: NDArray): NDArray => reshape(x, [...new Array(rank - x.shape.length).fill(1), ...x.shape]);
  const [x, y] = [lifted(a), lifted(b)];
  return build(
    x.shape.map((n, i) => n * y.shape[i]!),
    (index) =>
      at(
        x,
        index.map((v, i) => Math.floor(v / y.shape[i]!)),
      ) *
      at(
        y,
        index.map((v, i) => v % y.shape[i]!),
      ),
  );
}

function cross(a: NDArray, b: NDArray, axis: number): NDArray {
  const { shape } = zip((p) => p, a, b);
  const [x, y] = [broadcastTo(a, shape), broadcastTo(b, shape)];
  const along = (index: number[], by: number): number[] => index.map((v, i) => (i === axis ? (v + by) % 3 : v));
  return build(
    shape,
    (index) => at(x, along(index, 1)) * at(y, along(index, 2)) - at(x, along(index, 2)) * at(y, along(index, 1)),
  );
}

function outer(pool: Pool): Made | null {
  const a = operand(pool, 1, 1, (v) => v.data.length < 80);
  const b = a && operand(pool, 1, 1, (v) => v.dtype === a.dtype && v.data.length < 80);
  if (a === null || b === null) return null;
  return {
    args: [ref(a), ref(b)],
    dtype: a.dtype,
    formula: (x, y) => einsum(['i', 'j'], 'ij', [x, y]),
    noise: 'out',
  };
}

function tensordot(pool: Pool): Made | null {
  const a = operand(pool, 1, 4, (v) => isFloat(v.dtype) && v.data.length < 600);
  if (a === null) return null;
  const over = pool.c.between(0, Math.min(2, a.shape.length));
  const shared = a.shape.slice(a.shape.length - over);
  const rest = [pool.c.pick([2, 1, 3])];
  const b = drawn(pool, a.dtype, [...shared, ...rest]);
  const lead = a.shape.slice(0, a.shape.length - over);
  return {
    args: [ref(a), ref(b), over],
    dtype: a.dtype,
    formula: (x, y) =>
      reshape(matmul(reshape(x, [count(lead), count(shared)]), reshape(y, [count(shared), count(rest)])), [
        ...lead,
        ...rest,
      ]),
    ...sums(a.dtype),
  };
}

function crossCall(pool: Pool): Made | null {
  const dtype = operand(pool, 0, 8, (v) => isFloat(v.dtype))?.dtype;
  if (dtype === undefined) return null;
  const a = operand(pool, 2, 2, (v) => v.dtype === dtype && v.shape[0] === 3) ?? drawn(pool, dtype, [3, 4]);
  const b = drawn(pool, a.dtype, a.shape);
  return {
    args: [ref(a), ref(b), 0],
    dtype: a.dtype,
    formula: (x, y) => cross(x, y, 0),
    noise: 'all',
    ordered: false,
  };
}

function bilinearOf(x: NDArray, y: NDArray, weight: NDArray, bias?: NDArray): NDArray {
  const [o, m, n] = weight.shape as [number, number, number];
  return build([...x.shape.slice(0, -1), o], (index) => {
    const [row, k] = [index.slice(0, -1), index[index.length - 1]!];
    let sum = bias === undefined ? 0 : at(bias, [k]);
    for (let i = 0; i < m; i++)
      for (let j = 0; j < n; j++) sum += at(x, [...row, i]) * at(weight, [k, i, j]) * at(y, [...row, j]);
    return sum;
  });
}

function bilinear(pool: Pool): Made | null {
  const x = operand(pool, 1, 3, (v) => plain(v) && v.data.length < 200 && !v.shape.includes(0));
  if (x === null) return null;
  const [m, n, o] = [x.shape.at(-1) as number, pool.c.pick([3, 1]), pool.c.pick([2, 1, 4])];
  const lead = x.shape.slice(0, -1);
  const y = drawn(pool, x.dtype, [...lead, n]);
  const w = drawn(pool, x.dtype, [o, m, n]);
  const bias = pool.c.nat(2) === 0 ? null : drawn(pool, x.dtype, [o]);
  return {
    args: [ref(x), ref(y), ref(w), ...(bias ? [ref(bias)] : [])],
    dtype: x.dtype,
    formula: (p, q, r, b) => bilinearOf(p, q, r, b),
    ...sums(x.dtype),
  };
}

function kronCall(pool: Pool): Made | null {
  const a = operand(pool, 0, 4, (v) => v.data.length < 60);
  const b = a && operand(pool, 0, 4, (v) => v.dtype === a.dtype && v.data.length < 60);
  if (a === null || b === null) return null;
  return {
    args: [ref(a), ref(b)],
    dtype: a.dtype,
    formula: (x, y) => kron(x, y),
    noise: 'out',
  };
}

export const vectorRows: readonly OperationRow[] = [
  {
    name: 'kron',
    specs: productSpecs([
      ofFactors<2>({
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
        run: ([a, b]) => pg.kron(a, b),
        f: ([a, b]) => kron(a, b),
      }),
    ]),
    calls: smooth(kronCall),
  },
  {
    name: 'cross',
    specs: productSpecs([
      ofFactors<2>({
        name: 'cross',
        shapes: [
          [[3], [3]],
          [[2, 3], [3]],
          [
            [2, 1, 3],
            [4, 3],
          ],
        ],
        run: ([a, b]) => pg.cross(a, b),
        f: ([a, b]) => cross(a, b, Math.max(a.shape.length, b.shape.length) - 1),
        terms: () => 2,
      }),
      ofFactors<2>({
        name: 'cross along the first axis',
        shapes: [
          [
            [3, 2],
            [3, 1],
          ],
        ],
        run: ([a, b]) => pg.cross(a, b, 0),
        f: ([a, b]) => cross(a, b, 0),
        terms: () => 2,
      }),
    ]),
    calls: smooth(crossCall),
  },
  {
    name: 'bilinear',
    specs: productSpecs([
      ofFactors<4>({
        name: 'bilinear',
        shapes: [
          [[2, 3], [2, 4], [2, 3, 4], [2]],
          [[3], [2], [4, 3, 2], [4]],
          [[2, 2, 3], [2, 2, 2], [1, 3, 2], [1]],
        ],
        run: ([a, b, w, bias]) => pg.bilinear(a, b, w, bias),
        f: ([a, b, w, bias]) => bilinearOf(a, b, w, bias),
        terms: ([a, b]) => (a.shape.at(-1) as number) * (b.shape.at(-1) as number) + 1,
      }),
    ]),
    calls: smooth(bilinear),
  },
  {
    name: 'outer',
    specs: productSpecs([
      ofFactors<2>({
        name: 'outer',
        shapes: [
          [[3], [4]],
          [[2, 2], [3]],
        ],
        run: ([a, b]) => pg.outer(a, b),
        f: ([a, b]) =>
          einsum(
            ['a', 'b'],
            'ab',
            [a, b].map((x) => reshape(x, [count(x.shape)])),
          ),
      }),
    ]),
    calls: smooth(outer),
  },
  {
    name: 'tensordot',
    specs: productSpecs([
      ofFactors<2>({
        name: 'tensordot',
        shapes: [
          [
            [2, 3, 4],
            [4, 3, 2],
          ],
        ],
        run: ([a, b]) =>
          pg.tensordot(a, b, [
            [1, -1],
            [1, 0],
          ]),
        f: ([a, b]) => einsum(['ayz', 'zyb'], 'ab', [a, b]),
        terms: () => 12,
      }),
    ]),
    calls: smooth(tensordot),
  },
];
