/** Normalisation over channels of each element of a batch: in groups, one by one, and by neighbouring channels. */
import {
  type DType,
  groupNorm,
  instanceNorm,
  localResponseNorm,
  type LocalResponseNormOptions,
  type Tensor,
} from '@polygrad/core/functions';
import { checkInteger, checkNumber, checkOptions, NnError } from '../errors.ts';
import { filled } from '../init/filled.ts';
import { Module } from '../module/module.ts';
import { buffer, parameter } from '../module/parameter.ts';

/** Options of `GroupNorm`, and of all norms over channels. */
export interface ChannelNormOptions {
  /** Added to the variance (default 1e-5). */
  readonly eps?: number;
  /** Learn a scale and a shift per channel (default true for GroupNorm, false for InstanceNorm). */
  readonly affine?: boolean;
  readonly dtype?: DType;
}

/** A scale and a shift per channel. */
abstract class ChannelNorm extends Module {
  /** Scale, [channels], or null when not affine. */
  readonly weight: Tensor | null;
  /** Shift, [channels], or null when not affine. */
  readonly bias: Tensor | null;
  readonly channels: number;
  readonly eps: number;

  constructor(op: string, channels: number, affine: boolean, { eps = 1e-5, dtype = 'float32' }: ChannelNormOptions) {
    super();
    checkInteger(op, 'channels', channels, 1);
    checkNumber(op, 'eps', eps, 0);
    this.weight = affine ? parameter(filled([channels], 1, dtype)) : null;
    this.bias = affine ? parameter(filled([channels], 0, dtype)) : null;
    this.channels = channels;
    this.eps = eps;
  }
}

/**
 * Normalises groups of channels of each element of the batch. Source: Wu and He (2018); PyTorch `nn.GroupNorm`.
 *
 * @example
 * new GroupNorm(2, 8).forward(ones([4, 8, 5, 5])).shape; // [4, 8, 5, 5]
 */
export class GroupNorm extends ChannelNorm {
  readonly groups: number;

  /**
   * @param groups must divide the channels
   * @param channels size of axis 1
   */
  constructor(groups: number, channels: number, options: ChannelNormOptions = {}) {
    checkOptions('GroupNorm', options, 'eps# affine? dtype');
    super('GroupNorm', channels, options.affine ?? true, options);
    checkInteger('GroupNorm', 'groups', groups, 1);
    if (channels % groups !== 0)
      throw new NnError('GroupNorm', `${groups} groups do not divide ${channels} channels; choose a divisor`, [
        'groups',
      ]);
    this.groups = groups;
  }

  /** @param x shape [N, channels, ...] */
  forward(x: Tensor): Tensor {
    return groupNorm(x, { groups: this.groups, weight: this.weight, bias: this.bias, eps: this.eps });
  }
}

/** Options of `InstanceNorm1d`, `InstanceNorm2d` and `InstanceNorm3d`. */
export interface InstanceNormLayerOptions extends ChannelNormOptions {
  /** Share of a batch's statistics in the running ones (default 0.1). */
  readonly momentum?: number;
  /** Keep running statistics, by which evaluation normalises (default false). */
  readonly trackRunningStats?: boolean;
}

/** What the three have in common. */
abstract class InstanceNorm extends ChannelNorm {
  /** Buffers [channels], or null without running statistics. Names as in PyTorch's state dictionaries. */
  readonly running_mean: Tensor | null;
  readonly running_var: Tensor | null;
  readonly momentum: number;
  readonly trackRunningStats: boolean;
  readonly #op: string;
  readonly #rank: number;

  constructor(rank: number, channels: number, options: InstanceNormLayerOptions) {
    const op = `InstanceNorm${rank}d`;
    checkOptions(op, options, 'eps# affine? momentum# trackRunningStats? dtype');
    super(op, channels, options.affine ?? false, options);
    const { momentum = 0.1, trackRunningStats = false, dtype = 'float32' } = options;
    checkNumber(op, 'momentum', momentum, 0);
    this.running_mean = trackRunningStats ? buffer(filled([channels], 0, dtype)) : null;
    this.running_var = trackRunningStats ? buffer(filled([channels], 1, dtype)) : null;
    this.momentum = momentum;
    this.trackRunningStats = trackRunningStats;
    this.#op = op;
    this.#rank = rank;
  }

  /** @param x shape [N, channels, ...] with the layer's number of spatial axes */
  forward(x: Tensor): Tensor {
    if (x.ndim !== this.#rank + 2 || x.shape[1] !== this.channels)
      throw new NnError(
        this.#op,
        `x has shape [${x.shape.join(', ')}]; it must have ${this.#rank + 2} axes: N, ${this.channels} channels and ${this.#rank} spatial`,
        ['x'],
      );
    return instanceNorm(x, {
      weight: this.weight,
      bias: this.bias,
      runningMean: this.running_mean,
      runningVar: this.running_var,
      useInputStats: this.training || !this.trackRunningStats,
      momentum: this.momentum,
      eps: this.eps,
    });
  }
}

/**
 * Normalises every channel of each line of the batch. Source: Ulyanov et al. (2016); PyTorch `nn.InstanceNorm1d`.
 *
 * @example
 * new InstanceNorm1d(2).forward(ones([4, 2, 5])).shape; // [4, 2, 5]
 */
export class InstanceNorm1d extends InstanceNorm {
  constructor(channels: number, options: InstanceNormLayerOptions = {}) {
    super(1, channels, options);
  }
}

/**
 * Normalises every channel of each image of the batch. Source: Ulyanov et al. (2016); PyTorch `nn.InstanceNorm2d`.
 *
 * @example
 * new InstanceNorm2d(2, { affine: true }).forward(ones([4, 2, 5, 5])).shape; // [4, 2, 5, 5]
 */
export class InstanceNorm2d extends InstanceNorm {
  constructor(channels: number, options: InstanceNormLayerOptions = {}) {
    super(2, channels, options);
  }
}

/**
 * Normalises every channel of each volume of the batch. Source: Ulyanov et al. (2016); PyTorch `nn.InstanceNorm3d`.
 *
 * @example
 * new InstanceNorm3d(2).forward(ones([1, 2, 3, 3, 3])).shape; // [1, 2, 3, 3, 3]
 */
export class InstanceNorm3d extends InstanceNorm {
  constructor(channels: number, options: InstanceNormLayerOptions = {}) {
    super(3, channels, options);
  }
}

/**
 * Divides by a power of the mean square over neighbouring channels. Source: Krizhevsky, Sutskever and Hinton (2012); PyTorch
 * `nn.LocalResponseNorm`.
 *
 * @example
 * new LocalResponseNorm(3).forward(ones([1, 8, 5, 5])).shape; // [1, 8, 5, 5]
 */
export class LocalResponseNorm extends Module {
  readonly options: LocalResponseNormOptions;

  /**
   * @param size channels that are looked at together
   * @param options alpha (1e-4), beta (0.75), k (1), layout
   */
  constructor(size: number, options: Omit<LocalResponseNormOptions, 'size'> = {}) {
    super();
    checkOptions('LocalResponseNorm', options, 'alpha# beta# k# layout');
    checkInteger('LocalResponseNorm', 'size', size, 1);
    this.options = { ...options, size };
  }

  /** @param x shape [N, C, ...] */
  forward(x: Tensor): Tensor {
    return localResponseNorm(x, this.options);
  }
}
