/** Sorting, positions in sorted order, and the first few of them. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { alongLines } from '../../oracle/lines.ts';
import { count, type NDArray } from '../../oracle/ndarray.ts';
import { integer, type Random, sample } from '../../oracle/random.ts';
import type { Instance, OpSpec, Options } from '../../spec.ts';
import { any, floats, instancesOf } from './lines.ts';

/** Positions in sorted order, equal elements as they lie. */
function orderOf(line: number[], descending: boolean): number[] {
  const sign = descending ? -1 : 1;
  return line.map((_, i) => i).sort((i, j) => sign * ((line[i] as number) - (line[j] as number)) || i - j);
}

const directions: readonly Options[] = [{}, { descending: true }];
const few = integer(-3, 3);

export function sortSpecs(): OpSpec[] {
  const order = ([x]: NDArray[], o: Options): NDArray =>
    alongLines(x as NDArray, o.axis as number, (line) => orderOf(line, o.descending === true));
  const values = ([x]: NDArray[], o: Options): NDArray =>
    alongLines(x as NDArray, o.axis as number, (line) =>
      orderOf(line, o.descending === true).map((i) => line[i] as number),
    );
  return [
    {
      name: 'sort',
      dtypes: floats,
      instances: instancesOf(any, directions),
      run: ([x], o) => pg.sort(x as Tensor, o),
      oracle: values,
      gradient: { of: [0], order: 2 },
    },
    {
      name: 'sort int',
      dtypes: ['int32'],
      instances: instancesOf(integer(-2e9, 2e9), directions),
      run: ([x], o) => pg.sort(x as Tensor, o),
      oracle: values,
    },
    {
      name: 'sort uint and bool',
      dtypes: ['uint32', 'bool'],
      instances: instancesOf(integer(0, 1), directions),
      run: ([x], o) => pg.sort(x as Tensor, o),
      oracle: values,
    },
    {
      name: 'argSort with ties',
      dtypes: ['float32', 'float64', 'int32'],
      instances: instancesOf(few, directions),
      run: ([x], o) => pg.argSort(x as Tensor, o),
      oracle: order,
      result: 'int32',
    },
    ...topSpecs(),
  ];
}

function topSpecs(): OpSpec[] {
  const shapes: readonly { shape: readonly number[]; axis: number; k: number }[] = [
    { shape: [5], axis: 0, k: 2 },
    { shape: [5], axis: 0, k: 0 },
    { shape: [3, 6], axis: 1, k: 6 },
    { shape: [6, 3], axis: 0, k: 1 },
    { shape: [3, 50], axis: 1, k: 3 },
    { shape: [90, 2], axis: 0, k: 7 },
    { shape: [2, 67], axis: 1, k: 40 },
  ];
  const instances = (draw: (r: Random) => number): Instance[] =>
    shapes.flatMap(({ shape, axis, k }) =>
      [true, false].map((largest) => ({
        label: `${k} of [${shape}] along ${axis} ${largest ? 'largest' : 'smallest'}`,
        small: count(shape) <= 24,
        options: { axis, k, largest },
        draw: (r: Random) => [sample(r, shape, draw)],
      })),
    );
  const first = (line: number[], o: Options): number[] => orderOf(line, o.largest === true).slice(0, o.k as number);
  return [
    {
      name: 'topK values',
      dtypes: floats,
      instances: instances(any),
      run: ([x], { k, ...o }) => pg.topK(x as Tensor, k as number, o)[0],
      oracle: ([x], o) =>
        alongLines(x as NDArray, o.axis as number, (line) => first(line, o).map((i) => line[i] as number)),
      gradient: { of: [0], order: 2 },
    },
    {
      name: 'topK positions with ties',
      dtypes: ['float32', 'float64', 'int32'],
      instances: instances(few),
      run: ([x], { k, ...o }) => pg.topK(x as Tensor, k as number, o)[1],
      oracle: ([x], o) => alongLines(x as NDArray, o.axis as number, (line) => first(line, o)),
      result: 'int32',
    },
  ];
}
