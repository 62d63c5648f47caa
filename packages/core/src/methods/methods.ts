/**
 * Puts the operations on Tensors as methods. Importing this file is a side effect (named in package.json), and the entry point does; functions.ts
 * does not, so that bundles can leave operations out.
 *
 * Operations import `wrap` from handle.ts and know nothing of methods, so there is no cycle. A new method goes to its family in methods/.
 */
import { detach } from '../autodiff/no-grad.ts';
import type { TensorMethods } from './method-types.ts';
import { activationMethods } from './activation.ts';
import { arithmeticMethods } from './arithmetic.ts';
import { bitwiseMethods } from './bitwise.ts';
import { distanceMethods } from './distance.ts';
import { exponentialMethods } from './exponential.ts';
import { indexingMethods } from './indexing.ts';
import { logicMethods } from './logic.ts';
import { orderMethods } from './order.ts';
import { productMethods } from './products.ts';
import { rangeMethods } from './ranges.ts';
import { rearrangingMethods } from './rearranging.ts';
import { reductionMethods } from './reduction.ts';
import { roundingMethods } from './rounding.ts';
import { shapeMethods } from './shape.ts';
import { slicingMethods } from './slicing.ts';
import { specialMethods } from './special.ts';
import { trigonometricMethods } from './trigonometric.ts';
import { attentionMethods } from './attention.ts';
import { convolutionMethods } from './convolution.ts';
import { lossMethods } from './loss.ts';
import { normalizationMethods } from './normalization.ts';
import { poolingMethods } from './pooling.ts';
import { putOnTensors } from './own-methods.ts';
import type { Tensor } from '../tensor/types.ts';

declare module './method-types.ts' {
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
