/**
 * The operations that Tensors have as methods: `a.add(b)` is `add(a, b)`. Each family is a file in methods/, with its types and its
 * functions.
 *
 * Types only. methods.ts puts the functions in place.
 */
import type { ActivationMethods } from './methods/activation.ts';
import type { ArithmeticMethods } from './methods/arithmetic.ts';
import type { BitwiseMethods } from './methods/bitwise.ts';
import type { DistanceMethods } from './methods/distance.ts';
import type { ExponentialMethods } from './methods/exponential.ts';
import type { IndexingMethods } from './methods/indexing.ts';
import type { LogicMethods } from './methods/logic.ts';
import type { OrderMethods } from './methods/order.ts';
import type { ProductMethods } from './methods/products.ts';
import type { RangeMethods } from './methods/ranges.ts';
import type { RearrangingMethods } from './methods/rearranging.ts';
import type { ReductionMethods } from './methods/reduction.ts';
import type { RoundingMethods } from './methods/rounding.ts';
import type { ShapeMethods } from './methods/shape.ts';
import type { SlicingMethods } from './methods/slicing.ts';
import type { SpecialMethods } from './methods/special.ts';
import type { TrigonometricMethods } from './methods/trigonometric.ts';
import type { AttentionMethods } from './methods/attention.ts';
import type { ConvolutionMethods } from './methods/convolution.ts';
import type { LossMethods } from './methods/loss.ts';
import type { NormalizationMethods } from './methods/normalization.ts';
import type { PoolingMethods } from './methods/pooling.ts';
import type { Tensor } from './types.ts';

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
