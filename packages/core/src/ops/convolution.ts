/**
 * Convolutions of one, two and three spatial axes (cross-correlation, as everywhere in machine learning), and transposed ones.
 *
 * Input is [N, C, ...spatial] ('nchw') or [N, ...spatial, C] ('nhwc'); kernels are [O, C / groups, ...] in both layouts.
 */
import { makeNode } from '../graph/build.ts';
import { dilated } from '../graph/infer-conv.ts';
import type { Node } from '../graph/node.ts';
import * as p from '../graph/primitives.ts';
import { compose } from '../graph/scope.ts';
import { perAxis } from '../shape/axes.ts';
import { ArgumentError, ShapeError, showShape } from '../shape/errors.ts';
import { nodeOf, wrap } from '../tensor/handle.ts';
import { operands } from '../tensor/operand.ts';
import type { Tensor } from '../tensor/types.ts';

/** Order of the axes of images. */
export type Layout = 'nchw' | 'nhwc';

/** A number for all spatial axes, or one per axis. */
export type PerAxis = number | readonly number[];

/** Zeros around the input: per axis, pairs of before and after, 'valid' (none), or 'same' (output size = input size / stride, rounded up). */
export type Padding = PerAxis | readonly (readonly [number, number])[] | 'same' | 'valid';

export interface ConvOptions {
  /** Added per output feature: [O]. */
  readonly bias?: Tensor | null;
  /** Default 1. */
  readonly stride?: PerAxis;
  /** Default 0. */
  readonly padding?: Padding;
  /** Distance between taps of the kernel. Default 1. */
  readonly dilation?: PerAxis;
  /** Groups of channels that are convolved separately. Default 1. */
  readonly groups?: number;
  /** Default 'nchw'. */
  readonly layout?: Layout;
}

export interface ConvTransposeOptions extends Omit<ConvOptions, 'padding'> {
  /** Taken off each end of the result. Default 0. */
  readonly padding?: PerAxis;
  /** Extra size at the end of the result. Default 0. */
  readonly outputPadding?: PerAxis;
}

/** Zeros before and after each axis. */
export function readPadding(
  op: string,
  padding: Padding,
  input: readonly number[],
  kernel: readonly number[],
  stride: readonly number[],
  dilation: readonly number[],
): { low: number[]; high: number[] } {
  const rank = input.length;
  if (padding === 'valid') return { low: input.map(() => 0), high: input.map(() => 0) };
  if (padding === 'same') {
    const total = input.map((n, i) => {
      const s = stride[i] as number;
      return Math.max(0, (Math.ceil(n / s) - 1) * s + dilated(kernel[i] as number, dilation[i] as number) - n);
    });
    return { low: total.map((n) => Math.floor(n / 2)), high: total.map((n) => Math.ceil(n / 2)) };
  }
  if (typeof padding === 'string')
    throw new ArgumentError(op, `bad padding: '${String(padding)}'; must be numbers, pairs, 'same' or 'valid'`);
  if (typeof padding !== 'number' && Array.isArray(padding[0])) {
    const pairs = padding as readonly (readonly [number, number])[];
    return {
      low: perAxis(
        op,
        'padding',
        pairs.map(([low]) => low),
        rank,
        0,
      ),
      high: perAxis(
        op,
        'padding',
        pairs.map(([, high]) => high),
        rank,
        0,
      ),
    };
  }
  const both = perAxis(op, 'padding', padding as PerAxis, rank, 0);
  return { low: both, high: [...both] };
}

/** Image axes in the order [N, C, ...spatial]. */
export function toChannelsFirst(x: Node, layout: Layout): Node {
  const rank = x.shape.length;
  return layout === 'nhwc' ? p.permute(x, [0, rank - 1, ...Array.from({ length: rank - 2 }, (_, i) => i + 1)]) : x;
}

/** Back to the order of the layout. */
export function fromChannelsFirst(x: Node, layout: Layout): Node {
  const rank = x.shape.length;
  return layout === 'nhwc' ? p.permute(x, [0, ...Array.from({ length: rank - 2 }, (_, i) => i + 2), 1]) : x;
}

function checkRank(op: string, x: Node, kernel: Node, rank: number): void {
  if (x.shape.length !== rank + 2 || kernel.shape.length !== rank + 2) {
    throw new ShapeError(
      op,
      `ranks do not fit: input ${showShape(x.shape)} and kernel ${showShape(kernel.shape)}; both need ${rank + 2} axes`,
      [x.shape, kernel.shape],
    );
  }
}

function withBias(result: Node, bias: Tensor | null | undefined, rank: number, op: string): Node {
  if (bias === null || bias === undefined) return result;
  const node = nodeOf(bias);
  if (node.shape.length !== 1 || node.shape[0] !== result.shape[1]) {
    throw new ShapeError(
      op,
      `bias has shape ${showShape(node.shape)}: needs [${result.shape[1]}], one per output feature`,
      [node.shape],
    );
  }
  return p.add(result, p.reshape(node, [node.shape[0] as number, ...new Array<number>(rank).fill(1)]));
}

function convolution(op: string, rank: number, x: Tensor, kernel: Tensor, options: ConvOptions): Tensor {
  return compose(op, () => {
    const [input, weight] = operands(x, kernel);
    checkRank(op, input, weight, rank);
    const layout = options.layout ?? 'nchw';
    const lhs = toChannelsFirst(input, layout);
    const stride = perAxis(op, 'stride', options.stride ?? 1, rank, 1);
    const dilation = perAxis(op, 'dilation', options.dilation ?? 1, rank, 1);
    const { low, high } = readPadding(
      op,
      options.padding ?? 0,
      lhs.shape.slice(2),
      weight.shape.slice(2),
      stride,
      dilation,
    );
    const result = makeNode('conv', [lhs, weight], {
      stride,
      padLow: low,
      padHigh: high,
      lhsDilation: stride.map(() => 1),
      rhsDilation: dilation,
      groups: options.groups ?? 1,
      batchGroups: 1,
    });
    return wrap(fromChannelsFirst(withBias(result, options.bias, rank, op), layout));
  });
}

/**
 * Convolution over one spatial axis. Source: PyTorch `conv1d`.
 *
 * @param x shape [N, C, L]
 * @param kernel shape [O, C / groups, k]
 * @param options bias, stride, padding, dilation, groups, layout
 * @returns shape [N, O, floor((L + padding - dilation (k - 1) - 1) / stride) + 1]
 * @throws ShapeError where channels or groups do not fit
 *
 * @example
 * conv1d(ones([1, 1, 4]), ones([1, 1, 2])); // [[[2, 2, 2]]]
 */
export function conv1d(x: Tensor, kernel: Tensor, options: ConvOptions = {}): Tensor {
  return convolution('conv1d', 1, x, kernel, options);
}

/**
 * Convolution over two spatial axes. Source: PyTorch `conv2d`.
 *
 * @param x shape [N, C, H, W], or [N, H, W, C] with layout 'nhwc'
 * @param kernel shape [O, C / groups, kh, kw]
 * @param options bias, stride, padding (numbers, pairs, 'same' or 'valid'), dilation, groups, layout
 * @returns shape [N, O, H', W'] or [N, H', W', O]
 * @throws ShapeError where channels or groups do not fit
 *
 * @example
 * conv2d(ones([1, 1, 3, 3]), ones([1, 1, 2, 2])); // [[[[4, 4], [4, 4]]]]
 */
export function conv2d(x: Tensor, kernel: Tensor, options: ConvOptions = {}): Tensor {
  return convolution('conv2d', 2, x, kernel, options);
}

/**
 * Convolution over three spatial axes. Source: PyTorch `conv3d`.
 *
 * @param x shape [N, C, D, H, W], or [N, D, H, W, C] with layout 'nhwc'
 * @param kernel shape [O, C / groups, kd, kh, kw]
 *
 * @example
 * conv3d(ones([1, 1, 2, 2, 2]), ones([1, 1, 2, 2, 2])).shape; // [1, 1, 1, 1, 1]
 */
export function conv3d(x: Tensor, kernel: Tensor, options: ConvOptions = {}): Tensor {
  return convolution('conv3d', 3, x, kernel, options);
}

/**
 * Convolution of every channel by itself. Source: tf.js `depthwiseConv2d`, PyTorch `conv2d` with groups = C.
 *
 * @param x shape [N, C, H, W], or [N, H, W, C] with layout 'nhwc'
 * @param kernel shape [C * m, 1, kh, kw]: m results per channel
 *
 * @example
 * depthwiseConv2d(ones([1, 2, 2, 2]), ones([2, 1, 2, 2])).shape; // [1, 2, 1, 1]
 */
export function depthwiseConv2d(x: Tensor, kernel: Tensor, options: Omit<ConvOptions, 'groups'> = {}): Tensor {
  const channels = x.shape[options.layout === 'nhwc' ? 3 : 1] ?? 1;
  return convolution('depthwiseConv2d', 2, x, kernel, { ...options, groups: channels });
}

function transposed(op: string, rank: number, x: Tensor, kernel: Tensor, options: ConvTransposeOptions): Tensor {
  return compose(op, () => {
    const [input, weight] = operands(x, kernel);
    checkRank(op, input, weight, rank);
    const layout = options.layout ?? 'nchw';
    const lhs = toChannelsFirst(input, layout);
    const groups = options.groups ?? 1;
    const stride = perAxis(op, 'stride', options.stride ?? 1, rank, 1);
    const dilation = perAxis(op, 'dilation', options.dilation ?? 1, rank, 1);
    const padding = perAxis(op, 'padding', options.padding ?? 0, rank, 0);
    const extra = perAxis(op, 'outputPadding', options.outputPadding ?? 0, rank, 0);
    const [channels, perGroup, ...size] = weight.shape as [number, number, ...number[]];
    if (lhs.shape[1] !== channels || channels % groups !== 0) {
      throw new ShapeError(
        op,
        `channels do not fit: input ${showShape(input.shape)} has ${lhs.shape[1]}, kernel ${showShape(weight.shape)} with ${groups} groups needs ${channels}`,
        [input.shape, weight.shape],
      );
    }
    // [C, O / g, k] to [O, C / g, k] with every tap at the opposite place: the transpose of the matrix that conv applies.
    const split = p.reshape(weight, [groups, channels / groups, perGroup, ...size]);
    const swapped = p.permute(split, [0, 2, 1, ...size.map((_, i) => i + 3)]);
    const rhs = p.flip(
      p.reshape(swapped, [groups * perGroup, channels / groups, ...size]),
      size.map((_, i) => i + 2),
    );
    const low = size.map((k, i) => (dilation[i] as number) * (k - 1) - (padding[i] as number));
    const result = makeNode('conv', [lhs, rhs], {
      stride: stride.map(() => 1),
      padLow: low,
      padHigh: low.map((n, i) => n + (extra[i] as number)),
      lhsDilation: stride,
      rhsDilation: dilation,
      groups,
      batchGroups: 1,
    });
    return wrap(fromChannelsFirst(withBias(result, options.bias, rank, op), layout));
  });
}

/**
 * Transposed convolution over one spatial axis: the gradient of conv1d by its input. Source: PyTorch `conv_transpose1d`.
 *
 * @param x shape [N, C, L]
 * @param kernel shape [C, O / groups, k]
 * @param options bias, stride, padding, outputPadding, dilation, groups, layout
 * @returns shape [N, O, (L - 1) stride - 2 padding + dilation (k - 1) + outputPadding + 1]
 *
 * @example
 * convTranspose1d(ones([1, 1, 2]), ones([1, 1, 2])); // [[[1, 2, 1]]]
 */
export function convTranspose1d(x: Tensor, kernel: Tensor, options: ConvTransposeOptions = {}): Tensor {
  return transposed('convTranspose1d', 1, x, kernel, options);
}

/**
 * Transposed convolution over two spatial axes. Source: PyTorch `conv_transpose2d`.
 *
 * @param x shape [N, C, H, W], or [N, H, W, C] with layout 'nhwc'
 * @param kernel shape [C, O / groups, kh, kw]
 *
 * @example
 * convTranspose2d(ones([1, 1, 2, 2]), ones([1, 1, 2, 2]), { stride: 2 }).shape; // [1, 1, 4, 4]
 */
export function convTranspose2d(x: Tensor, kernel: Tensor, options: ConvTransposeOptions = {}): Tensor {
  return transposed('convTranspose2d', 2, x, kernel, options);
}

/**
 * Transposed convolution over three spatial axes. Source: PyTorch `conv_transpose3d`.
 *
 * @param x shape [N, C, D, H, W], or [N, D, H, W, C] with layout 'nhwc'
 * @param kernel shape [C, O / groups, kd, kh, kw]
 *
 * @example
 * convTranspose3d(ones([1, 1, 1, 1, 1]), ones([1, 1, 2, 2, 2])).shape; // [1, 1, 2, 2, 2]
 */
export function convTranspose3d(x: Tensor, kernel: Tensor, options: ConvTransposeOptions = {}): Tensor {
  return transposed('convTranspose3d', 3, x, kernel, options);
}
