/** Pooling to a size that is asked for, down to one value per channel. */
import * as pg from '@polygrad/core';
import { largest, poolAdaptive, sumOf, type Tap } from '../../oracle/images.ts';
import { count } from '../../oracle/ndarray.ts';
import { integer, type Random, sample, uniform } from '../../oracle/random.ts';
import { sums } from '../../programs/operands.ts';
import { type Made, type Pool, ref } from '../../programs/pool.ts';
import { floats, type Instance, type OpSpec, type Options, spec } from '../../spec.ts';
import { type OperationRow, smooth } from '../row.ts';
import { image, wholeOptions } from './image.ts';

const any = uniform(-1, 1);

/** Few different values, so that many windows have several maxima. */
const tied = integer(-2, 2);

const mean = (taps: readonly Tap[]): number => sumOf(taps) / taps.length;

const instances: readonly Instance<1>[] = [
  { x: [1, 2, 4, 6], size: [2, 3], layout: 'nchw' },
  { x: [2, 1, 5, 4], size: [3, 3], layout: 'nchw' },
  { x: [1, 5, 3, 2], size: [2, 4], layout: 'nhwc' },
  { x: [1, 1, 3, 2], size: [1, 2], layout: 'nchw' },
  { x: [0, 2, 3, 3], size: [2, 2], layout: 'nchw' },
  { x: [2, 13, 11, 8], size: [6, 5], layout: 'nhwc' },
].map(({ x, ...options }) => ({
  label: `[${x}] ${JSON.stringify(options)}`,
  small: count(x) > 0 && count(x) <= 60,
  options,
  draw: (r: Random) => [sample(r, x, any)],
}));
const layoutOf = (o: Options): { layout: 'nchw' | 'nhwc' } => ({ layout: o.layout as 'nchw' | 'nhwc' });
const sizeOf = (o: Options): number[] => o.size as number[];

const meanSpec: OpSpec<1> = {
  name: 'adaptiveAvgPool2d',
  dtypes: floats,
  instances,
  run: ([x], o) => pg.adaptiveAvgPool2d(x, sizeOf(o), layoutOf(o)),
  oracle: ([x], o) => poolAdaptive(x, sizeOf(o), o.layout, mean),
  gradient: { of: [0], order: 2 },
};

const maxSpecs: readonly OpSpec[] = [
  spec<1>({
    name: 'adaptiveMaxPool2d',
    dtypes: floats,
    instances,
    run: ([x], o) => pg.adaptiveMaxPool2d(x, sizeOf(o), layoutOf(o)),
    oracle: ([x], o) => poolAdaptive(x, sizeOf(o), o.layout, (taps) => largest(taps).value),
    gradient: { of: [0], order: 2 },
  }),
  spec<1>({
    name: 'adaptiveMaxPool2d indices',
    dtypes: [...floats, 'int32'],
    instances: instances.map((i) => ({ ...i, draw: (r: Random) => [sample(r, i.draw(r)[0].shape, tied)] })),
    run: ([x], o) => pg.adaptiveMaxPool2d(x, sizeOf(o), { ...layoutOf(o), returnIndices: true })[1],
    oracle: ([x], o) => poolAdaptive(x, sizeOf(o), o.layout, (taps) => largest(taps).position),
    result: 'int32',
  }),
];

const lineSpec: OpSpec<1> = {
  name: 'adaptiveAvgPool1d',
  dtypes: floats,
  instances: [1, 3, 7, 8].map((n) => ({
    label: `7 to ${n}`,
    small: true,
    options: { size: [n] },
    draw: (r: Random) => [sample(r, [2, 2, 7], any)],
  })),
  run: ([x], o) => pg.adaptiveAvgPool1d(x, sizeOf(o)),
  oracle: ([x], o) => poolAdaptive(x, sizeOf(o), 'nchw', mean),
  gradient: { of: [0], order: 2 },
};

/** Images of one or of three axes. */
const otherRank = (rank: 1 | 3): Instance<1>[] =>
  (rank === 1
    ? [
        { x: [2, 2, 7], size: [3], layout: 'nchw' },
        { x: [1, 5, 2], size: [2], layout: 'nhwc' },
      ]
    : [
        { x: [1, 2, 4, 3, 5], size: [2, 3, 2], layout: 'nchw' },
        { x: [1, 3, 2, 4, 2], size: [1, 2, 3], layout: 'nhwc' },
      ]
  ).map(({ x, ...options }) => ({
    label: `[${x}] ${JSON.stringify(options)}`,
    small: true,
    options,
    draw: (r: Random) => [sample(r, x, any)],
  }));

const volumeSpec: OpSpec<1> = {
  name: 'adaptiveAvgPool3d',
  dtypes: floats,
  instances: otherRank(3),
  run: ([x], o) => pg.adaptiveAvgPool3d(x, sizeOf(o), layoutOf(o)),
  oracle: ([x], o) => poolAdaptive(x, sizeOf(o), o.layout, mean),
  gradient: { of: [0], order: 2 },
};

/** Maxima and where they lie, of images of one or of three axes. */
const otherMaxSpecs = (rank: 1 | 3): OpSpec[] => {
  const max = rank === 1 ? pg.adaptiveMaxPool1d : pg.adaptiveMaxPool3d;
  return [
    spec<1>({
      name: `adaptiveMaxPool${rank}d`,
      dtypes: floats,
      instances: otherRank(rank),
      run: ([x], o) => max(x, sizeOf(o), layoutOf(o)),
      oracle: ([x], o) => poolAdaptive(x, sizeOf(o), o.layout, (taps) => largest(taps).value),
      gradient: { of: [0], order: 2 },
    }),
    spec<1>({
      name: `adaptiveMaxPool${rank}d indices`,
      dtypes: floats,
      instances: otherRank(rank).map((i) => ({
        ...i,
        draw: (r: Random) => [sample(r, i.draw(r)[0].shape, tied)],
      })),
      run: ([x], o) => max(x, sizeOf(o), { ...layoutOf(o), returnIndices: true })[1],
      oracle: ([x], o) => poolAdaptive(x, sizeOf(o), o.layout, (taps) => largest(taps).position),
      result: 'int32',
    }),
  ];
};

const globalSpec: OpSpec<1> = {
  name: 'globalAvgPool2d',
  dtypes: floats,
  instances: ['nchw', 'nhwc'].map((order) => ({
    label: order,
    small: true,
    options: { layout: order },
    draw: (r: Random) => [sample(r, [2, 3, 4, 2], any)],
  })),
  run: ([x], o) => pg.globalAvgPool2d(x, { ...layoutOf(o), keepDims: true }),
  oracle: ([x], o) => poolAdaptive(x, [1, 1], o.layout, mean),
  gradient: { of: [0], order: 2 },
};

const adaptive =
  (kind: 'avg' | 'max', rank: number) =>
  (pool: Pool): Made | null => {
    const found = image(pool, rank);
    if (found === null) return null;
    const { x, layout, spatial, written } = found;
    const size = spatial.map(() => pool.c.pick([1, 2, 3, 5]));
    return {
      args: [ref(x), size, ...wholeOptions(written)],
      dtype: x.dtype,
      formula: (a) => poolAdaptive(a, size, layout, kind === 'avg' ? mean : (taps) => largest(taps).value),
      ...(kind === 'avg' ? sums(x.dtype) : {}),
    };
  };

function globalMean(pool: Pool): Made | null {
  const found = image(pool, 2);
  if (found === null) return null;
  const { x, layout, written } = found;
  return {
    args: [ref(x), { ...written, keepDims: true }],
    dtype: x.dtype,
    formula: (a) => poolAdaptive(a, [1, 1], layout, mean),
    ...sums(x.dtype),
  };
}

export const adaptivePoolingRows: readonly OperationRow[] = [
  { name: 'adaptiveAvgPool1d', specs: [lineSpec], calls: smooth(adaptive('avg', 1)) },
  { name: 'adaptiveAvgPool2d', specs: [meanSpec], calls: smooth(adaptive('avg', 2)) },
  { name: 'adaptiveAvgPool3d', specs: [volumeSpec], calls: smooth(adaptive('avg', 3)) },
  { name: 'adaptiveMaxPool1d', specs: otherMaxSpecs(1), calls: smooth(adaptive('max', 1)) },
  { name: 'adaptiveMaxPool2d', specs: maxSpecs, calls: smooth(adaptive('max', 2)) },
  { name: 'adaptiveMaxPool3d', specs: otherMaxSpecs(3), calls: smooth(adaptive('max', 3)) },
  { name: 'globalAvgPool2d', specs: [globalSpec], calls: smooth(globalMean) },
];
