/**
 * The operations that Tensors have as methods: `a.add(b)` is `add(a, b)`. Each family is a file in methods/, with its types and its
 * functions.
 *
 * Types only. methods.ts puts the functions in place.
 */
import type { ActivationMethods } from './activation.ts';
import type { ArithmeticMethods } from './arithmetic.ts';
import type { BitwiseMethods } from './bitwise.ts';
import type { DistanceMethods } from './distance.ts';
import type { ExponentialMethods } from './exponential.ts';
import type { IndexingMethods } from './indexing.ts';
import type { LogicMethods } from './logic.ts';
import type { OrderMethods } from './order.ts';
import type { ProductMethods } from './products.ts';
import type { RangeMethods } from './ranges.ts';
import type { RearrangingMethods } from './rearranging.ts';
import type { ReductionMethods } from './reduction.ts';
import type { RoundingMethods } from './rounding.ts';
import type { ShapeMethods } from './shape.ts';
import type { SlicingMethods } from './slicing.ts';
import type { SpecialMethods } from './special.ts';
import type { TrigonometricMethods } from './trigonometric.ts';
import type { AttentionMethods } from './attention.ts';
import type { ConvolutionMethods } from './convolution.ts';
import type { LossMethods } from './loss.ts';
import type { NormalizationMethods } from './normalization.ts';
import type { PoolingMethods } from './pooling.ts';
import type { Tensor } from '../tensor/types.ts';

export interface TensorMethods
  extends ArithmeticMethods,
    LogicMethods,
    ExponentialMethods,
    TrigonometricMethods,
    SpecialMethods,
    RoundingMethods,
    BitwiseMethods,
    ActivationMethods,
    ReductionMethods,
    OrderMethods,
    ProductMethods,
    DistanceMethods,
    ShapeMethods,
    SlicingMethods,
    RangeMethods,
    IndexingMethods,
    RearrangingMethods,
    AttentionMethods,
    ConvolutionMethods,
    LossMethods,
    NormalizationMethods,
    PoolingMethods {
  /** The same value as a constant: no gradient flows through it. */
  detach(): Tensor;
}

/** The methods that are there, as `all`: methods/methods.ts fills it in. */
// biome-ignore lint/suspicious/noEmptyInterface: others add to it
export interface LoadedMethods {}

/** Arithmetic that every entry has as methods. */
export type OwnOperation = 'add' | 'sub' | 'mul' | 'div';

/** In the place of each method that is not there: one that nothing can call, so that the type checker says what to do. */
type MissingMethods = {
  readonly [Name in Exclude<keyof TensorMethods, OwnOperation>]: (
    this: `tensors of '@polygrad/core/functions' have no method ${Name}: call ${Name}(x, ...), or import '@polygrad/core' for methods`,
    ...inputs: unknown[]
  ) => never;
};

/** Operations as methods: all, if anything in the program imports '@polygrad/core', whose import puts them on Tensors. */
export type Operations = LoadedMethods extends { readonly all: infer All extends object } ? All : MissingMethods;
