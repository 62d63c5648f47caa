/** Conv1d to Conv3d and ConvTranspose1d to ConvTranspose3d: convolutions with a learned kernel and bias. */
import {
  conv1d,
  conv2d,
  conv3d,
  type ConvOptions,
  convTranspose1d,
  convTranspose2d,
  convTranspose3d,
  type ConvTransposeOptions,
  type Tensor,
} from '@polygrad/core/functions';
import { checkInteger, checkOptions, NnError } from '../errors.ts';
import { fanInUniform } from '../init/init.ts';
import { Module } from '../module/module.ts';
import { parameter } from '../module/parameter.ts';
import type { WeightOptions } from './linear.ts';

/** A size for both spatial axes, or one for each. */
export type KernelSize = number | readonly [height: number, width: number];

/** A size for all three spatial axes, or one for each. */
export type VolumeSize = number | readonly [depth: number, height: number, width: number];

function checkGroups(op: string, groups: number, inputs: number, outputs: number): void {
  checkInteger(op, 'groups', groups, 1);
  if (inputs % groups !== 0 || outputs % groups !== 0) {
    throw new NnError(op, `${groups} groups do not divide ${inputs} and ${outputs} channels; choose a common divisor`, [
      'groups',
    ]);
  }
}

/** What all six have in common: the kernel and the bias. */
abstract class Convolution<Geometry extends { readonly groups?: number }> extends Module {
  readonly weight: Tensor;
  /** Shape [outputs], or null without one. */
  readonly bias: Tensor | null;
  readonly options: Geometry;

  /** @param second the channels of axis 1 of the kernel: those that come in, or of a transposed one those that go out */
  constructor(
    op: string,
    rank: number,
    inputs: number,
    outputs: number,
    kernelSize: number | readonly number[],
    options: Geometry & WeightOptions,
    second: number = inputs,
  ) {
    super();
    checkInteger(op, 'inputs', inputs, 1);
    checkInteger(op, 'outputs', outputs, 1);
    const { bias = true, weightInit, biasInit, dtype = 'float32', ...geometry } = options;
    const groups = geometry.groups ?? 1;
    checkGroups(op, groups, inputs, outputs);
    const sizes: readonly number[] = Array.isArray(kernelSize) ? kernelSize : new Array(rank).fill(kernelSize);
    for (const extent of sizes) checkInteger(op, 'kernelSize', extent, 1);
    const shape = [inputs + outputs - second, second / groups, ...sizes];
    // PyTorch takes axis 1 for the inputs of a transposed kernel too, although it holds the outputs.
    const standard = fanInUniform(shape.slice(1).reduce((product, extent) => product * extent));
    this.weight = parameter((weightInit ?? standard)(shape, dtype));
    this.bias = bias ? parameter((biasInit ?? standard)([outputs], dtype)) : null;
    this.options = geometry as unknown as Geometry;
  }
}

/** Options of Conv2d: those of the operation `conv2d`, with `bias` saying whether there is one. */
export type Conv2dOptions = Omit<ConvOptions, 'bias'> & WeightOptions;

const convOptions = 'bias? weightInit! biasInit! dtype stride padding paddingMode dilation groups layout';

/**
 * Convolution over lines [N, C, L]. Source: PyTorch `nn.Conv1d`, whose weights it can load.
 *
 * @example
 * const layer = new Conv1d(1, 8, 3, { padding: 'same' });
 * layer.forward(zeros([2, 1, 28])).shape; // [2, 8, 28]
 */
export class Conv1d extends Convolution<Omit<ConvOptions, 'bias'>> {
  /** Shape [outputs, inputs / groups, length]. */
  declare readonly weight: Tensor;

  /**
   * @param inputs channels that come in
   * @param outputs channels that go out
   * @param kernelSize size of the kernel
   */
  constructor(inputs: number, outputs: number, kernelSize: number | readonly [number], options: Conv2dOptions = {}) {
    checkOptions('Conv1d', options, convOptions);
    super('Conv1d', 1, inputs, outputs, kernelSize, options);
  }

  /** @param x shape [N, inputs, L], or [N, L, inputs] with layout 'nhwc' */
  forward(x: Tensor): Tensor {
    return conv1d(x, this.weight, { ...this.options, bias: this.bias });
  }
}

/**
 * Convolution over images [N, C, H, W]. Source: PyTorch `nn.Conv2d`, whose weights it can load.
 *
 * @example
 * const layer = new Conv2d(1, 8, 3, { padding: 'same' });
 * layer.forward(zeros([2, 1, 28, 28])).shape; // [2, 8, 28, 28]
 */
export class Conv2d extends Convolution<Omit<ConvOptions, 'bias'>> {
  /** Shape [outputs, inputs / groups, height, width]. */
  declare readonly weight: Tensor;

  /**
   * @param inputs channels that come in
   * @param outputs channels that go out
   * @param kernelSize size of the kernel
   */
  constructor(inputs: number, outputs: number, kernelSize: KernelSize, options: Conv2dOptions = {}) {
    checkOptions('Conv2d', options, convOptions);
    super('Conv2d', 2, inputs, outputs, kernelSize, options);
  }

  /** @param x shape [N, inputs, H, W], or [N, H, W, inputs] with layout 'nhwc' */
  forward(x: Tensor): Tensor {
    return conv2d(x, this.weight, { ...this.options, bias: this.bias });
  }
}

/**
 * Convolution over volumes [N, C, D, H, W]. Source: PyTorch `nn.Conv3d`, whose weights it can load.
 *
 * @example
 * const layer = new Conv3d(1, 4, 3, { padding: 1 });
 * layer.forward(zeros([2, 1, 5, 6, 7])).shape; // [2, 4, 5, 6, 7]
 */
export class Conv3d extends Convolution<Omit<ConvOptions, 'bias'>> {
  /** Shape [outputs, inputs / groups, depth, height, width]. */
  declare readonly weight: Tensor;

  /**
   * @param inputs channels that come in
   * @param outputs channels that go out
   * @param kernelSize size of the kernel
   */
  constructor(inputs: number, outputs: number, kernelSize: VolumeSize, options: Conv2dOptions = {}) {
    checkOptions('Conv3d', options, convOptions);
    super('Conv3d', 3, inputs, outputs, kernelSize, options);
  }

  /** @param x shape [N, inputs, D, H, W], or [N, D, H, W, inputs] with layout 'nhwc' */
  forward(x: Tensor): Tensor {
    return conv3d(x, this.weight, { ...this.options, bias: this.bias });
  }
}

/** Options of ConvTranspose2d: those of the operation, with `bias` saying whether there is one. */
export type ConvTranspose2dOptions = Omit<ConvTransposeOptions, 'bias'> & WeightOptions;

const transposeOptions = 'bias? weightInit! biasInit! dtype stride padding outputPadding dilation groups layout';

/**
 * Transposed convolution over lines: the gradient of Conv1d by its input, used to enlarge. Source: PyTorch `nn.ConvTranspose1d`.
 *
 * @example
 * const layer = new ConvTranspose1d(8, 4, 2, { stride: 2 });
 * layer.forward(zeros([1, 8, 7])).shape; // [1, 4, 14]
 */
export class ConvTranspose1d extends Convolution<Omit<ConvTransposeOptions, 'bias'>> {
  /** Shape [inputs, outputs / groups, length]. */
  declare readonly weight: Tensor;

  constructor(
    inputs: number,
    outputs: number,
    kernelSize: number | readonly [number],
    options: ConvTranspose2dOptions = {},
  ) {
    checkOptions('ConvTranspose1d', options, transposeOptions);
    super('ConvTranspose1d', 1, inputs, outputs, kernelSize, options, outputs);
  }

  /** @param x shape [N, inputs, L] */
  forward(x: Tensor): Tensor {
    return convTranspose1d(x, this.weight, { ...this.options, bias: this.bias });
  }
}

/**
 * Transposed convolution over images: the gradient of Conv2d by its input, used to enlarge. Source: PyTorch
 * `nn.ConvTranspose2d`.
 *
 * @example
 * const layer = new ConvTranspose2d(8, 4, 2, { stride: 2 });
 * layer.forward(zeros([1, 8, 7, 7])).shape; // [1, 4, 14, 14]
 */
export class ConvTranspose2d extends Convolution<Omit<ConvTransposeOptions, 'bias'>> {
  /** Shape [inputs, outputs / groups, height, width]. */
  declare readonly weight: Tensor;

  constructor(inputs: number, outputs: number, kernelSize: KernelSize, options: ConvTranspose2dOptions = {}) {
    checkOptions('ConvTranspose2d', options, transposeOptions);
    super('ConvTranspose2d', 2, inputs, outputs, kernelSize, options, outputs);
  }

  /** @param x shape [N, inputs, H, W] */
  forward(x: Tensor): Tensor {
    return convTranspose2d(x, this.weight, { ...this.options, bias: this.bias });
  }
}

/**
 * Transposed convolution over volumes: the gradient of Conv3d by its input, used to enlarge. Source: PyTorch `nn.ConvTranspose3d`.
 *
 * @example
 * const layer = new ConvTranspose3d(2, 1, 2, { stride: 2 });
 * layer.forward(zeros([1, 2, 3, 3, 3])).shape; // [1, 1, 6, 6, 6]
 */
export class ConvTranspose3d extends Convolution<Omit<ConvTransposeOptions, 'bias'>> {
  /** Shape [inputs, outputs / groups, depth, height, width]. */
  declare readonly weight: Tensor;

  constructor(inputs: number, outputs: number, kernelSize: VolumeSize, options: ConvTranspose2dOptions = {}) {
    checkOptions('ConvTranspose3d', options, transposeOptions);
    super('ConvTranspose3d', 3, inputs, outputs, kernelSize, options, outputs);
  }

  /** @param x shape [N, inputs, D, H, W] */
  forward(x: Tensor): Tensor {
    return convTranspose3d(x, this.weight, { ...this.options, bias: this.bias });
  }
}
