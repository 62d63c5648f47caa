/** Quantiles and the median, with every way between two elements. */
import * as pg from '@polygrad/core';
import { alongLines } from '../../oracle/lines.ts';
import { count, nd, type NDArray, reduce } from '../../oracle/ndarray.ts';
import { type Random, sample } from '../../oracle/random.ts';
import { isFloat, type Made, type Pool, type RandomCall, ref } from '../../programs/pool.ts';
import { floats, type Instance, type OpSpec, type Options, spec } from '../../spec.ts';
import { reductionCall } from '../reductions/reductions.ts';
import { type OperationRow, smooth } from '../row.ts';
import { any } from './lines.ts';

/** A quantile of some values, by linear interpolation unless told otherwise. */
function quantileOf(values: number[], q: number, kind: unknown): number {
  const sorted = [...values].sort((a, b) => a - b);
  const place = q * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(place)]!, sorted[Math.ceil(place)]!];
  if (kind === 'lower') return low;
  if (kind === 'higher') return high;
  if (kind === 'midpoint') return (low + high) / 2;
  return low + (place - Math.floor(place)) * (high - low);
}

function quantileSpecs(): [OpSpec, OpSpec, OpSpec] {
  const shapes = [
    { shape: [], axis: 0 },
    { shape: [6], axis: 0 },
    { shape: [7], axis: 0 },
    { shape: [3, 4], axis: 0 },
    { shape: [3, 5], axis: 1 },
    { shape: [2, 70], axis: 1 },
  ];
  const instances = (options: readonly Options[]): Instance<1>[] =>
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
    spec<1>({
      name: 'median',
      dtypes: floats,
      instances: instances([{}, { interpolation: 'lower' }]),
      run: ([x], { along, ...o }) => pg.median(x, o),
      oracle: ([x], o) => reduced(x, o, 0.5),
      gradient: { of: [0], order: 2 },
    }),
    spec<1>({
      name: 'quantile',
      dtypes: floats,
      instances: instances([{}, { interpolation: 'higher' }, { interpolation: 'midpoint' }]),
      run: ([x], { along, ...o }) => pg.quantile(x, [0, 0.3, 0.85, 1], o),
      oracle: ([x], o) => {
        const each = [0, 0.3, 0.85, 1].map((q) => reduced(x, o, q));
        return nd(
          [4, ...each[0]!.shape],
          each.flatMap((a) => [...a.data]),
        );
      },
      gradient: { of: [0], order: 2 },
    }),
    spec<1>({
      name: 'median of all',
      dtypes: floats,
      instances: [{ label: '[3,2,2]', small: true, draw: (r) => [sample(r, [3, 2, 2], any)] }],
      run: ([x]) => pg.median(x, { keepDims: true }),
      oracle: ([x]) => nd([1, 1, 1], [quantileOf([...x.data], 0.5, 'linear')]),
      gradient: { of: [0], order: 2 },
    }),
  ];
}

const middle =
  (interpolation: string) =>
  (v: number[]): number =>
    v.some(Number.isNaN) ? Number.NaN : quantileOf(v, 0.5, interpolation);

const medianCalls: readonly RandomCall[] = [
  reductionCall({
    name: 'median',
    f: middle('lower'),
    of: 'floats',
    smooth: true,
    least: 1,
    options: { interpolation: 'lower' },
  }),
  reductionCall({
    name: 'median',
    f: middle('midpoint'),
    of: 'floats',
    noise: 'all',
    smooth: true,
    least: 1,
    domain: Number.isFinite,
  }),
];

function quantile(pool: Pool): Made | null {
  const x = pool.pick(
    (v) => isFloat(v.dtype) && v.shape.length > 0 && v.data.every(Number.isFinite) && v.data.length < 2000,
  );
  if (x === null || x.shape.includes(0)) return null;
  const [axis, written] = pool.axis(x.shape.length);
  const q = pool.c.pick([0.5, 0, 1, 0.25, 0.3]);
  const interpolation = pool.c.pick(['linear', 'lower', 'higher', 'midpoint']);
  return {
    args: [ref(x), q, { axis: written, ...(interpolation === 'linear' ? {} : { interpolation }) }],
    dtype: x.dtype,
    formula: (a) => reduce(a, [axis], (line) => quantileOf(line, q, interpolation)),
    noise: 'all',
    ordered: false,
  };
}

const [medianSpec, quantileSpec, medianOfAll] = quantileSpecs();

export const quantileRows: readonly OperationRow[] = [
  { name: 'median', specs: [medianSpec, medianOfAll], calls: medianCalls },
  { name: 'quantile', specs: [quantileSpec], calls: smooth(quantile) },
];
