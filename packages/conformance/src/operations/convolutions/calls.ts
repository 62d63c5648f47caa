/** Random convolutions: of values that are images, or new ones, with kernels that fit them. */
import { convolve, convolveTransposed } from '../../oracle/images.ts';
import { drawn, operand, sums } from '../../programs/operands.ts';
import { isFloat, type Made, type Pool, ref } from '../../programs/pool.ts';
import { fresh, image, windowFor } from '../images/image.ts';

export function convolution(rank: number) {
  return (pool: Pool): Made | null => {
    const nhwc = pool.c.seldom(3);
    const x = operand(pool, rank + 2, rank + 2, (v) => isFloat(v.dtype) && v.data.length < 800) ?? fresh(pool, rank);
    if (x === null) return null;
    const channels = (nhwc ? x.shape.at(-1) : x.shape[1]) as number;
    const spatial = nhwc ? x.shape.slice(1, -1) : x.shape.slice(2);
    const window = windowFor(pool, spatial, false);
    if (window === null || channels === 0 || channels > 12) return null;
    const groups = pool.c.pick([1, 2, channels].filter((g) => channels % g === 0));
    const features = groups * pool.c.pick([1, 2, 3]);
    const w = drawn(pool, x.dtype, [features, channels / groups, ...window.kernel]);
    const options = {
      ...window.options,
      ...(groups > 1 ? { groups } : {}),
      ...(nhwc ? { layout: 'nhwc' as const } : {}),
    };
    return {
      args: [ref(x), ref(w), options],
      dtype: x.dtype,
      formula: (a, b) => convolve(a, b, options as never),
      ...sums(x.dtype),
    };
  };
}

/** Transposed, with groups and dilation. */
export function transposedWithGroups(pool: Pool): Made | null {
  const x =
    operand(pool, 4, 4, (v) => isFloat(v.dtype) && v.data.length < 200 && !v.shape.includes(0)) ?? fresh(pool, 2);
  if (x === null) return null;
  const channels = x.shape[1] as number;
  const groups = pool.c.pick([1, channels]);
  const stride = [pool.c.pick([1, 2, 3]), pool.c.pick([2, 1])];
  const dilation = [pool.c.pick([1, 2]), 1];
  const kernel = [pool.c.pick([2, 3, 1]), pool.c.pick([3, 2])];
  const outputPadding = stride.map((s) => pool.c.nat(s));
  const w = drawn(pool, x.dtype, [channels, pool.c.pick([1, 2]), ...kernel]);
  const options = { stride, dilation, outputPadding, groups };
  return {
    args: [ref(x), ref(w), options],
    dtype: x.dtype,
    formula: (a, b) => convolveTransposed(a, b, options),
    ...sums(x.dtype),
  };
}

/** A kernel of its own for every channel, or for every place. */
export const single =
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
      args: [ref(x), ref(w), options],
      dtype: x.dtype,
      formula: (a, b) => convolve(a, b, { ...options, layout, groups: local ? 1 : channels }, local),
      ...sums(x.dtype),
    };
  };

/** Transposed, in both layouts. */
export const transposedCall =
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
      args: [ref(x), ref(w), options],
      dtype: x.dtype,
      formula: (a, b) => convolveTransposed(a, b, { ...options, layout }),
      ...sums(x.dtype),
    };
  };
