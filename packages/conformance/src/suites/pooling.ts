/** Pooling by windows in both layouts, with every option, and maxima put back where they were. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { largest, poolWindows, sumOf, unpool, type WindowOptions } from '../oracle/images.ts';
import { count, type NDArray } from '../oracle/ndarray.ts';
import { integer, type Random, sample, uniform } from '../oracle/random.ts';
import type { Instance, OpSpec, Options } from '../spec.ts';

const floats: readonly DType[] = ['float32', 'float64'];
const any = uniform(-1, 1);
/** Few different values, so that many windows have several maxima. */
const tied = integer(-2, 2);

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

export function poolSpecs(): OpSpec[] {
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
  ];
}

/** Pooled with overlapping windows, so that positions repeat, and put back. */
export function unpoolSpec(): OpSpec {
  const cases = [
    { x: [1, 2, 4, 4], out: [4, 4], size: 2, layout: 'nchw' as const },
    { x: [1, 5, 5, 2], out: [5, 5], size: 3, stride: 1, layout: 'nhwc' as const },
    { x: [1, 1, 5, 5], out: [5, 5], size: 2, layout: 'nchw' as const },
    { x: [2, 1, 6, 4], out: [6, 4], size: [3, 2], stride: [2, 2], padding: [1, 0], layout: 'nchw' as const },
    { x: [0, 1, 4, 4], out: [4, 4], size: 2, layout: 'nchw' as const },
    // The last windows reach over the edge.
    { x: [1, 2, 5, 3], out: [5, 3], size: 2, ceilMode: true, layout: 'nchw' as const },
    { x: [1, 6, 5, 1], out: [6, 5], size: 3, stride: 2, padding: 1, ceilMode: true, layout: 'nhwc' as const },
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
    run: ([x], { out, size, ceilMode = false, ...rest }) => {
      const pooling = { ...rest, ceilMode: ceilMode as boolean, returnIndices: true } as const;
      const [top, places] = pg.maxPool2d(x as Tensor, size as number, pooling);
      return pg.maxUnpool2d(top, places, size as number, { ...rest, outputSize: out as [number, number] });
    },
    oracle: ([x], o) => {
      const places = poolWindows(x as NDArray, o.size as number, o as WindowOptions, (t) => largest(t).position);
      return unpool(pooled(x as NDArray, o), places, o.out as number[], o.layout);
    },
    gradient: { of: [0], order: 2 },
  };
}
