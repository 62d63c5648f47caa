/** Resampling of images in float64: every output element looked up by itself, with the formulas of PyTorch 1.13. */
import { channelsFirst, inLayout } from './images.ts';
import { at, build, indices, type NDArray } from './ndarray.ts';
import { clamp } from './special.ts';

function cubic(t: number): number {
  const [a, d] = [-0.75, Math.abs(t)];
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((d - 5) * d + 8) * d * a - 4 * a : 0;
}

export interface ResizeOptions {
  readonly size?: readonly number[];
  readonly scaleFactor?: number | readonly number[];
  readonly mode: string;
  readonly alignCorners?: boolean;
}

/** Which elements along one axis make output i, with what weights. */
function taps(i: number, n: number, m: number, factor: number | undefined, o: ResizeOptions): [number, number][] {
  const scale = factor === undefined ? n / m : 1 / factor;
  if (o.mode === 'nearest' || o.mode === 'nearestExact') {
    const shift = o.mode === 'nearest' ? 0 : 0.5;
    // The float32 arithmetic is part of the definition.
    return [[Math.min(n - 1, Math.floor(Math.fround((i + shift) * Math.fround(scale)))), 1]];
  }
  let x = o.alignCorners ? (m > 1 ? (i * (n - 1)) / (m - 1) : 0) : (i + 0.5) * scale - 0.5;
  if (o.mode === 'bicubic') {
    const base = Math.floor(x);
    return [-1, 0, 1, 2].map((k) => [clamp(base + k, 0, n - 1), cubic(x - base - k)]);
  }
  x = Math.max(0, x);
  const base = Math.min(n - 1, Math.floor(x));
  return [
    [base, 1 - (x - base)],
    [Math.min(n - 1, base + 1), x - base],
  ];
}

export function resize(input: NDArray, o: ResizeOptions, layout: unknown): NDArray {
  const x = channelsFirst(input, layout);
  const spatial = x.shape.slice(2);
  const factor = (i: number): number | undefined =>
    typeof o.scaleFactor === 'number' ? o.scaleFactor : o.scaleFactor?.[i];
  const out = spatial.map((n, i) => o.size?.[i] ?? Math.floor(n * (factor(i) as number)));
  const y = build([...x.shape.slice(0, 2), ...out], ([image, channel, ...position]) => {
    const axes = position.map((q, i) => taps(q, spatial[i]!, out[i]!, factor(i), o));
    let sum = 0;
    for (const choice of indices(axes.map((list) => list.length))) {
      const picked = choice.map((c, i) => (axes[i] as [number, number][])[c] as [number, number]);
      const weight = picked.reduce((w, [, part]) => w * part, 1);
      sum += weight * at(x, [image as number, channel as number, ...picked.map(([index]) => index)]);
    }
    return sum;
  });
  return inLayout(y, layout);
}

export interface GridOptions {
  readonly mode: string;
  readonly paddingMode: string;
  readonly alignCorners: boolean;
}

function reflect(x: number, n: number, align: boolean): number {
  const [low, span] = align ? [0, n - 1] : [-0.5, n];
  if (span === 0) return 0;
  const away = Math.abs(x - low);
  const rest = away % span;
  return clamp((Math.floor(away / span) % 2 === 0 ? rest : span - rest) + low, 0, n - 1);
}

function pad(x: number, n: number, o: GridOptions): number {
  if (o.paddingMode === 'border') return clamp(x, 0, n - 1);
  return o.paddingMode === 'reflection' ? reflect(x, n, o.alignCorners) : x;
}

/** grid_sample: [N, C, ...] at [N, ...out, rank], x first. */
export function sampleGrid(input: NDArray, grid: NDArray, o: GridOptions, layout: unknown): NDArray {
  const x = channelsFirst(input, layout);
  const spatial = x.shape.slice(2);
  const rank = spatial.length;
  const out = grid.shape.slice(1, -1);
  const y = build([x.shape[0]!, x.shape[1]!, ...out], ([image, channel, ...position]) => {
    const axes = spatial.map((n, i): [number, number][] => {
      const g = at(grid, [image, ...position, rank - 1 - i]);
      const centre = o.alignCorners ? ((g + 1) / 2) * (n - 1) : ((g + 1) * n - 1) / 2;
      if (o.mode === 'bicubic') {
        const base = Math.floor(centre);
        return [-1, 0, 1, 2].map((k) => [Math.round(pad(base + k, n, o)), cubic(centre - base - k)]);
      }
      const place = pad(centre, n, o);
      if (o.mode === 'nearest') {
        const [below, part] = [Math.floor(place), place - Math.floor(place)];
        const even = below % 2 === 0 ? below : below + 1;
        return [[part === 0.5 ? even : Math.round(place), 1]];
      }
      const base = Math.floor(place);
      return [
        [base, 1 - (place - base)],
        [base + 1, place - base],
      ];
    });
    let sum = 0;
    for (const choice of indices(axes.map((list) => list.length))) {
      const picked = choice.map((c, i) => (axes[i] as [number, number][])[c] as [number, number]);
      if (picked.some(([index], i) => index < 0 || index >= spatial[i]!)) continue;
      const weight = picked.reduce((w, [, part]) => w * part, 1);
      sum += weight * at(x, [image, channel, ...picked.map(([index]) => index)]);
    }
    return sum;
  });
  return inLayout(y, layout);
}

/** affine_grid: positions of the output's elements, mapped by theta. */
export function affine(theta: NDArray, spatial: readonly number[], align: boolean): NDArray {
  const rank = spatial.length;
  return build([theta.shape[0]!, ...spatial, rank], (index) => {
    const [image, row] = [index[0]!, index[index.length - 1]!];
    let sum = at(theta, [image, row, rank]);
    spatial.forEach((n, i) => {
      const q = index[i + 1]!;
      const place = align ? (n > 1 ? -1 + (2 * q) / (n - 1) : 0) : (2 * q + 1) / n - 1;
      sum += at(theta, [image, row, rank - 1 - i]) * place;
    });
    return sum;
  });
}
