/** Convolutions and pooling of images as plain sums over positions, in float64: every option, both layouts. */
import { at, build, indices, type NDArray, permute } from './ndarray.ts';

/** [N, ..., C] as [N, C, ...] where the layout says so. */
export function channelsFirst(x: NDArray, layout: unknown): NDArray {
  const rank = x.shape.length;
  return layout === 'nhwc' ? permute(x, [0, rank - 1, ...Array.from({ length: rank - 2 }, (_, i) => i + 1)]) : x;
}

/** [N, C, ...] in the order of the layout. */
export function inLayout(x: NDArray, layout: unknown): NDArray {
  const rank = x.shape.length;
  return layout === 'nhwc' ? permute(x, [0, ...Array.from({ length: rank - 2 }, (_, i) => i + 2), 1]) : x;
}

type PerAxis = number | readonly number[];

export interface WindowOptions {
  readonly stride?: PerAxis;
  readonly padding?: PerAxis | readonly (readonly number[])[] | 'same' | 'valid';
  readonly dilation?: PerAxis;
  readonly groups?: number;
  readonly layout?: 'nchw' | 'nhwc';
  readonly ceilMode?: boolean;
  readonly countIncludePad?: boolean;
  readonly outputPadding?: PerAxis;
}

const each = (value: PerAxis | undefined, fallback: number, axis: number): number =>
  typeof value === 'number' ? value : (value?.[axis] ?? fallback);

interface AxisWindow {
  readonly n: number;
  readonly out: number;
  readonly low: number;
  readonly high: number;
  readonly stride: number;
  readonly dilation: number;
}

function axisWindow(n: number, k: number, o: WindowOptions, axis: number, strideDefault = 1): AxisWindow {
  const stride = each(o.stride, strideDefault, axis);
  const dilation = each(o.dilation, 1, axis);
  const extent = (k - 1) * dilation + 1;
  let [low, high] = [0, 0];
  if (o.padding === 'same') {
    const total = Math.max(0, (Math.ceil(n / stride) - 1) * stride + extent - n);
    low = Math.floor(total / 2);
    high = total - low;
  } else if (Array.isArray(o.padding) && Array.isArray(o.padding[0])) {
    [low, high] = (o.padding as number[][])[axis] as [number, number];
  } else if (o.padding !== 'valid') {
    low = each(o.padding as PerAxis | undefined, 0, axis);
    high = low;
  }
  const room = n + low + high - extent;
  let out = Math.floor(room / stride) + 1;
  if (o.ceilMode) {
    out = Math.ceil(room / stride) + 1;
    if ((out - 1) * stride >= n + low) out--;
  }
  return { n, out, low, high, stride, dilation };
}

/** Position in the image of a tap of a window. */
const place = (w: AxisWindow, position: number, tap: number): number => position * w.stride + tap * w.dilation - w.low;

const inside = (windows: readonly AxisWindow[], source: readonly number[]): boolean =>
  source.every((s, i) => s >= 0 && s < windows[i]!.n);

/** Cross-correlation with one kernel, or (kernelAt) with one per position. */
export function convolve(input: NDArray, w: NDArray, o: WindowOptions, local = false): NDArray {
  const x = channelsFirst(input, o.layout);
  const spatial = x.shape.slice(2);
  const size = local ? w.shape.slice(2 + spatial.length) : w.shape.slice(2);
  const windows = spatial.map((n, i) => axisWindow(n, size[i]!, o, i));
  const [features, depth] = w.shape as [number, number];
  const perGroup = features / (o.groups ?? 1);
  const y = build([x.shape[0]!, features, ...windows.map((q) => q.out)], ([image, feature, ...position]) => {
    const group = Math.floor(feature / perGroup);
    let sum = 0;
    for (const [c, ...tap] of indices([depth, ...size])) {
      const source = position.map((q, i) => place(windows[i]!, q, tap[i]!));
      if (!inside(windows, source)) continue;
      const weight = at(w, [feature, c as number, ...(local ? position : []), ...tap]);
      sum += at(x, [image, group * depth + (c as number), ...source]) * weight;
    }
    return sum;
  });
  return inLayout(y, o.layout);
}

/** Every input element adds its scaled kernel to the result. */
export function convolveTransposed(input: NDArray, w: NDArray, o: WindowOptions): NDArray {
  const x = channelsFirst(input, o.layout);
  const spatial = x.shape.slice(2);
  const [, perGroup, ...size] = w.shape as [number, number, ...number[]];
  const groups = o.groups ?? 1;
  const out = spatial.map(
    (n, i) =>
      (n - 1) * each(o.stride, 1, i) -
      2 * each(o.padding as PerAxis, 0, i) +
      each(o.dilation, 1, i) * (size[i]! - 1) +
      each(o.outputPadding, 0, i) +
      1,
  );
  const depth = x.shape[1]! / groups;
  const y = build([x.shape[0]!, perGroup * groups, ...out], ([image, feature, ...target]) => {
    const group = Math.floor(feature / perGroup);
    let sum = 0;
    for (const [c, ...source] of indices([depth, ...spatial])) {
      for (const tap of indices(size)) {
        const hit = target.every(
          (t, i) =>
            source[i]! * each(o.stride, 1, i) + tap[i]! * each(o.dilation, 1, i) - each(o.padding as PerAxis, 0, i) ===
            t,
        );
        if (!hit) continue;
        const channel = group * depth + (c as number);
        sum += at(x, [image, channel, ...source]) * at(w, [channel, feature % perGroup, ...tap]);
      }
    }
    return sum;
  });
  return inLayout(y, o.layout);
}

/** One value of a window: the element, and its row-major position in the image. */
export interface Tap {
  readonly value: number;
  readonly position: number;
}

/** Pooling; `f` sees the elements of each window inside the image, and how many there would be with the padding. */
export function poolWindows(
  input: NDArray,
  size: PerAxis,
  o: WindowOptions,
  f: (taps: Tap[], padded: number) => number,
): NDArray {
  const x = channelsFirst(input, o.layout);
  const spatial = x.shape.slice(2);
  const window = spatial.map((_, i) => each(size, 1, i));
  const windows = spatial.map((n, i) => axisWindow(n, window[i]!, o, i, window[i]!));
  const y = build([...x.shape.slice(0, 2), ...windows.map((w) => w.out)], ([image, channel, ...position]) => {
    const taps: Tap[] = [];
    let padded = 0;
    for (const tap of indices(window)) {
      const source = position.map((q, i) => place(windows[i]!, q, tap[i]!));
      const known = source.every((s, i) => {
        const w = windows[i]!;
        return s >= -w.low && s < w.n + w.high;
      });
      if (known) padded++;
      if (!inside(windows, source)) continue;
      taps.push({
        value: at(x, [image as number, channel as number, ...source]),
        position: source.reduce((flat, s, i) => flat * spatial[i]! + s, 0),
      });
    }
    return f(taps, padded);
  });
  return inLayout(y, o.layout);
}

/** Pooling to a given size, with windows that follow from it. */
export function poolAdaptive(
  input: NDArray,
  size: readonly number[],
  layout: unknown,
  f: (taps: Tap[]) => number,
): NDArray {
  const x = channelsFirst(input, layout);
  const spatial = x.shape.slice(2);
  const y = build([...x.shape.slice(0, 2), ...size], ([image, channel, ...position]) => {
    const taps: Tap[] = [];
    for (const source of indices(spatial)) {
      const within = source.every((s, i) => {
        const [n, m, q] = [spatial[i]!, size[i]!, position[i]!];
        return s >= Math.floor((q * n) / m) && s < Math.ceil(((q + 1) * n) / m);
      });
      if (!within) continue;
      taps.push({
        value: at(x, [image as number, channel as number, ...source]),
        position: source.reduce((flat, s, i) => flat * spatial[i]! + s, 0),
      });
    }
    return f(taps);
  });
  return inLayout(y, layout);
}

/** The first of the largest; NaN wins. */
export function largest(taps: readonly Tap[]): Tap {
  let best = taps[0]!;
  for (const tap of taps) {
    if (Number.isNaN(best.value)) break;
    if (Number.isNaN(tap.value) || tap.value > best.value) best = tap;
  }
  return best;
}

export function sumOf(taps: readonly Tap[]): number {
  return taps.reduce((s, t) => s + t.value, 0);
}

/** Values put at positions of empty images, averaged where several meet. */
export function unpool(input: NDArray, positions: NDArray, out: readonly number[], layout: unknown): NDArray {
  const [x, p] = [channelsFirst(input, layout), channelsFirst(positions, layout)];
  const [batch, channels, ...spatial] = x.shape as [number, number, ...number[]];
  const y = build([batch, channels, ...out], ([image, channel, ...target]) => {
    const flat = target.reduce((f, t, i) => f * out[i]! + t, 0);
    const found: number[] = [];
    for (const source of indices(spatial)) {
      const index = [image, channel, ...source];
      if (at(p, index) === flat) found.push(at(x, index));
    }
    return found.length === 0 ? 0 : found.reduce((a, b) => a + b, 0) / found.length;
  });
  return inLayout(y, layout);
}

/** A per-channel number added to an image. */
export function plusBias(y: NDArray, bias: NDArray, layout: unknown): NDArray {
  const first = channelsFirst(y, layout);
  const sum = build(first.shape, (index) => {
    const b = bias.shape.length === 1 ? at(bias, [index[1]!]) : at(bias, index.slice(1));
    return at(first, index) + b;
  });
  return inLayout(sum, layout);
}
