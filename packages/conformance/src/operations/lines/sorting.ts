/** Sorting, positions in sorted order, and the first few of them. */
import * as pg from '@polygrad/core';
import { alongLines, linesOf } from '../../oracle/lines.ts';
import { count, type NDArray } from '../../oracle/ndarray.ts';
import { integer, type Random, sample } from '../../oracle/random.ts';
import { isNumber, type Made, type Pool, ref } from '../../programs/pool.ts';
import { floats, type Inputs, type Instance, type OpSpec, type Options, spec } from '../../spec.ts';
import { type OperationRow, smooth } from '../row.ts';
import { any, instancesOf } from './lines.ts';

type Line = (line: number[]) => number[];

/** Order of numbers with NaN above all; the first of equals first. */
const order = (line: readonly number[], descending: boolean): number[] => {
  const compare = (a: number, b: number): number => {
    const [x, y] = [line[a]!, line[b]!];
    if (Number.isNaN(x) || Number.isNaN(y)) return Number(Number.isNaN(x)) - Number(Number.isNaN(y));
    return x < y ? -1 : x > y ? 1 : 0;
  };
  return line.map((_, i) => i).sort((a, b) => (descending ? compare(b, a) : compare(a, b)) || a - b);
};

const directions: readonly Options[] = [{}, { descending: true }];
const few = integer(-3, 3);

const positions = ([x]: Inputs<1, NDArray>, o: Options): NDArray =>
  alongLines(x, o.axis as number, (line) => order(line, o.descending === true));
const values = ([x]: Inputs<1, NDArray>, o: Options): NDArray =>
  alongLines(x, o.axis as number, (line) => order(line, o.descending === true).map((i) => line[i]!));

const sortSpecs: readonly OpSpec[] = [
  spec<1>({
    name: 'sort',
    dtypes: floats,
    instances: instancesOf(any, directions),
    run: ([x], o) => pg.sort(x, o),
    oracle: values,
    gradient: { of: [0], order: 2 },
  }),
  spec<1>({
    name: 'sort int',
    dtypes: ['int32'],
    instances: instancesOf(integer(-2e9, 2e9), directions),
    run: ([x], o) => pg.sort(x, o),
    oracle: values,
  }),
  spec<1>({
    name: 'sort uint and bool',
    dtypes: ['uint32', 'bool'],
    instances: instancesOf(integer(0, 1), directions),
    run: ([x], o) => pg.sort(x, o),
    oracle: values,
  }),
];

const argSortSpec: OpSpec<1> = {
  name: 'argSort with ties',
  dtypes: ['float32', 'float64', 'int32'],
  instances: instancesOf(few, directions),
  run: ([x], o) => pg.argSort(x, o),
  oracle: positions,
  result: 'int32',
};

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
  const instances = (draw: (r: Random) => number): Instance<1>[] =>
    shapes.flatMap(({ shape, axis, k }) =>
      [true, false].map((largest) => ({
        label: `${k} of [${shape}] along ${axis} ${largest ? 'largest' : 'smallest'}`,
        small: count(shape) <= 24,
        options: { axis, k, largest },
        draw: (r: Random) => [sample(r, shape, draw)],
      })),
    );
  const first = (line: number[], o: Options): number[] => order(line, o.largest === true).slice(0, o.k as number);
  return [
    spec<1>({
      name: 'topK values',
      dtypes: floats,
      instances: instances(any),
      run: ([x], { k, ...o }) => pg.topK(x, k as number, o)[0],
      oracle: ([x], o) => alongLines(x, o.axis as number, (line) => first(line, o).map((i) => line[i]!)),
      gradient: { of: [0], order: 2 },
    }),
    spec<1>({
      name: 'topK positions with ties',
      dtypes: ['float32', 'float64', 'int32'],
      instances: instances(few),
      run: ([x], { k, ...o }) => pg.topK(x, k as number, o)[1],
      oracle: ([x], o) => alongLines(x, o.axis as number, (line) => first(line, o)),
      result: 'int32',
    }),
  ];
}

/** Lines in order: their elements, or the positions of those. */
const inOrder =
  (positions: boolean) =>
  (pool: Pool): Made | null => {
    const x = pool.pick((v) => v.shape.length > 0);
    if (x === null) return null;
    const [axis, written] = pool.axis(x.shape.length);
    const descending = pool.c.nat(2) === 1;
    const line: Line = (l) => {
      const found = order(l, descending);
      return positions ? found : found.map((i) => l[i]!);
    };
    return {
      args: [ref(x), { axis: written, descending }],
      dtype: positions ? 'int32' : x.dtype,
      formula: (a) => alongLines(a, axis, line),
    };
  };

function topCall(pool: Pool): Made | null {
  const x = pool.pick((v) => v.shape.length > 0 && isNumber(v));
  if (x === null) return null;
  const [axis, written] = pool.axis(x.shape.length);
  const k = pool.c.nat(x.shape[axis]! + 1);
  const part = pool.c.nat(2);
  const least = pool.c.seldom(3);
  const picked = (l: number[]): number[] =>
    order(l, !least)
      .slice(0, k)
      .map((i) => (part === 0 ? l[i]! : i));
  return {
    args: [ref(x), k, { axis: written, ...(least ? { largest: false } : {}) }],
    part,
    dtype: part === 0 ? x.dtype : 'int32',
    formula: (a) => linesOf(a, axis, k, picked),
  };
}

export const sortingRows: readonly OperationRow[] = [
  { name: 'sort', specs: sortSpecs, calls: smooth(inOrder(false)) },
  { name: 'argSort', specs: [argSortSpec], calls: [{ make: inOrder(true) }] },
  { name: 'topK', specs: topSpecs(), calls: smooth(topCall) },
];
