/** Images and windows of random calls: axes, layouts, strides, padding. */
import { drawn, plain } from '../../programs/operands.ts';
import { isFloat, type Pool } from '../../programs/pool.ts';
import type { Arg, Value } from '../../programs/program.ts';

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

/** Options as an argument: none where there are none. */
export const wholeOptions = (options: object): readonly Arg[] =>
  Object.keys(options).length === 0 ? [] : [options as Arg];

/** A new image, where no value is one. */
export function fresh(pool: Pool, rank: number): Value | null {
  const dtype = pool.pick((v) => isFloat(v.dtype))?.dtype;
  if (dtype === undefined) return null;
  const spatial = Array.from({ length: rank }, () => pool.c.pick(rank > 2 ? [3, 2, 4] : [5, 3, 8, 4, 7]));
  return drawn(pool, dtype, [pool.c.pick([2, 1]), pool.c.pick([2, 1, 4, 3]), ...spatial]);
}

interface Window {
  readonly options: { readonly [key: string]: Arg };
  readonly kernel: number[];
}

/** Stride, padding, dilation and size of windows that fit an image. */
export function windowFor(pool: Pool, spatial: readonly number[], pooling: boolean): Window | null {
  const kernel = spatial.map(() => pool.c.pick([2, 3, 1]));
  const stride = spatial.map(() => pool.c.pick([1, 2, 3]));
  const dilation = spatial.map(() => pool.c.pick([1, 1, 2]));
  const padding = spatial.map((_, i) => pool.c.nat(pooling ? Math.floor(kernel[i]! / 2) + 1 : 3));
  const fits = spatial.every((n, i) => n + 2 * padding[i]! >= (kernel[i]! - 1) * dilation[i]! + 1);
  return fits && !spatial.includes(0) ? { kernel, options: { stride, padding, dilation } } : null;
}
