/** Pooling by windows in both layouts, with every option, and maxima put back where they were. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { operand, sums } from '../../programs/operands.ts';
import { isFloat, type Made, type Pool, ref } from '../../programs/pool.ts';
import type { Arg } from '../../programs/program.ts';
import { fresh, image, wholeOptions, windowFor } from './image.ts';
import { type OperationRow, smooth } from '../row.ts';
import { largest, poolWindows, sumOf, type Tap, unpool, type WindowOptions } from '../../oracle/images.ts';
import { pool as poolOf } from '../../oracle/linear.ts';
import { count, type NDArray } from '../../oracle/ndarray.ts';
import { integer, type Random, sample, uniform } from '../../oracle/random.ts';
import type { Instance, OpSpec, Options } from '../../spec.ts';

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

function plainSpecs(): OpSpec[] {
  const geometries = [
    { size: 2, stride: 2, padding: 0 },
    { size: 3, stride: 2, padding: 1 },
    { size: 3, stride: 1, padding: 0 },
  ];
  const instances = (shapes: readonly (readonly number[])[]) =>
    shapes.flatMap((shape) =>
      geometries.map((options) => ({
        label: `[${shape}] ${JSON.stringify(options)}`,
        small: count(shape) <= 40,
        options,
        draw: (r: Random) => [sample(r, shape, any)],
      })),
    );
  const shapes = [
    [1, 1, 4, 4],
    [1, 2, 5, 4],
    [2, 3, 14, 14],
    [2, 3, 9, 11],
  ];
  const window = (o: Readonly<Record<string, unknown>>) => ({
    stride: o.stride as number,
    padding: o.padding as number,
  });
  return [
    {
      name: 'maxPool2d',
      dtypes: floats,
      instances: instances(shapes),
      run: ([x], o) => pg.maxPool2d(x as Tensor, o.size as number, window(o)),
      oracle: ([x], o) => poolOf(x as NDArray, o.size as number, window(o), (v) => Math.max(...v)),
      gradient: { of: [0], order: 2 },
    },
    {
      name: 'avgPool2d',
      dtypes: floats,
      instances: instances(shapes),
      run: ([x], o) => pg.avgPool2d(x as Tensor, o.size as number, window(o)),
      oracle: ([x], o) => poolOf(x as NDArray, o.size as number, window(o), (v, n) => v.reduce((a, b) => a + b, 0) / n),
      gradient: { of: [0], order: 2 },
    },
  ];
}

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

/** The least value of a dtype: the maximum of nothing. */
function leastOf(dtype: DType): number {
  if (isFloat(dtype)) return Number.NEGATIVE_INFINITY;
  return dtype.startsWith('u') ? 0 : -(2 ** (Number(/\d+$/.exec(dtype)?.[0]) - 1));
}

/** A random call with windows that may be dilated, or reach over the edge. */
function pooled(kind: 'max' | 'avg', rank: number) {
  return (pool: Pool): Made | null => {
    const x =
      operand(pool, rank + 2, rank + 2, (v) => (kind === 'max' || isFloat(v.dtype)) && !v.shape.includes(0)) ??
      fresh(pool, rank);
    if (x === null) return null;
    const window = windowFor(pool, x.shape.slice(2), true);
    if (window === null) return null;
    const { dilation, ...rest } = window.options;
    const options = {
      ...rest,
      ...(kind === 'max' ? { dilation } : {}),
      ...(pool.c.seldom(3) ? { ceilMode: true } : {}),
    };
    const f =
      kind === 'max'
        ? // Dilated windows may have no element at all.
          (taps: { value: number; position: number }[]) => (taps.length === 0 ? leastOf(x.dtype) : largest(taps).value)
        : (taps: { value: number; position: number }[], padded: number) => sumOf(taps) / padded;
    return {
      args: [ref(x), window.kernel, options as Arg],
      dtype: x.dtype,
      formula: (a) => poolWindows(a as NDArray, window.kernel, options as never, f),
      noise: kind === 'max' ? 'none' : 'all',
      ordered: kind === 'max',
    };
  };
}

/** Pooling with windows of all kinds; of three axes, of a power, and where a maximum lies. */
const pooling =
  (kind: 'max' | 'avg' | 'lp', rank: number) =>
  (pool: Pool): Made | null => {
    const found = image(pool, rank);
    if (found === null) return null;
    const { x, layout, spatial, written } = found;
    const window = spatial.map(() => pool.c.pick([2, 1, 3]));
    if (window.some((k, i) => k > (spatial[i] as number))) return null;
    const same = pool.c.seldom(4);
    const inside = pool.c.seldom(3);
    const options = {
      ...written,
      ...(pool.c.nat(2) === 0 ? { stride: spatial.map(() => pool.c.pick([1, 2])) } : {}),
      ...(kind === 'lp' ? {} : { padding: same ? 'same' : window.map((k) => pool.c.nat(Math.floor(k / 2) + 1)) }),
      ...(kind === 'avg' && inside ? { countIncludePad: false } : {}),
    };
    const order = pool.c.pick([2, 1, 3]);
    const positions = kind === 'max' && pool.c.seldom(3);
    const f = (taps: Tap[], padded: number): number => {
      if (kind === 'avg') return sumOf(taps) / (inside ? taps.length : padded);
      if (kind === 'max') return positions ? largest(taps).position : largest(taps).value;
      return taps.reduce((s, t) => s + Math.abs(t.value) ** order, 0) ** (1 / order);
    };
    if (kind === 'lp' && x.data.some((v) => Math.abs(v) < 1e-2)) return null;
    return {
      args: [
        ref(x),
        ...(kind === 'lp' ? [order] : []),
        window,
        { ...options, ...(positions ? { returnIndices: true } : {}) } as Arg,
      ],
      ...(positions ? { part: 1 } : {}),
      dtype: positions ? 'int32' : x.dtype,
      formula: (a) => poolWindows(a as NDArray, window, { ...options, layout } as never, f),
      ...(kind === 'max' ? {} : sums(x.dtype)),
    };
  };

function maxUnpool2d(pool: Pool): Made | null {
  const found = image(pool, 2, 200);
  if (found === null) return null;
  const { x, layout, spatial, written } = found;
  const window = [pool.c.pick([2, 3]), pool.c.pick([2, 1])];
  const out = spatial.map((n, i) => n * (window[i] as number));
  const index = pool.indices(x.shape, 0, count(out) - 1);
  if (index.dtype === 'uint8' && count(out) > 250) return null;
  return {
    args: [ref(x), ref(index), window, ...wholeOptions(written)],
    dtype: x.dtype,
    formula: (a, i) => unpool(a as NDArray, i as NDArray, out, layout),
    ...sums(x.dtype),
  };
}

/** Of their specs, those of one function. */
const specsOf = (name: string): OpSpec[] =>
  [...plainSpecs(), ...poolSpecs()].filter((spec) => spec.name.split(/[ ,]/)[0] === name);

export const poolingRows: readonly OperationRow[] = [
  { name: 'maxPool1d', specs: specsOf('maxPool1d'), calls: smooth(pooled('max', 1)) },
  { name: 'maxPool2d', specs: specsOf('maxPool2d'), calls: smooth(pooled('max', 2), pooling('max', 2)) },
  { name: 'maxPool3d', specs: specsOf('maxPool3d'), calls: smooth(pooling('max', 3)) },
  { name: 'avgPool1d', specs: specsOf('avgPool1d'), calls: smooth(pooled('avg', 1)) },
  { name: 'avgPool2d', specs: specsOf('avgPool2d'), calls: smooth(pooled('avg', 2), pooling('avg', 2)) },
  { name: 'avgPool3d', specs: specsOf('avgPool3d'), calls: smooth(pooling('avg', 3)) },
  { name: 'lpPool2d', specs: specsOf('lpPool2d'), calls: smooth(pooling('lp', 2)) },
  { name: 'maxUnpool2d', specs: [unpoolSpec()], calls: smooth(maxUnpool2d) },
];
