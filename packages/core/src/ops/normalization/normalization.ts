/**
 * Normalisation: elements moved to mean 0 and variance 1 over some axes, then scaled and shifted.
 *
 * Variances are taken in two passes from the mean (no cancellation). Written as reductions and arithmetic over whole rows, so
 * that layer norms are one kernel.
 */
import { noGrad } from '../../autodiff/custom-gradient.ts';
import { compose } from '../../graph/scope.ts';
import { checkList, normalizeAxis } from '../../shape/axes.ts';
import { ArgumentError, ShapeError, showShape } from '../../shape/errors.ts';
import { checkNames } from '../../shape/options.ts';
import { wrap } from '../../tensor/handle.ts';
import { floatOperand, given } from '../../tensor/operand.ts';
import type { Tensor } from '../../tensor/types.ts';
import { add, cast, div, mul, square, sub } from '../elementwise/arithmetic.ts';
import { rsqrt } from '../elementwise/exponential.ts';
import { type Layout, readLayout } from '../images/image.ts';
import { inFloat32 } from '../elementwise/recording.ts';
import { sum } from '../reduction/reduction.ts';
import { reshape } from '../movement/shape.ts';
import { say } from '../../shape/shown.ts';
import { type Affine, affine, moments, readEps } from '../reduction/moments.ts';

export interface BatchNormOptions extends Affine {
  /** Use the batch's own statistics (and update the running ones); otherwise the running ones. Default false. */
  readonly training?: boolean;
  /** Running mean and variance per channel, updated by `assign` in training. Needed unless training. */
  readonly runningMean?: Tensor | null;
  readonly runningVar?: Tensor | null;
  /** Share of the batch's statistics in the running ones. Default 0.1. */
  readonly momentum?: number;
  /** Axis of the channels. Default 1, or the last one with layout 'nhwc'. */
  readonly axis?: number;
  /** Default 'nchw'. */
  readonly layout?: Layout;
}

/**
 * Normalises every channel over the batch and all other axes. Source: Ioffe and Szegedy (2015); PyTorch `batch_norm`, whose
 * running variance is the unbiased one.
 *
 * @param x shape [N, C, ...], or [N, ..., C] with layout 'nhwc'
 * @param options weight, bias, runningMean, runningVar ([C] each), training, momentum, eps, axis, layout
 * @returns the shape of x
 * @throws ArgumentError if there are no statistics to use; ShapeError where sizes do not fit
 *
 * @example
 * batchNorm(tensor([[1], [3]]), { training: true }); // about [[-1], [1]]
 */
export function batchNorm(x: Tensor, options: BatchNormOptions = {}): Tensor {
  checkNames('batchNorm', options, 'weight@ bias@ eps training? runningMean@ runningVar@ momentum# axis layout');
  return compose('batchNorm', () =>
    inFloat32([wrap(floatOperand(x))], (t) => {
      const last = readLayout('batchNorm', options.layout) === 'nhwc';
      const channel = normalizeAxis('batchNorm', options.axis ?? (last ? -1 : 1), t.ndim);
      const shape = t.shape.map((n, i) => (i === channel ? n : 1));
      const eps = readEps('batchNorm', options.eps, t);
      const { runningMean, runningVar } = options;
      for (const running of [runningMean, runningVar]) {
        if (running && running.size !== t.shape[channel])
          throw new ShapeError(
            'batchNorm',
            say`running statistics have shape ${showShape(running.shape)}: needs [${t.shape[channel]}], one per channel of ${showShape(t.shape)}`,
            [running.shape, t.shape],
          );
      }
      if (!options.training) {
        if (!runningMean || !runningVar)
          throw new ArgumentError(
            'batchNorm',
            'no statistics: neither training nor runningMean and runningVar; give one of them',
          );
        const normal = mul(sub(t, reshape(runningMean, shape)), rsqrt(add(reshape(runningVar, shape), eps)));
        return affine(normal, options, shape, 'batchNorm');
      }
      const axes = t.shape.map((_, i) => i).filter((i) => i !== channel);
      const { centered, mean, variance, count } = moments(t, axes);
      noGrad(() => {
        const momentum = given(options.momentum ?? 0.1, t);
        const update = (running: Tensor, value: Tensor): void => {
          const next = add(running, mul(momentum, sub(reshape(value, running.shape), running)));
          running.assign(cast(next, running.dtype));
        };
        if (runningMean) update(runningMean, mean);
        if (runningVar) update(runningVar, mul(variance, count / Math.max(1, count - 1)));
      });
      return affine(mul(centered, rsqrt(add(variance, eps))), options, shape, 'batchNorm');
    }),
  );
}

export interface LayerNormOptions extends Affine {
  /** Sizes of the last axes, which are normalised together. Default: the last axis. */
  readonly normalizedShape?: number | readonly number[];
}

function lastAxes(
  op: string,
  x: Tensor,
  normalized: number | readonly number[] | undefined,
): { axes: number[]; shape: number[] } {
  if (normalized !== undefined && typeof normalized !== 'number') checkList(op, 'normalizedShape', normalized, '[8]');
  const shape = typeof normalized === 'number' ? [normalized] : [...(normalized ?? x.shape.slice(-1))];
  const first = x.ndim - shape.length;
  if (first < 0 || shape.length === 0 || shape.some((n, i) => n !== x.shape[first + i])) {
    throw new ShapeError(
      op,
      say`normalizedShape ${showShape(shape)} is not the end of shape ${showShape(x.shape)}; name the sizes of the last axes`,
      [x.shape, shape],
    );
  }
  return { axes: shape.map((_, i) => first + i), shape };
}

/**
 * Normalises the last axes of every element of the others. Source: Ba, Kiros and Hinton (2016); PyTorch `layer_norm`.
 *
 * @param options normalizedShape (the last axis), weight and bias of that shape, eps
 * @returns the shape of x
 *
 * @example
 * layerNorm(tensor([[1, 3]])); // about [[-1, 1]]
 */
export function layerNorm(x: Tensor, options: LayerNormOptions = {}): Tensor {
  checkNames('layerNorm', options, 'normalizedShape weight@ bias@ eps');
  return compose('layerNorm', () =>
    inFloat32([wrap(floatOperand(x))], (t) => {
      const { axes, shape } = lastAxes('layerNorm', t, options.normalizedShape);
      const { centered, variance } = moments(t, axes);
      return affine(
        mul(centered, rsqrt(add(variance, readEps('layerNorm', options.eps, t)))),
        options,
        shape,
        'layerNorm',
      );
    }),
  );
}

/**
 * Divides by the root of the mean square over the last axes. Source: Zhang and Sennrich (2019); PyTorch `rms_norm`.
 *
 * @param options normalizedShape (the last axis), weight, bias, eps
 *
 * @example
 * rmsNorm(tensor([[3, 3]])); // about [[1, 1]]
 */
export function rmsNorm(x: Tensor, options: LayerNormOptions = {}): Tensor {
  checkNames('rmsNorm', options, 'normalizedShape weight@ bias@ eps');
  return compose('rmsNorm', () =>
    inFloat32([wrap(floatOperand(x))], (t) => {
      const { axes, shape } = lastAxes('rmsNorm', t, options.normalizedShape);
      const count = shape.reduce((a, b) => a * b, 1);
      const meanSquare = div(sum(square(t), { axis: axes, keepDims: true }), count);
      return affine(mul(t, rsqrt(add(meanSquare, readEps('rmsNorm', options.eps, t)))), options, shape, 'rmsNorm');
    }),
  );
}
