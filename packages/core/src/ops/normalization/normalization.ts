/**
 * Softmax and its relatives, and normalisation over axes and over channels of images. Softmax divides exponentials by their sum. The others move
 * elements to mean 0 and variance 1 over some axes, then scale and shift them.
 *
 * Variances are means of squared differences from the mean, in two passes, so nothing cancels. All is reductions and arithmetic over whole rows,
 * so that the planner makes one kernel of a layer norm.
 */
import * as p from '../../graph/primitives.ts';
import { noGrad } from '../../autodiff/custom-gradient.ts';
import { makeNode } from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import { beginOp, compose } from '../../graph/scope.ts';
import { checkList, checkOptions, keepAxes, normalizeAxis, readAxis } from '@polygrad/compiler/shape/axes';
import type { DType } from '@polygrad/compiler/shape/dtype';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { checkNames } from '@polygrad/compiler/shape/options';
import { say, shown } from '@polygrad/compiler/shape/shown';
import type { Shape } from '@polygrad/compiler/shape/view';
import { isTensor, nodeOf, wrap } from '../../tensor/handle.ts';
import { floatOperand, given } from '../../tensor/operand.ts';
import type { Tensor, TensorLike } from '../../tensor/types.ts';
import { add, cast, div, mul, neg, pow, square, sub } from '../elementwise/arithmetic.ts';
import { inFloat32, widened } from '../elementwise/recording.ts';
import { rsqrt } from '../elementwise/transcendental.ts';
import { type Layout, readLayout } from '../images/image.ts';
import { moveAxis, reshape } from '../movement/shape.ts';
import { sum } from '../reduction/reduction.ts';

// Softmax and its relatives: exponentials normalised along one axis.
//
// Written so that a row is one kernel: maximum, shifted exponentials, their sum, division. The maximum cancels, so it carries
// no gradient. Scalars count as one element.

/** One axis, by itself or in options; the last one if left out. */
export type OneAxis = number | { readonly axis?: number };

interface Shifted {
  /** x minus its maximum along the axis; 16-bit floats in float32. */
  readonly t: Node;
  /** Of the result. */
  readonly dtype: DType;
  /** Sum along the axis, which stays with size 1. */
  readonly total: (x: Node) => Node;
}

function shifted(op: string, x: TensorLike, argument: OneAxis | undefined): Shifted {
  beginOp(op);
  const operand = floatOperand(x);
  const node = widened(operand);
  const { shape } = node;
  const axis = readAxis(op, argument, -1, shape.length);
  const axes = shape.length === 0 ? [] : [axis];
  const kept = keepAxes(shape, axes);
  const total = (terms: Node): Node => p.reshape(p.reduce(terms, 'sum', axes), kept);
  // Nothing to subtract where there is nothing.
  const { dtype } = operand;
  if (shape.includes(0)) return { t: node, total, dtype };
  const largest = p.reshape(p.reduce(p.stopGradient(node), 'max', axes), kept);
  return { t: p.sub(node, largest), total, dtype };
}

/**
 * exp(x) / sum(exp(x)) along an axis. Source: PyTorch `softmax`.
 *
 * @param axis one axis, or { axis }; -1
 * @returns the shape of x, of the dtype of the input; integers become float32
 *
 * @example
 * softmax(tensor([0, 0])); // [0.5, 0.5]
 */
export function softmax(x: TensorLike, axis?: OneAxis): Tensor {
  return shares('softmax', x, axis);
}

function shares(op: string, x: TensorLike, axis: OneAxis | undefined): Tensor {
  const { t, total, dtype } = shifted(op, x, axis);
  const e = p.unary('exp', t);
  return wrap(p.cast(p.div(e, total(e)), dtype));
}

/**
 * softmax(-x). Source: PyTorch `softmin`.
 *
 * @param axis one axis, or { axis }; -1
 * @returns the shape of x, of the dtype of the input; integers become float32
 *
 * @example
 * softmin(tensor([0, 0])); // [0.5, 0.5]
 */
export function softmin(x: TensorLike, axis?: OneAxis): Tensor {
  return compose('softmin', () => shares('softmin', neg(wrap(floatOperand(x))), axis));
}

/**
 * log(softmax(x)), without underflow. Source: PyTorch `log_softmax`.
 *
 * @param axis one axis, or { axis }; -1
 * @returns the shape of x, of the dtype of the input; integers become float32
 *
 * @example
 * logSoftmax(tensor([0, 0])); // [-0.6931472, -0.6931472]
 */
export function logSoftmax(x: TensorLike, axis?: OneAxis): Tensor {
  const { t, total, dtype } = shifted('logSoftmax', x, axis);
  return wrap(p.cast(p.sub(t, p.unary('log', total(p.unary('exp', t)))), dtype));
}

// What normalisations have in common: mean and variance over axes, and the scale and shift that follow.

/** Scale and shift after normalising. */
interface Affine {
  /** Scale after normalising; none if left out. */
  readonly weight?: Tensor | null | undefined;
  /** Shift after scaling; none if left out. */
  readonly bias?: Tensor | null | undefined;
  /** Added to the variance. Default 1e-5. */
  readonly eps?: number;
}

/** The number added to variances. */
function readEps(op: string, eps: number | undefined, x: Tensor, standard: number = 1e-5): Tensor {
  if (eps !== undefined && (typeof eps !== 'number' || !(eps >= 0)))
    throw new ArgumentError(op, say`bad eps: ${eps}; must be a number of at least 0`);
  return given(eps ?? standard, x);
}

/** Mean and variance over the axes, axes kept. */
function moments(
  x: Tensor,
  axes: readonly number[],
): { centered: Tensor; mean: Tensor; variance: Tensor; count: number } {
  const count = axes.reduce((n, axis) => n * x.shape[axis]!, 1);
  const over = { axis: axes, keepDims: true };
  const mean = div(sum(x, over), count);
  const centered = sub(x, mean);
  return { centered, mean, variance: div(sum(square(centered), over), count), count };
}

/** Normalised, scaled and shifted; weight and bias are reshaped to `shape`, which broadcasts with x. */
function affine(normal: Tensor, { weight, bias }: Affine, shape: Shape, op: string): Tensor {
  const size = shape.reduce((a, b) => a * b, 1);
  const fit = (t: Tensor, what: string): Tensor => {
    if (t.size !== size)
      throw new ShapeError(op, say`${what} has shape ${showShape(t.shape)}: needs ${size} elements`, [t.shape]);
    return reshape(t, shape);
  };
  const scaled = weight ? mul(normal, fit(weight, 'weight')) : normal;
  return bias ? add(scaled, fit(bias, 'bias')) : scaled;
}

/** Means and variances per channel that are carried from batch to batch. */
interface Running {
  /** Running mean and variance per channel, [C] each, updated by `assign` where an input's own statistics are taken. */
  readonly runningMean?: Tensor | null;
  readonly runningVar?: Tensor | null;
  /** Share of an input's statistics in the running ones: a number, or a tensor of one for a share that changes. Default 0.1. */
  readonly momentum?: number | Tensor;
}

/** Throws unless running statistics have a number per channel. */
function checkRunning(op: string, { runningMean, runningVar, momentum }: Running, t: Tensor, channels: number): void {
  if (momentum !== undefined && typeof momentum !== 'number' && !(isTensor(momentum) && momentum.size === 1))
    throw new ArgumentError(op, say`bad momentum: ${shown(momentum)}; must be a number, or a tensor of one`);
  for (const running of [runningMean, runningVar]) {
    if (running && running.size !== channels)
      throw new ShapeError(
        op,
        say`running statistics have shape ${showShape(running.shape)}: needs [${channels}], one per channel of ${showShape(t.shape)}`,
        [running.shape, t.shape],
      );
  }
}

/** Moves running statistics towards those of an input; the variance becomes the unbiased one of `count` elements. */
function updateRunning(options: Running, mean: Tensor, variance: Tensor, count: number): void {
  const { runningMean, runningVar } = options;
  noGrad(() => {
    const momentum = given(options.momentum ?? 0.1, mean);
    const share = typeof options.momentum === 'object' ? reshape(momentum, []) : momentum;
    const update = (running: Tensor, value: Tensor): void => {
      const next = add(running, mul(share, sub(reshape(value, running.shape), running)));
      running.assign(cast(next, running.dtype));
    };
    if (runningMean) update(runningMean, mean);
    if (runningVar) update(runningVar, mul(variance, count / Math.max(1, count - 1)));
  });
}

/** Normalised by running statistics; `shape` has the channels where x has them. */
function byRunning(op: string, t: Tensor, options: Affine & Running, shape: Shape, instead: string): Tensor {
  const { runningMean, runningVar } = options;
  if (!runningMean || !runningVar)
    throw new ArgumentError(
      op,
      say`no statistics: neither ${instead} nor runningMean and runningVar; give one of them`,
    );
  const variance = add(reshape(runningVar, shape), readEps(op, options.eps, t));
  return affine(mul(sub(t, reshape(runningMean, shape)), rsqrt(variance)), options, shape, op);
}

/** Options of `batchNorm`. */
export interface BatchNormOptions extends Affine, Running {
  /** Use the batch's own statistics (and update the running ones); otherwise the running ones, which are needed then. Default false. */
  readonly training?: boolean;
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
 * @returns the shape of x, of the dtype of the input; integers become float32
 * @throws ArgumentError if there are no statistics to use; ShapeError where sizes do not fit, and in training for one value per channel
 *
 * @example
 * batchNorm(tensor([[1], [3]]), { training: true }); // about [[-1], [1]]
 */
export function batchNorm(x: Tensor, options: BatchNormOptions = {}): Tensor {
  checkNames('batchNorm', options, 'weight@ bias@ eps training? runningMean@ runningVar@ momentum axis layout');
  return compose('batchNorm', () =>
    inFloat32([wrap(floatOperand(x))], (t) => {
      const last = readLayout('batchNorm', options.layout) === 'nhwc';
      const channel = normalizeAxis('batchNorm', options.axis ?? (last ? -1 : 1), t.ndim);
      const shape = t.shape.map((n, i) => (i === channel ? n : 1));
      const eps = readEps('batchNorm', options.eps, t);
      checkRunning('batchNorm', options, t, t.shape[channel]!);
      if (!options.training) return byRunning('batchNorm', t, options, shape, 'training');
      const axes = t.shape.map((_, i) => i).filter((i) => i !== channel);
      const { centered, mean, variance, count } = moments(t, axes);
      if (count < 2)
        throw new ShapeError(
          'batchNorm',
          say`x has shape ${showShape(x.shape)}, ${count} per channel in training: statistics need two or more; leave out a last batch of one row (dropLast), or evaluate (training: false, eval() of a model)`,
          [x.shape],
        );
      updateRunning(options, mean, variance, count);
      return affine(mul(centered, rsqrt(add(variance, eps))), options, shape, 'batchNorm');
    }),
  );
}

/** Options of `layerNorm`. */
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
 * @returns the shape of x, of the dtype of the input; integers become float32
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

/** Options of `rmsNorm`. */
export interface RmsNormOptions extends Omit<LayerNormOptions, 'eps'> {
  /** Added to the mean square. Default (null too): the distance from 1 to the next number of the dtype of x. */
  readonly eps?: number | null;
}

/** The distance from 1 to the next number. */
const epsilons: Readonly<Record<string, number>> = {
  float16: 2 ** -10,
  bfloat16: 2 ** -7,
  float32: 2 ** -23,
  float64: 2 ** -52,
};

/**
 * Divides by the root of the mean square over the last axes. Source: Zhang and Sennrich (2019); PyTorch `rms_norm`.
 *
 * @param options normalizedShape (the last axis), weight, bias, eps (the distance from 1 to the next number of the dtype of x, as in PyTorch)
 *
 * @example
 * rmsNorm(tensor([[3, 3]])); // about [[1, 1]]
 */
export function rmsNorm(x: Tensor, options: RmsNormOptions = {}): Tensor {
  checkNames('rmsNorm', options, 'normalizedShape weight@ bias@ eps');
  return compose('rmsNorm', () => {
    const operand = floatOperand(x);
    return inFloat32([wrap(operand)], (t) => {
      const { axes, shape } = lastAxes('rmsNorm', t, options.normalizedShape);
      const count = shape.reduce((a, b) => a * b, 1);
      const meanSquare = div(sum(square(t), { axis: axes, keepDims: true }), count);
      const eps = readEps('rmsNorm', options.eps ?? undefined, t, epsilons[operand.dtype]);
      const normal = mul(t, rsqrt(add(meanSquare, eps)));
      return affine(normal, { weight: options.weight, bias: options.bias }, shape, 'rmsNorm');
    });
  });
}

// Normalisation over channels of images: in groups, one by one, and by neighbouring channels.

/** Options of `groupNorm`. */
export interface ImageNormOptions extends Affine {
  /** Default 'nchw'. */
  readonly layout?: Layout;
}

/** Normalises [N, C, ...] or [N, ..., C] by groups of channels; null takes every channel by itself. */
function grouped(op: string, x: Tensor, groupCount: number | null, options: InstanceNormOptions): Tensor {
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
      const groups = groupCount ?? Math.max(1, channels);
      if (!Number.isInteger(groups) || groups < 1 || channels % groups !== 0) {
        throw new ShapeError(
          op,
          say`groups do not divide: ${channels} channels of ${showShape(t.shape)} in ${groups} groups; choose a divisor`,
          [t.shape],
        );
      }
      const spatial = last ? t.shape.slice(1, -1) : t.shape.slice(2);
      const perChannel = last ? [channels] : [channels, ...spatial.map(() => 1)];
      checkRunning(op, options, t, channels);
      if (options.useInputStats === false) return byRunning(op, t, options, perChannel, 'useInputStats');
      const split = [groups, channels / groups];
      const batch = t.shape[0]!;
      const shape = last ? [batch, ...spatial, ...split] : [batch, ...split, ...spatial];
      const group = last ? spatial.length + 1 : 1;
      const { centered, mean, variance, count } = moments(
        reshape(t, shape),
        shape.map((_, i) => i).filter((i) => i !== 0 && i !== group),
      );
      if ((options.runningMean || options.runningVar) && batch > 0) {
        const ofBatch = (each: Tensor): Tensor => div(sum(reshape(each, [batch, channels]), { axis: 0 }), batch);
        updateRunning(options, ofBatch(mean), ofBatch(variance), count);
      }
      const normal = reshape(mul(centered, rsqrt(add(variance, readEps(op, options.eps, t)))), t.shape);
      return affine(normal, options, perChannel, op);
    }),
  );
}

/**
 * Normalises groups of channels of each element of the batch. Source: Wu and He (2018); PyTorch `group_norm`.
 *
 * @param x shape [N, C, ...], or [N, ..., C] with layout 'nhwc'
 * @param options groups (divides C), weight and bias [C], eps, layout
 * @returns the shape of x, of the dtype of the input; integers become float32
 * @throws ShapeError where groups do not divide the channels
 *
 * @example
 * groupNorm(tensor([[1, 3]]), { groups: 1 }); // about [[-1, 1]]
 */
export function groupNorm(x: Tensor, options: ImageNormOptions & { readonly groups: number }): Tensor {
  checkNames('groupNorm', options, 'groups weight@ bias@ eps layout');
  return grouped('groupNorm', x, options?.groups ?? Number.NaN, options ?? {});
}

/** Options of `instanceNorm`. */
export interface InstanceNormOptions extends ImageNormOptions, Running {
  /** Use the statistics of each element (and update the running ones by their means); otherwise the running ones, which are needed then. Default true. */
  readonly useInputStats?: boolean;
}

/**
 * Normalises every channel of each element of the batch. Source: Ulyanov et al. (2016); PyTorch `instance_norm`.
 *
 * @param x shape [N, C, ...], or [N, ..., C] with layout 'nhwc'
 * @param options weight, bias, runningMean, runningVar ([C] each), useInputStats, momentum, eps, layout
 * @returns the shape of x, of the dtype of the input; integers become float32
 * @throws ArgumentError if there are no statistics to use; ShapeError where sizes do not fit
 *
 * @example
 * instanceNorm(tensor([[[1, 3]]])); // about [[[-1, 1]]]
 */
export function instanceNorm(x: Tensor, options: InstanceNormOptions = {}): Tensor {
  checkNames('instanceNorm', options, 'weight@ bias@ eps layout runningMean@ runningVar@ momentum useInputStats?');
  return grouped('instanceNorm', x, null, options);
}

/** Options of `localResponseNorm`. */
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
