/** Places in sorted lines, and how many elements lie between edges. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { alongLines } from '../../oracle/lines.ts';
import { at, build, map, type NDArray } from '../../oracle/ndarray.ts';
import { integer, type Random, sample } from '../../oracle/random.ts';
import type { Instance, OpSpec, Options } from '../../spec.ts';
import { any, floats } from './lines.ts';

function sortedSample(r: Random, shape: readonly number[], draw: (r: Random) => number): NDArray {
  return alongLines(sample(r, shape, draw), shape.length - 1, (line) => [...line].sort((a, b) => a - b));
}

/** How many of the sorted are before the value. */
function placeOf(sorted: number[], value: number, right: boolean): number {
  return sorted.filter((s) => (right ? s <= value : s < value)).length;
}

export function searchSpecs(): OpSpec[] {
  const rights: readonly Options[] = [{}, { right: true }];
  const both = (label: string, draw: (r: Random) => NDArray[]): Instance[] =>
    rights.map((o) => ({ label: `${label}${o.right ? ' right' : ''}`, options: o, draw }));
  const whole = integer(-4, 4);
  return [
    {
      name: 'searchSorted',
      dtypes: ['float32', 'float64', 'int32'],
      result: 'int32',
      instances: [
        ...both('[7] for [3,4]', (r) => [sortedSample(r, [7], whole), sample(r, [3, 4], whole)]),
        ...both('[1] for [5]', (r) => [sortedSample(r, [1], whole), sample(r, [5], whole)]),
        ...both('[0] for [5]', (r) => [sortedSample(r, [0], whole), sample(r, [5], whole)]),
        ...both('[64] for []', (r) => [sortedSample(r, [64], integer(-30, 30)), sample(r, [], whole)]),
        ...both('[100] for [33]', (r) => [sortedSample(r, [100], integer(-30, 30)), sample(r, [33], integer(-35, 35))]),
      ],
      run: ([s, v], o) => pg.searchSorted(s as Tensor, v as Tensor, o),
      oracle: ([s, v], o) => map(v as NDArray, (x) => placeOf([...(s as NDArray).data], x, o.right === true)),
    },
    {
      name: 'searchSorted line by line',
      dtypes: ['float32', 'float64', 'int32'],
      result: 'int32',
      instances: both('[2,3,9] for [2,3,4]', (r) => [sortedSample(r, [2, 3, 9], whole), sample(r, [2, 3, 4], whole)]),
      run: ([s, v], o) => pg.searchSorted(s as Tensor, v as Tensor, o),
      oracle: ([s, v], o) =>
        build([2, 3, 4], ([a, b, c]) => {
          const [i, j, k] = [a as number, b as number, c as number];
          const line = Array.from({ length: 9 }, (_, t) => at(s as NDArray, [i, j, t]));
          return placeOf(line, at(v as NDArray, [i, j, k]), o.right === true);
        }),
    },
    {
      name: 'bucketize',
      dtypes: ['float32', 'float64', 'int32'],
      result: 'int32',
      instances: both('[3,5] by [4]', (r) => [sample(r, [3, 5], whole), sortedSample(r, [4], whole)]),
      run: ([v, s], o) => pg.bucketize(v as Tensor, s as Tensor, o),
      oracle: ([v, s], o) => map(v as NDArray, (x) => placeOf([...(s as NDArray).data], x, o.right === true)),
    },
    {
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
      run: ([x], o) => pg.histogram(x as Tensor, o),
      oracle: ([x], o) => {
        const [low, high] = o.range as [number, number];
        const bins = o.bins as number;
        const edges = Array.from({ length: bins + 1 }, (_, i) => low + ((high - low) * i) / bins);
        return build([bins], ([i]) => {
          const [from, to] = [edges[i as number] as number, edges[(i as number) + 1] as number];
          return (x as NDArray).data.filter((v) => v >= from && (v < to || (i === bins - 1 && v === to))).length;
        });
      },
    },
    {
      name: 'histogram with weights',
      dtypes: floats,
      instances: [
        {
          label: '[12] between given edges',
          small: true,
          draw: (r) => [sample(r, [12], integer(-3, 3)), sortedSample(r, [5], integer(-3, 3)), sample(r, [12], any)],
        },
      ],
      run: ([x, edges, w]) => pg.histogram(x as Tensor, { bins: edges as Tensor, weights: w as Tensor }),
      oracle: ([x, edges, w]) =>
        build([4], ([i]) => {
          const [from, to] = [at(edges as NDArray, [i as number]), at(edges as NDArray, [(i as number) + 1])];
          return (x as NDArray).data.reduce((sum, v, k) => {
            const last = i === 3 && v === to;
            return sum + (v >= from && (v < to || last) ? ((w as NDArray).data[k] as number) : 0);
          }, 0);
        }),
      gradient: { of: [2], order: 2 },
      terms: () => 12,
    },
  ];
}
