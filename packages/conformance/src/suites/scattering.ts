/** Elements put and picked by index tensors: scatters of every kind, and coordinates. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { at, build, indices as positions, type NDArray, nd, ravel } from '../oracle/ndarray.ts';
import { integer, type Random, sample, uniform } from '../oracle/random.ts';
import type { Instance, OpSpec, Options } from '../spec.ts';
import { average, total } from '../oracle/sums.ts';

const floats: readonly DType[] = ['float32', 'float64'];
const numbers: readonly DType[] = ['float32', 'float64', 'int32'];
const whole = integer(-4, 4);

interface Case {
  readonly shape: readonly number[];
  readonly index: readonly number[];
  readonly axis: number;
}

/** Places repeat in all of them but the one without updates. */
const elementwise: readonly Case[] = [
  { shape: [4], index: [6], axis: 0 },
  { shape: [4], index: [0], axis: 0 },
  { shape: [3, 4], index: [3, 5], axis: 1 },
  { shape: [4, 3], index: [6, 2], axis: 0 },
  { shape: [2, 3, 4], index: [2, 5, 3], axis: 1 },
  { shape: [5, 33], index: [8, 33], axis: 0 },
];

function instancesOf(
  list: readonly Case[],
  draw: (r: Random) => number,
  updatesOf: (c: Case) => readonly number[],
  options: readonly Options[] = [{}],
): Instance[] {
  return list.flatMap((c) =>
    options.map((o) => ({
      label: `[${c.shape}] by [${c.index}] along ${c.axis} ${Object.values(o).join(' ')}`.trim(),
      small: c.shape.reduce((a, b) => a * b, 1) <= 24 && !c.index.includes(0),
      options: { axis: c.axis, ...o },
      draw: (r: Random) => [
        sample(r, c.shape, draw),
        sample(r, c.index, integer(0, (c.shape[c.axis] as number) - 1)),
        sample(r, updatesOf(c), draw),
      ],
    })),
  );
}

/** All updates of each element of x, in order. */
function arriving(x: NDArray, index: NDArray, updates: NDArray, axis: number): number[][] {
  const lists: number[][] = x.data.map(() => []);
  for (const place of positions(index.shape)) {
    const to = place.map((i, a) => (a === axis ? at(index, place) : i));
    (lists[ravel(to, x.shape)] as number[]).push(at(updates, place));
  }
  return lists;
}

const folds: Readonly<Record<string, (values: number[]) => number>> = {
  sum: total,
  prod: (v) => v.reduce((a, b) => a * b, 1),
  mean: average,
  amax: (v) => Math.max(...v),
  amin: (v) => Math.min(...v),
};

function reduceOracle([x, index, updates]: NDArray[], o: Options): NDArray {
  const fold = folds[o.reduce as string] as (v: number[]) => number;
  const lists = arriving(x as NDArray, index as NDArray, updates as NDArray, o.axis as number);
  return nd(
    (x as NDArray).shape,
    (x as NDArray).data.map((own, i) => {
      const list = lists[i] as number[];
      if (o.includeSelf === false) return list.length === 0 ? own : fold(list);
      return fold([own, ...list]);
    }),
  );
}

const selves: readonly Options[] = [{ includeSelf: true }, { includeSelf: false }];
const sameAsIndex = (c: Case): readonly number[] => c.index;
const distinct = uniform(-2, 2);
const factors = (r: Random): number => (r() < 0.35 ? 0 : 0.5 + r());

export function scatterSpecs(): OpSpec[] {
  const reduced = (
    reduce: pg.ScatterReduction,
    dtypes: readonly DType[],
    draw: (r: Random) => number,
    order: 0 | 2,
  ): OpSpec => ({
    name: `scatterReduce ${reduce}${dtypes.includes('int32') ? ' of whole numbers' : ''}`,
    dtypes,
    inputDTypes: { 1: 'int32' },
    instances: instancesOf(
      elementwise,
      draw,
      sameAsIndex,
      selves.map((s) => ({ reduce, ...s })),
    ),
    run: ([x, i, u], o) =>
      pg.scatterReduce(x as Tensor, i as Tensor, u as Tensor, reduce, {
        axis: o.axis as number,
        includeSelf: o.includeSelf as boolean,
      }),
    oracle: reduceOracle,
    terms: () => 9,
    ...(order === 0 ? {} : { gradient: { of: [0, 2], order } }),
  });
  return [
    {
      name: 'scatter',
      dtypes: numbers,
      inputDTypes: { 1: 'int32' },
      instances: instancesOf(elementwise, whole, sameAsIndex),
      run: ([x, i, u], o) => pg.scatter(x as Tensor, i as Tensor, u as Tensor, { axis: o.axis as number }),
      oracle: ([x, index, updates], o) => {
        const lists = arriving(x as NDArray, index as NDArray, updates as NDArray, o.axis as number);
        return nd(
          (x as NDArray).shape,
          (x as NDArray).data.map((own, i) => (lists[i] as number[]).at(-1) ?? own),
        );
      },
      gradient: { of: [0, 2], order: 2 },
    },
    reduced('sum', floats, distinct, 2),
    reduced('mean', floats, distinct, 2),
    reduced('prod', floats, factors, 2),
    reduced('amax', floats, distinct, 2),
    reduced('amin', floats, distinct, 2),
    reduced('prod', ['int32'], whole, 0),
    reduced('amax', ['int32'], whole, 0),
    ...sliceSpecs(),
    ...coordinateSpecs(),
  ];
}

function sliceSpecs(): OpSpec[] {
  const slices: readonly Case[] = [
    { shape: [4], index: [6], axis: 0 },
    { shape: [4, 3], index: [5], axis: 0 },
    { shape: [3, 4], index: [2], axis: 1 },
    { shape: [3, 70], index: [4], axis: 0 },
    { shape: [2, 3, 4], index: [4], axis: 1 },
  ];
  const placed = (c: Case): readonly number[] => c.shape.map((n, i) => (i === c.axis ? (c.index[0] as number) : n));
  /** Which update an element of x gets, or -1. */
  const last = (index: NDArray, place: number): number => index.data.lastIndexOf(place);
  return [
    {
      name: 'indexCopy',
      dtypes: numbers,
      inputDTypes: { 1: 'int32' },
      instances: instancesOf(slices, whole, placed),
      run: ([x, i, u], o) => pg.indexCopy(x as Tensor, i as Tensor, u as Tensor, { axis: o.axis as number }),
      oracle: ([x, index, updates], o) =>
        build((x as NDArray).shape, (place) => {
          const axis = o.axis as number;
          const from = last(index as NDArray, place[axis] as number);
          if (from < 0) return at(x as NDArray, place);
          return at(
            updates as NDArray,
            place.map((i, a) => (a === axis ? from : i)),
          );
        }),
      gradient: { of: [0, 2], order: 2 },
    },
    {
      name: 'indexFill',
      dtypes: numbers,
      inputDTypes: { 1: 'int32' },
      instances: instancesOf(slices, whole, () => []),
      run: ([x, i, v], o) => pg.indexFill(x as Tensor, i as Tensor, v as Tensor, { axis: o.axis as number }),
      oracle: ([x, index, value], o) =>
        build((x as NDArray).shape, (place) =>
          last(index as NDArray, place[o.axis as number] as number) < 0
            ? at(x as NDArray, place)
            : ((value as NDArray).data[0] as number),
        ),
      gradient: { of: [0, 2], order: 2 },
    },
  ];
}

function coordinateSpecs(): OpSpec[] {
  const draws: readonly { shape: readonly number[]; lead: readonly number[]; depth: number }[] = [
    { shape: [5], lead: [4], depth: 1 },
    { shape: [3, 4], lead: [6], depth: 2 },
    { shape: [3, 4], lead: [2, 2], depth: 1 },
    { shape: [2, 3, 4], lead: [5], depth: 2 },
  ];
  const coordinates = (r: Random, shape: readonly number[], lead: readonly number[], depth: number): NDArray =>
    build([...lead, depth], (index) => Math.floor(r() * (shape[index.at(-1) as number] as number)));
  const row = (index: NDArray, lead: readonly number[], depth: number): number[] =>
    Array.from({ length: depth }, (_, k) => at(index, [...lead, k]));
  return [
    {
      name: 'gatherNd',
      dtypes: numbers,
      inputDTypes: { 1: 'int32' },
      instances: draws.map(({ shape, lead, depth }) => ({
        label: `[${shape}] by [${lead}] of ${depth}`,
        small: true,
        draw: (r) => [sample(r, shape, whole), coordinates(r, shape, lead, depth)],
      })),
      run: ([x, i]) => pg.gatherNd(x as Tensor, i as Tensor),
      oracle: ([x, index]) => {
        const lead = (index as NDArray).shape.slice(0, -1);
        const depth = (index as NDArray).shape.at(-1) as number;
        return build([...lead, ...(x as NDArray).shape.slice(depth)], (place) =>
          at(x as NDArray, [...row(index as NDArray, place.slice(0, lead.length), depth), ...place.slice(lead.length)]),
        );
      },
      gradient: { of: [0], order: 2 },
    },
    {
      name: 'scatterNd',
      dtypes: numbers,
      inputDTypes: { 0: 'int32' },
      instances: draws.map(({ shape, lead, depth }) => ({
        label: `[${lead}] of ${depth} into [${shape}]`,
        small: true,
        options: { shape },
        draw: (r) => [coordinates(r, shape, lead, depth), sample(r, [...lead, ...shape.slice(depth)], whole)],
      })),
      run: ([i, u], o) => pg.scatterNd(i as Tensor, u as Tensor, o.shape as number[]),
      oracle: ([index, updates], o) => {
        const shape = o.shape as number[];
        const lead = (index as NDArray).shape.slice(0, -1);
        const depth = (index as NDArray).shape.at(-1) as number;
        return build(shape, (place) => {
          let sum = 0;
          for (const from of positions(lead)) {
            if (row(index as NDArray, from, depth).some((v, k) => v !== place[k])) continue;
            sum += at(updates as NDArray, [...from, ...place.slice(depth)]);
          }
          return sum;
        });
      },
      gradient: { of: [1], order: 2 },
    },
  ];
}
