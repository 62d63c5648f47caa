/** Convolutions of every kind in both layouts, with every option: plain, depthwise, transposed and with weights of their own per position. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { channelsFirst, convolve, convolveTransposed, plusBias, type WindowOptions } from '../../oracle/images.ts';
import { along } from '../../oracle/lines.ts';
import { count, type NDArray } from '../../oracle/ndarray.ts';
import { type Random, samples, uniform } from '../../oracle/random.ts';
import { floats, type Instance, type OpSpec, type Options, spec } from '../../spec.ts';
import { bordered } from '../movement/pad.ts';
import { type OperationRow, smooth } from '../row.ts';
import { convolution, single, transposedCall, transposedWithGroups } from './calls.ts';

const any = uniform(-1, 1);
const pair = (l: readonly number[], r: readonly number[]) => (random: Random) => samples(random, [l, r], any);

interface ConvCase {
  readonly x: readonly number[];
  readonly w: readonly number[];
  readonly stride?: number;
  readonly padding?: number;
  readonly dilation?: number;
  readonly groups?: number;
}

const convolutions: readonly ConvCase[] = [
  { x: [1, 1, 3, 3], w: [1, 1, 2, 2] },
  { x: [2, 1, 4, 4], w: [2, 1, 3, 3], padding: 1 },
  { x: [1, 2, 5, 4], w: [2, 2, 3, 3], stride: 2, padding: 1 },
  { x: [1, 2, 5, 5], w: [1, 2, 2, 2], dilation: 2 },
  { x: [1, 4, 3, 3], w: [4, 2, 2, 2], groups: 2 },
  { x: [1, 2, 6, 6], w: [2, 1, 3, 3], groups: 2, stride: 2, padding: 2, dilation: 2 },
  { x: [3, 5, 9, 11], w: [7, 5, 3, 3], padding: 1 },
  { x: [2, 8, 14, 14], w: [16, 8, 3, 3], padding: 1 },
  { x: [2, 3, 13, 13], w: [4, 3, 5, 5], stride: 3, padding: 2 },
  { x: [2, 6, 7, 7], w: [6, 1, 3, 3], padding: 1, groups: 6 },
  { x: [2, 3, 8, 8], w: [5, 3, 1, 1] },
];

const plain: Readonly<Record<1 | 2 | 3, OpSpec>> = {
  1: spec<2>({
    name: 'conv1d',
    dtypes: floats,
    instances: [
      {
        label: '[2,3,9] by [4,3,3]',
        small: true,
        options: { padding: 1, stride: 2 },
        draw: pair([2, 3, 9], [4, 3, 3]),
      },
    ],
    run: ([x, w], o) => pg.conv1d(x, w, o),
    oracle: ([x, w], o) => convolve(x, w, o),
    terms: () => 9,
    gradient: { of: [0, 1], order: 2 },
  }),
  2: spec<2>({
    name: 'conv2d',
    dtypes: floats,
    instances: convolutions.map(({ x, w, ...options }) => ({
      label: `[${x}] by [${w}] ${JSON.stringify(options)}`,
      small: count(x) <= 80 && count(w) <= 64,
      options,
      draw: pair(x, w),
    })),
    run: ([x, w], o) => pg.conv2d(x, w, o),
    oracle: ([x, w], o) => convolve(x, w, o),
    terms: ([, w]) => count(w.shape.slice(1)),
    gradient: { of: [0, 1], order: 2 },
  }),
  3: spec<2>({
    name: 'conv3d',
    dtypes: floats,
    instances: [
      {
        label: '[1,2,3,4,3] by [2,2,2,2,2]',
        small: true,
        options: { padding: 1 },
        draw: pair([1, 2, 3, 4, 3], [2, 2, 2, 2, 2]),
      },
    ],
    run: ([x, w], o) => pg.conv3d(x, w, o),
    oracle: ([x, w], o) => convolve(x, w, o),
    terms: () => 16,
    gradient: { of: [0, 1], order: 1 },
  }),
};

const plainTransposed: OpSpec<2> = {
  name: 'convTranspose2d',
  dtypes: floats,
  instances: [
    { x: [1, 2, 3, 3], w: [2, 2, 2, 2], options: {} },
    { x: [1, 2, 3, 4], w: [2, 1, 3, 3], options: { stride: 2, padding: 1 } },
    { x: [2, 2, 3, 3], w: [2, 1, 2, 2], options: { stride: 2, groups: 2 } },
    { x: [1, 1, 3, 3], w: [1, 2, 2, 2], options: { dilation: 2, stride: 2, outputPadding: 1 } },
  ].map(({ x, w, options }) => ({
    label: `[${x}] by [${w}] ${JSON.stringify(options)}`,
    small: true,
    options,
    draw: pair(x, w),
  })),
  run: ([x, w], o) => pg.convTranspose2d(x, w, o),
  oracle: ([x, w], o) => convolveTransposed(x, w, o),
  terms: ([, w]) => count(w.shape),
  gradient: { of: [0, 1], order: 2 },
};

interface Geometry extends WindowOptions {
  readonly x: readonly number[];
  readonly w: readonly number[];
  readonly bias?: boolean;
  readonly paddingMode?: pg.ConvOptions['paddingMode'];
}

function instancesOf(cases: readonly Geometry[], biasShape: (w: readonly number[], o: Geometry) => number[]) {
  return cases.map((geometry): Instance<2 | 3> => {
    const { x, w, bias = false, ...options } = geometry;
    return {
      label: `[${x}] by [${w}] ${JSON.stringify(options)}${bias ? ' with bias' : ''}`,
      small: count(x) > 0 && count(x) <= 90 && count(w) <= 80,
      options,
      draw: (r: Random) => samples(r, bias ? [x, w, biasShape(w, geometry)] : [x, w], any),
    };
  });
}

const convolutions1d: readonly Geometry[] = [
  { x: [1, 1, 1], w: [1, 1, 1] },
  { x: [2, 3, 7], w: [2, 3, 3], padding: [[2, 0]], bias: true },
  { x: [2, 7, 3], w: [2, 3, 3], padding: 'same', stride: 2, layout: 'nhwc', bias: true },
  { x: [2, 4, 9], w: [4, 2, 2], groups: 2, dilation: 3 },
  { x: [0, 2, 5], w: [3, 2, 3] },
  { x: [2, 2, 5], w: [3, 2, 3], padding: 2, paddingMode: 'circular', stride: 2, bias: true },
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
  { x: [1, 2, 4, 5], w: [4, 1, 3, 2], padding: 1, paddingMode: 'reflect', groups: 2, bias: true },
  { x: [1, 4, 3, 2], w: [2, 2, 3, 3], layout: 'nhwc', padding: 2, paddingMode: 'replicate', dilation: 2 },
];

const convolutions3d: readonly Geometry[] = [
  { x: [1, 3, 2, 3, 2], w: [2, 2, 2, 1, 2], layout: 'nhwc', padding: 'same' },
  { x: [1, 2, 3, 3, 2], w: [2, 1, 2, 2, 2], groups: 2, stride: [1, 2, 1], bias: true },
];

const depthwise: readonly Geometry[] = [
  { x: [2, 3, 4, 4], w: [3, 1, 3, 3], padding: 1, bias: true },
  { x: [1, 5, 4, 2], w: [4, 1, 2, 2], layout: 'nhwc', stride: 2 },
  { x: [2, 9, 9, 8], w: [8, 1, 3, 3], layout: 'nhwc', padding: 'same' },
  { x: [2, 8, 9, 17], w: [17, 1, 3, 3], layout: 'nhwc', stride: 2, padding: 1, bias: true },
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

/** An image with a border of another kind than zeros. */
function withBorder(x: NDArray, { paddingMode, padding, layout }: Options): NDArray {
  const first = layout === 'nhwc' ? 1 : 2;
  return x.shape.slice(2).reduce((y, _, axis) => {
    const [size, width] = [x.shape[first + axis] as number, padding as number];
    return along(y, first + axis, size + 2 * width, (i) => bordered(paddingMode as string, i - width, size), 0);
  }, x);
}

type ConvRun = (x: Tensor, w: Tensor, o: object) => Tensor;

function convSpec(name: string, run: ConvRun, cases: readonly Geometry[], oracle: typeof convolve): OpSpec<2 | 3> {
  const one = (shape: readonly number[]) => [shape[0] as number];
  return {
    name: `${name}, every option`,
    dtypes: floats,
    instances: instancesOf(cases, one),
    run: ([x, w, bias], o) => run(x, w, bias ? { ...o, bias } : o),
    oracle: ([x, w, bias], o) => {
      const groups = name === 'depthwiseConv2d' ? channelsFirst(x, o.layout).shape[1] : o.groups;
      const [image, given] = o.paddingMode ? [withBorder(x, o), { ...o, padding: 0 }] : [x, o];
      const y = oracle(image, w, { ...given, ...(groups ? { groups: groups as number } : {}) });
      return bias ? plusBias(y, bias, o.layout) : y;
    },
    terms: ([, w]) => count(w.shape) / (w.shape[0] as number) + 1,
    gradient: { of: [0, 1], order: 2 },
  };
}

function transposedSpec(rank: 1 | 2 | 3): OpSpec<2 | 3> {
  const run = { 1: pg.convTranspose1d, 2: pg.convTranspose2d, 3: pg.convTranspose3d }[rank] as ConvRun;
  const cases = transposed.filter((c) => c.rank === rank).map(({ rank: _, ...c }) => c);
  return {
    name: `convTranspose${rank}d, every option`,
    dtypes: floats,
    instances: instancesOf(cases, (w, { groups = 1 }) => [(w[1] as number) * groups]),
    run: ([x, w, bias], o) => run(x, w, bias ? { ...o, bias } : o),
    oracle: ([x, w, bias], o) => {
      const y = convolveTransposed(x, w, o);
      return bias ? plusBias(y, bias, o.layout) : y;
    },
    terms: ([, w]) => count(w.shape),
    gradient: { of: [0, 1], order: 2 },
  };
}

export const convolutionRows: readonly OperationRow[] = [
  {
    name: 'conv1d',
    specs: [plain[1], convSpec('conv1d', pg.conv1d, convolutions1d, convolve)],
    calls: smooth(convolution(1)),
  },
  {
    name: 'conv2d',
    specs: [plain[2], convSpec('conv2d', pg.conv2d, convolutions2d, convolve)],
    calls: smooth(convolution(2)),
  },
  {
    name: 'conv3d',
    specs: [plain[3], convSpec('conv3d', pg.conv3d, convolutions3d, convolve)],
    calls: smooth(convolution(3)),
  },
  {
    name: 'depthwiseConv2d',
    specs: [convSpec('depthwiseConv2d', pg.depthwiseConv2d, depthwise, convolve)],
    calls: smooth(single(false)),
  },
  {
    name: 'locallyConnectedConv2d',
    specs: [convSpec('locallyConnectedConv2d', pg.locallyConnectedConv2d, local, (x, w, o) => convolve(x, w, o, true))],
    calls: smooth(single(true)),
    notes: { goldens: 'PyTorch 1.13 has none' },
  },
  { name: 'convTranspose1d', specs: [transposedSpec(1)], calls: smooth(transposedCall(1)) },
  { name: 'convTranspose2d', specs: [plainTransposed, transposedSpec(2)], calls: smooth(transposedWithGroups) },
  { name: 'convTranspose3d', specs: [transposedSpec(3)], calls: smooth(transposedCall(3)) },
];
