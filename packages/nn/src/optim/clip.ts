/** Gradient clipping: keeps one bad batch from throwing the parameters far away. On the device, nothing is read. */
import { clip, minimum, noGrad, reciprocal, scope, sqrt, square, sum, type Tensor } from '@polygrad/core/functions';
import { checkList, checkNumber, checkTensor, NnError } from '../errors.ts';
import type { Gradients } from './optimizer.ts';

/** Throws unless they are a list of tensors and nulls. */
function checkGradients(op: string, gradients: Gradients): void {
  checkList(op, 'gradients', gradients);
  for (const gradient of gradients) if (gradient !== null) checkTensor(op, 'gradient', gradient);
}

/**
 * Scales all gradients by one factor so that their norm, taken as one vector, is at most `limit`. Source: Pascanu,
 * Mikolov and Bengio, "On the difficulty of training recurrent neural networks", 2013; PyTorch `clip_grad_norm_`.
 *
 * @param gradients changed in place: each handle stands for the scaled gradient afterwards
 * @param limit largest norm
 * @returns the norm before clipping, a scalar tensor that the caller disposes (or its scope does)
 * @example
 * const gradients = [tensor([3]), tensor([4])];
 * clipGradNorm(gradients, 1); // 5
 * gradients; // [[0.6], [0.8]]
 */
export function clipGradNorm(gradients: Gradients, limit: number): Tensor {
  checkNumber('clipGradNorm', 'limit', limit, 0);
  checkGradients('clipGradNorm', gradients);
  const present = gradients.filter((gradient) => gradient !== null);
  if (present.length === 0) throw new NnError('clipGradNorm', 'there are no gradients to clip');
  return scope(() =>
    noGrad(() => {
      const norm = sqrt(present.map((gradient) => sum(square(gradient))).reduce((total, part) => total.add(part)));
      // PyTorch adds 1e-6 to the norm, so that gradients of zero are left as they are.
      const factor = minimum(reciprocal(norm.add(1e-6)).mul(limit), 1);
      for (const gradient of present) gradient.assign(gradient.mul(factor));
      return norm;
    }),
  );
}

/**
 * Cuts every element of every gradient off at `-limit` and `limit`. Source: PyTorch `clip_grad_value_`.
 *
 * @param gradients changed in place
 *
 * @example
 * const gradients = [tensor([-3, 0.25])];
 * clipGradValue(gradients, 0.5);
 * gradients; // [[-0.5, 0.25]]
 */
export function clipGradValue(gradients: Gradients, limit: number): void {
  checkNumber('clipGradValue', 'limit', limit, 0);
  checkGradients('clipGradValue', gradients);
  scope(() =>
    noGrad(() => {
      for (const gradient of gradients) gradient?.assign(clip(gradient, -limit, limit));
    }),
  );
}
