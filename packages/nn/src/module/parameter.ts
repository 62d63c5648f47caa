/**
 * Parameters and buffers: tensors that belong to a module for as long as it lives. Both are ordinary Tensors with a
 * mark; where they sit in a model, and under what name, is the module's business.
 */
import { contiguous, keep, registerState, type Tensor } from '@polygrad/core/functions';
import { checkTensor } from '../errors.ts';

/** Learned by an optimizer, or carried along (running statistics). */
export type TensorRole = 'parameter' | 'buffer';

const roles = new WeakMap<Tensor, TensorRole>();

/**
 * Keeps a tensor and sees to it that its value will be in memory. A constant such as `zeros` has none until it is first assigned to. The first step
 * of a training would be another plan than all others.
 */
function own(value: Tensor, role: TensorRole): Tensor {
  checkTensor(role, 'value', value);
  const copy = contiguous(value);
  value.assign(copy);
  copy.dispose();
  keep(value);
  registerState(value);
  roles.set(value, role);
  return value;
}

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
  own(value, 'parameter').requiresGrad = true;
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
  return own(value, 'buffer');
}

/**
 * What a tensor is to its module; undefined for one that was never made parameter or buffer.
 *
 * @example
 * roleOf(new Linear(2, 3).weight); // 'parameter'
 */
export function roleOf(value: Tensor): TensorRole | undefined {
  return roles.get(value);
}
