/** Pooling layers: operations of the core package with their window as a property. They have no parameters. */
import {
  avgPool1d,
  avgPool2d,
  avgPool3d,
  globalAvgPool2d,
  maxPool1d,
  maxPool2d,
  maxPool3d,
  type PerAxis,
  type PoolSettings,
  type Tensor,
} from '@polygrad/core/functions';
import { checkOptions } from '../errors.ts';
import { Module } from '../module/module.ts';

/** What divides a mean concerns no maximum, and means are of neighbouring elements. */
export type MaxPoolSettings = Omit<PoolSettings, 'countIncludePad'>;
/** Options of `AvgPool1d`, `AvgPool2d` and `AvgPool3d`. */
export type AvgPoolSettings = Omit<PoolSettings, 'dilation'>;

/** A window and its options: what MaxPool, AvgPool and LPPool are. */
export abstract class WindowPool<Settings> extends Module {
  readonly kernelSize: PerAxis;
  readonly options: Settings;

  constructor(kernelSize: PerAxis, options: Settings) {
    super();
    this.kernelSize = kernelSize;
    this.options = options;
  }
}

/**
 * The largest value of each window of a line. Source: PyTorch `nn.MaxPool1d`.
 *
 * @example
 * new MaxPool1d(2).forward(zeros([1, 8, 28])).shape; // [1, 8, 14]
 */
export class MaxPool1d extends WindowPool<MaxPoolSettings> {
  /** @param kernelSize size of the window; also the stride unless the options say otherwise */
  constructor(kernelSize: PerAxis, options: MaxPoolSettings = {}) {
    checkOptions('MaxPool1d', options, 'stride padding dilation ceilMode? layout');
    super(kernelSize, options);
  }

  forward(x: Tensor): Tensor {
    return maxPool1d(x, this.kernelSize, this.options);
  }
}

/**
 * The largest value of each window. Source: PyTorch `nn.MaxPool2d`.
 *
 * @example
 * new MaxPool2d(2).forward(zeros([1, 8, 28, 28])).shape; // [1, 8, 14, 14]
 */
export class MaxPool2d extends WindowPool<MaxPoolSettings> {
  /** @param kernelSize size of the window; also the stride unless the options say otherwise */
  constructor(kernelSize: PerAxis, options: MaxPoolSettings = {}) {
    checkOptions('MaxPool2d', options, 'stride padding dilation ceilMode? layout');
    super(kernelSize, options);
  }

  forward(x: Tensor): Tensor {
    return maxPool2d(x, this.kernelSize, this.options);
  }
}

/**
 * The largest value of each window of a volume. Source: PyTorch `nn.MaxPool3d`.
 *
 * @example
 * new MaxPool3d(2).forward(zeros([1, 8, 4, 6, 6])).shape; // [1, 8, 2, 3, 3]
 */
export class MaxPool3d extends WindowPool<MaxPoolSettings> {
  /** @param kernelSize size of the window; also the stride unless the options say otherwise */
  constructor(kernelSize: PerAxis, options: MaxPoolSettings = {}) {
    checkOptions('MaxPool3d', options, 'stride padding dilation ceilMode? layout');
    super(kernelSize, options);
  }

  forward(x: Tensor): Tensor {
    return maxPool3d(x, this.kernelSize, this.options);
  }
}

/**
 * The mean of each window of a line. Source: PyTorch `nn.AvgPool1d`.
 *
 * @example
 * new AvgPool1d(2).forward(zeros([1, 8, 28])).shape; // [1, 8, 14]
 */
export class AvgPool1d extends WindowPool<AvgPoolSettings> {
  /** @param kernelSize size of the window; also the stride unless the options say otherwise */
  constructor(kernelSize: PerAxis, options: AvgPoolSettings = {}) {
    checkOptions('AvgPool1d', options, 'stride padding ceilMode? countIncludePad? layout');
    super(kernelSize, options);
  }

  forward(x: Tensor): Tensor {
    return avgPool1d(x, this.kernelSize, this.options);
  }
}

/**
 * The mean of each window. Source: PyTorch `nn.AvgPool2d`.
 *
 * @example
 * new AvgPool2d(2).forward(zeros([1, 8, 28, 28])).shape; // [1, 8, 14, 14]
 */
export class AvgPool2d extends WindowPool<AvgPoolSettings> {
  /** @param kernelSize size of the window; also the stride unless the options say otherwise */
  constructor(kernelSize: PerAxis, options: AvgPoolSettings = {}) {
    checkOptions('AvgPool2d', options, 'stride padding ceilMode? countIncludePad? layout');
    super(kernelSize, options);
  }

  forward(x: Tensor): Tensor {
    return avgPool2d(x, this.kernelSize, this.options);
  }
}

/**
 * The mean of each window of a volume. Source: PyTorch `nn.AvgPool3d`.
 *
 * @example
 * new AvgPool3d(2).forward(zeros([1, 8, 4, 6, 6])).shape; // [1, 8, 2, 3, 3]
 */
export class AvgPool3d extends WindowPool<AvgPoolSettings> {
  /** @param kernelSize size of the window; also the stride unless the options say otherwise */
  constructor(kernelSize: PerAxis, options: AvgPoolSettings = {}) {
    checkOptions('AvgPool3d', options, 'stride padding ceilMode? countIncludePad? layout');
    super(kernelSize, options);
  }

  forward(x: Tensor): Tensor {
    return avgPool3d(x, this.kernelSize, this.options);
  }
}

/**
 * The mean of each channel: [N, C, H, W] becomes [N, C].
 *
 * @example
 * new GlobalAvgPool2d().forward(ones([2, 3, 4, 4])).shape; // [2, 3]
 */
export class GlobalAvgPool2d extends Module {
  forward(x: Tensor): Tensor {
    return globalAvgPool2d(x, { keepDims: false });
  }
}
