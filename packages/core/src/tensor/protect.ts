/** Tensors that survive a lost device, by copies in host memory. */
import { ArgumentError } from '../shape/errors.ts';
import { isHandle } from '../graph/scope.ts';
import { shown } from '../shape/options.ts';
import { addState, protectHandles, unprotectHandles } from '../runtime/shadow.ts';
import { isTensor, nodeOf, type TensorHandle } from './handle.ts';
import { say } from '../shape/shown.ts';
import type { Tensor } from './types.ts';

/**
 * Keeps copies of tensors in host memory, so that they survive a lost device: afterwards they have the values of the last copy that was
 * complete. Copies are made behind flushes, at most one per `interval` of `setRecovery`, of all protected tensors at one point of
 * the work; nobody waits for them. Holds the tensors weakly: disposing one ends it, as `unprotect` does.
 *
 * @param tensors any shapes and dtypes; what belongs together (parameters and the optimizer's state) should be protected together
 * @throws DisposedError if one is disposed
 *
 * @example
 * const weights = zeros([2, 3]);
 * protect([weights]);
 */
export function protect(tensors: Iterable<Tensor>): void {
  const handles = listed('protect', tensors);
  for (const t of handles) nodeOf(t, 'protect');
  protectHandles(handles as unknown as TensorHandle[]);
}

function listed(op: string, tensors: Iterable<Tensor>): Tensor[] {
  if (typeof (tensors as Partial<Iterable<Tensor>> | null)?.[Symbol.iterator] !== 'function' || isHandle(tensors))
    throw new ArgumentError(op, say`bad tensors: ${shown(tensors)}; must be a list of tensors, such as [weights]`);
  const list: Tensor[] = [];
  // An endless or sparse list ends with the first entry that is no tensor.
  for (const t of tensors) {
    if (!isTensor(t)) throw new ArgumentError(op, say`bad tensors: ${t} is among them; must be a list of tensors`);
    list.push(t);
  }
  return list;
}

/**
 * Ends the protection of tensors and forgets their copies.
 *
 * @example
 * const weights = zeros([2, 3]);
 * protect([weights]);
 * unprotect([weights]);
 */
export function unprotect(tensors: Iterable<Tensor>): void {
  unprotectHandles(listed('unprotect', tensors) as unknown as TensorHandle[]);
}

/**
 * Says that a tensor belongs to the state of a training, for layers and optimizers of your own: with `setRecovery({ shadow: true })`
 * it is protected. Parameters, buffers and optimizers of `@polygrad/nn` do so. Returns the tensor.
 *
 * @example
 * const velocity = registerState(zeros([2, 3]));
 */
export function registerState(t: Tensor): Tensor {
  nodeOf(t, 'registerState');
  addState(t as unknown as TensorHandle);
  return t;
}
