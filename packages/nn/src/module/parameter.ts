/**
 * Parameters and buffers: tensors that belong to a module for as long as it lives. Both are ordinary Tensors with a
 * mark; where they sit in a model, and under what name, is the module's business.
 */
import { keep, type Tensor } from '@polygrad/core';

/** Learned by an optimizer, or carried along (running statistics). */
export type TensorRole = 'parameter' | 'buffer';

const roles = new WeakMap<Tensor, TensorRole>();

/**
 * Makes a tensor a parameter: it outlives the scope it was made in, receives gradients, and a module that has it as a
 * property finds it.
 *
 * @param value initial value, of a floating-point dtype; the same tensor is returned
 * @example
 * class Scale extends Module {
 *   readonly factor = parameter(ones([1]));
 *   forward(x: Tensor): Tensor {
 *     return x.mul(this.factor);
 *   }
 * }
 */
export function parameter(value: Tensor): Tensor {
  keep(value);
  value.requiresGrad = true;
  roles.set(value, 'parameter');
  return value;
}

/**
 * Makes a tensor a buffer: it outlives the scope it was made in and is saved with its module, but no optimizer sees it.
 *
 * @param value initial value; the same tensor is returned. Change it with `buffer.assign(newValue)`
 * @example
 * const steps = buffer(zeros([]));
 */
export function buffer(value: Tensor): Tensor {
  keep(value);
  roles.set(value, 'buffer');
  return value;
}

/** What a tensor is to its module; undefined for one that was never made parameter or buffer. */
export function roleOf(value: Tensor): TensorRole | undefined {
  return roles.get(value);
}
