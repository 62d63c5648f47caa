/** Activations with other slopes below zero or within a threshold: learned, random, or none at all. */
import {
  type DType,
  greater,
  hardShrink,
  prelu,
  rand,
  softShrink,
  tanhShrink,
  type Tensor,
  threshold,
  where,
} from '@polygrad/core/functions';
import { checkInteger, checkNumber, checkOptions } from '../errors.ts';
import { filled } from '../init/filled.ts';
import { Module } from '../module/module.ts';
import { parameter } from '../module/parameter.ts';

/** Options of `PReLU`. */
export interface PReLUOptions {
  /** How many slopes there are: 1 (default), or one per channel. */
  readonly numParameters?: number;
  /** Their first value (default 0.25). */
  readonly init?: number;
  readonly dtype?: DType;
}

/**
 * `x`, or `weight x` below zero, with a learned weight for all elements or for each channel (axis 1). Source: He et al. (2015); PyTorch `nn.PReLU`.
 *
 * @example
 * new PReLU().forward(tensor([-4, 2])); // [-1, 2]
 */
export class PReLU extends Module {
  /** Shape [numParameters]. */
  readonly weight: Tensor;

  constructor(options: PReLUOptions = {}) {
    super();
    checkOptions('PReLU', options, 'numParameters init# dtype');
    const { numParameters = 1, init = 0.25, dtype = 'float32' } = options;
    checkInteger('PReLU', 'numParameters', numParameters, 1);
    checkNumber('PReLU', 'init', init);
    this.weight = parameter(filled([numParameters], init, dtype));
  }

  forward(x: Tensor): Tensor {
    return prelu(x, this.weight);
  }
}

/**
 * `x`, or `slope x` below zero; the slope is drawn for each element in training, and the mean of the range in evaluation. Source: Xu et al. (2015);
 * PyTorch `nn.RReLU`.
 *
 * @example
 * const layer = new RReLU().eval();
 * layer.forward(tensor([-48, 2])); // [-11, 2]
 */
export class RReLU extends Module {
  readonly low: number;
  readonly high: number;

  /**
   * @param low, high range of the slopes (default 1/8 and 1/3)
   */
  constructor(low: number = 1 / 8, high: number = 1 / 3) {
    super();
    checkNumber('RReLU', 'low', low);
    checkNumber('RReLU', 'high', high, low);
    this.low = low;
    this.high = high;
  }

  forward(x: Tensor): Tensor {
    const { low, high } = this;
    const slope = this.training
      ? rand(x.shape, { dtype: x.dtype })
          .mul(high - low)
          .add(low)
      : (low + high) / 2;
    return where(greater(x, 0), x, x.mul(slope));
  }
}

/**
 * `x` where it is further than `lambda` from zero (default 0.5), zero elsewhere. Source: PyTorch `nn.Hardshrink`.
 *
 * @example
 * new HardShrink().forward(tensor([-1, 0.25, 2])); // [-1, 0, 2]
 */
export class HardShrink extends Module {
  readonly lambda: number;

  constructor(lambda: number = 0.5) {
    super();
    checkNumber('HardShrink', 'lambda', lambda);
    this.lambda = lambda;
  }

  forward(x: Tensor): Tensor {
    return hardShrink(x, { lambda: this.lambda });
  }
}

/**
 * `x` moved towards zero by `lambda` (default 0.5), zero within it. Source: PyTorch `nn.Softshrink`.
 *
 * @example
 * new SoftShrink().forward(tensor([-1, 0.25, 2])); // [-0.5, 0, 1.5]
 */
export class SoftShrink extends Module {
  readonly lambda: number;

  constructor(lambda: number = 0.5) {
    super();
    checkNumber('SoftShrink', 'lambda', lambda, 0);
    this.lambda = lambda;
  }

  forward(x: Tensor): Tensor {
    return softShrink(x, { lambda: this.lambda });
  }
}

/**
 * `x - tanh(x)`. Source: PyTorch `nn.Tanhshrink`.
 *
 * @example
 * new TanhShrink().forward(tensor([0, 1])); // [0, 0.2384058]
 */
export class TanhShrink extends Module {
  forward(x: Tensor): Tensor {
    return tanhShrink(x);
  }
}

/**
 * `x` above a threshold, another value elsewhere. Source: PyTorch `nn.Threshold`.
 *
 * @example
 * new Threshold(1, -5).forward(tensor([0, 2])); // [-5, 2]
 */
export class Threshold extends Module {
  readonly threshold: number;
  readonly value: number;

  constructor(limit: number, value: number) {
    super();
    checkNumber('Threshold', 'limit', limit);
    checkNumber('Threshold', 'value', value);
    this.threshold = limit;
    this.value = value;
  }

  forward(x: Tensor): Tensor {
    return threshold(x, { threshold: this.threshold, value: this.value });
  }
}
