/** Normalisation over channels of images: in groups, one by one, and by neighbouring channels. Batch norm is in normalization.ts. */
import { makeNode } from '../../graph/build.ts';
import * as p from '../../graph/primitives.ts';
import { compose } from '../../graph/scope.ts';
import { checkOptions } from '../../shape/axes.ts';
import { ArgumentError, ShapeError, showShape } from '../../shape/errors.ts';
import { checkNames } from '../../shape/options.ts';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { floatOperand, given } from '../../tensor/operand.ts';
import type { Tensor } from '../../tensor/types.ts';
import { add, div, mul, pow, square } from '../elementwise/arithmetic.ts';
import { rsqrt } from '../elementwise/exponential.ts';
import { type Layout, readLayout } from '../images/image.ts';
import { affine, type Affine, moments, readEps } from '../reduction/moments.ts';
import { inFloat32 } from '../elementwise/recording.ts';
import { sum } from '../reduction/reduction.ts';
import { moveAxis, reshape } from '../movement/shape.ts';
import { say } from '../../shape/shown.ts';

export interface ImageNormOptions extends Affine {
  /** Default 'nchw'. */
  readonly layout?: Layout;
}

/** Normalises [N, C, ...] or [N, ..., C] by groups of channels; null takes every channel by itself. */
function grouped(op: string, x: Tensor, count: number | null, options: ImageNormOptions): Tensor {
  return compose(op, () =>
    inFloat32([wrap(floatOperand(x))], (t) => {
      if (t.ndim < 2)
        throw new ShapeError(
          op,
          say`shape ${showShape(t.shape)} has ${t.ndim} axes: needs at least 2, batch and channels`,
          [t.shape],
        );
      const last = readLayout(op, options.layout) === 'nhwc';
      const channels = t.shape[last ? t.ndim - 1 : 1]!;
      const groups = count ?? Math.max(1, channels);
      if (!Number.isInteger(groups) || groups < 1 || channels % groups !== 0) {
        throw new ShapeError(
          op,
          say`groups do not divide: ${channels} channels of ${showShape(t.shape)} in ${groups} groups; choose a divisor`,
          [t.shape],
        );
      }
      const spatial = last ? t.shape.slice(1, -1) : t.shape.slice(2);
      const split = [groups, channels / groups];
      const batch = t.shape[0]!;
      const shape = last ? [batch, ...spatial, ...split] : [batch, ...split, ...spatial];
      const group = last ? spatial.length + 1 : 1;
      const { centered, variance } = moments(
        reshape(t, shape),
        shape.map((_, i) => i).filter((i) => i !== 0 && i !== group),
      );
      const normal = reshape(mul(centered, rsqrt(add(variance, readEps(op, options.eps, t)))), t.shape);
      return affine(normal, options, last ? [channels] : [channels, ...spatial.map(() => 1)], op);
    }),
  );
}

/**
 * Normalises groups of channels of each element of the batch. Source: Wu and He (2018); PyTorch `group_norm`.
 *
 * @param x shape [N, C, ...], or [N, ..., C] with layout 'nhwc'
 * @param options groups (divides C), weight and bias [C], eps, layout
 * @returns the shape of x
 * @throws ShapeError where groups do not divide the channels
 *
 * @example
 * groupNorm(tensor([[1, 3]]), { groups: 1 }); // about [[-1, 1]]
 */
export function groupNorm(x: Tensor, options: ImageNormOptions & { readonly groups: number }): Tensor {
  checkNames('groupNorm', options, 'groups weight@ bias@ eps layout');
  return grouped('groupNorm', x, options?.groups ?? Number.NaN, options ?? {});
}

/**
 * Normalises every channel of each element of the batch. Source: Ulyanov et al. (2016); PyTorch `instance_norm`.
 *
 * @param x shape [N, C, ...], or [N, ..., C] with layout 'nhwc'
 * @param options weight and bias [C], eps, layout
 * @returns the shape of x
 *
 * @example
 * instanceNorm(tensor([[[1, 3]]])); // about [[[-1, 1]]]
 */
export function instanceNorm(x: Tensor, options: ImageNormOptions = {}): Tensor {
  checkNames('instanceNorm', options, 'weight@ bias@ eps layout');
  return grouped('instanceNorm', x, null, options);
}

export interface LocalResponseNormOptions {
  /** Channels that are looked at together. */
  readonly size: number;
  /** Factor of the mean square. Default 1e-4. */
  readonly alpha?: number;
  /** Exponent of the divisor. Default 0.75. */
  readonly beta?: number;
  /** Added to the mean square. Default 1. */
  readonly k?: number;
  /** Default 'nchw'. */
  readonly layout?: Layout;
}

/**
 * Divides by a power of the mean square over neighbouring channels: x / (k + alpha * mean of x^2)^beta, where channels beyond the first and
 * the last count as 0. Source: Krizhevsky, Sutskever and Hinton (2012); PyTorch `local_response_norm`.
 *
 * @param x shape [N, C, ...], or [N, ..., C] with layout 'nhwc'
 * @param options size, alpha (1e-4), beta (0.75), k (1), layout
 * @returns the shape of x
 * @throws ArgumentError for a size that is no positive integer
 *
 * @example
 * localResponseNorm(tensor([[[3], [4]]]), { size: 1, alpha: 1, beta: 0.5, k: 0 }); // [[[1], [1]]]
 */
export function localResponseNorm(x: Tensor, options: LocalResponseNormOptions): Tensor {
  checkNames('localResponseNorm', options, 'size alpha# beta# k# layout');
  const op = 'localResponseNorm';
  return compose(op, () => {
    const t = wrap(floatOperand(x));
    checkOptions(op, options, '{ size: 5 }');
    const { size, alpha = 1e-4, beta = 0.75, k = 1 } = options;
    if (t.ndim < 2)
      throw new ShapeError(
        op,
        say`shape ${showShape(t.shape)} has ${t.ndim} axes: needs at least 2, batch and channels`,
        [t.shape],
      );
    if (!Number.isInteger(size) || size < 1)
      throw new ArgumentError(op, say`bad size: ${size}; must be an integer of at least 1`);
    const channel = readLayout(op, options.layout) === 'nhwc' ? t.ndim - 1 : 1;
    const around = (width: number): number[] => t.shape.map((_, i) => (i === channel ? Math.floor(width) : 0));
    const padded = p.pad(nodeOf(square(t)), around(size / 2), around((size - 1) / 2));
    const windows = makeNode('window', [nodeOf(moveAxis(wrap(padded), channel, -1))], {
      size: [size],
      stride: [1],
      dilation: [1],
    });
    const mean = div(sum(wrap(windows), { axis: -1 }), size);
    const divisor = pow(add(mul(mean, given(alpha, t)), given(k, t)), given(beta, t));
    return div(t, moveAxis(divisor, -1, channel));
  });
}
