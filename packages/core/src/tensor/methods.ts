/**
 * Puts the operations on Tensors as methods. Importing this file is a side effect (named in package.json), and the entry point does.
 *
 * Operations import `wrap` from handle.ts and know nothing of methods, so there is no cycle. A new method goes to its family in methods/.
 */
import { backward } from '../autodiff/backward.ts';
import { detach } from '../autodiff/no-grad.ts';
import { TensorHandle } from './handle.ts';
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
import {
  deviceOf,
  printTensor,
  readArray,
  readArraySync,
  readData,
  readDataSync,
  readItem,
  readItemSync,
} from './reading.ts';
import type { Tensor } from './types.ts';

type Reading = Pick<
  Tensor,
  'data' | 'array' | 'item' | 'dataSync' | 'arraySync' | 'itemSync' | 'print' | 'device' | 'backward'
>;

const operations: TensorMethods & ThisType<Tensor> = {
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
  detach() {
    return detach(this);
  },
};

const reading: Reading & ThisType<Tensor> = {
  get device() {
    return deviceOf(this);
  },
  data() {
    return readData(this);
  },
  array() {
    return readArray(this);
  },
  item<T extends number | bigint = number>() {
    return readItem<T>(this);
  },
  dataSync() {
    return readDataSync(this);
  },
  arraySync() {
    return readArraySync(this);
  },
  itemSync<T extends number | bigint = number>() {
    return readItemSync<T>(this);
  },
  print() {
    return printTensor(this);
  },
  backward(options) {
    backward(this, options);
  },
};

for (const methods of [operations, reading]) {
  for (const [name, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(methods))) {
    Object.defineProperty(TensorHandle.prototype, name, { ...descriptor, enumerable: false });
  }
}
