/** Running results, sorting, quantiles and searching: operations whose result depends on the order along an axis. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { at, build, count, map, type NDArray, nd, permute } from '../oracle/ndarray.ts';
import { integer, type Random, sample, uniform } from '../oracle/random.ts';
import type { Instance, OpSpec, Options } from '../spec.ts';

const floats: readonly DType[] = ['float32', 'float64'];
const any = uniform(-2, 2);

/** Every line of `a` along an axis replaced by what `f` makes of it; a scalar is one line of one element. */
export function alongLines(a: NDArray, axis: number, f: (line: number[]) => number[]): NDArray {
  if (a.shape.length === 0) return nd([], f([...a.data]));
  const last = a.shape.length - 1;
  const toEnd = a.shape.map((_, i) => i).filter((i) => i !== axis);
  const moved = permute(a, [...toEnd, axis]);
  const n = a.shape[axis] as number;
  const lines: number[][] = [];
  for (let start = 0; n > 0 && start < moved.data.length; start += n) lines.push(f(moved.data.slice(start, start + n)));
  const size = n === 0 ? f([]).length : ((lines[0] ?? f(new Array<number>(n).fill(0))).length as number);
  const result = nd([...moved.shape.slice(0, last), size], lines.flat());
  const back = a.shape.map((_, i) => (i === axis ? last : toEnd.indexOf(i)));
  return permute(result, back);
}

/** Shapes and axes: scalar, empty, size one, lines next to each other in whole vectors and not, many short lines, few long ones. */
const cases: readonly { readonly shape: readonly number[]; readonly axis: number; readonly always?: true }[] = [
  { shape: [], axis: 0 },
  { shape: [1], axis: 0 },
  { shape: [7], axis: 0, always: true },
  { shape: [0], axis: 0 },
  { shape: [3, 0], axis: 0 },
  { shape: [3, 0], axis: 1 },
  { shape: [3, 5], axis: 0, always: true },
  { shape: [3, 5], axis: 1 },
  { shape: [2, 3, 4], axis: 1 },
  { shape: [4, 1, 3], axis: 1 },
  { shape: [6, 47], axis: 0, always: true },
  { shape: [45, 6], axis: 1 },
  { shape: [2, 9, 5, 4], axis: 1 },
  { shape: [2, 61], axis: 1, always: true },
];

/** The first options with all shapes, the others with some. */
function instancesOf(draw: (r: Random) => number, options: readonly Options[] = [{}]): Instance[] {
  return cases.flatMap(({ shape, axis, always }) =>
    (always ? options : options.slice(0, 1)).map((o) => ({
      label: `[${shape}] along ${axis}${Object.entries(o)
        .map(([k, v]) => ` ${k} ${v}`)
        .join('')}`,
      small: count(shape) <= 24 && count(shape) > 0,
      options: { axis, ...o },
      draw: (r: Random) => [sample(r, shape, draw)],
    })),
  );
}

/** A running result: `step` from the one before and the element. */
function running(first: number, step: (before: number, x: number) => number, o: Options): (line: number[]) => number[] {
  return (line) => {
    let value = first;
    const inOrder = o.reverse ? [...line].reverse() : line;
    const result = inOrder.map((x) => {
      const before = value;
      value = step(value, x);
      return o.exclusive ? before : value;
    });
    return o.reverse ? result.reverse() : result;
  };
}

interface Scan {
  readonly name: string;
  readonly run: (x: Tensor, o: { axis: number }) => Tensor;
  readonly first: number;
  readonly step: (before: number, x: number) => number;
  readonly draw?: (r: Random) => number;
  readonly dtypes?: readonly DType[];
  readonly options?: readonly Options[];
  readonly order?: 0 | 2;
  readonly sums?: boolean;
  readonly result?: OpSpec['result'];
}

const ways: readonly Options[] = [{}, { reverse: true }];
const allWays: readonly Options[] = [...ways, { exclusive: true }, { reverse: true, exclusive: true }];
const withZeros = (r: Random): number => (r() < 0.3 ? 0 : 0.6 + 0.8 * r());
const add = (a: number, b: number): number => a + b;
const logAdd = (a: number, b: number): number =>
  a === -Infinity ? b : Math.max(a, b) + Math.log1p(Math.exp(-Math.abs(a - b)));

const scans: readonly Scan[] = [
  { name: 'cumSum', run: pg.cumSum, first: 0, step: add, options: allWays, sums: true },
  {
    name: 'cumSum int',
    run: pg.cumSum,
    first: 0,
    step: add,
    draw: integer(-9, 9),
    dtypes: ['int32'],
    result: (dtype) => (dtype.endsWith('64') ? dtype : 'int32'),
    order: 0,
  },
  {
    name: 'cumProd',
    run: pg.cumProd,
    first: 1,
    step: (a, b) => a * b,
    draw: uniform(0.6, 1.4),
    options: allWays,
    sums: true,
  },
  {
    name: 'cumProd with zeros',
    run: pg.cumProd,
    first: 1,
    step: (a, b) => a * b,
    draw: withZeros,
    options: allWays,
    sums: true,
  },
  { name: 'cumMax', run: pg.cumMax, first: -Infinity, step: Math.max, options: ways },
  { name: 'cumMin', run: pg.cumMin, first: Infinity, step: Math.min, options: ways },
  {
    name: 'cumMax int',
    run: pg.cumMax,
    first: -Infinity,
    step: Math.max,
    draw: integer(-9, 9),
    dtypes: ['int32'],
    order: 0,
  },
  {
    name: 'cumMin uint',
    run: pg.cumMin,
    first: Infinity,
    step: Math.min,
    draw: integer(0, 9),
    dtypes: ['uint32'],
    order: 0,
  },
  { name: 'logCumSumExp', run: pg.logCumSumExp, first: -Infinity, step: logAdd, options: ways },
  {
    name: 'logCumSumExp far apart',
    run: pg.logCumSumExp,
    first: -Infinity,
    step: logAdd,
    draw: uniform(-300, 300),
    order: 0,
  },
];

function scanSpecs(): OpSpec[] {
  return scans.map((s) => ({
    name: s.name,
    dtypes: s.dtypes ?? floats,
    instances: instancesOf(s.draw ?? any, s.options),
    run: ([x], o) => s.run(x as Tensor, o as never),
    oracle: ([x], o) => alongLines(x as NDArray, o.axis as number, running(s.first, s.step, o)),
    ...(s.result === undefined ? {} : { result: s.result }),
    ...(s.sums ? { terms: ([x]: NDArray[]) => 2 * count((x as NDArray).shape) } : {}),
    ...(s.order === 0 ? {} : { gradient: { of: [0], order: 2 as const } }),
  }));
}

/** Positions in sorted order, equal elements as they lie. */
function orderOf(line: number[], descending: boolean): number[] {
  const sign = descending ? -1 : 1;
  return line.map((_, i) => i).sort((i, j) => sign * ((line[i] as number) - (line[j] as number)) || i - j);
}

const directions: readonly Options[] = [{}, { descending: true }];
const few = integer(-3, 3);

function sortSpecs(): OpSpec[] {
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
      run: ([x], o) => pg.topK(x as Tensor, o.k as number, o)[0],
      oracle: ([x], o) =>
        alongLines(x as NDArray, o.axis as number, (line) => first(line, o).map((i) => line[i] as number)),
      gradient: { of: [0], order: 2 },
    },
    {
      name: 'topK positions with ties',
      dtypes: ['float32', 'float64', 'int32'],
      instances: instances(few),
      run: ([x], o) => pg.topK(x as Tensor, o.k as number, o)[1],
      oracle: ([x], o) => alongLines(x as NDArray, o.axis as number, (line) => first(line, o)),
      result: 'int32',
    },
  ];
}

/** A quantile of some values, by linear interpolation unless told otherwise. */
function quantileOf(values: number[], q: number, kind: unknown): number {
  const sorted = [...values].sort((a, b) => a - b);
  const place = q * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(place)] as number, sorted[Math.ceil(place)] as number];
  if (kind === 'lower') return low;
  if (kind === 'higher') return high;
  if (kind === 'midpoint') return (low + high) / 2;
  return low + (place - Math.floor(place)) * (high - low);
}

function quantileSpecs(): OpSpec[] {
  const shapes = [
    { shape: [], axis: 0 },
    { shape: [6], axis: 0 },
    { shape: [7], axis: 0 },
    { shape: [3, 4], axis: 0 },
    { shape: [3, 5], axis: 1 },
    { shape: [2, 70], axis: 1 },
  ];
  const instances = (options: readonly Options[]): Instance[] =>
    shapes.flatMap(({ shape, axis }) =>
      options.map((o) => ({
        label: `[${shape}] along ${axis} ${Object.values(o).join(' ')}`,
        small: count(shape) <= 24,
        options: { ...o, ...(shape.length === 0 ? {} : { axis }), along: axis },
        draw: (r: Random) => [sample(r, shape, any)],
      })),
    );
  const reduced = (x: NDArray, o: Options, q: number): NDArray => {
    const kept = alongLines(x, o.along as number, (line) => [quantileOf(line, q, o.interpolation)]);
    return nd(
      x.shape.filter((_, i) => i !== o.along),
      kept.data,
    );
  };
  return [
    {
      name: 'median',
      dtypes: floats,
      instances: instances([{}, { interpolation: 'lower' }]),
      run: ([x], o) => pg.median(x as Tensor, o),
      oracle: ([x], o) => reduced(x as NDArray, o, 0.5),
      gradient: { of: [0], order: 2 },
    },
    {
      name: 'quantile',
      dtypes: floats,
      instances: instances([{}, { interpolation: 'higher' }, { interpolation: 'midpoint' }]),
      run: ([x], o) => pg.quantile(x as Tensor, [0, 0.3, 0.85, 1], o),
      oracle: ([x], o) => {
        const each = [0, 0.3, 0.85, 1].map((q) => reduced(x as NDArray, o, q));
        return nd(
          [4, ...(each[0] as NDArray).shape],
          each.flatMap((a) => [...a.data]),
        );
      },
      gradient: { of: [0], order: 2 },
    },
    {
      name: 'median of all',
      dtypes: floats,
      instances: [{ label: '[3,2,2]', small: true, draw: (r) => [sample(r, [3, 2, 2], any)] }],
      run: ([x]) => pg.median(x as Tensor, { keepDims: true }),
      oracle: ([x]) => nd([1, 1, 1], [quantileOf([...(x as NDArray).data], 0.5, 'linear')]),
      gradient: { of: [0], order: 2 },
    },
  ];
}

function sortedSample(r: Random, shape: readonly number[], draw: (r: Random) => number): NDArray {
  return alongLines(sample(r, shape, draw), shape.length - 1, (line) => [...line].sort((a, b) => a - b));
}

/** How many of the sorted are before the value. */
function placeOf(sorted: number[], value: number, right: boolean): number {
  return sorted.filter((s) => (right ? s <= value : s < value)).length;
}

function searchSpecs(): OpSpec[] {
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

function diffSpecs(): OpSpec[] {
  const differences = (line: number[], n: number): number[] =>
    n === 0
      ? line
      : differences(
          line.slice(1).map((x, i) => x - (line[i] as number)),
          n - 1,
        );
  return [
    {
      name: 'diff',
      dtypes: ['float32', 'float64', 'int32'],
      instances: cases
        .filter(({ shape }) => shape.length > 0)
        .flatMap(({ shape, axis }) =>
          [1, 2].map((n) => ({
            label: `[${shape}] along ${axis} ${n} times`,
            small: count(shape) <= 24 && count(shape) > 0,
            options: { axis, n },
            draw: (r: Random) => [sample(r, shape, integer(-9, 9))],
          })),
        ),
      run: ([x], o) => pg.diff(x as Tensor, o),
      oracle: ([x], o) => alongLines(x as NDArray, o.axis as number, (line) => differences(line, o.n as number)),
      gradient: { of: [0], order: 2 },
    },
  ];
}

export function orderSpecs(): OpSpec[] {
  return [...scanSpecs(), ...diffSpecs(), ...sortSpecs(), ...quantileSpecs(), ...searchSpecs()];
}
