/**
 * Initialisers: first values of parameters. Each is a function of a shape; random ones draw from the core package's
 * generator, so `seed(n)` before a model is built determines it.
 *
 * Weights have their outputs on axis 0 and their inputs on axis 1, further axes being the kernel of a convolution.
 */
import {
  add,
  clip,
  type DType,
  erf,
  erfinv,
  full,
  mul,
  rand,
  randn,
  scope,
  sub,
  type Tensor,
} from '@polygrad/core/functions';
import { checkFits, checkInteger, checkList, checkNumber, checkOptions, misfit, NnError } from '../errors.ts';
import { filled } from './filled.ts';

/** Makes a tensor of a shape. */
export type Initializer = (shape: readonly number[], dtype?: DType) => Tensor;

/** Throws unless a shape is a list of sizes. */
export function checkShape(op: string, shape: readonly number[]): void {
  checkList(op, 'shape', shape);
  for (const extent of shape) checkInteger(op, 'shape', extent, 0);
}

/** Inputs that feed one output, and outputs that one input feeds. */
export interface Fans {
  readonly fanIn: number;
  readonly fanOut: number;
}

/**
 * Fans of a weight.
 *
 * @throws NnError for shapes with fewer than two axes, which have none
 * @example
 * fansOf([16, 8, 3, 3]); // { fanIn: 72, fanOut: 144 }
 */
export function fansOf(shape: readonly number[]): Fans {
  checkShape('fansOf', shape);
  const [outputs, inputs, ...kernel] = shape;
  if (outputs === undefined || inputs === undefined) {
    throw new NnError('fansOf', `shape (${shape.join(', ')}) has no inputs and outputs; it needs at least two axes`);
  }
  const taps = kernel.reduce((product, extent) => product * extent, 1);
  return { fanIn: inputs * taps, fanOut: outputs * taps };
}

/** Activations whose gain is known: by how much they shrink the deviation of what passes through. */
export type Nonlinearity = 'linear' | 'sigmoid' | 'tanh' | 'relu' | 'leakyRelu' | 'selu';

/**
 * The recommended gain of an activation (PyTorch, `torch.nn.init.calculate_gain`).
 *
 * @param slope of leakyRelu for negative inputs (default 0.01)
 *
 * @example
 * gainOf('relu'); // 1.4142136
 */
export function gainOf(nonlinearity: Nonlinearity, slope: number = 0.01): number {
  switch (nonlinearity) {
    case 'linear':
    case 'sigmoid':
      return 1;
    case 'tanh':
      return 5 / 3;
    case 'relu':
      return Math.SQRT2;
    case 'leakyRelu':
      return Math.sqrt(2 / (1 + slope * slope));
    case 'selu':
      return 3 / 4;
    default:
      throw misfit(
        'gainOf',
        'nonlinearity',
        nonlinearity satisfies never,
        'linear, sigmoid, tanh, relu, leakyRelu or selu',
      );
  }
}

/**
 * All zeros.
 *
 * @example
 * zerosInit()([2]); // [0, 0]
 */
export function zerosInit(): Initializer {
  return constantInit(0);
}

/**
 * All ones.
 *
 * @example
 * onesInit()([2]); // [1, 1]
 */
export function onesInit(): Initializer {
  return constantInit(1);
}

/**
 * All the same value.
 *
 * @throws NnError unless the value is a number
 * @example
 * constantInit(0.5)([2]); // [0.5, 0.5]
 */
export function constantInit(value: number): Initializer {
  checkFits('constantInit', 'value', value, typeof value === 'number', 'a number');
  return (shape, dtype) => {
    checkShape('constantInit', shape);
    return filled(shape, value, dtype);
  };
}

/** `x scale + shift`; `x` is given up. */
function moved(x: Tensor, scale: number, shift: number): Tensor {
  const scaled = x.mul(scale);
  x.dispose();
  const result = scaled.add(shift);
  scaled.dispose();
  return result;
}

/**
 * Uniform in [low, high).
 *
 * @throws NnError unless both bounds are finite numbers
 * @example
 * uniformInit(-0.1, 0.1)([3, 2]).shape; // [3, 2]
 */
export function uniformInit(low: number, high: number): Initializer {
  checkNumber('uniformInit', 'low', low);
  checkNumber('uniformInit', 'high', high);
  return (shape, dtype = 'float32') => moved(rand(shape, { dtype }), high - low, low);
}

/**
 * Normal with the given mean and standard deviation.
 *
 * @throws NnError unless the mean is a finite number and the deviation one of at least 0
 * @example
 * normalInit(0, 0.02)([3, 2]).shape; // [3, 2]
 */
export function normalInit(mean: number = 0, std: number = 1): Initializer {
  checkNumber('normalInit', 'mean', mean);
  checkNumber('normalInit', 'std', std, 0);
  return (shape, dtype = 'float32') => moved(randn(shape, { dtype }), std, mean);
}

/** Bounds of `truncNormalInit`. */
export interface TruncNormalOptions {
  /** Least value, -2. */
  readonly low?: number;
  /** Largest value, 2. */
  readonly high?: number;
}

/**
 * Normal, of what lies within bounds: these are values, not deviations. Source: PyTorch `torch.nn.init.trunc_normal_`.
 *
 * @throws NnError unless the deviation is a finite number above 0 and the bounds are finite numbers, the lower one first
 * @example
 * truncNormalInit(0, 0.02)([3, 2]).shape; // [3, 2]
 */
export function truncNormalInit(mean: number = 0, std: number = 1, options: TruncNormalOptions = {}): Initializer {
  const op = 'truncNormalInit';
  checkOptions(op, options, 'low# high#');
  const { low = -2, high = 2 } = options;
  checkNumber(op, 'mean', mean);
  checkNumber(op, 'std', std, 0);
  checkFits(op, 'std', std, std > 0, 'above 0');
  checkNumber(op, 'low', low);
  checkFits(op, 'high', high, Number.isFinite(high) && high > low, `a finite number above low, ${low}`);
  const root = std * Math.SQRT2;
  return (shape, dtype = 'float32') =>
    scope(() => {
      const least = erf(full([], (low - mean) / root, { dtype }));
      const width = sub(erf(full([], (high - mean) / root, { dtype })), least);
      const drawn = erfinv(add(mul(rand(shape, { dtype }), width), least));
      return clip(add(mul(drawn, root), mean), low, high);
    });
}

/** Options of the Kaiming initialisers. */
export interface KaimingOptions {
  /** Which fan keeps its deviation: 'in' the forward pass (default), 'out' the backward pass. */
  readonly mode?: 'in' | 'out';
  /** The activation that follows (default leakyRelu, as in PyTorch). */
  readonly nonlinearity?: Nonlinearity;
  /** Slope of leakyRelu (default 0). */
  readonly slope?: number;
}

function checkKaiming(op: string, options: KaimingOptions): void {
  checkOptions(op, options, 'mode nonlinearity slope#');
  const { mode = 'in', nonlinearity } = options;
  checkFits(op, 'mode', mode, mode === 'in' || mode === 'out', "'in' or 'out'");
  if (nonlinearity !== undefined) gainOf(nonlinearity);
}

function kaimingStd(shape: readonly number[], options: KaimingOptions): number {
  const { mode = 'in', nonlinearity = 'leakyRelu', slope = 0 } = options;
  const { fanIn, fanOut } = fansOf(shape);
  return gainOf(nonlinearity, slope) / Math.sqrt(mode === 'in' ? fanIn : fanOut);
}

/**
 * Uniform with the deviation of He et al., "Delving deep into rectifiers", 2015.
 *
 * @throws NnError for options that do not fit; later for shapes of fewer than two axes
 * @example
 * new Linear(3, 2, { weightInit: kaimingUniform({ nonlinearity: 'relu' }) }).weight.shape; // [2, 3]
 */
export function kaimingUniform(options: KaimingOptions = {}): Initializer {
  checkKaiming('kaimingUniform', options);
  return (shape, dtype) => {
    const bound = Math.sqrt(3) * kaimingStd(shape, options);
    return uniformInit(-bound, bound)(shape, dtype);
  };
}

/**
 * Normal with the deviation of He et al., 2015.
 *
 * @throws NnError for options that do not fit; later for shapes of fewer than two axes
 * @example
 * new Linear(3, 2, { weightInit: kaimingNormal({ mode: 'out' }) }).weight.shape; // [2, 3]
 */
export function kaimingNormal(options: KaimingOptions = {}): Initializer {
  checkKaiming('kaimingNormal', options);
  return (shape, dtype) => normalInit(0, kaimingStd(shape, options))(shape, dtype);
}

function xavierStd(shape: readonly number[], gain: number): number {
  const { fanIn, fanOut } = fansOf(shape);
  return gain * Math.sqrt(2 / (fanIn + fanOut));
}

/**
 * Uniform with the deviation of Glorot and Bengio, "Understanding the difficulty of training deep networks", 2010.
 *
 * @throws NnError unless the gain is a finite number of at least 0; later for shapes of fewer than two axes
 * @example
 * new Linear(3, 2, { weightInit: xavierUniform() }).weight.shape; // [2, 3]
 */
export function xavierUniform(gain: number = 1): Initializer {
  checkNumber('xavierUniform', 'gain', gain, 0);
  return (shape, dtype) => {
    const bound = Math.sqrt(3) * xavierStd(shape, gain);
    return uniformInit(-bound, bound)(shape, dtype);
  };
}

/**
 * Normal with the deviation of Glorot and Bengio, 2010.
 *
 * @throws NnError unless the gain is a finite number of at least 0; later for shapes of fewer than two axes
 * @example
 * new Linear(3, 2, { weightInit: xavierNormal() }).weight.shape; // [2, 3]
 */
export function xavierNormal(gain: number = 1): Initializer {
  checkNumber('xavierNormal', 'gain', gain, 0);
  return (shape, dtype) => normalInit(0, xavierStd(shape, gain))(shape, dtype);
}

/**
 * PyTorch's default for weights and biases of Linear and Conv: uniform between -1 and 1 over the square root of the
 * weight's inputs (Kaiming with slope sqrt(5)).
 *
 * @param fanIn inputs that feed one output
 *
 * @example
 * new Linear(3, 2, { biasInit: fanInUniform(3) }).weight.shape; // [2, 3]
 */
export function fanInUniform(fanIn: number): Initializer {
  const bound = fanIn > 0 ? 1 / Math.sqrt(fanIn) : 0;
  return uniformInit(-bound, bound);
}
