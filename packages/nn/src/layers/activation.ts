/** Activation layers: element-wise functions of the core package as modules, for Sequential. */
import {
  elu,
  gelu,
  hardSwish,
  leakyRelu,
  logSoftmax,
  mish,
  relu,
  relu6,
  selu,
  sigmoid,
  silu,
  softmax,
  softplus,
  type Tensor,
  tanh,
} from '@polygrad/core/functions';
import { checkOptions } from '../errors.ts';
import { Module } from '../module/module.ts';

/** `max(x, 0)`. */
export class ReLU extends Module {
  forward(x: Tensor): Tensor {
    return relu(x);
  }
}

/** `min(max(x, 0), 6)`. */
export class ReLU6 extends Module {
  forward(x: Tensor): Tensor {
    return relu6(x);
  }
}

/** `x`, or `slope x` below zero (default slope 0.01). */
export class LeakyReLU extends Module {
  readonly slope: number;

  constructor(slope: number = 0.01) {
    super();
    this.slope = slope;
  }

  forward(x: Tensor): Tensor {
    return leakyRelu(x, { slope: this.slope });
  }
}

/** `x`, or `alpha (exp(x) - 1)` below zero (default alpha 1). */
export class ELU extends Module {
  readonly alpha: number;

  constructor(alpha: number = 1) {
    super();
    this.alpha = alpha;
  }

  forward(x: Tensor): Tensor {
    return elu(x, { alpha: this.alpha });
  }
}

/** ELU scaled so that layers keep mean 0 and deviation 1. */
export class SELU extends Module {
  forward(x: Tensor): Tensor {
    return selu(x);
  }
}

/** `x` times the probability that a normal number is below it; `approximate: 'tanh'` for the cheaper form. */
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

/** `x sigmoid(x)`, also called swish. */
export class SiLU extends Module {
  forward(x: Tensor): Tensor {
    return silu(x);
  }
}

/** `x tanh(softplus(x))`. */
export class Mish extends Module {
  forward(x: Tensor): Tensor {
    return mish(x);
  }
}

/** `x relu6(x + 3) / 6`. */
export class HardSwish extends Module {
  forward(x: Tensor): Tensor {
    return hardSwish(x);
  }
}

/** `1 / (1 + exp(-x))`. */
export class Sigmoid extends Module {
  forward(x: Tensor): Tensor {
    return sigmoid(x);
  }
}

/** The hyperbolic tangent. */
export class Tanh extends Module {
  forward(x: Tensor): Tensor {
    return tanh(x);
  }
}

/** `log(1 + exp(x))`. */
export class Softplus extends Module {
  forward(x: Tensor): Tensor {
    return softplus(x);
  }
}

/** Probabilities along an axis (default the last). */
export class Softmax extends Module {
  readonly axis: number;

  constructor(axis: number = -1) {
    super();
    this.axis = axis;
  }

  forward(x: Tensor): Tensor {
    return softmax(x, this.axis);
  }
}

/** Logarithms of probabilities along an axis (default the last). */
export class LogSoftmax extends Module {
  readonly axis: number;

  constructor(axis: number = -1) {
    super();
    this.axis = axis;
  }

  forward(x: Tensor): Tensor {
    return logSoftmax(x, this.axis);
  }
}
