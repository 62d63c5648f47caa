/** Activation layers: element-wise functions of the core package as modules, for Sequential. */
import {
  celu,
  elu,
  gelu,
  glu,
  hardSigmoid,
  hardSwish,
  hardTanh,
  leakyRelu,
  logSigmoid,
  logSoftmax,
  mish,
  relu,
  relu6,
  selu,
  sigmoid,
  silu,
  softmax,
  softmin,
  softplus,
  softsign,
  type Tensor,
  tanh,
} from '@polygrad/core/functions';
import { checkFits, checkNumber, checkOptions, NnError } from '../errors.ts';
import { Module } from '../module/module.ts';

/**
 * `max(x, 0)`. Source: PyTorch `nn.ReLU`.
 *
 * @example
 * new ReLU().forward(tensor([-1, 2])); // [0, 2]
 */
export class ReLU extends Module {
  forward(x: Tensor): Tensor {
    return relu(x);
  }
}

/**
 * `min(max(x, 0), 6)`. Source: PyTorch `nn.ReLU6`.
 *
 * @example
 * new ReLU6().forward(tensor([-1, 3, 9])); // [0, 3, 6]
 */
export class ReLU6 extends Module {
  forward(x: Tensor): Tensor {
    return relu6(x);
  }
}

/**
 * `x`, or `slope x` below zero (default slope 0.01). Source: PyTorch `nn.LeakyReLU`.
 *
 * @example
 * new LeakyReLU(0.1).forward(tensor([-1, 2])); // [-0.1, 2]
 */
export class LeakyReLU extends Module {
  readonly slope: number;

  constructor(slope: number = 0.01) {
    super();
    checkNumber('LeakyReLU', 'slope', slope);
    this.slope = slope;
  }

  forward(x: Tensor): Tensor {
    return leakyRelu(x, { slope: this.slope });
  }
}

/**
 * `x`, or `alpha (exp(x) - 1)` below zero (default alpha 1). Source: PyTorch `nn.ELU`.
 *
 * @example
 * new ELU().forward(tensor([0, 2])); // [0, 2]
 */
export class ELU extends Module {
  readonly alpha: number;

  constructor(alpha: number = 1) {
    super();
    checkNumber('ELU', 'alpha', alpha);
    this.alpha = alpha;
  }

  forward(x: Tensor): Tensor {
    return elu(x, { alpha: this.alpha });
  }
}

/**
 * ELU scaled so that layers keep mean 0 and deviation 1. Source: Klambauer et al., "Self-normalizing neural networks", 2017.
 *
 * @example
 * new SELU().forward(tensor([0, 1])); // [0, 1.050701]
 */
export class SELU extends Module {
  forward(x: Tensor): Tensor {
    return selu(x);
  }
}

/**
 * `x` times the probability that a normal number is below it; `approximate: 'tanh'` for the cheaper form. Source: Hendrycks and Gimpel, 2016.
 *
 * @example
 * new GELU().forward(tensor([0, 1])); // [0, 0.8413447]
 */
export class GELU extends Module {
  readonly approximate: 'none' | 'tanh';

  constructor(options: { readonly approximate?: 'none' | 'tanh' } = {}) {
    super();
    checkOptions('GELU', options, 'approximate');
    this.approximate = options.approximate ?? 'none';
  }

  forward(x: Tensor): Tensor {
    return gelu(x, { approximate: this.approximate });
  }
}

/**
 * `x sigmoid(x)`, also called swish. Source: PyTorch `nn.SiLU`.
 *
 * @example
 * new SiLU().forward(tensor([0, 1])); // [0, 0.7310586]
 */
export class SiLU extends Module {
  forward(x: Tensor): Tensor {
    return silu(x);
  }
}

/**
 * `x tanh(softplus(x))`. Source: Misra, "Mish", 2019.
 *
 * @example
 * new Mish().forward(tensor([0, 1])); // [0, 0.8650984]
 */
export class Mish extends Module {
  forward(x: Tensor): Tensor {
    return mish(x);
  }
}

/**
 * `x relu6(x + 3) / 6`. Source: PyTorch `nn.Hardswish`.
 *
 * @example
 * new HardSwish().forward(tensor([-3, 3])); // [0, 3]
 */
export class HardSwish extends Module {
  forward(x: Tensor): Tensor {
    return hardSwish(x);
  }
}

/**
 * `1 / (1 + exp(-x))`. Source: PyTorch `nn.Sigmoid`.
 *
 * @example
 * new Sigmoid().forward(tensor([0])); // [0.5]
 */
export class Sigmoid extends Module {
  forward(x: Tensor): Tensor {
    return sigmoid(x);
  }
}

/**
 * The hyperbolic tangent. Source: PyTorch `nn.Tanh`.
 *
 * @example
 * new Tanh().forward(tensor([0, 1])); // [0, 0.7615942]
 */
export class Tanh extends Module {
  forward(x: Tensor): Tensor {
    return tanh(x);
  }
}

/**
 * `log(1 + exp(beta x)) / beta`. Source: PyTorch `nn.Softplus`.
 *
 * @example
 * new Softplus().forward(tensor([0])); // [0.6931472]
 */
export class Softplus extends Module {
  readonly beta: number;

  /** @param beta how sharp the bend is (default 1) */
  constructor(beta: number = 1) {
    super();
    checkNumber('Softplus', 'beta', beta);
    this.beta = beta;
  }

  forward(x: Tensor): Tensor {
    return this.beta === 1 ? softplus(x) : softplus(x, { beta: this.beta });
  }
}

/**
 * `x`, or `alpha (exp(x / alpha) - 1)` below zero (default alpha 1). Source: Barron (2017); PyTorch `nn.CELU`.
 *
 * @example
 * new CELU().forward(tensor([0, 2])); // [0, 2]
 */
export class CELU extends Module {
  readonly alpha: number;

  constructor(alpha: number = 1) {
    super();
    checkNumber('CELU', 'alpha', alpha);
    this.alpha = alpha;
  }

  forward(x: Tensor): Tensor {
    return celu(x, { alpha: this.alpha });
  }
}

/**
 * `relu6(x + 3) / 6`. Source: PyTorch `nn.Hardsigmoid`.
 *
 * @example
 * new HardSigmoid().forward(tensor([-3, 0, 3])); // [0, 0.5, 1]
 */
export class HardSigmoid extends Module {
  forward(x: Tensor): Tensor {
    return hardSigmoid(x);
  }
}

/**
 * `x` between `low` and `high` (default -1 and 1). Source: PyTorch `nn.Hardtanh`.
 *
 * @example
 * new HardTanh().forward(tensor([-3, 0.5, 3])); // [-1, 0.5, 1]
 */
export class HardTanh extends Module {
  readonly low: number;
  readonly high: number;

  constructor(low: number = -1, high: number = 1) {
    super();
    checkNumber('HardTanh', 'low', low);
    checkNumber('HardTanh', 'high', high, low);
    this.low = low;
    this.high = high;
  }

  forward(x: Tensor): Tensor {
    return hardTanh(x, { low: this.low, high: this.high });
  }
}

/**
 * The logarithm of the sigmoid. Source: PyTorch `nn.LogSigmoid`.
 *
 * @example
 * new LogSigmoid().forward(tensor([0])); // [-0.6931472]
 */
export class LogSigmoid extends Module {
  forward(x: Tensor): Tensor {
    return logSigmoid(x);
  }
}

/**
 * `x / (1 + |x|)`. Source: PyTorch `nn.Softsign`.
 *
 * @example
 * new Softsign().forward(tensor([-1, 3])); // [-0.5, 0.75]
 */
export class Softsign extends Module {
  forward(x: Tensor): Tensor {
    return softsign(x);
  }
}

/**
 * The first half of an axis (default the last) times the sigmoid of the second. Source: Dauphin et al. (2017); PyTorch `nn.GLU`.
 *
 * @example
 * new GLU().forward(tensor([4, 0])); // [2]
 */
export class GLU extends Module {
  readonly axis: number;

  constructor(axis: number = -1) {
    super();
    checkFits('GLU', 'axis', axis, Number.isInteger(axis), 'an integer');
    this.axis = axis;
  }

  forward(x: Tensor): Tensor {
    return glu(x, { axis: this.axis });
  }
}

/**
 * Probabilities along an axis (default the last). Source: PyTorch `nn.Softmax`.
 *
 * @example
 * new Softmax().forward(tensor([0, 0])); // [0.5, 0.5]
 */
export class Softmax extends Module {
  readonly axis: number;

  constructor(axis: number = -1) {
    super();
    checkFits('Softmax', 'axis', axis, Number.isInteger(axis), 'an integer');
    this.axis = axis;
  }

  forward(x: Tensor): Tensor {
    return softmax(x, this.axis);
  }
}

/**
 * Logarithms of probabilities along an axis (default the last). Source: PyTorch `nn.LogSoftmax`.
 *
 * @example
 * new LogSoftmax().forward(tensor([0, 0])); // [-0.6931472, -0.6931472]
 */
export class LogSoftmax extends Module {
  readonly axis: number;

  constructor(axis: number = -1) {
    super();
    checkFits('LogSoftmax', 'axis', axis, Number.isInteger(axis), 'an integer');
    this.axis = axis;
  }

  forward(x: Tensor): Tensor {
    return logSoftmax(x, this.axis);
  }
}

/**
 * Probabilities of the negated values along an axis (default the last). Source: PyTorch `nn.Softmin`.
 *
 * @example
 * new Softmin().forward(tensor([0, 0])); // [0.5, 0.5]
 */
export class Softmin extends Module {
  readonly axis: number;

  constructor(axis: number = -1) {
    super();
    checkFits('Softmin', 'axis', axis, Number.isInteger(axis), 'an integer');
    this.axis = axis;
  }

  forward(x: Tensor): Tensor {
    return softmin(x, this.axis);
  }
}

/**
 * Probabilities over the channels at each place of an image. Source: PyTorch `nn.Softmax2d`.
 *
 * @example
 * new Softmax2d().forward(zeros([1, 2, 1, 1])); // [[[[0.5]], [[0.5]]]]
 */
export class Softmax2d extends Module {
  /** @param x shape [N, C, H, W] or [C, H, W] */
  forward(x: Tensor): Tensor {
    if (x.ndim !== 3 && x.ndim !== 4)
      throw new NnError('Softmax2d', `x has shape [${x.shape.join(', ')}]; it must be [N, C, H, W] or [C, H, W]`, [
        'x',
      ]);
    return softmax(x, x.ndim - 3);
  }
}
