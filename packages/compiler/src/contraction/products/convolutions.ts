/**
 * Recognises contractions that are convolutions in two dimensions, or gradients of them, for a library of the device.
 *
 * One factor is an image under windows (windows.ts), the other is read in place. The forward pass and the gradient of the kernel
 * differ only in which loop of a window is the short one. In the gradient of the input the image is the output's gradient, dilated
 * by the stride, and the kernel has features and channels exchanged. Asymmetric padding is left to kernels of this library. How many images there are
 * may be given at dispatch.
 */
import { type Range, sizeOf } from '../../ir/free-ranges.ts';
import type { ConvolutionPass, ConvolutionProduct, Count, ImageOperand, KNodeOf, Pair } from '../../ir/ir.ts';
import type { DType } from '../../shape/dtype.ts';
import { isFixed, type LinearAccess, linearAccess } from '../access.ts';
import type { Contraction } from '../contraction.ts';
import type { SizedAccess } from './counts.ts';
import type { Factors, ProductForm } from './forms.ts';
import { areaOf, type Window, type Windowed, windowed } from './windows.ts';

type Sizes = Omit<ConvolutionProduct, 'kind' | 'pass' | 'dtype' | 'result' | 'a' | 'b' | 'c'>;

/** Where a tensor of four axes is read or written, by the loops of its axes. */
interface Place {
  readonly memory: KNodeOf<'PARAM'> | null;
  readonly offset: number;
  strideOf(r: Range | null): number;
}

/** How the factors are read: the image under windows, and the other one in place, which has a loop of its own or none. */
interface Reading {
  readonly x: Windowed;
  readonly other: Place;
  readonly feature: Range | null;
}

/** The loops of a convolution's axes, null for axes of one element. */
interface Loops {
  readonly image: Range | null;
  readonly group: Range | null;
  readonly channel: Range | null;
  readonly feature: Range | null;
  /** Of the kernel and of positions of the result. */
  readonly kernel: readonly [Range | null, Range | null];
  readonly positions: readonly [Range | null, Range | null];
}

/** An axis of one element. */
const none: Window = { loop: null, sum: null, perLoop: 1, perSum: 1, low: 0, hole: 1, size: 1, stride: 0 };

/** Libraries count in int32. */
const mostStride = 2 ** 31 - 1;

const extentOf = (r: Range | null): number => (r === null ? 1 : r.arg.extent);
const pair = <T>(make: (axis: 0 | 1) => T): readonly [T, T] => [make(0), make(1)];

export function convolutionOf(c: Contraction, factors: Factors): ProductForm | null {
  if (c.batch.length > 1) return null;
  for (const at of [0, 1] as const) {
    const [image, other] = [c.factors[at], c.factors[1 - at]!];
    const [feature = null, ...more] = other.own;
    const plain = linearAccess(factors.stored[1 - at]!);
    if (more.length > 0 || plain === null) continue;
    for (const x of windowed(factors.stored[at], image.own, c.k)) {
      const found = x.windows.length === 0 ? null : asPass(c, factors, { x, other: placeOf(plain), feature });
      if (found !== null) return found;
    }
  }
  return null;
}

/** Where the kernel stores; null if that hangs on sizes. */
function fixedPlace({ memory, offset, strides }: SizedAccess): Place | null {
  const fixed = new Map([...strides].flatMap(([r, x]) => (typeof x === 'number' ? [[r, x] as const] : [])));
  return typeof offset === 'number' && fixed.size === strides.size ? placeOf({ memory, offset, strides: fixed }) : null;
}

function placeOf({ memory, offset, strides }: LinearAccess): Place {
  return { memory: memory as KNodeOf<'PARAM'>, offset, strideOf: (r) => (r === null ? 0 : (strides.get(r) ?? 0)) };
}

/**
 * The passes in the order in which they are tried. A nest may fit several: with one image, channel or feature, the sum may run over a
 * kernel or over positions, and the longer of the two counts as positions. Only the gradient of the input has dilated images or
 * flipped kernels.
 */
function passesOf({ x, other, feature }: Reading): readonly ConvolutionPass[] {
  const isInput = x.windows.some(({ hole, sum }) => hole > 1 || other.strideOf(sum) < 0);
  if (isInput) return ['forward', 'input', 'kernel'];
  const isUnclear = x.sum === null || feature === null;
  const isKernel = isUnclear && areaOf(x.windows, 'sum') > areaOf(x.windows, 'loop');
  return isKernel ? ['kernel', 'forward', 'input'] : ['forward', 'kernel', 'input'];
}

/** The first pass that fits. */
function asPass(c: Contraction, factors: Factors, reading: Reading): ProductForm | null {
  const [first, second] = reading.x.windows as readonly [Window, Window?];
  // A single window is tried as columns first.
  const orders: readonly (readonly [Window, Window])[] =
    second === undefined
      ? [
          [none, first],
          [first, none],
        ]
      : [
          [first, second],
          [second, first],
        ];
  // Where the kernel stores, else row-major.
  const place = factors.own && fixedPlace(factors.own.access);
  const results = place === null ? [null] : [place, null];
  for (const pass of passesOf(reading))
    for (const result of results)
      for (const windows of orders) {
        const found = makePass(c, factors, pass, reading, windows, result);
        if (found !== null) return found;
      }
  return null;
}

function makePass(
  c: Contraction,
  { counts, dtype, own, apart }: Factors,
  pass: ConvolutionPass,
  { x, other, feature: ownLoop }: Reading,
  windows: readonly [Window, Window],
  result: Place | null,
): ProductForm | null {
  const geometry = geometryOf(pass, windows);
  if (geometry === null) return null;
  const group = c.batch[0] ?? null;
  const [around, within] = [pair((i) => windows[i].loop), pair((i) => windows[i].sum)];
  const loops: Loops =
    pass === 'kernel'
      ? { group, image: x.sum, channel: x.loop, feature: ownLoop, kernel: around, positions: within }
      : pass === 'forward'
        ? { group, image: x.loop, channel: x.sum, feature: ownLoop, kernel: within, positions: around }
        : { group, image: x.loop, channel: ownLoop, feature: x.sum, kernel: within, positions: around };
  const { image: images, ...others } = loops;
  const count = images === null ? 1 : counts.lengthOf(images);
  if (
    count === null ||
    !Object.values(others)
      .flat()
      .every((r) => r === null || isFixed(r))
  )
    return null;
  // Of the greatest number of images.
  const sizes = {
    ...geometry,
    images: extentOf(images),
    groups: extentOf(group),
    channels: extentOf(loops.channel),
    features: extentOf(loops.feature),
  };
  const image: Place & { readonly steps: Pair } = { ...x, steps: pair((i) => windows[i].stride) };
  const order = orderOf(pass, loops);
  const places = placesOf(pass, sizes, loops, image, other, result ?? rowMajor(order));
  if (places === null) return null;
  const made = { dtype, result: (result === null ? apart.dtype : own!.dtype) as DType };
  const product: ConvolutionProduct<Count> = { kind: 'convolution', pass, ...made, ...sizes, ...places, images: count };
  return { product, direct: result !== null, order };
}

/** Loops of the result, outermost first. */
function orderOf(pass: ConvolutionPass, { image, group, channel, feature, kernel, positions }: Loops): Range[] {
  const order =
    pass === 'kernel'
      ? [group, feature, channel, ...kernel]
      : [image, group, pass === 'forward' ? feature : channel, ...positions];
  return order.filter((r) => r !== null);
}

function rowMajor(order: readonly Range[]): Place {
  const strideOf = (r: Range | null): number =>
    r === null || !order.includes(r) ? 0 : sizeOf(order.slice(order.indexOf(r) + 1));
  return { memory: null, offset: 0, strideOf };
}

type Geometry = Pick<Sizes, 'size' | 'kernel' | 'positions' | 'stride' | 'padding' | 'dilation'>;

/** What the windows are along rows and columns; null where strides, holes or ends are of no such convolution. */
function geometryOf(pass: ConvolutionPass, windows: readonly [Window, Window]): Geometry | null {
  const axes = windows.map((w) => axisOf(pass, w));
  const [rows, columns] = axes as [(typeof axes)[0], (typeof axes)[0]];
  if (!rows || !columns) return null;
  const of = (name: keyof Geometry): Pair => [rows[name], columns[name]];
  return {
    size: of('size'),
    kernel: of('kernel'),
    positions: of('positions'),
    stride: of('stride'),
    padding: of('padding'),
    dilation: of('dilation'),
  };
}

function axisOf(pass: ConvolutionPass, w: Window): Readonly<Record<keyof Geometry, number>> | null {
  const [around, within] = [extentOf(w.loop), extentOf(w.sum)];
  const made = ((): Readonly<Record<keyof Geometry, number>> => {
    switch (pass) {
      case 'forward': {
        const steps = { stride: w.perLoop, dilation: w.perSum };
        return { size: w.size, kernel: within, positions: around, padding: w.low, ...steps };
      }
      case 'kernel': {
        const steps = { stride: w.perSum, dilation: w.perLoop };
        return { size: w.size, kernel: around, positions: within, padding: w.low, ...steps };
      }
      case 'input': {
        // Position p of x is p + padding - dilation * r of y with holes, and the sum goes through the kernel backwards.
        const steps = { stride: w.hole, dilation: w.perSum };
        return { size: around, kernel: within, positions: w.size, padding: w.perSum * (within - 1) - w.low, ...steps };
      }
      default:
        return pass satisfies never;
    }
  })();
  if (pass === 'input' ? w.perLoop !== 1 : w.hole !== 1) return null;
  const { size, kernel, positions, stride, padding, dilation } = made;
  const room = size + 2 * padding - dilation * (kernel - 1) - 1;
  return padding >= 0 && room >= 0 && Math.floor(room / stride) + 1 === positions ? made : null;
}

/** The operands, and whether the kernel lies the other way round. */
function placesOf(
  pass: ConvolutionPass,
  sizes: Omit<Sizes, 'flipped'>,
  loops: Loops,
  image: Place & { readonly steps: Pair },
  other: Place,
  result: Place,
): (Pick<ConvolutionProduct, 'a' | 'b' | 'c'> & { readonly flipped: boolean }) | null {
  const { channel, feature, positions } = loops;
  const kernel = kernelAt(pass === 'kernel' ? result : other, sizes, loops);
  if (kernel === null) return null;
  const b = kernel.operand;
  const backwards = pass === 'input' ? !kernel.flipped && sizes.kernel.some((n) => n > 1) : kernel.flipped;
  const at = (place: Place, inner: Range | null, steps: Pair, size: Pair): ImageOperand | null =>
    imageAt(place, sizes, loops, inner, steps, size);
  const along = (place: Place): Pair => pair((i) => place.strideOf(positions[i]));
  switch (pass) {
    case 'forward': {
      const a = at(image, channel, image.steps, sizes.size);
      const c = at(result, feature, along(result), sizes.positions);
      return a && c && hasDistinctPlaces(c, sizes, 'features', sizes.positions)
        ? { a, b, c, flipped: backwards }
        : null;
    }
    case 'input': {
      const a = at(image, feature, image.steps, sizes.positions);
      const c = at(result, channel, along(result), sizes.size);
      return a && c && hasDistinctPlaces(c, sizes, 'channels', sizes.size) ? { a, b, c, flipped: backwards } : null;
    }
    case 'kernel': {
      const a = at(image, channel, image.steps, sizes.size);
      const y = at(other, feature, along(other), sizes.positions);
      return a && y ? { a, b: y, c: kernel.operand, flipped: backwards } : null;
    }
    default:
      return pass satisfies never;
  }
}

/** An image with channels or features `inner` of each group; null where groups do not follow each other, or memory has less. */
function imageAt(
  { memory, offset, strideOf }: Place,
  { images, groups }: Pick<Sizes, 'images' | 'groups'>,
  { image, group }: Loops,
  inner: Range | null,
  steps: Pair,
  size: Pair,
): ImageOperand | null {
  const [between, step] = [strideOf(group), strideOf(inner)];
  if (group !== null && inner !== null && between !== step * extentOf(inner)) return null;
  const extents = [images, groups * extentOf(inner), ...size] as const;
  const known = [strideOf(image), inner === null ? between : step, ...steps];
  const strides: [number, number, number, number] = [0, 0, 0, 1];
  for (const i of [3, 2, 1, 0] as const)
    strides[i] = extents[i] > 1 ? known[i]! : i === 3 ? 1 : strides[i + 1]! * extents[i + 1]!;
  const last = extents.reduce((sum, n, i) => sum + (n - 1) * strides[i]!, offset);
  if (offset < 0 || strides.some((s) => s < 1 || s > mostStride) || (memory !== null && last >= memory.arg.length))
    return null;
  return { slot: memory?.arg.slot ?? -1, offset, strides };
}

/** True if no two elements of a result have the same place in memory. */
function hasDistinctPlaces(
  { strides }: ImageOperand,
  sizes: Omit<Sizes, 'flipped'>,
  inner: 'channels' | 'features',
  size: Pair,
): boolean {
  const axes = [sizes.images, sizes.groups * sizes[inner], ...size].map((extent, i) => ({
    extent,
    stride: strides[i]!,
  }));
  let reach = 1;
  for (const { extent, stride } of axes.filter((a) => a.extent > 1).sort((x, y) => x.stride - y.stride)) {
    if (stride < reach) return false;
    reach += (extent - 1) * stride;
  }
  return true;
}

/** The kernel [groups * features, channels, rows, columns] in rows without gaps; null where it lies otherwise. */
function kernelAt(
  { memory, offset, strideOf }: Place,
  { groups, channels, features, kernel }: Omit<Sizes, 'flipped'>,
  loops: Loops,
): { readonly operand: ImageOperand; readonly flipped: boolean } | null {
  const area = kernel[0] * kernel[1];
  const strides = [channels * area, area, kernel[1], 1] as const;
  if (loops.group !== null && strideOf(loops.group) !== features * strides[0]) return null;
  if (loops.feature !== null && strideOf(loops.feature) !== strides[0]) return null;
  if (loops.channel !== null && strideOf(loops.channel) !== strides[1]) return null;
  const turned = pair((i): boolean | null => {
    const [stride, step] = [strideOf(loops.kernel[i]), strides[i + 2]!];
    return loops.kernel[i] === null || Math.abs(stride) !== step ? null : stride < 0;
  });
  if (turned.some((way, i) => way === null && kernel[i]! > 1)) return null;
  if (turned.includes(true) && turned.includes(false)) return null;
  const flipped = turned.includes(true);
  const first = flipped ? offset - (area - 1) : offset;
  const length = groups * features * channels * area;
  if (first < 0 || (memory !== null && first + length > memory.arg.length)) return null;
  return { operand: { slot: memory?.arg.slot ?? -1, offset: first, strides }, flipped };
}
