/** checkpoint: less memory for a gradient, by computing a part of the function twice. */
import { isTensor } from '../tensor/handle.ts';
import { ArgumentError } from '../shape/errors.ts';
import type { Tensor } from '../tensor/types.ts';
import { customGradient } from './custom-gradient.ts';
import { vjp } from './products.ts';

/**
 * Runs a function without keeping what it computes on the way; a gradient runs it again. Source: Chen et al., "Training deep nets with
 * sublinear memory cost" (2016).
 *
 * @param f from tensors to one tensor, without side effects; tensors it uses must be among its arguments to receive gradients
 * @param args its arguments
 * @returns the result of f
 *
 * @example
 * const y = checkpoint((x: Tensor) => x.mul(x), tensor([3]));
 */
export function checkpoint(f: (...inputs: Tensor[]) => Tensor, ...args: Tensor[]): Tensor {
  for (const arg of args)
    if (!isTensor(arg))
      throw new ArgumentError(
        'checkpoint',
        'an argument is no tensor: pass tensors, and let the function close over the rest',
      );
  const run = customGradient(f, (grad, { inputs }) => vjp(f, [...inputs], grad)[1]);
  return run(...args);
}
