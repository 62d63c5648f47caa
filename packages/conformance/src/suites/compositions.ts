/** Several operations in one kernel: a layer, reductions of reductions, counts that choose an element. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { matmul } from '../oracle/linear.ts';
import { at, build, count, map, type NDArray, reduce, zip } from '../oracle/ndarray.ts';
import { type Random, sample, uniform } from '../oracle/random.ts';
import { total } from '../oracle/sums.ts';
import { floats, type OpSpec, spec } from '../spec.ts';

const positives = (v: readonly number[]): number => v.filter((x) => x > 0).length;
const largest = (v: readonly number[]): number => Math.max(...v);

/** The exponentials of what is reduced over the axis before the last, by their norm along the last. */
function rowByNorm(name: string, run: (x: Tensor) => Tensor, fold: (v: readonly number[]) => number): OpSpec<1> {
  return {
    name: `rows of ${name} by their norm`,
    dtypes: floats,
    more: [],
    instances: [
      [3, 4],
      [2, 33],
      [8, 40],
      [40, 33],
      [15, 130],
      [150, 5],
      [3, 8, 40],
    ].map((shape) => ({
      label: `[${shape}]`,
      small: count(shape) <= 24,
      draw: (r: Random) => [sample(r, shape, uniform(-1, 1))],
    })),
    run: ([x]) => {
      const row = pg.exp(pg.mul(run(x), 0.1));
      return pg.div(row, pg.norm(row, { axis: -1, keepDims: true }));
    },
    oracle: ([x]) => {
      const { shape } = x;
      return byNorm(map(reduce(x, [shape.length - 2], fold), (v) => Math.exp(v * 0.1)));
    },
    terms: ([x]) => count(x.shape),
    gradient: { of: [0], order: 2 },
  };
}

function byNorm(row: NDArray): NDArray {
  const last = row.shape.length - 1;
  return zip(
    (x, n) => x / n,
    row,
    reduce(row, [last], (v) => Math.hypot(...v), true),
  );
}

const layer: OpSpec<3> = {
  name: 'linear with bias and relu',
  dtypes: floats,
  instances: [
    [2, 3, 4],
    [33, 17, 65],
  ].map(([m, k, n]) => ({
    label: `${m}x${k}x${n}`,
    small: (m as number) < 5,
    draw: (r: Random) => [
      sample(r, [m as number, k as number], uniform(-1, 1)),
      sample(r, [k as number, n as number], uniform(-1, 1)),
      sample(r, [n as number], uniform(-1, 1)),
    ],
  })),
  run: ([x, w, b]) => pg.relu(pg.add(pg.matmul(x, w), b)),
  oracle: ([x, w, b]) => zip((p, q) => Math.max(p + q, 0), matmul(x, w), b),
  terms: ([x]) => x.shape[1]! + 1,
  gradient: { of: [0, 1, 2], order: 2 },
};

export function compositionSpecs(): OpSpec[] {
  return [
    layer,
    rowByNorm('sums', (x) => pg.sum(x, -2), total),
    rowByNorm('maxima', (x) => pg.max(x, -2), largest),
    spec<2>({
      name: 'counts as indices',
      dtypes: floats,
      more: [],
      instances: [
        [2, 3],
        [6, 40],
        [3, 300],
        [2, 100],
        [40, 33],
      ].map((shape) => ({
        label: `[${shape}]`,
        draw: (r: Random) => [sample(r, shape, uniform(-1, 1)), sample(r, [shape[1]!, 2], uniform(-1, 1))],
      })),
      run: ([x, table]) => {
        const counts = pg.sum(pg.cast(pg.less(0, x), 'int32'), 1);
        const rows = pg.take(table, pg.sub(counts, 1), { axis: 0 });
        return pg.add(rows, pg.max(x, { axis: 1, keepDims: true }));
      },
      oracle: ([x, table]) => {
        const [n, top] = [positives, largest].map((f) => reduce(x, [1], f)) as [NDArray, NDArray];
        const rows = x.shape[0]!;
        const { shape } = table;
        // What is before the first is the last.
        const row = (i: number): number => (at(n, [i]) - 1 + shape[0]!) % shape[0]!;
        return build([rows, 2], ([i, j]) => at(table, [row(i), j]) + at(top, [i]));
      },
    }),
  ];
}
