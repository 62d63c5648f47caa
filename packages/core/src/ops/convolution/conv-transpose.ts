/**
 * Transposed convolutions: the gradients of convolutions by their inputs, used to enlarge images. Each is a convolution of the input
 * with holes between its elements.
 */
import { makeNode } from '../../graph/build.ts';
import { dilated, perAxis } from '../../shape/axes.ts';
import * as p from '../../graph/primitives.ts';
import { compose } from '../../graph/scope.ts';
import { ArgumentError, ShapeError, showShape } from '../../shape/errors.ts';
import { checkNames } from '../../shape/options.ts';
import { wrap } from '../../tensor/handle.ts';
import { operands } from '../../tensor/operand.ts';
import type { Tensor } from '../../tensor/types.ts';
import type { ConvOptions } from './convolution.ts';
import { beforeBias, checkRank, readGroups, withBias } from './conv-operands.ts';
import { fromChannelsFirst, type PerAxis, readLayout, toChannelsFirst } from '../images/image.ts';
import { say } from '../../shape/shown.ts';

export interface ConvTransposeOptions extends Omit<ConvOptions, 'padding'> {
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
 * @param options bias, stride, padding, outputPadding, dilation, groups, layout
 * @returns shape [N, O, H', W'] or [N, H', W', O], sizes as in convTranspose1d
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
 * @returns shape [N, O, D', H', W'] or [N, D', H', W', O], sizes as in convTranspose1d
 * @throws ShapeError where channels or groups do not fit; ArgumentError for paddings out of range
 *
 * @example
 * convTranspose3d(ones([1, 1, 1, 1, 1]), ones([1, 1, 2, 2, 2])).shape; // [1, 1, 2, 2, 2]
 */
export function convTranspose3d(x: Tensor, kernel: Tensor, options: ConvTransposeOptions = {}): Tensor {
  return transposed('convTranspose3d', 3, x, kernel, options);
}
