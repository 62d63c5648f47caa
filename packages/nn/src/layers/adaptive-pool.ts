/** Pooling to a given size, whatever the size of the input. */
import {
  adaptiveAvgPool1d,
  adaptiveAvgPool2d,
  adaptiveAvgPool3d,
  adaptiveMaxPool1d,
  adaptiveMaxPool2d,
  adaptiveMaxPool3d,
  type AdaptiveSettings,
  type AdaptiveSize,
  type Tensor,
} from '@polygrad/core/functions';
import { checkOptions } from '../errors.ts';
import { Module } from '../module/module.ts';

/** A size and the layout. */
abstract class AdaptivePool extends Module {
  readonly size: AdaptiveSize;
  readonly options: AdaptiveSettings;

  /** @param size of the result: a number for all spatial axes, or one per axis, where null keeps the input's */
  constructor(op: string, size: AdaptiveSize, options: AdaptiveSettings) {
    super();
    checkOptions(op, options, 'layout');
    this.size = size;
    this.options = options;
  }
}

/**
 * Means of as many windows as asked for, over one spatial axis. Source: PyTorch `nn.AdaptiveAvgPool1d`.
 *
 * @example
 * new AdaptiveAvgPool1d(4).forward(zeros([2, 3, 7])).shape; // [2, 3, 4]
 */
export class AdaptiveAvgPool1d extends AdaptivePool {
  /** @param size of the result: a number for all spatial axes, or one per axis, where null keeps the input's */
  constructor(size: AdaptiveSize, options: AdaptiveSettings = {}) {
    super('AdaptiveAvgPool1d', size, options);
  }

  forward(x: Tensor): Tensor {
    return adaptiveAvgPool1d(x, this.size, this.options);
  }
}

/**
 * Means of as many windows as asked for, over two spatial axes. Source: PyTorch `nn.AdaptiveAvgPool2d`.
 *
 * @example
 * new AdaptiveAvgPool2d([2, null]).forward(zeros([2, 3, 7, 5])).shape; // [2, 3, 2, 5]
 */
export class AdaptiveAvgPool2d extends AdaptivePool {
  /** @param size of the result: a number for all spatial axes, or one per axis, where null keeps the input's */
  constructor(size: AdaptiveSize, options: AdaptiveSettings = {}) {
    super('AdaptiveAvgPool2d', size, options);
  }

  forward(x: Tensor): Tensor {
    return adaptiveAvgPool2d(x, this.size, this.options);
  }
}

/**
 * Means of as many windows as asked for, over three spatial axes. Source: PyTorch `nn.AdaptiveAvgPool3d`.
 *
 * @example
 * new AdaptiveAvgPool3d(2).forward(zeros([1, 2, 4, 5, 6])).shape; // [1, 2, 2, 2, 2]
 */
export class AdaptiveAvgPool3d extends AdaptivePool {
  /** @param size of the result: a number for all spatial axes, or one per axis, where null keeps the input's */
  constructor(size: AdaptiveSize, options: AdaptiveSettings = {}) {
    super('AdaptiveAvgPool3d', size, options);
  }

  forward(x: Tensor): Tensor {
    return adaptiveAvgPool3d(x, this.size, this.options);
  }
}

/**
 * The largest values of as many windows as asked for, over one spatial axis. Source: PyTorch `nn.AdaptiveMaxPool1d`.
 *
 * @example
 * new AdaptiveMaxPool1d(4).forward(zeros([2, 3, 7])).shape; // [2, 3, 4]
 */
export class AdaptiveMaxPool1d extends AdaptivePool {
  /** @param size of the result: a number for all spatial axes, or one per axis, where null keeps the input's */
  constructor(size: AdaptiveSize, options: AdaptiveSettings = {}) {
    super('AdaptiveMaxPool1d', size, options);
  }

  forward(x: Tensor): Tensor {
    return adaptiveMaxPool1d(x, this.size, this.options);
  }
}

/**
 * The largest values of as many windows as asked for, over two spatial axes. Source: PyTorch `nn.AdaptiveMaxPool2d`.
 *
 * @example
 * new AdaptiveMaxPool2d([2, null]).forward(zeros([2, 3, 7, 5])).shape; // [2, 3, 2, 5]
 */
export class AdaptiveMaxPool2d extends AdaptivePool {
  /** @param size of the result: a number for all spatial axes, or one per axis, where null keeps the input's */
  constructor(size: AdaptiveSize, options: AdaptiveSettings = {}) {
    super('AdaptiveMaxPool2d', size, options);
  }

  forward(x: Tensor): Tensor {
    return adaptiveMaxPool2d(x, this.size, this.options);
  }
}

/**
 * The largest values of as many windows as asked for, over three spatial axes. Source: PyTorch `nn.AdaptiveMaxPool3d`.
 *
 * @example
 * new AdaptiveMaxPool3d(2).forward(zeros([1, 2, 4, 5, 6])).shape; // [1, 2, 2, 2, 2]
 */
export class AdaptiveMaxPool3d extends AdaptivePool {
  /** @param size of the result: a number for all spatial axes, or one per axis, where null keeps the input's */
  constructor(size: AdaptiveSize, options: AdaptiveSettings = {}) {
    super('AdaptiveMaxPool3d', size, options);
  }

  forward(x: Tensor): Tensor {
    return adaptiveMaxPool3d(x, this.size, this.options);
  }
}
