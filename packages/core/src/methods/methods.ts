/**
 * Puts the operations on Tensors as methods. Importing this file is a side effect (named in package.json), and the entry point does; functions.ts
 * does not, so that bundles can leave operations out.
 *
 * Operations import `wrap` from handle.ts and know nothing of methods, so there is no cycle. A new operation of a family becomes a method by itself.
 */
import { detach } from '../autodiff/custom-gradient.ts';
import * as operations from '../ops/operations.ts';
import { to } from '../placement/to.ts';
import type { Tensor } from '../tensor/types.ts';
import { putOnTensors } from './own-methods.ts';

declare module './own-methods.ts' {
  interface LoadedMethods {
    readonly all: TensorMethods;
  }
}

putOnTensors({
  ...operations,
  detach,
  to,
  polygamma: (x: Tensor, order: number) => operations.polygamma(order, x),
});
