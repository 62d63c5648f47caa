/**
 * Methods that every Tensor has, whatever a bundle leaves out, beside those of the handle itself (tensor/handle.ts): `backward`, and the
 * four of arithmetic, in which formulas are read best and which hardly any program goes without.
 *
 * Importing this file puts them in place: a side effect (named in package.json). Every entry point does.
 */
import { putHelp } from '#help';
import { backward } from '../autodiff/backward.ts';
import { add, div, mul, sub } from '../ops/elementwise/arithmetic.ts';
import { TensorHandle } from '../tensor/handle.ts';
import type { Tensor } from '../tensor/types.ts';
import type { Operations, OwnOperation, TensorMethods } from './method-types.ts';

declare module '../tensor/types.ts' {
  interface TensorOperations extends Pick<TensorMethods, OwnOperation>, Operations {}
}

/** A function whose first parameter is the tensor that it is a method of. */
type Operation = (x: Tensor, ...rest: never[]) => unknown;

/** Makes functions methods of all Tensors: what a method is called with follows its tensor. */
export function putOnTensors(operations: Readonly<Record<string, Operation>>): void {
  for (const [name, operation] of Object.entries(operations)) {
    // Named, for stack traces.
    const { [name]: value } = {
      [name](this: Tensor, ...rest: never[]): unknown {
        return operation(this, ...rest);
      },
    };
    Object.defineProperty(TensorHandle.prototype, name, { value, configurable: true, writable: true });
  }
}

/** The function that a method is made of. */
type FunctionOf<Method> = Method extends (...rest: infer Rest) => infer Result
  ? (x: Tensor, ...rest: Rest) => Result
  : never;

const own: { readonly [Name in 'backward' | OwnOperation]: FunctionOf<Tensor[Name]> } = {
  backward,
  add,
  sub,
  mul,
  div,
};

putHelp(TensorHandle.prototype);
putOnTensors(own);
