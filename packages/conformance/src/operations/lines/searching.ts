/** Places in sorted lines, and how many elements lie between edges. */
import * as pg from '@polygrad/core';
import { alongLines } from '../../oracle/lines.ts';
import { at, build, count, map, type NDArray } from '../../oracle/ndarray.ts';
import { integer, type Random, sample } from '../../oracle/random.ts';
import { isFloat, type Made, type Pool, ref } from '../../programs/pool.ts';
import { floats, type Instance, type Options, spec } from '../../spec.ts';
import type { OperationRow } from '../row.ts';
import { any } from './lines.ts';

function sortedSample(r: Random, shape: readonly number[], draw: (r: Random) => number): NDArray {
  return alongLines(sample(r, shape, draw), shape.length - 1, (line) => [...line].sort((a, b) => a - b));
}

/** How many of the sorted are before the value; all are before NaN. */
function placeOf(sorted: readonly number[], value: number, right: boolean): number {
  return sorted.filter((s) => Number.isNaN(value) || (right ? s <= value : s < value)).length;
}

/** How many numbers lie between even edges; those on the last one count. */
function countsOf(x: NDArray, bins: number, low: number, high: number): NDArray {
  const edges = Array.from({ length: bins + 1 }, (_, i) => low + ((high - low) * i) / bins);
  return build([bins], ([i]) => {
    const [from, to] = [edges[i]!, edges[i + 1]!];
    return x.data.filter((v) => v >= from && (v < to || (i === bins - 1 && v === to))).length;
  });
}

const rights: readonly Options[] = [{}, { right: true }];
const both = (label: string, draw: (r: Random) => [NDArray, NDArray]): Instance<2>[] =>
  rights.map((o) => ({ label: `${label}${o.right ? ' right' : ''}`, options: o, draw }));
const whole = integer(-4, 4);

function searchCall(pool: Pool): Made | null {
  const v = pool.pick((y) => isFloat(y.dtype) && y.dtype !== 'float16' && y.dtype !== 'bfloat16');
  if (v === null) return null;
  const sorted = pool.input(v.dtype, [4], [-1.5, 0, 0, 1.25]);
  const right = pool.c.nat(2) === 1;
  return {
    args: [ref(sorted), ref(v), { right }],
    dtype: 'int32',
    formula: (s, x) => map(x, (y) => placeOf(s.data, y, right)),
  };
}

/** Counts between even edges; elements are eighths and edges sixteenths, so that none lies on an edge. */
function histogram(pool: Pool): Made | null {
  const x = pool.pick((v) => v.dtype === 'float32' || v.dtype === 'float64' || v.dtype === 'int32');
  if (x === null) return null;
  const bins = pool.c.pick([4, 1, 8, 32]);
  const [low, high] = [-2.0625, 1.9375];
  const whole = map(x, (v) =>
    Math.abs(((v - low) / (high - low)) * bins - Math.round(((v - low) / (high - low)) * bins)),
  );
  if (whole.data.some((d) => d < 1e-3)) return null;
  return {
    args: [ref(x), { bins, range: [low, high] }],
    dtype: isFloat(x.dtype) ? x.dtype : 'float32',
    formula: (a) => countsOf(a, bins, low, high),
  };
}

function bucketize(pool: Pool): Made | null {
  const x = pool.pick((v) => v.dtype !== 'bool' && count(v.shape) > 0);
  if (x === null) return null;
  const right = pool.c.nat(2) === 0;
  const n = pool.c.pick([3, 1, 17, 0]);
  const edges = pool.input(
    x.dtype,
    [n],
    Array.from({ length: n }, (_, i) => Math.floor(i / 2)),
  );
  return {
    args: [ref(x), ref(edges), ...(right ? [{ right }] : [])],
    dtype: 'int32',
    formula: (a, e) => map(a, (v) => placeOf(e.data, v, right)),
  };
}

export const searchingRows: readonly OperationRow[] = [
  {
    name: 'searchSorted',
    specs: [
      spec<2>({
        name: 'searchSorted',
        dtypes: ['float32', 'float64', 'int32'],
        result: 'int32',
        instances: [
          ...both('[7] for [3,4]', (r) => [sortedSample(r, [7], whole), sample(r, [3, 4], whole)]),
          ...both('[1] for [5]', (r) => [sortedSample(r, [1], whole), sample(r, [5], whole)]),
          ...both('[0] for [5]', (r) => [sortedSample(r, [0], whole), sample(r, [5], whole)]),
          ...both('[64] for []', (r) => [sortedSample(r, [64], integer(-30, 30)), sample(r, [], whole)]),
          ...both('[100] for [33]', (r) => [
            sortedSample(r, [100], integer(-30, 30)),
            sample(r, [33], integer(-35, 35)),
          ]),
        ],
        run: ([s, v], o) => pg.searchSorted(s, v, o),
        oracle: ([s, v], o) => map(v, (x) => placeOf(s.data, x, o.right === true)),
      }),
      spec<2>({
        name: 'searchSorted line by line',
        dtypes: ['float32', 'float64', 'int32'],
        result: 'int32',
        instances: both('[2,3,9] for [2,3,4]', (r) => [sortedSample(r, [2, 3, 9], whole), sample(r, [2, 3, 4], whole)]),
        run: ([s, v], o) => pg.searchSorted(s, v, o),
        oracle: ([s, v], o) =>
          build([2, 3, 4], ([a, b, c]) => {
            const [i, j, k] = [a, b, c];
            const line = Array.from({ length: 9 }, (_, t) => at(s, [i, j, t]));
            return placeOf(line, at(v, [i, j, k]), o.right === true);
          }),
      }),
    ],
    calls: [{ make: searchCall }],
  },
  {
    name: 'bucketize',
    specs: [
      spec<2>({
        name: 'bucketize',
        dtypes: ['float32', 'float64', 'int32'],
        result: 'int32',
        instances: both('[3,5] by [4]', (r) => [sample(r, [3, 5], whole), sortedSample(r, [4], whole)]),
        run: ([v, s], o) => pg.bucketize(v, s, o),
        oracle: ([v, s], o) => map(v, (x) => placeOf(s.data, x, o.right === true)),
      }),
    ],
    calls: [{ make: bucketize }],
  },
  {
    name: 'histogram',
    specs: [
      spec<1>({
        name: 'histogram',
        dtypes: floats,
        instances: [
          { label: '[40] in 7', options: { bins: 7, range: [-1.5, 1] }, draw: (r) => [sample(r, [40], any)] },
          {
            label: '[5,8] in 4, on the edges',
            options: { bins: 4, range: [-2, 2] },
            draw: (r) => [sample(r, [5, 8], integer(-3, 3))],
          },
        ],
        run: ([x], o) => pg.histogram(x, o),
        oracle: ([x], o) => countsOf(x, o.bins as number, ...(o.range as [number, number])),
      }),
      spec<3>({
        name: 'histogram with weights',
        dtypes: floats,
        instances: [
          {
            label: '[12] between given edges',
            small: true,
            draw: (r) => [sample(r, [12], integer(-3, 3)), sortedSample(r, [5], integer(-3, 3)), sample(r, [12], any)],
          },
        ],
        run: ([x, edges, w]) => pg.histogram(x, { bins: edges, weights: w }),
        oracle: ([x, edges, w]) =>
          build([4], ([i]) => {
            const [from, to] = [at(edges, [i]), at(edges, [i + 1])];
            return x.data.reduce((sum, v, k) => {
              const last = i === 3 && v === to;
              return sum + (v >= from && (v < to || last) ? w.data[k]! : 0);
            }, 0);
          }),
        gradient: { of: [2], order: 2 },
        terms: () => 12,
      }),
    ],
    calls: [{ make: histogram }],
  },
];
