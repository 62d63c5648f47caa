/**
 * Puts the operations on Tensors as methods. Importing this file is a side effect (named in package.json), and the entry point does; functions.ts
 * does not, so that bundles can leave operations out.
 *
 * Operations import `wrap` from handle.ts and know nothing of methods, so there is no cycle. A new method goes to its family in methods/.
 */
import { detach } from '../autodiff/no-grad.ts';
import type { TensorMethods } from './method-types.ts';
import { activationMethods } from './methods/activation.ts';
import { arithmeticMethods } from './methods/arithmetic.ts';
import { bitwiseMethods } from './methods/bitwise.ts';
import { distanceMethods } from './methods/distance.ts';
import { exponentialMethods } from './methods/exponential.ts';
import { indexingMethods } from './methods/indexing.ts';
import { logicMethods } from './methods/logic.ts';
import { orderMethods } from './methods/order.ts';
import { productMethods } from './methods/products.ts';
import { rangeMethods } from './methods/ranges.ts';
import { rearrangingMethods } from './methods/rearranging.ts';
import { reductionMethods } from './methods/reduction.ts';
import { roundingMethods } from './methods/rounding.ts';
import { shapeMethods } from './methods/shape.ts';
import { slicingMethods } from './methods/slicing.ts';
import { specialMethods } from './methods/special.ts';
import { trigonometricMethods } from './methods/trigonometric.ts';
import { attentionMethods } from './methods/attention.ts';
import { convolutionMethods } from './methods/convolution.ts';
import { lossMethods } from './methods/loss.ts';
import { normalizationMethods } from './methods/normalization.ts';
import { poolingMethods } from './methods/pooling.ts';
import { putOnTensors } from './own-methods.ts';
import type { Tensor } from './types.ts';

declare module './types.ts' {
  interface LoadedMethods {
    readonly all: TensorMethods;
  }
}

const operations: Omit<TensorMethods, 'add' | 'sub' | 'mul' | 'div'> & ThisType<Tensor> = {
  ...arithmeticMethods,
  ...logicMethods,
  ...exponentialMethods,
  ...trigonometricMethods,
  ...specialMethods,
  ...roundingMethods,
  ...bitwiseMethods,
  ...activationMethods,
  ...reductionMethods,
  ...orderMethods,
  ...productMethods,
  ...distanceMethods,
  ...shapeMethods,
  ...slicingMethods,
  ...rangeMethods,
  ...indexingMethods,
  ...rearrangingMethods,
  ...attentionMethods,
  ...convolutionMethods,
  ...lossMethods,
  ...normalizationMethods,
  ...poolingMethods,
  detach() {
    return detach(this);
  },
};

putOnTensors(operations);
