/** Convolutions of every kind and pooling of every kind, in both layouts, with every option. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import {
  channelsFirst,
  convolve,
  convolveTransposed,
  largest,
  plusBias,
  poolAdaptive,
  poolWindows,
  unpool,
  type WindowOptions,
} from '../oracle/images.ts';
import { count, type NDArray } from '../oracle/ndarray.ts';
import { integer, type Random, sample, uniform } from '../oracle/random.ts';
import type { Instance, OpSpec, Options } from '../spec.ts';

const floats: readonly DType[] = ['float32', 'float64'];
const any = uniform(-1, 1);
/** Few different values, so that many windows have several maxima. */
const tied = integer(-2, 2);

interface Geometry extends WindowOptions {
  readonly x: readonly number[];
  readonly w: readonly number[];
  readonly bias?: boolean;
}

function instancesOf(cases: readonly Geometry[], biasShape: (w: readonly number[], o: Geometry) => number[]) {
  return cases.map((geometry): Instance => {
    const { x, w, bias = false, ...options } = geometry;
    return {
      label: `[${x}] by [${w}] ${JSON.stringify(options)}${bias ? ' with bias' : ''}`,
      small: count(x) > 0 && count(x) <= 90 && count(w) <= 80,
      options,
      draw: (r: Random) => [
        sample(r, x, any),
        sample(r, w, any),
        ...(bias ? [sample(r, biasShape(w, geometry), any)] : []),
      ],
    };
  });
}

const convolutions1d: readonly Geometry[] = [
  { x: [1, 1, 1], w: [1, 1, 1] },
  { x: [2, 3, 7], w: [2, 3, 3], padding: [[2, 0]], bias: true },
  { x: [2, 7, 3], w: [2, 3, 3], padding: 'same', stride: 2, layout: 'nhwc', bias: true },
  { x: [2, 4, 9], w: [4, 2, 2], groups: 2, dilation: 3 },
  { x: [0, 2, 5], w: [3, 2, 3] },
];

const convolutions2d: readonly Geometry[] = [
  { x: [1, 1, 1, 1], w: [1, 1, 1, 1], layout: 'nhwc' },
  { x: [2, 4, 5, 2], w: [3, 2, 3, 2], layout: 'nhwc', stride: [2, 1], bias: true },
  {
    x: [1, 5, 4, 2],
    w: [2, 2, 3, 3],
    layout: 'nhwc',
    padding: [
      [1, 2],
      [0, 1],
    ],
    dilation: [1, 2],
  },
  { x: [1, 4, 4, 4], w: [4, 2, 2, 2], layout: 'nhwc', groups: 2, padding: 'same', stride: 2 },
  { x: [1, 2, 1, 6], w: [2, 2, 1, 3], padding: 'valid', stride: [1, 2] },
  { x: [1, 1, 2, 2], w: [1, 1, 4, 3], padding: [1, 1] },
  { x: [0, 3, 3, 2], w: [4, 2, 2, 2], layout: 'nhwc' },
  { x: [2, 9, 11, 5], w: [7, 5, 3, 3], layout: 'nhwc', padding: 1 },
  { x: [2, 14, 14, 8], w: [16, 8, 3, 3], layout: 'nhwc', padding: 'same', bias: true },
  { x: [2, 8, 8, 6], w: [9, 2, 3, 3], layout: 'nhwc', groups: 3, stride: 2, padding: 1 },
  { x: [3, 8, 8, 16], w: [8, 16, 1, 1], layout: 'nhwc' },
];

const convolutions3d: readonly Geometry[] = [
  { x: [1, 3, 2, 3, 2], w: [2, 2, 2, 1, 2], layout: 'nhwc', padding: 'same' },
  { x: [1, 2, 3, 3, 2], w: [2, 1, 2, 2, 2], groups: 2, stride: [1, 2, 1], bias: true },
];

const depthwise: readonly Geometry[] = [
  { x: [2, 3, 4, 4], w: [3, 1, 3, 3], padding: 1, bias: true },
  { x: [1, 5, 4, 2], w: [4, 1, 2, 2], layout: 'nhwc', stride: 2 },
  { x: [2, 9, 9, 8], w: [8, 1, 3, 3], layout: 'nhwc', padding: 'same' },
];

const transposed: readonly (Geometry & { readonly rank: 1 | 2 | 3 })[] = [
  { rank: 1, x: [2, 2, 4], w: [2, 3, 3], stride: 2, outputPadding: 1, bias: true },
  { rank: 1, x: [1, 4, 4], w: [4, 1, 2], stride: 3, groups: 2, layout: 'nhwc' },
  { rank: 2, x: [1, 3, 3, 2], w: [2, 2, 3, 2], stride: [2, 1], padding: [1, 0], layout: 'nhwc', bias: true },
  { rank: 2, x: [1, 2, 2, 3], w: [2, 1, 3, 3], dilation: 2, padding: 2 },
  { rank: 2, x: [0, 2, 2, 2], w: [2, 1, 2, 2] },
  { rank: 2, x: [2, 5, 5, 6], w: [6, 4, 4, 4], stride: 2, padding: 1, layout: 'nhwc' },
  { rank: 3, x: [1, 2, 2, 2, 2], w: [2, 1, 2, 2, 2], stride: 2, outputPadding: [1, 0, 1] },
  { rank: 3, x: [1, 2, 1, 2, 2], w: [2, 2, 2, 1, 2], layout: 'nhwc' },
];

const local: readonly Geometry[] = [
  { x: [1, 1, 3, 3], w: [1, 1, 2, 2, 2, 2] },
  { x: [2, 2, 3, 4], w: [2, 2, 2, 2, 2, 1], stride: [1, 2], bias: true },
  { x: [1, 3, 3, 2], w: [2, 1, 3, 3, 2, 2], layout: 'nhwc', groups: 2, padding: 'same', bias: true },
  { x: [2, 4, 7, 7], w: [6, 4, 4, 4, 3, 3], stride: 2, padding: 1 },
];

type ConvRun = (x: Tensor, w: Tensor, o: object) => Tensor;

function convSpec(name: string, run: ConvRun, cases: readonly Geometry[], oracle: typeof convolve): OpSpec {
  const one = (shape: readonly number[]) => [shape[0] as number];
  return {
    name: `${name}, every option`,
    dtypes: floats,
    instances: instancesOf(cases, one),
    run: ([x, w, bias], o) => run(x as Tensor, w as Tensor, bias ? { ...o, bias } : o),
    oracle: ([x, w, bias], o) => {
      const groups = name === 'depthwiseConv2d' ? channelsFirst(x as NDArray, o.layout).shape[1] : o.groups;
      const y = oracle(x as NDArray, w as NDArray, { ...o, ...(groups ? { groups: groups as number } : {}) });
      return bias ? plusBias(y, bias, o.layout) : y;
    },
    terms: ([, w]) => count((w as NDArray).shape) / ((w as NDArray).shape[0] as number) + 1,
    gradient: { of: [0, 1], order: 2 },
  };
}

function transposedSpec(rank: 1 | 2 | 3): OpSpec {
  const run = { 1: pg.convTranspose1d, 2: pg.convTranspose2d, 3: pg.convTranspose3d }[rank] as ConvRun;
  const cases = transposed.filter((c) => c.rank === rank).map(({ rank: _, ...c }) => c);
  return {
    name: `convTranspose${rank}d, every option`,
    dtypes: floats,
    instances: instancesOf(cases, (w, { groups = 1 }) => [(w[1] as number) * groups]),
    run: ([x, w, bias], o) => run(x as Tensor, w as Tensor, bias ? { ...o, bias } : o),
    oracle: ([x, w, bias], o) => {
      const y = convolveTransposed(x as NDArray, w as NDArray, o);
      return bias ? plusBias(y, bias, o.layout) : y;
    },
    terms: ([, w]) => count((w as NDArray).shape),
    gradient: { of: [0, 1], order: 2 },
  };
}

const pools: readonly (WindowOptions & { readonly x: readonly number[]; readonly size: number | readonly number[] })[] =
  [
    { x: [1, 1, 1, 1], size: 1 },
    { x: [1, 2, 5, 4], size: 2 },
    { x: [1, 5, 4, 2], size: 2, layout: 'nhwc', ceilMode: true },
    { x: [2, 1, 4, 5], size: [3, 2], stride: [1, 2], padding: [1, 0] },
    { x: [1, 1, 5, 5], size: 3, stride: 2, padding: 1, ceilMode: true },
    { x: [1, 4, 4, 2], size: 2, stride: 1, padding: 'same', layout: 'nhwc' },
    {
      x: [1, 1, 4, 4],
      size: 2,
      stride: 2,
      padding: [
        [1, 0],
        [0, 1],
      ],
    },
    { x: [0, 2, 4, 4], size: 2 },
    { x: [2, 13, 9, 8], size: 3, stride: 2, padding: 1, layout: 'nhwc' },
  ];

function poolInstances(extra: readonly (typeof pools)[number][] = [], values = any): Instance[] {
  return [...pools, ...extra].map(({ x, ...options }) => ({
    label: `[${x}] ${JSON.stringify(options)}`,
    small: count(x) > 0 && count(x) <= 60,
    options,
    draw: (r: Random) => [sample(r, x, values)],
  }));
}

/** The window's options without its size. */
function settings({ size: _, ...rest }: Options): Options {
  return rest;
}

const sumOf = (values: readonly { readonly value: number }[]): number => values.reduce((s, t) => s + t.value, 0);

function poolSpecs(): OpSpec[] {
  const dilated = [{ x: [1, 1, 6, 5], size: 2, stride: 1, dilation: [3, 2] }];
  const uncounted = [
    { x: [1, 2, 4, 4], size: 3, stride: 2, padding: 1, countIncludePad: false },
    {
      x: [1, 5, 5, 1],
      size: 3,
      stride: 2,
      padding: 1,
      countIncludePad: false,
      ceilMode: true,
      layout: 'nhwc' as const,
    },
  ];
  const window = (o: Options): number | number[] => o.size as number | number[];
  return [
    {
      name: 'maxPool2d, every option',
      dtypes: floats,
      instances: poolInstances(dilated),
      run: ([x], o) => pg.maxPool2d(x as Tensor, window(o), settings(o)),
      oracle: ([x], o) => poolWindows(x as NDArray, window(o), o, (taps) => largest(taps).value),
      gradient: { of: [0], order: 2 },
    },
    {
      name: 'maxPool2d of ties',
      dtypes: ['int32', 'float32'],
      instances: poolInstances(dilated, tied),
      run: ([x], o) => pg.maxPool2d(x as Tensor, window(o), settings(o)),
      oracle: ([x], o) => poolWindows(x as NDArray, window(o), o, (taps) => largest(taps).value),
    },
    {
      name: 'maxPool2d indices',
      dtypes: [...floats, 'int32'],
      instances: poolInstances(dilated, tied),
      run: ([x], o) => pg.maxPool2d(x as Tensor, window(o), { ...settings(o), returnIndices: true })[1],
      oracle: ([x], o) => poolWindows(x as NDArray, window(o), o, (taps) => largest(taps).position),
      result: 'int32',
    },
    {
      name: 'avgPool2d, every option',
      dtypes: floats,
      instances: poolInstances(uncounted),
      run: ([x], o) => pg.avgPool2d(x as Tensor, window(o), settings(o)),
      oracle: ([x], o) =>
        poolWindows(
          x as NDArray,
          window(o),
          o,
          (taps, padded) => sumOf(taps) / (o.countIncludePad === false ? taps.length : padded),
        ),
      gradient: { of: [0], order: 2 },
    },
    ...[1, 2, 3].map(
      (order): OpSpec => ({
        name: `lpPool2d of order ${order}`,
        dtypes: floats,
        instances: poolInstances(dilated),
        run: ([x], o) => pg.lpPool2d(x as Tensor, order, window(o), settings(o)),
        oracle: ([x], o) =>
          poolWindows(
            x as NDArray,
            window(o),
            o,
            (taps) => taps.reduce((s, t) => s + Math.abs(t.value) ** order, 0) ** (1 / order),
          ),
        gradient: { of: [0], order: 2 },
      }),
    ),
    ...([1, 3] as const).flatMap((rank): OpSpec[] => {
      const instances: Instance[] = [
        { x: rank === 1 ? [2, 3, 7] : [1, 2, 3, 4, 3], o: { size: 2, ceilMode: true } },
        { x: rank === 1 ? [2, 7, 3] : [1, 3, 4, 3, 2], o: { size: 3, stride: 1, padding: 1, layout: 'nhwc' } },
      ].map(({ x, o }) => ({
        label: `[${x}] ${JSON.stringify(o)}`,
        small: true,
        options: o,
        draw: (r: Random) => [sample(r, x, any)],
      }));
      const max = rank === 1 ? pg.maxPool1d : pg.maxPool3d;
      const mean = rank === 1 ? pg.avgPool1d : pg.avgPool3d;
      return [
        {
          name: `maxPool${rank}d`,
          dtypes: floats,
          instances,
          run: ([x], o) => max(x as Tensor, window(o), settings(o)),
          oracle: ([x], o) => poolWindows(x as NDArray, window(o), o, (taps) => largest(taps).value),
          gradient: { of: [0], order: 2 },
        },
        {
          name: `maxPool${rank}d indices`,
          dtypes: floats,
          instances,
          run: ([x], o) => max(x as Tensor, window(o), { ...settings(o), returnIndices: true })[1],
          oracle: ([x], o) => poolWindows(x as NDArray, window(o), o, (taps) => largest(taps).position),
          result: 'int32',
        },
        {
          name: `avgPool${rank}d`,
          dtypes: floats,
          instances,
          run: ([x], o) => mean(x as Tensor, window(o), settings(o)),
          oracle: ([x], o) => poolWindows(x as NDArray, window(o), o, (taps, padded) => sumOf(taps) / padded),
          gradient: { of: [0], order: 2 },
        },
      ];
    }),
    ...adaptiveSpecs(),
    unpoolSpec(),
  ];
}

function adaptiveSpecs(): OpSpec[] {
  const instances: Instance[] = [
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
  const layout = (o: Options): { layout: 'nchw' | 'nhwc' } => ({ layout: o.layout as 'nchw' | 'nhwc' });
  const size = (o: Options): number[] => o.size as number[];
  const mean = (taps: readonly { readonly value: number }[]): number => sumOf(taps) / taps.length;
  return [
    {
      name: 'adaptiveAvgPool2d',
      dtypes: floats,
      instances,
      run: ([x], o) => pg.adaptiveAvgPool2d(x as Tensor, size(o), layout(o)),
      oracle: ([x], o) => poolAdaptive(x as NDArray, size(o), o.layout, mean),
      gradient: { of: [0], order: 2 },
    },
    {
      name: 'adaptiveMaxPool2d',
      dtypes: floats,
      instances,
      run: ([x], o) => pg.adaptiveMaxPool2d(x as Tensor, size(o), layout(o)),
      oracle: ([x], o) => poolAdaptive(x as NDArray, size(o), o.layout, (taps) => largest(taps).value),
      gradient: { of: [0], order: 2 },
    },
    {
      name: 'adaptiveMaxPool2d indices',
      dtypes: [...floats, 'int32'],
      instances: instances.map((i) => ({ ...i, draw: (r: Random) => i.draw(r).map((a) => sample(r, a.shape, tied)) })),
      run: ([x], o) => pg.adaptiveMaxPool2d(x as Tensor, size(o), { ...layout(o), returnIndices: true })[1],
      oracle: ([x], o) => poolAdaptive(x as NDArray, size(o), o.layout, (taps) => largest(taps).position),
      result: 'int32',
    },
    {
      name: 'adaptiveAvgPool1d',
      dtypes: floats,
      instances: [1, 3, 7, 8].map((n) => ({
        label: `7 to ${n}`,
        small: true,
        options: { size: [n] },
        draw: (r: Random) => [sample(r, [2, 2, 7], any)],
      })),
      run: ([x], o) => pg.adaptiveAvgPool1d(x as Tensor, size(o)),
      oracle: ([x], o) => poolAdaptive(x as NDArray, size(o), 'nchw', mean),
      gradient: { of: [0], order: 2 },
    },
    {
      name: 'globalAvgPool2d',
      dtypes: floats,
      instances: ['nchw', 'nhwc'].map((order) => ({
        label: order,
        small: true,
        options: { layout: order },
        draw: (r: Random) => [sample(r, [2, 3, 4, 2], any)],
      })),
      run: ([x], o) => pg.globalAvgPool2d(x as Tensor, { ...layout(o), keepDims: true }),
      oracle: ([x], o) => poolAdaptive(x as NDArray, [1, 1], o.layout, mean),
      gradient: { of: [0], order: 2 },
    },
  ];
}

/** Pooled with overlapping windows, so that positions repeat, and put back. */
function unpoolSpec(): OpSpec {
  const cases = [
    { x: [1, 2, 4, 4], out: [4, 4], size: 2, layout: 'nchw' as const },
    { x: [1, 5, 5, 2], out: [5, 5], size: 3, stride: 1, layout: 'nhwc' as const },
    { x: [1, 1, 5, 5], out: [5, 5], size: 2, layout: 'nchw' as const },
    { x: [2, 1, 6, 4], out: [6, 4], size: [3, 2], stride: [2, 2], padding: [1, 0], layout: 'nchw' as const },
    { x: [0, 1, 4, 4], out: [4, 4], size: 2, layout: 'nchw' as const },
  ];
  const pooled = (x: NDArray, o: Options): NDArray =>
    poolWindows(x, o.size as number, o as WindowOptions, (taps) => largest(taps).value);
  return {
    name: 'maxUnpool2d of maxPool2d',
    dtypes: floats,
    instances: cases.map(({ x, ...options }) => ({
      label: `[${x}] ${JSON.stringify(options)}`,
      small: count(x) > 0,
      options,
      draw: (r: Random) => [sample(r, x, any)],
    })),
    run: ([x], { out, size, ...rest }) => {
      const [top, places] = pg.maxPool2d(x as Tensor, size as number, { ...rest, returnIndices: true });
      return pg.maxUnpool2d(top, places, size as number, { ...rest, outputSize: out as [number, number] });
    },
    oracle: ([x], o) => {
      const places = poolWindows(x as NDArray, o.size as number, o as WindowOptions, (t) => largest(t).position);
      return unpool(pooled(x as NDArray, o), places, o.out as number[], o.layout);
    },
    gradient: { of: [0], order: 2 },
  };
}

export function imageSpecs(): OpSpec[] {
  return [
    convSpec('conv1d', pg.conv1d, convolutions1d, convolve),
    convSpec('conv2d', pg.conv2d, convolutions2d, convolve),
    convSpec('conv3d', pg.conv3d, convolutions3d, convolve),
    convSpec('depthwiseConv2d', pg.depthwiseConv2d, depthwise, convolve),
    convSpec('locallyConnectedConv2d', pg.locallyConnectedConv2d, local, (x, w, o) => convolve(x, w, o, true)),
    transposedSpec(1),
    transposedSpec(2),
    transposedSpec(3),
    ...poolSpecs(),
  ];
}
