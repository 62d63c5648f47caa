/** Elements and slices put by index tensors: scatters of every kind. */
import * as pg from '@polygrad/core';
import type { DType } from '@polygrad/core';
import { at, build, indices as positions, nd, type NDArray, ravel, unravel } from '../../oracle/ndarray.ts';
import { integer, type Random, sample, uniform } from '../../oracle/random.ts';
import { average, total } from '../../oracle/sums.ts';
import { withElements } from '../../programs/operands.ts';
import { isFloat, isNumber, type Made, type Pool, ref } from '../../programs/pool.ts';
import type { Arg, Value } from '../../programs/program.ts';
import { floats, type Inputs, type Instance, numeric, type OpSpec, type Options, spec } from '../../spec.ts';
import { type OperationRow, smooth } from '../row.ts';

const whole = integer(-4, 4);
const wider = integer(-99, 99);

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
): Instance<3>[] {
  return list.flatMap((c) =>
    options.map((o) => ({
      label: `[${c.shape}] by [${c.index}] along ${c.axis} ${Object.values(o).join(' ')}`.trim(),
      small: c.shape.reduce((a, b) => a * b, 1) <= 24 && !c.index.includes(0),
      options: { axis: c.axis, ...o },
      draw: (r: Random) => [
        sample(r, c.shape, draw),
        sample(r, c.index, integer(0, c.shape[c.axis]! - 1)),
        sample(r, updatesOf(c), draw),
      ],
    })),
  );
}

type Combine = (old: number, update: number) => number;
const theLast: Combine = (_, update) => update;
const theSum: Combine = (old, update) => old + update;

/**
 * Updates at their own position, but for one axis, where an index says where: one for every update, or for every whole slice. What
 * arrives at one place is combined one after the other.
 */
function put(x: NDArray, index: NDArray, updates: NDArray, axis: number, combine: Combine): NDArray {
  const slices = index.shape.length < updates.shape.length;
  const data = [...x.data];
  updates.data.forEach((value, flat) => {
    const position = unravel(flat, updates.shape);
    position[axis] = index.data[slices ? position[axis]! : flat]!;
    const to = ravel(position, x.shape);
    data[to] = combine(data[to]!, value);
  });
  return nd(x.shape, data);
}

/** One value in all the slices that an index names. */
const filled = (x: NDArray, index: NDArray, value: number, axis: number): NDArray =>
  build(x.shape, (place) => (index.data.includes(place[axis]!) ? value : at(x, place)));

/** All updates of each element of x, in order. */
function arriving(x: NDArray, index: NDArray, updates: NDArray, axis: number): number[][] {
  const lists: number[][] = x.data.map(() => []);
  for (const place of positions(index.shape)) {
    const to = place.map((i, a) => (a === axis ? at(index, place) : i));
    lists[ravel(to, x.shape)]!.push(at(updates, place));
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

function reduceOracle([x, index, updates]: Inputs<3, NDArray>, o: Options): NDArray {
  const fold = folds[o.reduce as string] as (v: number[]) => number;
  const lists = arriving(x, index, updates, o.axis as number);
  return nd(
    x.shape,
    x.data.map((own, i) => {
      const list = lists[i]!;
      if (o.includeSelf === false) return list.length === 0 ? own : fold(list);
      return fold([own, ...list]);
    }),
  );
}

const selves: readonly Options[] = [{ includeSelf: true }, { includeSelf: false }];

const sameAsIndex = (c: Case): readonly number[] => c.index;

const distinct = uniform(-2, 2);

const factors = (r: Random): number => (r() < 0.35 ? 0 : 0.5 + r());

const reduced = (
  reduce: pg.ScatterReduction,
  dtypes: readonly DType[],
  draw: (r: Random) => number,
  order: 0 | 2,
): OpSpec<3> => ({
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
    pg.scatterReduce(x, i, u, reduce, {
      axis: o.axis as number,
      includeSelf: o.includeSelf as boolean,
    }),
  oracle: reduceOracle,
  terms: () => 9,
  ...(order === 0 ? {} : { gradient: { of: [0, 2], order } }),
});
const scatterSpec: OpSpec<3> = {
  name: 'scatter',
  dtypes: numeric,
  inputDTypes: { 1: 'int32' },
  instances: instancesOf(elementwise, whole, sameAsIndex),
  run: ([x, i, u], o) => pg.scatter(x, i, u, { axis: o.axis as number }),
  oracle: ([x, i, u], o) => put(x, i, u, o.axis as number, theLast),
  gradient: { of: [0, 2], order: 2 },
};

function sliceSpecs(): [OpSpec, OpSpec] {
  const slices: readonly Case[] = [
    { shape: [4], index: [6], axis: 0 },
    { shape: [4, 3], index: [5], axis: 0 },
    { shape: [3, 4], index: [2], axis: 1 },
    { shape: [3, 70], index: [4], axis: 0 },
    { shape: [2, 3, 4], index: [4], axis: 1 },
  ];
  const placed = (c: Case): readonly number[] => c.shape.map((n, i) => (i === c.axis ? c.index[0]! : n));
  return [
    spec<3>({
      name: 'indexCopy',
      dtypes: numeric,
      inputDTypes: { 1: 'int32' },
      instances: instancesOf(slices, whole, placed),
      run: ([x, i, u], o) => pg.indexCopy(x, i, u, { axis: o.axis as number }),
      oracle: ([x, i, u], o) => put(x, i, u, o.axis as number, theLast),
      gradient: { of: [0, 2], order: 2 },
    }),
    spec<3>({
      name: 'indexFill',
      dtypes: numeric,
      inputDTypes: { 1: 'int32' },
      instances: instancesOf(slices, whole, () => []),
      run: ([x, i, v], o) => pg.indexFill(x, i, v, { axis: o.axis as number }),
      oracle: ([x, i, v], o) => filled(x, i, v.data[0]!, o.axis as number),
      gradient: { of: [0, 2], order: 2 },
    }),
  ];
}

const addSpec: OpSpec<3> = {
  name: 'scatterAdd, repeated indices',
  dtypes: numeric,
  inputDTypes: { 1: 'int32' },
  instances: [
    {
      label: '[4,3]',
      small: true,
      draw: (r) => [sample(r, [4, 3], wider), sample(r, [5, 2], integer(0, 3)), sample(r, [5, 2], wider)],
    },
  ],
  run: ([x, index, updates]) => pg.scatterAdd(x, index, updates, { axis: 0 }),
  oracle: ([x, i, u]) => put(x, i, u, 0, theSum),
  gradient: { of: [0, 2], order: 2 },
};

const indexAddSpec: OpSpec<3> = {
  name: 'indexAdd',
  dtypes: numeric,
  inputDTypes: { 1: 'int32' },
  instances: [
    {
      label: '[5,3] by [8]',
      small: true,
      draw: (r: Random) => [sample(r, [5, 3], wider), sample(r, [8], integer(0, 4)), sample(r, [8, 3], wider)],
    },
  ],
  run: ([x, i, u]) => pg.indexAdd(x, i, u, { axis: 0 }),
  oracle: ([x, i, u]) => put(x, i, u, 0, theSum),
  gradient: { of: [0, 2], order: 2 },
};

/** A value like `x` in dtype and shape, but along `axis`. */
function alike(pool: Pool, x: Value, axis: number): Value | null {
  return pool.pick(
    (v) =>
      v.dtype === x.dtype &&
      v.shape.length === x.shape.length &&
      v.shape.every((size, i) => i === axis || size === x.shape[i]),
  );
}

/** A random call, of updates one by one or of whole slices. `mode` goes before the axis, which is an option then. */
function scatter(
  combine: Combine,
  {
    sums = false,
    slices = false,
    mode,
  }: { readonly sums?: boolean; readonly slices?: boolean; readonly mode?: string },
) {
  return (pool: Pool): Made | null => {
    const found = withElements(pool, isNumber);
    if (found === null) return null;
    const { x, axis, written, n } = found;
    const updates = alike(pool, x, axis);
    if (updates === null || (!slices && updates.shape[axis] === 0)) return null;
    const index = pool.indices(slices ? [updates.shape[axis]!] : updates.shape, 0, n - 1);
    const place: Arg[] = mode === undefined ? [written] : [mode, { axis: written }];
    return {
      args: [ref(x), ref(index), ref(updates), ...place],
      dtype: x.dtype,
      formula: (a, i, u) => put(a, i, u, axis, combine),
      noise: sums ? 'all' : 'none',
      ordered: !(sums && isFloat(x.dtype)),
    };
  };
}

function indexFill(pool: Pool): Made | null {
  const found = withElements(pool, isNumber);
  if (found === null) return null;
  const { x, axis, written, n } = found;
  const index = pool.indices([pool.c.pick([2, 1, 0])], 0, n - 1);
  const value = pool.c.pick([0, 1, 7]);
  return {
    args: [ref(x), ref(index), value, written],
    dtype: x.dtype,
    formula: (a, i) => filled(a, i, value, axis),
  };
}

function oneHot(pool: Pool): Made | null {
  const classes = pool.c.pick([3, 1, 5]);
  const shape = pool.c.pick([[4], [], [2, 3]]);
  const index = pool.indices(shape, 0, classes);
  return {
    args: [ref(index), classes],
    dtype: 'float32',
    formula: (i) => build([...shape, classes], (p) => (at(i, p.slice(0, -1)) === p.at(-1) ? 1 : 0)),
  };
}

const [copySpec, fillSpec] = sliceSpecs();

export const scatteringRows: readonly OperationRow[] = [
  { name: 'scatter', specs: [scatterSpec], calls: smooth(scatter(theLast, {})) },
  {
    name: 'scatterReduce',
    specs: [
      reduced('sum', floats, distinct, 2),
      reduced('mean', floats, distinct, 2),
      reduced('prod', floats, factors, 2),
      reduced('amax', floats, distinct, 2),
      reduced('amin', floats, distinct, 2),
      reduced('prod', ['int32'], whole, 0),
      reduced('amax', ['int32'], whole, 0),
    ],
    calls: smooth(scatter(Math.max, { mode: 'max' })),
  },
  { name: 'scatterAdd', specs: [addSpec], calls: smooth(scatter(theSum, { sums: true })) },
  { name: 'indexAdd', specs: [indexAddSpec], calls: smooth(scatter(theSum, { slices: true, sums: true })) },
  { name: 'indexCopy', specs: [copySpec], calls: smooth(scatter(theLast, { slices: true })) },
  { name: 'indexFill', specs: [fillSpec], calls: smooth(indexFill) },
  { name: 'oneHot', specs: [], calls: [{ make: oneHot }], notes: { orders: 'none: indices in' } },
];
