/** Normalisation layers: batch norm with its running statistics, layer norm and RMS norm. */
import {
  add,
  batchNorm,
  cast,
  div,
  type DType,
  layerNorm,
  rmsNorm,
  scope,
  type Tensor,
} from '@polygrad/core/functions';
import { checkOptions, checkInteger, checkList, checkNumber, checkTensor, NnError } from '../errors.ts';
import { filled } from '../init/filled.ts';
import { Module } from '../module/module.ts';
import { buffer, parameter } from '../module/parameter.ts';

/** Options of `BatchNorm1d`, `BatchNorm2d` and `BatchNorm3d`. */
export interface BatchNormLayerOptions {
  /** Added to the variance (default 1e-5). */
  readonly eps?: number;
  /** Share of a batch's statistics in the running ones (default 0.1); null takes the mean of all batches. */
  readonly momentum?: number | null;
  /** Learn a scale and a shift per channel (default true). */
  readonly affine?: boolean;
  /** Keep running statistics (default true); without them, evaluation takes those of the batch too. */
  readonly trackRunningStats?: boolean;
  readonly dtype?: DType;
}

/** What the three have in common: nothing but their name depends on the number of spatial axes. */
abstract class BatchNorm extends Module {
  /** Scale, [channels], or null when not affine. */
  readonly weight: Tensor | null;
  /** Shift, [channels], or null when not affine. */
  readonly bias: Tensor | null;
  /** Buffers [channels], or null without running statistics. Names as in PyTorch's state dictionaries. */
  readonly running_mean: Tensor | null;
  readonly running_var: Tensor | null;
  /** Where the momentum is null: how many batches the running statistics are the mean of, an int32 buffer of shape []. */
  readonly num_batches_tracked: Tensor | null;
  readonly eps: number;
  readonly momentum: number | null;
  readonly trackRunningStats: boolean;
  readonly #op: string;
  readonly #shapes: string;

  /** `shapes`: those that inputs have, in words. */
  constructor(op: string, channels: number, options: BatchNormLayerOptions, shapes: string) {
    super();
    this.#op = op;
    this.#shapes = shapes;
    checkOptions(op, options, 'eps# momentum affine? trackRunningStats? dtype');
    checkInteger(op, 'channels', channels, 1);
    const { eps = 1e-5, momentum = 0.1, affine = true, trackRunningStats = true, dtype = 'float32' } = options;
    checkNumber(op, 'eps', eps, 0);
    if (momentum !== null) checkNumber(op, 'momentum', momentum, 0);
    this.weight = affine ? parameter(filled([channels], 1, dtype)) : null;
    this.bias = affine ? parameter(filled([channels], 0, dtype)) : null;
    this.running_mean = trackRunningStats ? buffer(filled([channels], 0, dtype)) : null;
    this.running_var = trackRunningStats ? buffer(filled([channels], 1, dtype)) : null;
    this.num_batches_tracked = trackRunningStats && momentum === null ? buffer(filled([], 0, 'int32')) : null;
    this.eps = eps;
    this.momentum = momentum;
    this.trackRunningStats = trackRunningStats;
  }

  /** @param x shape [N, channels, ...] */
  forward(x: Tensor): Tensor {
    checkTensor(this.#op, 'x', x);
    if (!this.#shapes.split(' or ').some((shape) => shape.split(',').length === x.ndim))
      throw new NnError(this.#op, `x has shape [${x.shape.join(', ')}]; it must be ${this.#shapes}`);
    const count = this.num_batches_tracked;
    if (count === null) return this.#normalized(x, this.momentum ?? 0);
    return scope(() => {
      if (this.training) count.assign(add(count, 1));
      return this.#normalized(x, div(1, cast(count, this.running_mean!.dtype)));
    });
  }

  #normalized(x: Tensor, momentum: number | Tensor): Tensor {
    return batchNorm(x, {
      weight: this.weight,
      bias: this.bias,
      runningMean: this.running_mean,
      runningVar: this.running_var,
      training: this.training || !this.trackRunningStats,
      eps: this.eps,
      momentum,
    });
  }
}

/**
 * Normalises every channel over the batch, [N, C] or [N, C, L]: by the batch's own mean and variance in training, by running ones in
 * evaluation. Source: Ioffe and Szegedy (2015); PyTorch `nn.BatchNorm1d`.
 *
 * @example
 * const layer = new BatchNorm1d(8);
 * layer.forward(ones([4, 8])).shape; // [4, 8]
 */
export class BatchNorm1d extends BatchNorm {
  constructor(channels: number, options: BatchNormLayerOptions = {}) {
    super('BatchNorm1d', channels, options, '[N, C] or [N, C, L]');
  }
}

/**
 * Normalises every channel over the batch, [N, C, H, W]: by the batch's own mean and variance in training, by running ones in
 * evaluation. Source: Ioffe and Szegedy (2015); PyTorch `nn.BatchNorm2d`.
 *
 * @example
 * const layer = new BatchNorm2d(8);
 * layer.forward(ones([4, 8, 5, 5])).shape; // [4, 8, 5, 5]
 */
export class BatchNorm2d extends BatchNorm {
  constructor(channels: number, options: BatchNormLayerOptions = {}) {
    super('BatchNorm2d', channels, options, '[N, C, H, W]');
  }
}

/**
 * Normalises every channel over the batch of volumes, [N, C, D, H, W]: by the batch's own mean and variance in training, by running ones in
 * evaluation. Source: Ioffe and Szegedy (2015); PyTorch `nn.BatchNorm3d`.
 *
 * @example
 * const layer = new BatchNorm3d(8);
 * layer.forward(ones([2, 8, 3, 3, 3])).shape; // [2, 8, 3, 3, 3]
 */
export class BatchNorm3d extends BatchNorm {
  constructor(channels: number, options: BatchNormLayerOptions = {}) {
    super('BatchNorm3d', channels, options, '[N, C, D, H, W]');
  }
}

/** Options of `LayerNorm`. */
export interface LayerNormLayerOptions {
  /** Added to the variance (default 1e-5). */
  readonly eps?: number;
  /** Learn a scale and a shift per element (default true). */
  readonly elementwiseAffine?: boolean;
  readonly dtype?: DType;
}

/**
 * Normalises the last axes of every element of the others. Source: Ba, Kiros and Hinton (2016); PyTorch `nn.LayerNorm`.
 *
 * @example
 * new LayerNorm(16).forward(ones([2, 3, 16])).shape; // [2, 3, 16]
 */
export class LayerNorm extends Module {
  readonly weight: Tensor | null;
  readonly bias: Tensor | null;
  readonly normalizedShape: readonly number[];
  readonly eps: number;

  /** @param normalizedShape sizes of the last axes, or of the last axis */
  constructor(normalizedShape: number | readonly number[], options: LayerNormLayerOptions = {}) {
    super();
    checkOptions('LayerNorm', options, 'eps# elementwiseAffine? dtype');
    if (typeof normalizedShape !== 'number') checkList('LayerNorm', 'normalizedShape', normalizedShape);
    const shape = typeof normalizedShape === 'number' ? [normalizedShape] : [...normalizedShape];
    for (const extent of shape) checkInteger('LayerNorm', 'normalizedShape', extent, 1);
    const { eps = 1e-5, elementwiseAffine = true, dtype = 'float32' } = options;
    this.weight = elementwiseAffine ? parameter(filled(shape, 1, dtype)) : null;
    this.bias = elementwiseAffine ? parameter(filled(shape, 0, dtype)) : null;
    this.normalizedShape = shape;
    this.eps = eps;
  }

  /** @param x shape [..., ...normalizedShape] */
  forward(x: Tensor): Tensor {
    return layerNorm(x, { normalizedShape: this.normalizedShape, weight: this.weight, bias: this.bias, eps: this.eps });
  }
}

/** Options of `RMSNorm`. */
export interface RmsNormLayerOptions extends Omit<LayerNormLayerOptions, 'eps'> {
  /** Added to the mean square. Default, as in PyTorch (null too): the distance from 1 to the next number of the input's dtype, 1.2e-7 for float32. */
  readonly eps?: number | null;
}

/**
 * Divides by the root of the mean square over the last axis. Source: Zhang and Sennrich (2019); PyTorch `nn.RMSNorm`.
 *
 * @example
 * new RMSNorm(16).forward(ones([2, 16])).shape; // [2, 16]
 */
export class RMSNorm extends Module {
  readonly weight: Tensor | null;
  readonly width: number;
  readonly eps: number | null;

  /** @param width size of the last axis */
  constructor(width: number, options: RmsNormLayerOptions = {}) {
    super();
    checkOptions('RMSNorm', options, 'eps elementwiseAffine? dtype');
    checkInteger('RMSNorm', 'width', width, 1);
    const { eps = null, elementwiseAffine = true, dtype = 'float32' } = options;
    if (eps !== null) checkNumber('RMSNorm', 'eps', eps, 0);
    this.weight = elementwiseAffine ? parameter(filled([width], 1, dtype)) : null;
    this.width = width;
    this.eps = eps;
  }

  /** @param x shape [..., width] */
  forward(x: Tensor): Tensor {
    return rmsNorm(x, { normalizedShape: this.width, weight: this.weight, eps: this.eps });
  }
}
