/** Linear and Bilinear: products with learned matrices and a bias. */
import { bilinear, cast, type DType, matmul, type Tensor, transpose } from '@polygrad/core/functions';
import { checkInteger, checkOptions, checkTensor, NnError } from '../errors.ts';
import { fanInUniform, type Initializer } from '../init/init.ts';
import { Module } from '../module/module.ts';
import { parameter } from '../module/parameter.ts';

/** Options that layers with a weight and a bias share. */
export interface WeightOptions {
  /** Whether there is a bias (default true). */
  readonly bias?: boolean;
  /** First value of the weight (default PyTorch's: uniform within 1 / sqrt(inputs)). */
  readonly weightInit?: Initializer;
  /** First value of the bias (default PyTorch's, the same). */
  readonly biasInit?: Initializer;
  /** Dtype of the parameters (default float32). */
  readonly dtype?: DType;
}

/**
 * `x W^T + b` over the last axis. Source: PyTorch `nn.Linear`, whose weights it can load.
 *
 * @example
 * const layer = new Linear(3, 2);
 * layer.forward(ones([5, 3])).shape; // [5, 2]
 */
export class Linear extends Module {
  /** Shape [outputs, inputs]. */
  readonly weight: Tensor;
  /** Shape [outputs], or null without one. */
  readonly bias: Tensor | null;

  /**
   * @param inputs size of the last axis of the input
   * @param outputs size of the last axis of the output
   */
  constructor(inputs: number, outputs: number, options: WeightOptions = {}) {
    super();
    checkOptions('Linear', options, 'bias? weightInit! biasInit! dtype');
    checkInteger('Linear', 'inputs', inputs, 1);
    checkInteger('Linear', 'outputs', outputs, 1);
    const { bias = true, dtype = 'float32' } = options;
    const { weightInit = fanInUniform(inputs), biasInit = fanInUniform(inputs) } = options;
    this.weight = parameter(weightInit([outputs, inputs], dtype));
    this.bias = bias ? parameter(biasInit([outputs], dtype)) : null;
  }

  /** @param x shape [..., inputs] */
  forward(x: Tensor): Tensor {
    const { weight } = this;
    const inputs = weight.shape[1];
    checkTensor('Linear', 'x', x);
    if (x.shape.at(-1) !== inputs)
      throw new NnError('Linear', `x has shape [${x.shape.join(', ')}]; its last axis must have ${inputs}`, ['x']);
    const product = matmul(x, transpose(weight));
    // In mixed precision the product has 16 bits, and so has the sum.
    return this.bias === null ? product : product.add(cast(this.bias, product.dtype));
  }
}

/**
 * `x1 W x2 + b` over the last axes of two operands, with a matrix for each output. Source: PyTorch `nn.Bilinear`, whose weights it can load.
 *
 * @example
 * const layer = new Bilinear(3, 4, 2);
 * layer.forward(ones([5, 3]), ones([5, 4])).shape; // [5, 2]
 */
export class Bilinear extends Module<[x1: Tensor, x2: Tensor]> {
  /** Shape [outputs, inputs1, inputs2]. */
  readonly weight: Tensor;
  /** Shape [outputs], or null without one. */
  readonly bias: Tensor | null;

  /**
   * @param inputs1 size of the last axis of the first operand
   * @param inputs2 size of the last axis of the second
   * @param outputs size of the last axis of the output
   */
  constructor(inputs1: number, inputs2: number, outputs: number, options: WeightOptions = {}) {
    super();
    checkOptions('Bilinear', options, 'bias? weightInit! biasInit! dtype');
    checkInteger('Bilinear', 'inputs1', inputs1, 1);
    checkInteger('Bilinear', 'inputs2', inputs2, 1);
    checkInteger('Bilinear', 'outputs', outputs, 1);
    const { bias = true, dtype = 'float32' } = options;
    const { weightInit = fanInUniform(inputs1), biasInit = fanInUniform(inputs1) } = options;
    this.weight = parameter(weightInit([outputs, inputs1, inputs2], dtype));
    this.bias = bias ? parameter(biasInit([outputs], dtype)) : null;
  }

  /** @param x1, x2 shapes [..., inputs1] and [..., inputs2], with the same leading axes */
  forward(x1: Tensor, x2: Tensor): Tensor {
    return this.bias === null ? bilinear(x1, x2, this.weight) : bilinear(x1, x2, this.weight, this.bias);
  }
}
