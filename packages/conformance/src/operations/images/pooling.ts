/** Pooling by windows in both layouts, with every option, and maxima put back where they were. */
import * as pg from '@polygrad/core';
import type { DType, Tensor } from '@polygrad/core';
import { largest, poolWindows, sumOf, type Tap, unpool, type WindowOptions } from '../../oracle/images.ts';
import { count, type NDArray } from '../../oracle/ndarray.ts';
import { integer, type Random, sample, uniform } from '../../oracle/random.ts';
import { operand, sums } from '../../programs/operands.ts';
import { isFloat, type Made, type Pool, ref } from '../../programs/pool.ts';
import type { Arg } from '../../programs/program.ts';
import { floats, type Instance, type OpSpec, type Options } from '../../spec.ts';
import { type OperationRow, smooth } from '../row.ts';
import { fresh, image, wholeOptions, windowFor } from './image.ts';

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

function poolInstances(extra: readonly (typeof pools)[number][] = [], values = any): Instance<1>[] {
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

/** Four images with three windows each. */
const plain: readonly Instance<1>[] = [
  [1, 1, 4, 4],
  [1, 2, 5, 4],
  [2, 3, 14, 14],
  [2, 3, 9, 11],
].flatMap((shape) =>
  [
    { size: 2, stride: 2, padding: 0 },
    { size: 3, stride: 2, padding: 1 },
    { size: 3, stride: 1, padding: 0 },
  ].map((options) => ({
    label: `[${shape}] ${JSON.stringify(options)}`,
    small: count(shape) <= 40,
    options,
    draw: (r: Random) => [sample(r, shape, any)],
  })),
);

const dilated = [{ x: [1, 1, 6, 5], size: 2, stride: 1, dilation: [3, 2] }];
const uncounted = [
  { x: [1, 2, 4, 4], size: 3, stride: 2, padding: 1, countIncludePad: false },
  { x: [1, 5, 5, 1], size: 3, stride: 2, padding: 1, countIncludePad: false, ceilMode: true, layout: 'nhwc' as const },
];

/** Images of one or of three axes. */
const otherRank = (rank: 1 | 3): Instance<1>[] =>
  [
    { x: rank === 1 ? [2, 3, 7] : [1, 2, 3, 4, 3], o: { size: 2, ceilMode: true } },
    { x: rank === 1 ? [2, 7, 3] : [1, 3, 4, 3, 2], o: { size: 3, stride: 1, padding: 1, layout: 'nhwc' } },
  ].map(({ x, o }) => ({
    label: `[${x}] ${JSON.stringify(o)}`,
    small: true,
    options: o,
    draw: (r: Random) => [sample(r, x, any)],
  }));

/** A number from the elements of a window, of which there are so many with the padding. */
type Fold = (taps: readonly Tap[], padded: number, o: Options) => number;
const top: Fold = (taps) => largest(taps as Tap[]).value;
const placeOfTop: Fold = (taps) => largest(taps as Tap[]).position;
const mean: Fold = (taps, padded, o) => sumOf(taps) / (o.countIncludePad === false ? taps.length : padded);
const norm =
  (order: number): Fold =>
  (taps) =>
    taps.reduce((s, t) => s + Math.abs(t.value) ** order, 0) ** (1 / order);

const windowOf = (o: Options): number | number[] => o.size as number | number[];
const twice: Partial<Pick<OpSpec, 'dtypes' | 'gradient' | 'result'>> = { gradient: { of: [0], order: 2 } };

const windowSpec = (
  name: string,
  run: (x: Tensor, window: number | number[], o: Options) => Tensor,
  instances: readonly Instance<1>[],
  f: Fold,
  more = twice,
): OpSpec<1> => ({
  name,
  dtypes: floats,
  instances,
  run: ([x], o) => run(x, windowOf(o), settings(o)),
  oracle: ([x], o) => poolWindows(x, windowOf(o), o, (taps, padded) => f(taps, padded, o)),
  ...more,
});

/** Maxima and where they lie, of images of one or of three axes. */
const maxSpecs = (rank: 1 | 3): OpSpec[] => {
  const max = rank === 1 ? pg.maxPool1d : pg.maxPool3d;
  return [
    windowSpec(`maxPool${rank}d`, (x, window, o) => max(x, window, o), otherRank(rank), top),
    windowSpec(
      `maxPool${rank}d indices`,
      (x, window, o) => max(x, window, { ...o, returnIndices: true })[1],
      otherRank(rank),
      placeOfTop,
      { result: 'int32' },
    ),
  ];
};

const avgSpec = (rank: 1 | 3): OpSpec =>
  windowSpec(`avgPool${rank}d`, rank === 1 ? pg.avgPool1d : pg.avgPool3d, otherRank(rank), mean);

/** Maxima of images of one or of three axes put back. */
function unpoolOtherRank(rank: 1 | 3): OpSpec<1> {
  const [max, unpooled] = rank === 1 ? [pg.maxPool1d, pg.maxUnpool1d] : [pg.maxPool3d, pg.maxUnpool3d];
  return {
    name: `maxUnpool${rank}d of maxPool${rank}d`,
    dtypes: floats,
    instances: otherRank(rank),
    run: ([x], { ceilMode = false, ...o }) => {
      const { size, ...rest } = o;
      const pooling = { ...rest, ceilMode: ceilMode as boolean, returnIndices: true } as const;
      const [top, places] = max(x, size as number, pooling);
      const { shape } = x;
      const outputSize = o.layout === 'nhwc' ? shape.slice(1, -1) : shape.slice(2);
      return unpooled(top, places, size as number, { ...rest, outputSize });
    },
    oracle: ([x], o) => {
      const { shape } = x;
      const out = o.layout === 'nhwc' ? shape.slice(1, -1) : shape.slice(2);
      const found = (f: (t: Tap) => number): NDArray =>
        poolWindows(x, o.size as number, o as WindowOptions, (taps) => f(largest(taps)));
      return unpool(
        found((t) => t.value),
        found((t) => t.position),
        out,
        o.layout,
      );
    },
    gradient: { of: [0], order: 2 },
  };
}

/** Pooled with overlapping windows, so that positions repeat, and put back. */
function unpoolSpec(): OpSpec<1> {
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
      const [top, places] = pg.maxPool2d(x, size as number, pooling);
      return pg.maxUnpool2d(top, places, size as number, { ...rest, outputSize: out as [number, number] });
    },
    oracle: ([x], o) => {
      const places = poolWindows(x, o.size as number, o as WindowOptions, (t) => largest(t).position);
      return unpool(pooled(x, o), places, o.out as number[], o.layout);
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
      formula: (a) => poolWindows(a, window.kernel, options as never, f),
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
    if (window.some((k, i) => k > spatial[i]!)) return null;
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
      formula: (a) => poolWindows(a, window, { ...options, layout } as never, f),
      ...(kind === 'max' ? {} : sums(x.dtype)),
    };
  };

const maxUnpool =
  (rank: number) =>
  (pool: Pool): Made | null => {
    const found = image(pool, rank, 200);
    if (found === null) return null;
    const { x, layout, spatial, written } = found;
    const window = spatial.map((_, i) => pool.c.pick(i === 0 ? [2, 3] : [2, 1]));
    const out = spatial.map((n, i) => n * window[i]!);
    const index = pool.indices(x.shape, 0, count(out) - 1);
    if (index.dtype === 'uint8' && count(out) > 250) return null;
    return {
      args: [ref(x), ref(index), window, ...wholeOptions(written)],
      dtype: x.dtype,
      formula: (a, i) => unpool(a, i, out, layout),
      ...sums(x.dtype),
    };
  };

const maxPool2d = (x: Tensor, window: number | number[], o: Options): Tensor => pg.maxPool2d(x, window, o);

export const poolingRows: readonly OperationRow[] = [
  { name: 'maxPool1d', specs: maxSpecs(1), calls: smooth(pooled('max', 1)) },
  {
    name: 'maxPool2d',
    specs: [
      windowSpec('maxPool2d', maxPool2d, plain, top),
      windowSpec('maxPool2d, every option', maxPool2d, poolInstances(dilated), top),
      windowSpec('maxPool2d of ties', maxPool2d, poolInstances(dilated, tied), top, { dtypes: ['int32', 'float32'] }),
      windowSpec(
        'maxPool2d indices',
        (x, window, o) => pg.maxPool2d(x, window, { ...o, returnIndices: true })[1],
        poolInstances(dilated, tied),
        placeOfTop,
        { dtypes: [...floats, 'int32'], result: 'int32' },
      ),
    ],
    calls: smooth(pooled('max', 2), pooling('max', 2)),
  },
  { name: 'maxPool3d', specs: maxSpecs(3), calls: smooth(pooling('max', 3)) },
  { name: 'avgPool1d', specs: [avgSpec(1)], calls: smooth(pooled('avg', 1)) },
  {
    name: 'avgPool2d',
    specs: [
      windowSpec('avgPool2d', pg.avgPool2d, plain, mean),
      windowSpec('avgPool2d, every option', pg.avgPool2d, poolInstances(uncounted), mean),
    ],
    calls: smooth(pooled('avg', 2), pooling('avg', 2)),
  },
  { name: 'avgPool3d', specs: [avgSpec(3)], calls: smooth(pooling('avg', 3)) },
  {
    name: 'lpPool1d',
    specs: [1, 2, 3].map((order) =>
      windowSpec(
        `lpPool1d of order ${order}`,
        (x, window, o) => pg.lpPool1d(x, order, window, o),
        otherRank(1),
        norm(order),
      ),
    ),
    calls: smooth(pooling('lp', 1)),
  },
  {
    name: 'lpPool2d',
    specs: [1, 2, 3].map((order) =>
      windowSpec(
        `lpPool2d of order ${order}`,
        (x, window, o) => pg.lpPool2d(x, order, window, o),
        poolInstances(dilated),
        norm(order),
      ),
    ),
    calls: smooth(pooling('lp', 2)),
  },
  { name: 'maxUnpool1d', specs: [unpoolOtherRank(1)], calls: smooth(maxUnpool(1)) },
  { name: 'maxUnpool2d', specs: [unpoolSpec()], calls: smooth(maxUnpool(2)) },
  { name: 'maxUnpool3d', specs: [unpoolOtherRank(3)], calls: smooth(maxUnpool(3)) },
];
