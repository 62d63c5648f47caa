/**
 * `hostValue` and `hostEffect`, by which functions declare what the recording of a compiled function (replay/) cannot see: values and effects of
 * JavaScript.
 */
import { checkFunction } from '@polygrad/compiler/shape/options';
import { graph } from './state.ts';
import { isRehearsing, onRollback } from './transactions.ts';

/**
 * A JavaScript value that decides what a function records, such as a mode. A function of `compile` reads it before each replay,
 * and records again if it has changed.
 *
 * @param read called for the value, now and before every replay
 * @returns its present value
 * @throws ArgumentError if `read` is no function
 *
 * @example
 * let training = true;
 * const step = compile((x: Tensor) => (hostValue(() => training) ? x.mul(2) : x));
 * step(tensor([3])); // [6]
 */
export function hostValue<T>(read: () => T): T {
  checkFunction('hostValue', read);
  const value = read();
  graph.observer?.value(read, value);
  return value;
}

/**
 * Runs a function with an effect in JavaScript, now and at every replay of a function of `compile`: counting steps, for instance.
 *
 * @param run the effect
 * @param undo undoes it if the work recorded with it cannot be computed. If given, `warmup` does not run the effect
 * @throws ArgumentError if either is no function
 *
 * @example
 * let steps = 0;
 * const step = compile((x: Tensor) => {
 *   hostEffect(
 *     () => void steps++,
 *     () => void steps--,
 *   );
 *   return x.mul(2);
 * });
 * step(tensor([3])); // [6]
 * steps; // 1
 */
export function hostEffect(run: () => void, undo?: () => void): void {
  checkFunction('hostEffect', run);
  if (undo !== undefined) {
    checkFunction('hostEffect', undo);
    if (isRehearsing()) return;
  }
  run();
  if (undo !== undefined) onRollback(undo);
  graph.observer?.effect(run, undo);
}
