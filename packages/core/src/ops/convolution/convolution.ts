/**
 * Convolutions over one, two and three spatial axes, with a separate kernel at every position, and transposed. All are cross-correlations, as
 * usual in machine learning: the kernel is not flipped.
 *
 * Input is [N, C, ...spatial] ('nchw') or [N, ...spatial, C] ('nhwc'); kernels are [O, C / groups, ...] in both layouts.
 */
import * as p from '../../graph/primitives.ts';
import { makeNode } from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import { compose } from '../../graph/scope.ts';
import { dilated, perAxis } from '@polygrad/compiler/shape/axes';
import type { DType } from '@polygrad/compiler/shape/dtype';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkNames } from '@polygrad/compiler/shape/options';
import { promoteTypes } from '@polygrad/compiler/shape/promotion';
import { say, shown } from '@polygrad/compiler/shape/shown';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { operands } from '../../tensor/operand.ts';
import type { Tensor } from '../../tensor/types.ts';
import { widened } from '../elementwise/recording.ts';
import {
  checkFits,
  checkImage,
  fromChannelsFirst,
  type Layout,
  type Padding,
  type PerAxis,
  readLayout,
  readPadding,
  toChannelsFirst,
  extended,
} from '../images/image.ts';

// What convolutions and transposed ones have in common: checks of ranks and groups, and the bias.

/** Throws unless input and kernel both have `rank` spatial axes. */
function checkRank(op: string, x: Node, kernel: Node, rank: number): void {
  checkImage(op, x, rank);
  if (kernel.shape.length === rank + 2) return;
  throw new ShapeError(
    op,
    say`kernel ${showShape(kernel.shape)} has ${kernel.shape.length} axes: needs ${rank + 2}, features, channels and ${rank} spatial, for input ${showShape(x.shape)}`,
    [x.shape, kernel.shape],
  );
}

/** Groups of an option. */
function readGroups(op: string, groups: number | undefined): number {
  if (groups === undefined) return 1;
  if (!Number.isInteger(groups) || groups < 1)
    throw new ArgumentError(op, say`bad groups: ${groups}; must be an integer of at least 1`);
  return groups;
}

/** The operands of a convolution: 16-bit floats in float32 where a bias follows, so that only the sum of both is rounded. */
function beforeBias(operand: Node, bias: Tensor | null | undefined): Node {
  return bias === null || bias === undefined ? operand : widened(operand);
}

/**
 * The result [N, O, ...spatial] plus the bias [O], in the common dtype of the bias and `dtype`, that of the operands. Throws ShapeError for a bias
 * of another shape.
 */
function withBias(op: string, result: Node, bias: Tensor | null | undefined, dtype: DType): Node {
  if (bias === null || bias === undefined) return result;
  const [sum, node] = operands(wrap(result), bias);
  if (node.shape.length !== 1 || node.shape[0] !== result.shape[1]) {
    throw new ShapeError(
      op,
      say`bias has shape ${showShape(node.shape)}: needs [${result.shape[1]}], one per output feature`,
      [node.shape],
    );
  }
  const added = p.add(sum, p.reshape(node, [node.shape[0]!, ...result.shape.slice(2).map(() => 1)]));
  return p.cast(added, promoteTypes(op, dtype, nodeOf(bias).dtype));
}

/** What padding puts around an input, as in PyTorch's layers. */
export type PaddingMode = 'zeros' | 'reflect' | 'replicate' | 'circular';

/** Options of `conv1d`, `conv2d`, `conv3d` and `depthwiseConv2d`. */
export interface ConvOptions {
  /** Added per output feature: [O]. */
  readonly bias?: Tensor | null;
  /** Default 1. */
  readonly stride?: PerAxis;
  /** Default 0. */
  readonly padding?: Padding;
  /** What padding puts around the input: zeros, the mirrored inside without the edge, the edge, the other end. Default 'zeros'. */
  readonly paddingMode?: PaddingMode;
  /** Distance between taps of the kernel. Default 1. */
  readonly dilation?: PerAxis;
  /** Groups of channels that are convolved separately. Default 1. */
  readonly groups?: number;
  /** Default 'nchw'. */
  readonly layout?: Layout;
}

function convolution(op: string, rank: number, x: Tensor, kernel: Tensor, options: ConvOptions): Tensor {
  checkNames(op, options, 'bias stride padding paddingMode dilation groups layout');
  return compose(op, () => {
    const [input, weight] = operands(x, kernel);
    checkRank(op, input, weight, rank);
    const layout = readLayout(op, options.layout);
    const groups = readGroups(op, options.groups);
    const { paddingMode: mode = 'zeros' } = options;
    if (!['zeros', 'reflect', 'replicate', 'circular'].includes(mode))
      throw new ArgumentError(
        op,
        say`bad paddingMode: ${shown(mode)}; must be 'zeros', 'reflect', 'replicate' or 'circular'`,
      );
    let lhs = toChannelsFirst(input, layout);
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
    const extents = weight.shape.slice(2).map((n, i) => dilated(n, dilation[i]!));
    checkFits(op, 'kernel', lhs.shape, extents, low, high);
    if (mode !== 'zeros') {
      for (const [i, before] of low.entries()) {
        lhs = extended(op, lhs, i + 2, before, high[i]!, mode);
        low[i] = high[i] = 0;
      }
    }
    const { bias } = options;
    const result = makeNode('conv', [beforeBias(lhs, bias), beforeBias(weight, bias)], {
      stride,
      padLow: low,
      padHigh: high,
      lhsDilation: stride.map(() => 1),
      rhsDilation: dilation,
      groups,
      batchGroups: 1,
    });
    return wrap(fromChannelsFirst(withBias(op, result, bias, input.dtype), layout));
  });
}

/**
 * Convolution over one spatial axis. Source: PyTorch `conv1d`.
 *
 * @param x shape [N, C, L], or [N, L, C] with layout 'nhwc'
 * @param kernel shape [O, C / groups, k]
 * @param options bias, stride, padding, paddingMode, dilation, groups, layout
 * @returns shape [N, O, floor((L + padding - dilation (k - 1) - 1) / stride) + 1], of the common dtype, which is not bool
 * @throws ShapeError where channels, groups or sizes do not fit
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
 * @param options bias, stride, padding (numbers, pairs, 'same' or 'valid'), paddingMode ('zeros'), dilation, groups, layout
 * @returns shape [N, O, H', W'] or [N, H', W', O], of the common dtype, which is not bool
 * @throws ShapeError where channels, groups or sizes do not fit
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
 * @param options bias, stride, padding (numbers, triples, 'same' or 'valid'), paddingMode ('zeros'), dilation, groups, layout
 * @returns shape [N, O, D', H', W'] or [N, D', H', W', O], of the common dtype, which is not bool
 * @throws ShapeError where channels, groups or sizes do not fit
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
 * @param options bias, stride, padding, paddingMode, dilation, layout
 * @returns shape [N, C * m, H', W'] or [N, H', W', C * m], of the common dtype, which is not bool
 * @throws ShapeError where channels or sizes do not fit
 *
 * @example
 * depthwiseConv2d(ones([1, 2, 2, 2]), ones([2, 1, 2, 2])).shape; // [1, 2, 1, 1]
 */
export function depthwiseConv2d(x: Tensor, kernel: Tensor, options: Omit<ConvOptions, 'groups'> = {}): Tensor {
  checkNames('depthwiseConv2d', options, 'bias stride padding paddingMode dilation layout');
  const channels = nodeOf(x, 'depthwiseConv2d').shape[options.layout === 'nhwc' ? 3 : 1] ?? 1;
  return convolution('depthwiseConv2d', 2, x, kernel, { ...options, groups: Math.max(1, channels) });
}

// Convolution with a separate kernel at every position: nothing is shared between places of the image.

/** Options of `locallyConnectedConv2d`. */
export interface LocalConvOptions extends Omit<ConvOptions, 'bias' | 'paddingMode'> {
  /** Added per output feature, [O], or per feature and position, [O, H', W']. */
  readonly bias?: Tensor | null;
}

/**
 * A convolution whose kernel differs from place to place. Source: Keras `LocallyConnected2D`; Taigman et al., "DeepFace" (2014).
 *
 * @param x shape [N, C, H, W], or [N, H, W, C] with layout 'nhwc'
 * @param kernel shape [O, C / groups, H', W', kh, kw] in both layouts: a kernel for each of the H' x W' positions of the result
 * @param options bias ([O] or [O, H', W']), stride, padding, dilation, groups, layout
 * @returns shape [N, O, H', W'] or [N, H', W', O], sizes as in conv2d
 * @throws ShapeError where channels, groups, positions or sizes do not fit
 *
 * @example
 * // Two positions: the first sums its window, the second doubles the sum.
 * const kernel = tensor([1, 1, 2, 2], { shape: [1, 1, 1, 2, 1, 2] });
 * locallyConnectedConv2d(tensor([[[[1, 2, 3]]]]), kernel); // [[[[3, 10]]]]
 */
export function locallyConnectedConv2d(x: Tensor, kernel: Tensor, options: LocalConvOptions = {}): Tensor {
  checkNames('locallyConnectedConv2d', options, 'bias stride padding dilation groups layout');
  const op = 'locallyConnectedConv2d';
  return compose(op, () => {
    const [input, weight] = operands(x, kernel);
    checkImage(op, input, 2);
    const layout = readLayout(op, options.layout);
    const groups = readGroups(op, options.groups);
    const image = toChannelsFirst(input, layout);
    if (weight.shape.length !== 6)
      throw new ShapeError(
        op,
        say`kernel ${showShape(weight.shape)} has ${weight.shape.length} axes: needs 6, [O, C / groups, H', W', kh, kw]`,
        [weight.shape],
      );
    const [features, depth, rows, columns, ...size] = weight.shape as [number, number, number, number, number, number];
    const [batch, channels] = image.shape as [number, number];
    const stride = perAxis(op, 'stride', options.stride ?? 1, 2, 1);
    const dilation = perAxis(op, 'dilation', options.dilation ?? 1, 2, 1);
    const { low, high } = readPadding(op, options.padding ?? 0, image.shape.slice(2), size, stride, dilation);
    if (channels !== depth * groups || features % groups !== 0) {
      throw new ShapeError(
        op,
        say`channels do not fit: input ${showShape(input.shape)} has ${channels}, kernel ${showShape(weight.shape)} with ${groups} groups needs ${depth * groups}, and groups must divide its ${features} features`,
        [input.shape, weight.shape],
      );
    }
    checkFits(
      op,
      'kernel',
      image.shape,
      size.map((n, i) => dilated(n, dilation[i]!)),
      low,
      high,
    );
    const windows = makeNode('window', [p.pad(image, [0, 0, ...low], [0, 0, ...high])], { size, stride, dilation });
    const [height, width] = windows.shape.slice(2) as [number, number];
    if (height !== rows || width !== columns) {
      throw new ShapeError(
        op,
        say`positions differ: kernel ${showShape(weight.shape)} is made for ${rows} x ${columns}, the result has ${height} x ${width}; axes 2 and 3 of the kernel must be these`,
        [input.shape, weight.shape],
      );
    }
    // Per position and group a product of [N, C / g * taps] and [O / g, C / g * taps].
    const lhs = p.reshape(windows, [batch, groups, depth, ...windows.shape.slice(2)]);
    const rhs = p.reshape(weight, [groups, features / groups, ...weight.shape.slice(1)]);
    const product = makeNode('dotGeneral', [beforeBias(lhs, options.bias), beforeBias(rhs, options.bias)], {
      lhsBatch: [1, 3, 4],
      rhsBatch: [0, 3, 4],
      lhsContract: [2, 5, 6],
      rhsContract: [2, 5, 6],
    });
    const result = p.reshape(p.permute(product, [3, 0, 4, 1, 2]), [batch, features, height, width]);
    if (!options.bias) return wrap(fromChannelsFirst(result, layout));
    const [sum, bias] = operands(wrap(result), options.bias);
    const shape = bias.shape.join();
    if (shape !== `${features}` && shape !== `${features},${height},${width}`)
      throw new ShapeError(
        op,
        say`bias has shape ${showShape(bias.shape)}: needs [${features}] or [${features}, ${height}, ${width}]`,
        [bias.shape],
      );
    const lifted = bias.shape.length === 1 ? p.reshape(bias, [features, 1, 1]) : bias;
    const added = p.cast(p.add(sum, lifted), promoteTypes(op, input.dtype, nodeOf(options.bias).dtype));
    return wrap(fromChannelsFirst(added, layout));
  });
}

// Transposed convolutions: the gradients of convolutions by their inputs, used to enlarge images. Each is a convolution of the input
// with holes between its elements.

/** Options of `convTranspose1d`, `convTranspose2d` and `convTranspose3d`. */
export interface ConvTransposeOptions extends Omit<ConvOptions, 'padding' | 'paddingMode'> {
  /** Taken off each end of the result. Default 0. */
  readonly padding?: PerAxis;
  /** Extra size at the end of the result. Default 0. */
  readonly outputPadding?: PerAxis;
}

function transposed(op: string, rank: number, x: Tensor, kernel: Tensor, options: ConvTransposeOptions): Tensor {
  checkNames(op, options, 'bias stride padding outputPadding dilation groups layout');
  return compose(op, () => {
    const [input, weight] = operands(x, kernel);
    checkRank(op, input, weight, rank);
    const layout = readLayout(op, options.layout);
    const lhs = toChannelsFirst(input, layout);
    const groups = readGroups(op, options.groups);
    const stride = perAxis(op, 'stride', options.stride ?? 1, rank, 1);
    const dilation = perAxis(op, 'dilation', options.dilation ?? 1, rank, 1);
    const padding = perAxis(op, 'padding', options.padding ?? 0, rank, 0);
    const extra = perAxis(op, 'outputPadding', options.outputPadding ?? 0, rank, 0);
    const [channels, perGroup, ...size] = weight.shape as [number, number, ...number[]];
    if (lhs.shape[1] !== channels || channels % groups !== 0) {
      throw new ShapeError(
        op,
        say`channels do not fit: input ${showShape(input.shape)} has ${lhs.shape[1]}, kernel ${showShape(weight.shape)} with ${groups} groups needs ${channels}`,
        [input.shape, weight.shape],
      );
    }
    extra.forEach((n, i) => {
      const most = Math.max(stride[i]!, dilation[i]!);
      if (n >= most)
        throw new ArgumentError(
          op,
          say`outputPadding too large: ${n} with stride ${stride[i]} and dilation ${dilation[i]}; must be below the larger of them`,
        );
      const left = dilated(lhs.shape[i + 2]!, stride[i]!) + dilated(size[i]!, dilation[i]!) - 1;
      if (left + n <= 2 * padding[i]!)
        throw new ArgumentError(
          op,
          say`padding too large: ${padding[i]} leaves nothing of ${left + n} elements along spatial axis ${i}; it is taken off both ends`,
        );
    });
    // [C, O / g, k] to [O, C / g, k] with every tap at the opposite place: the transpose of the matrix that conv applies.
    const split = p.reshape(weight, [groups, channels / groups, perGroup, ...size]);
    const swapped = p.permute(split, [0, 2, 1, ...size.map((_, i) => i + 3)]);
    const rhs = p.flip(
      p.reshape(swapped, [groups * perGroup, channels / groups, ...size]),
      size.map((_, i) => i + 2),
    );
    const low = size.map((k, i) => dilation[i]! * (k - 1) - padding[i]!);
    const { bias } = options;
    const result = makeNode('conv', [beforeBias(lhs, bias), beforeBias(rhs, bias)], {
      stride: stride.map(() => 1),
      padLow: low,
      padHigh: low.map((n, i) => n + extra[i]!),
      lhsDilation: stride,
      rhsDilation: dilation,
      groups,
      batchGroups: 1,
    });
    return wrap(fromChannelsFirst(withBias(op, result, bias, lhs.dtype), layout));
  });
}

/**
 * Transposed convolution over one spatial axis: the gradient of conv1d by its input. Source: PyTorch `conv_transpose1d`.
 *
 * @param x shape [N, C, L], or [N, L, C] with layout 'nhwc'
 * @param kernel shape [C, O / groups, k]
 * @param options bias, stride, padding, outputPadding, dilation, groups, layout
 * @returns shape [N, O, (L - 1) stride - 2 padding + dilation (k - 1) + outputPadding + 1], of the common dtype, which is not bool
 * @throws ShapeError where channels or groups do not fit; ArgumentError for paddings out of range
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
 * @param options bias, stride, padding, outputPadding, dilation, groups, layout
 * @returns shape [N, O, H', W'] or [N, H', W', O], sizes as in convTranspose1d, of the common dtype, which is not bool
 * @throws ShapeError where channels or groups do not fit; ArgumentError for paddings out of range
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
 * @param options bias, stride, padding, outputPadding, dilation, groups, layout
 * @returns shape [N, O, D', H', W'] or [N, D', H', W', O], sizes as in convTranspose1d, of the common dtype, which is not bool
 * @throws ShapeError where channels or groups do not fit; ArgumentError for paddings out of range
 *
 * @example
 * convTranspose3d(ones([1, 1, 1, 1, 1]), ones([1, 1, 2, 2, 2])).shape; // [1, 1, 2, 2, 2]
 */
export function convTranspose3d(x: Tensor, kernel: Tensor, options: ConvTransposeOptions = {}): Tensor {
  return transposed('convTranspose3d', 3, x, kernel, options);
}
