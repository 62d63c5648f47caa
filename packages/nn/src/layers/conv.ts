/** Conv2d and ConvTranspose2d: convolutions with a learned kernel and bias. */
import {
  conv2d,
  type ConvOptions,
  convTranspose2d,
  type ConvTransposeOptions,
  type Tensor,
} from '@polygrad/core/functions';
import { checkOptions, checkInteger, NnError } from '../errors.ts';
import { fanInUniform } from '../init/init.ts';
import { Module } from '../module/module.ts';
import { parameter } from '../module/parameter.ts';
import type { WeightOptions } from './linear.ts';

/** A size for both spatial axes, or one for each. */
export type KernelSize = number | readonly [height: number, width: number];

function kernelShape(op: string, size: KernelSize): readonly [number, number] {
  const pair = Array.isArray(size) ? (size as readonly [number, number]) : ([size, size] as readonly [number, number]);
  for (const extent of pair) checkInteger(op, 'kernelSize', extent, 1);
  return pair;
}

function checkGroups(op: string, groups: number, inputs: number, outputs: number): void {
  checkInteger(op, 'groups', groups, 1);
  if (inputs % groups !== 0 || outputs % groups !== 0) {
    throw new NnError(op, `${groups} groups do not divide ${inputs} and ${outputs} channels; choose a common divisor`, [
      'groups',
    ]);
  }
}

/** Options of Conv2d: those of the operation `conv2d`, with `bias` saying whether there is one. */
export type Conv2dOptions = Omit<ConvOptions, 'bias'> & WeightOptions;

/**
 * Convolution over images [N, C, H, W]. Source: PyTorch `nn.Conv2d`, whose weights it can load.
 *
 * @example
 * const layer = new Conv2d(1, 8, 3, { padding: 'same' });
 * layer.forward(zeros([2, 1, 28, 28])).shape; // [2, 8, 28, 28]
 */
export class Conv2d extends Module {
  /** Shape [outputs, inputs / groups, height, width]. */
  readonly weight: Tensor;
  /** Shape [outputs], or null without one. */
  readonly bias: Tensor | null;
  readonly options: Omit<ConvOptions, 'bias'>;

  /**
   * @param inputs channels that come in
   * @param outputs channels that go out
   * @param kernelSize size of the kernel
   */
  constructor(inputs: number, outputs: number, kernelSize: KernelSize, options: Conv2dOptions = {}) {
    super();
    checkOptions('Conv2d', options, 'bias? weightInit! biasInit! dtype stride padding dilation groups layout');
    checkInteger('Conv2d', 'inputs', inputs, 1);
    checkInteger('Conv2d', 'outputs', outputs, 1);
    const { bias = true, weightInit, biasInit, dtype = 'float32', ...geometry } = options;
    const groups = geometry.groups ?? 1;
    checkGroups('Conv2d', groups, inputs, outputs);
    const [height, width] = kernelShape('Conv2d', kernelSize);
    const shape = [outputs, inputs / groups, height, width];
    const standard = fanInUniform((inputs / groups) * height * width);
    this.weight = parameter((weightInit ?? standard)(shape, dtype));
    this.bias = bias ? parameter((biasInit ?? standard)([outputs], dtype)) : null;
    this.options = geometry;
  }

  /** @param x shape [N, inputs, H, W], or [N, H, W, inputs] with layout 'nhwc' */
  forward(x: Tensor): Tensor {
    return conv2d(x, this.weight, { ...this.options, bias: this.bias });
  }
}

/** Options of ConvTranspose2d: those of the operation, with `bias` saying whether there is one. */
export type ConvTranspose2dOptions = Omit<ConvTransposeOptions, 'bias'> & WeightOptions;

/**
 * Transposed convolution over images: the gradient of Conv2d by its input, used to enlarge. Source: PyTorch
 * `nn.ConvTranspose2d`.
 *
 * @example
 * const layer = new ConvTranspose2d(8, 4, 2, { stride: 2 });
 * layer.forward(zeros([1, 8, 7, 7])).shape; // [1, 4, 14, 14]
 */
export class ConvTranspose2d extends Module {
  /** Shape [inputs, outputs / groups, height, width]. */
  readonly weight: Tensor;
  /** Shape [outputs], or null without one. */
  readonly bias: Tensor | null;
  readonly options: Omit<ConvTransposeOptions, 'bias'>;

  constructor(inputs: number, outputs: number, kernelSize: KernelSize, options: ConvTranspose2dOptions = {}) {
    super();
    checkOptions(
      'ConvTranspose2d',
      options,
      'bias? weightInit! biasInit! dtype stride padding outputPadding dilation groups layout',
    );
    checkInteger('ConvTranspose2d', 'inputs', inputs, 1);
    checkInteger('ConvTranspose2d', 'outputs', outputs, 1);
    const { bias = true, weightInit, biasInit, dtype = 'float32', ...geometry } = options;
    const groups = geometry.groups ?? 1;
    checkGroups('ConvTranspose2d', groups, inputs, outputs);
    const [height, width] = kernelShape('ConvTranspose2d', kernelSize);
    const shape = [inputs, outputs / groups, height, width];
    // PyTorch takes axis 1 for the inputs here too, although it holds the outputs.
    const standard = fanInUniform((outputs / groups) * height * width);
    this.weight = parameter((weightInit ?? standard)(shape, dtype));
    this.bias = bias ? parameter((biasInit ?? standard)([outputs], dtype)) : null;
    this.options = geometry;
  }

  /** @param x shape [N, inputs, H, W] */
  forward(x: Tensor): Tensor {
    return convTranspose2d(x, this.weight, { ...this.options, bias: this.bias });
  }
}
