/** Images as columns of patches and back, and channels exchanged with resolution. Index arithmetic only, but for the sums of fold. */
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { makeNode } from '../../graph/primitives.ts';
import { compose } from '../../graph/scope.ts';
import { perAxis } from '@polygrad/compiler/shape/axes';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkNames } from '@polygrad/compiler/shape/options';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { say } from '@polygrad/compiler/shape/shown';
import type { Tensor } from '../../tensor/types.ts';
import type { PerAxis } from './image.ts';

/** Geometry of patches, as of a convolution: a number for both spatial axes or one each. */
export interface PatchOptions {
  /** Default 1. */
  readonly stride?: PerAxis;
  /** Zeros around the image. Default 0. */
  readonly padding?: PerAxis;
  /** Distance between elements of a patch. Default 1. */
  readonly dilation?: PerAxis;
}

interface Geometry {
  readonly size: number[];
  readonly stride: number[];
  readonly padding: number[];
  readonly dilation: number[];
}

function geometry(op: string, kernelSize: PerAxis, options: PatchOptions): Geometry {
  checkNames(op, options, 'stride padding dilation');
  return {
    size: perAxis(op, 'kernelSize', kernelSize, 2, 1),
    stride: perAxis(op, 'stride', options.stride ?? 1, 2, 1),
    padding: perAxis(op, 'padding', options.padding ?? 0, 2, 0),
    dilation: perAxis(op, 'dilation', options.dilation ?? 1, 2, 1),
  };
}

/** How many patches fit along each axis of an image of this size. */
function counts(op: string, image: readonly number[], g: Geometry): number[] {
  return image.map((n, i) => {
    const padded = n + 2 * g.padding[i]!;
    const extent = g.dilation[i]! * (g.size[i]! - 1) + 1;
    if (padded < extent)
      throw new ShapeError(
        op,
        say`patch too large: it covers ${extent}, the padded image has ${padded} along spatial axis ${i}; pad more or shrink it`,
      );
    return Math.floor((padded - extent) / g.stride[i]!) + 1;
  });
}

/** With a batch axis; unbatched input gets one of size 1. */
function batched(op: string, x: Node, rank: number, meaning: string): Node {
  if (x.shape.length === rank) return x;
  if (x.shape.length === rank - 1) return p.insertAxes(x, [0]);
  throw new ShapeError(op, say`wrong number of axes: ${showShape(x.shape)}; needs ${meaning}, with or without N`, [
    x.shape,
  ]);
}

const around = (widths: readonly number[]): number[] => [0, 0, ...widths];

/**
 * The patches of images as columns (im2col). Source: PyTorch `torch.nn.functional.unfold`.
 *
 * @param x shape [N, C, H, W] or [C, H, W]
 * @param kernelSize height and width of a patch
 * @param options stride (1), padding (0), dilation (1)
 * @returns shape [N, C * kh * kw, L], L patches in row-major order; without N as x; of the dtype of the input
 * @throws ShapeError where the patch is larger than the padded image
 *
 * @example
 * unfold(tensor([[[1, 2], [3, 4]]]), [1, 2]); // [[1, 3], [2, 4]]
 */
export function unfold(x: Tensor, kernelSize: PerAxis, options: PatchOptions = {}): Tensor {
  return compose('unfold', () => {
    const g = geometry('unfold', kernelSize, options);
    const given = nodeOf(x);
    const image = batched('unfold', given, 4, '[N, C, H, W]');
    const [n, c, h, w] = image.shape as readonly [number, number, number, number];
    const out = counts('unfold', [h, w], g);
    const padded = p.pad(image, around(g.padding), around(g.padding));
    const { size, stride, dilation } = g;
    const windows = makeNode('window', [padded], { size, stride, dilation });
    const area = size[0]! * size[1]!;
    const columns = [c * area, out[0]! * out[1]!];
    const moved = p.permute(windows, [0, 1, 4, 5, 2, 3]);
    return wrap(p.reshape(moved, given === image ? [n, ...columns] : columns));
  });
}

/**
 * Columns of patches put back, overlapping elements summed (col2im): the transpose of unfold. Source: PyTorch
 * `torch.nn.functional.fold`.
 *
 * @param x shape [N, C * kh * kw, L] or [C * kh * kw, L]
 * @param outputSize height and width of the images
 * @param kernelSize height and width of a patch
 * @param options stride (1), padding (0), dilation (1), as of unfold
 * @returns shape [N, C, H, W]; without N as x; of the dtype of the input
 * @throws ShapeError where the columns are not what unfold makes of such images
 *
 * @example
 * fold(tensor([[1, 3], [2, 4]]), [2, 2], [1, 2]); // [[[1, 2], [3, 4]]]
 */
export function fold(x: Tensor, outputSize: PerAxis, kernelSize: PerAxis, options: PatchOptions = {}): Tensor {
  return compose('fold', () => {
    const g = geometry('fold', kernelSize, options);
    const image = perAxis('fold', 'outputSize', outputSize, 2, 1);
    const given = nodeOf(x);
    const columns = batched('fold', given, 3, '[N, C * kh * kw, L]');
    const [n, rows, length] = columns.shape as readonly [number, number, number];
    const out = counts('fold', image, g);
    const { size, stride, dilation, padding } = g;
    const area = size[0]! * size[1]!;
    const patches = out[0]! * out[1]!;
    if (rows % area !== 0)
      throw new ShapeError(
        'fold',
        say`columns of ${rows} elements in shape ${showShape(given.shape)} are no patches: ${rows} must be a multiple of ${area}, the size of ${showShape(size)}`,
        [given.shape],
      );
    if (length !== patches)
      throw new ShapeError(
        'fold',
        say`wrong number of patches: ${length} in shape ${showShape(given.shape)}, an image of ${showShape(image)} has ${patches}; check outputSize and options`,
        [given.shape],
      );
    const split = p.reshape(columns, [n, rows / area, ...size, ...out]);
    const spatial = image.map((m, i) => m + 2 * padding[i]!);
    const whole = makeNode('fold', [p.permute(split, [0, 1, 4, 5, 2, 3])], { size, stride, dilation, spatial });
    const inner = p.slice(whole, around(padding), [n, rows / area, ...image], [1, 1, 1, 1]);
    return wrap(given === columns ? inner : p.reshape(inner, inner.shape.slice(1)));
  });
}

function factorOf(op: string, factor: number): number {
  if (!Number.isInteger(factor) || factor < 1)
    throw new ArgumentError(op, say`bad factor: ${factor}; must be a positive integer`);
  return factor;
}

function imageAxes(op: string, x: Node): { lead: number[]; c: number; h: number; w: number } {
  const rank = x.shape.length;
  if (rank < 3) throw new ShapeError(op, say`too few axes: ${showShape(x.shape)}; needs [..., C, H, W]`, [x.shape]);
  const [c, h, w] = x.shape.slice(rank - 3) as [number, number, number];
  return { lead: x.shape.slice(0, rank - 3), c, h, w };
}

/**
 * Channels as pixels: [..., C r^2, H, W] to [..., C, H r, W r]. Source: Shi et al., "Real-Time Single Image and Video
 * Super-Resolution Using an Efficient Sub-Pixel Convolutional Neural Network" (2016); PyTorch `pixel_shuffle`.
 *
 * @param factor r
 * @returns of the dtype of the input
 * @throws ShapeError unless r^2 divides the number of channels
 *
 * @example
 * pixelShuffle(tensor([[[1]], [[2]], [[3]], [[4]]]), 2); // [[[1, 2], [3, 4]]]
 */
export function pixelShuffle(x: Tensor, factor: number): Tensor {
  return compose('pixelShuffle', () => {
    const r = factorOf('pixelShuffle', factor);
    const node = nodeOf(x);
    const { lead, c, h, w } = imageAxes('pixelShuffle', node);
    if (c % (r * r) !== 0)
      throw new ShapeError(
        'pixelShuffle',
        say`channels do not divide: ${c} in shape ${showShape(node.shape)} by factor ${r}; needs a multiple of ${r * r}`,
        [node.shape],
      );
    const n = lead.length;
    const split = p.reshape(node, [...lead, c / (r * r), r, r, h, w]);
    const moved = p.permute(split, [...lead.keys(), n, n + 3, n + 1, n + 4, n + 2]);
    return wrap(p.reshape(moved, [...lead, c / (r * r), h * r, w * r]));
  });
}

/**
 * Pixels as channels: [..., C, H r, W r] to [..., C r^2, H, W], the reverse of pixelShuffle. Source: PyTorch `pixel_unshuffle`.
 *
 * @param factor r
 * @returns of the dtype of the input
 * @throws ShapeError unless r divides height and width
 *
 * @example
 * pixelUnshuffle(tensor([[[1, 2], [3, 4]]]), 2); // [[[1]], [[2]], [[3]], [[4]]]
 */
export function pixelUnshuffle(x: Tensor, factor: number): Tensor {
  return compose('pixelUnshuffle', () => {
    const r = factorOf('pixelUnshuffle', factor);
    const node = nodeOf(x);
    const { lead, c, h, w } = imageAxes('pixelUnshuffle', node);
    if (h % r !== 0 || w % r !== 0)
      throw new ShapeError(
        'pixelUnshuffle',
        say`image does not divide: ${h} by ${w} in shape ${showShape(node.shape)}; needs multiples of ${r}`,
        [node.shape],
      );
    const n = lead.length;
    const split = p.reshape(node, [...lead, c, h / r, r, w / r, r]);
    const moved = p.permute(split, [...lead.keys(), n, n + 2, n + 4, n + 1, n + 3]);
    return wrap(p.reshape(moved, [...lead, c * r * r, h / r, w / r]));
  });
}
