/** Pooling layers: operations of the core package with their window as a property. They have no parameters. */
import {
  avgPool2d,
  globalAvgPool2d,
  maxPool2d,
  type PerAxis,
  type PoolSettings,
  type Tensor,
} from '@polygrad/core/functions';
import { checkOptions } from '../errors.ts';
import { Module } from '../module/module.ts';

/** What divides a mean concerns no maximum, and means are of neighbouring elements. */
type MaxPoolSettings = Omit<PoolSettings, 'countIncludePad'>;
type AvgPoolSettings = Omit<PoolSettings, 'dilation'>;

/**
 * The largest value of each window. Source: PyTorch `nn.MaxPool2d`.
 *
 * @example
 * new MaxPool2d(2).forward(zeros([1, 8, 28, 28])).shape; // [1, 8, 14, 14]
 */
export class MaxPool2d extends Module {
  readonly kernelSize: PerAxis;
  readonly options: MaxPoolSettings;

  /** @param kernelSize size of the window; also the stride unless the options say otherwise */
  constructor(kernelSize: PerAxis, options: MaxPoolSettings = {}) {
    super();
    checkOptions('MaxPool2d', options, 'stride padding dilation ceilMode? layout');
    this.kernelSize = kernelSize;
    this.options = options;
  }

  forward(x: Tensor): Tensor {
    return maxPool2d(x, this.kernelSize, this.options);
  }
}

/**
 * The mean of each window. Source: PyTorch `nn.AvgPool2d`.
 *
 * @example
 * new AvgPool2d(2).forward(zeros([1, 8, 28, 28])).shape; // [1, 8, 14, 14]
 */
export class AvgPool2d extends Module {
  readonly kernelSize: PerAxis;
  readonly options: AvgPoolSettings;

  /** @param kernelSize size of the window; also the stride unless the options say otherwise */
  constructor(kernelSize: PerAxis, options: AvgPoolSettings = {}) {
    super();
    checkOptions('AvgPool2d', options, 'stride padding ceilMode? countIncludePad? layout');
    this.kernelSize = kernelSize;
    this.options = options;
  }

  forward(x: Tensor): Tensor {
    return avgPool2d(x, this.kernelSize, this.options);
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
