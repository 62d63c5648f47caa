/**
 * Images in other sizes, on the host. Bilinear with the filter widened where the image shrinks, so that nothing is skipped: what PIL does, and
 * torchvision with `antialias`. On the device there is `interpolate`.
 */
import { allocateHost, type HostArray } from '../arrays.ts';
import { checkFits, checkInteger, checkOptions, DataError, isList } from '../errors.ts';

/** 'nearest' takes pixels as they are, for maps of classes; 'bilinear' mixes them. */
export type Resizing = 'nearest' | 'bilinear';

/** Throws unless a size is one of an image. */
export function checkSize(op: string, size: unknown): asserts size is readonly [number, number] {
  checkFits(op, 'size', size, isList(size) && size.length === 2, '[height, width]');
  for (const extent of size as number[]) checkInteger(op, 'size', extent, 1, 2 ** 16);
}

/** Which pixels of a line make each pixel of the result, and their shares. */
interface Taps {
  readonly first: Int32Array;
  readonly counts: Int32Array;
  readonly shares: Float64Array;
  /** Places for shares of one pixel. */
  readonly width: number;
}

/** Triangle filter of width 1 pixel of the larger of the two images. Source: PIL, `precompute_coeffs`. */
function tapsOf(from: number, to: number): Taps {
  const scale = from / to;
  const reach = Math.max(scale, 1);
  const width = Math.ceil(reach) * 2 + 1;
  const [first, counts, shares] = [new Int32Array(to), new Int32Array(to), new Float64Array(to * width)];
  for (let i = 0; i < to; i++) {
    const centre = (i + 0.5) * scale;
    const start = Math.max(0, Math.trunc(centre - reach + 0.5));
    const end = Math.min(from, Math.trunc(centre + reach + 0.5));
    let total = 0;
    for (let at = start; at < end; at++) {
      const share = Math.max(0, 1 - Math.abs((at - centre + 0.5) / reach));
      shares[i * width + at - start] = share;
      total += share;
    }
    for (let k = 0; k < end - start; k++) shares[i * width + k]! /= total;
    first[i] = start;
    counts[i] = end - start;
  }
  return { first, counts, shares, width };
}

/** Nearest pixels. Source: PIL, `ImagingScaleAffine` with NEAREST. */
function nearest(from: number, to: number): Taps {
  const first = Int32Array.from({ length: to }, (_, i) => Math.min(from - 1, Math.floor((i + 0.5) * (from / to))));
  return { first, counts: new Int32Array(to).fill(1), shares: new Float64Array(to).fill(1), width: 1 };
}

/** Lines of `from` elements, `step` apart, each made into one of `to`. */
function along(
  source: ArrayLike<number>,
  lines: number,
  inner: number,
  from: number,
  taps: Taps,
  finish: (value: number) => number,
): Float64Array {
  const to = taps.first.length;
  const result = new Float64Array(lines * to * inner);
  for (let line = 0; line < lines; line++)
    for (let i = 0; i < to; i++) {
      const start = taps.first[i]!;
      for (let k = 0; k < inner; k++) {
        let sum = 0;
        for (let tap = 0; tap < taps.counts[i]!; tap++)
          sum += taps.shares[i * taps.width + tap]! * source[(line * from + start + tap) * inner + k]!;
        result[(line * to + i) * inner + k] = finish(sum);
      }
    }
  return result;
}

/**
 * An image in another size. Bytes are rounded after each of the two directions, as in PIL.
 *
 * @param image uint8 or float32 [channels, height, width]
 * @param size [height, width]
 * @param options resizing ('bilinear')
 * @throws DataError `argument`
 * @example
 * const image = { dtype: 'uint8', shape: [1, 1, 2], data: new Uint8Array([0, 100]) } as const;
 * resizeImage(image, [1, 4]).data; // Uint8Array [0, 25, 75, 100]
 */
export function resizeImage<D extends 'uint8' | 'float32'>(
  image: HostArray<D>,
  size: readonly [height: number, width: number],
  options: { readonly resizing?: Resizing } = {},
): HostArray<D> {
  checkOptions('resizeImage', options, { resizing: 'string' });
  const { resizing = 'bilinear' } = options;
  checkFits(
    'resizeImage',
    'resizing',
    resizing,
    resizing === 'nearest' || resizing === 'bilinear',
    "'nearest' or 'bilinear'",
  );
  checkSize('resizeImage', size);
  const { dtype, shape, data } = image ?? {};
  const isImage =
    (dtype === 'uint8' || dtype === 'float32') && isList(shape) && shape.length === 3 && ArrayBuffer.isView(data);
  checkFits('resizeImage', 'image', image, isImage, 'uint8 or float32 [channels, height, width]');
  const [channels, height, width] = shape as unknown as [number, number, number];
  if (channels * height * width !== data.length || data.length === 0)
    throw new DataError(
      'mismatch',
      'image',
      `[resizeImage] shape (${shape.join(', ')}) has ${channels * height * width} elements, the data ${data.length}; both must be as many, and not 0`,
    );
  if (height === size[0] && width === size[1]) return { ...image, data: data.slice() as HostArray<D>['data'] };
  const tapsFor = resizing === 'nearest' ? nearest : tapsOf;
  const finish =
    dtype === 'uint8' ? (value: number) => Math.min(255, Math.floor(value + 0.5)) : (value: number) => value;
  const wide =
    width === size[1] ? data : along(data as Uint8Array, channels * height, 1, width, tapsFor(width, size[1]), finish);
  const whole =
    height === size[0]
      ? wide
      : along(wide as Float64Array, channels, size[1], height, tapsFor(height, size[0]), finish);
  const result = allocateHost(dtype, channels * size[0] * size[1]);
  (result as Uint8Array).set(whole as Uint8Array);
  return { dtype, shape: [channels, ...size], data: result };
}
