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
import { checkCount } from '#help';
import { type Operation, putMethod } from './own-methods.ts';

declare module './own-methods.ts' {
  interface LoadedMethods {
    readonly all: TensorMethods;
  }
}

const all: Readonly<Record<string, Operation>> = {
  ...operations,
  detach,
  to,
  polygamma: (x: Tensor, order: number) => operations.polygamma(order, x),
};

for (const [name, operation] of Object.entries(all)) {
  const certain = operation.length;
  // Named, for stack traces.
  const { [name]: value } = {
    [name](this: Tensor, ...rest: never[]): unknown {
      if (rest.length >= certain) checkCount(name, operation, rest);
      return operation(this, ...rest);
    },
  };
  putMethod(name, value);
}
