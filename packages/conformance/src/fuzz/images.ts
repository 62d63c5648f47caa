/** Random calls on images: pooling, other sizes, positions, convolutions of one channel or one place. */
import {
  convolve,
  convolveTransposed,
  largest,
  poolAdaptive,
  poolWindows,
  sumOf,
  type Tap,
  unpool,
} from '../oracle/images.ts';
import { count, type NDArray } from '../oracle/ndarray.ts';
import { affine, type GridOptions, resize, type ResizeOptions, sampleGrid } from '../oracle/sampling.ts';
import { drawn, plain, sums } from './operands.ts';
import { isFloat, type Made, type Operation, type Pool, ref } from './pool.ts';
import type { Arg, Value } from './program.ts';

type Layout = 'nchw' | 'nhwc';

interface Image {
  readonly x: Value;
  readonly layout: Layout;
  readonly channels: number;
  readonly spatial: readonly number[];
  /** To be spread among options. */
  readonly written: { readonly layout?: Layout };
}

/** An image with `rank` spatial axes, none empty; one that is there, or a new one. */
export function image(pool: Pool, rank: number, most = 800): Image | null {
  const dtype = pool.pick((v) => isFloat(v.dtype))?.dtype;
  if (dtype === undefined) return null;
  const fits = (v: Value): boolean =>
    v.shape.length === rank + 2 && plain(v) && v.data.length <= most && !v.shape.includes(0);
  const made = (): Value =>
    drawn(pool, dtype, [
      pool.c.pick([1, 2]),
      pool.c.pick([2, 1, 4, 3]),
      ...Array.from({ length: rank }, () => pool.c.pick(rank > 2 ? [2, 3, 1, 4] : [4, 3, 7, 5, 1, 8])),
    ]);
  const x = (pool.c.nat(2) === 0 ? pool.pick(fits) : null) ?? made();
  const layout = pool.c.seldom(3) ? 'nhwc' : 'nchw';
  return {
    x,
    layout,
    channels: (layout === 'nhwc' ? x.shape.at(-1) : x.shape[1]) as number,
    spatial: layout === 'nhwc' ? x.shape.slice(1, -1) : x.shape.slice(2),
    written: layout === 'nhwc' ? { layout } : {},
  };
}

const wholeOptions = (options: object): readonly Arg[] => (Object.keys(options).length === 0 ? [] : [options as Arg]);
const average = (taps: readonly Tap[]): number => sumOf(taps) / taps.length;

const adaptive =
  (kind: 'avg' | 'max', rank: number) =>
  (pool: Pool): Made | null => {
    const found = image(pool, rank);
    if (found === null) return null;
    const { x, layout, spatial, written } = found;
    const size = spatial.map(() => pool.c.pick([1, 2, 3, 5]));
    const global = rank === 2 && kind === 'avg' && pool.c.seldom(3);
    return {
      op: global ? 'globalAvgPool2d' : `adaptive${kind === 'avg' ? 'Avg' : 'Max'}Pool${rank}d`,
      args: global ? [ref(x), { ...written, keepDims: true }] : [ref(x), size, ...wholeOptions(written)],
      dtype: x.dtype,
      formula: (a) =>
        poolAdaptive(
          a as NDArray,
          global ? [1, 1] : size,
          layout,
          kind === 'avg' ? average : (taps) => largest(taps).value,
        ),
      ...(kind === 'avg' ? sums(x.dtype) : {}),
    };
  };

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
      op: `${kind}Pool${rank}d`,
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

const modes: readonly (readonly string[])[] = [
  [],
  ['nearest', 'linear', 'nearestExact'],
  ['bilinear', 'nearest', 'bicubic', 'nearestExact'],
  ['nearest', 'trilinear'],
];

function interpolate(pool: Pool): Made | null {
  const rank = pool.c.pick([2, 1, 3]);
  const found = image(pool, rank, 300);
  if (found === null) return null;
  const { x, layout, spatial, written } = found;
  const mode = pool.c.pick(modes[rank] as readonly string[]);
  const factor = pool.c.pick([2, 1.5, 0.5, 3]);
  const scaled = pool.c.nat(2) === 0 && spatial.every((n) => Math.floor(n * factor) > 0);
  const options = {
    mode,
    ...(scaled ? { scaleFactor: factor } : { size: spatial.map(() => pool.c.pick([3, 1, 6, 4, 9])) }),
    ...(mode.startsWith('nearest') ? {} : pool.c.nat(2) === 0 ? { alignCorners: true } : {}),
  };
  return {
    args: [ref(x), { ...options, ...written }],
    dtype: x.dtype,
    formula: (a) => resize(a as NDArray, options as ResizeOptions, layout),
    ...(mode.startsWith('nearest') ? {} : sums(x.dtype)),
  };
}

/** Positions away from where neighbours change; the image around them by every padding. */
function gridSample(pool: Pool): Made | null {
  const found = image(pool, 2, 200);
  if (found === null || (found.x.dtype !== 'float32' && found.x.dtype !== 'float64')) return null;
  const { x, layout, spatial, written } = found;
  const alignCorners = pool.c.nat(2) === 0;
  const options: GridOptions = {
    mode: pool.c.pick(['bilinear', 'nearest', 'bicubic']),
    paddingMode: pool.c.pick(['zeros', 'border', 'reflection']),
    alignCorners,
  };
  const shape = [x.shape[0] as number, pool.c.pick([2, 1, 4]), pool.c.pick([3, 1]), 2];
  const salt = pool.c.nat(31);
  const data = Array.from({ length: count(shape) }, (_, i) => {
    const n = spatial[1 - (i % 2)] as number;
    const at = ((i * 7 + salt) % (n + 4)) - 2 + 0.25 + ((i + salt) % 3) / 16;
    return alignCorners ? (n > 1 ? (2 * at) / (n - 1) - 1 : 0.125) : (2 * at + 1) / n - 1;
  });
  const grid = pool.input(x.dtype, shape, data);
  return {
    args: [ref(x), ref(grid), { ...options, ...written } as unknown as Arg],
    dtype: x.dtype,
    formula: (a, g) => sampleGrid(a as NDArray, g as NDArray, options, layout),
    ...sums(x.dtype),
  };
}

function affineGrid(pool: Pool): Made | null {
  const dtype = pool.pick((v) => v.dtype === 'float32' || v.dtype === 'float64')?.dtype;
  if (dtype === undefined) return null;
  const batch = pool.c.pick([1, 2]);
  const theta = drawn(pool, dtype, [batch, 2, 3]);
  const spatial = [pool.c.pick([3, 1, 4]), pool.c.pick([2, 5])];
  const alignCorners = pool.c.nat(2) === 0;
  return {
    args: [ref(theta), [batch, 1, ...spatial], { alignCorners }],
    dtype,
    formula: (t) => affine(t as NDArray, spatial, alignCorners),
    ...sums(dtype),
  };
}

/** A kernel of its own for every channel, or for every place. */
const single =
  (local: boolean) =>
  (pool: Pool): Made | null => {
    const found = image(pool, 2, 300);
    if (found === null || found.channels > 6) return null;
    const { x, layout, channels, spatial, written } = found;
    const kernel = [pool.c.pick([2, 1, 3]), pool.c.pick([2, 3])];
    const stride = pool.c.pick([1, 2]);
    const padding = local ? 0 : pool.c.pick([0, 1, 'same'] as const);
    const room = padding === 1 ? 2 : 0;
    if (padding !== 'same' && spatial.some((n, i) => n + room < (kernel[i] as number))) return null;
    const options = { stride, padding, ...written };
    const out = spatial.map((n, i) => Math.floor((n - (kernel[i] as number)) / stride) + 1);
    const features = local ? 2 : channels * pool.c.pick([1, 2]);
    const w = drawn(pool, x.dtype, local ? [features, channels, ...out, ...kernel] : [features, 1, ...kernel]);
    if (w.data.length > 1500) return null;
    return {
      op: local ? 'locallyConnectedConv2d' : 'depthwiseConv2d',
      args: [ref(x), ref(w), options],
      dtype: x.dtype,
      formula: (a, b) =>
        convolve(a as NDArray, b as NDArray, { ...options, layout, groups: local ? 1 : channels }, local),
      ...sums(x.dtype),
    };
  };

const transposed =
  (rank: number) =>
  (pool: Pool): Made | null => {
    const found = image(pool, rank, 100);
    if (found === null) return null;
    const { x, layout, channels, written } = found;
    const each = (from: readonly number[]): number[] => Array.from({ length: rank }, () => pool.c.pick(from));
    const [kernel, stride] = [each([2, 3, 1]), each([1, 2, 3])];
    const padding = kernel.map((k) => pool.c.nat(k));
    if (
      found.spatial.some(
        (n, i) => (n - 1) * (stride[i] as number) + (kernel[i] as number) <= 2 * (padding[i] as number),
      )
    )
      return null;
    const w = drawn(pool, x.dtype, [channels, 2, ...kernel]);
    const options = { stride, padding, ...written };
    return {
      op: `convTranspose${rank}d`,
      args: [ref(x), ref(w), options],
      dtype: x.dtype,
      formula: (a, b) => convolveTransposed(a as NDArray, b as NDArray, { ...options, layout }),
      ...sums(x.dtype),
    };
  };

export const images: readonly Operation[] = [
  { name: 'adaptiveAvgPool1d', smooth: true, make: adaptive('avg', 1) },
  { name: 'adaptiveAvgPool2d', smooth: true, make: adaptive('avg', 2) },
  { name: 'adaptiveMaxPool2d', smooth: true, make: adaptive('max', 2) },
  { name: 'maxPool2d', smooth: true, make: pooling('max', 2) },
  { name: 'maxPool3d', smooth: true, make: pooling('max', 3) },
  { name: 'avgPool2d', smooth: true, make: pooling('avg', 2) },
  { name: 'avgPool3d', smooth: true, make: pooling('avg', 3) },
  { name: 'lpPool2d', smooth: true, make: pooling('lp', 2) },
  { name: 'maxUnpool2d', smooth: true, make: maxUnpool2d },
  { name: 'interpolate', smooth: true, make: interpolate },
  { name: 'gridSample', smooth: true, make: gridSample },
  { name: 'affineGrid', smooth: true, make: affineGrid },
  { name: 'depthwiseConv2d', smooth: true, make: single(false) },
  { name: 'locallyConnectedConv2d', smooth: true, make: single(true) },
  { name: 'convTranspose1d', smooth: true, make: transposed(1) },
  { name: 'convTranspose3d', smooth: true, make: transposed(3) },
];
