/** Switching gradients off: for a stretch of code, or for one tensor. */
import { stopGradient } from '../graph/primitives.ts';
import { beginOp } from '../graph/scope.ts';
import { restoreTracking, suspendTracking } from '../graph/tracking.ts';
import { called } from '../tensor/scope.ts';
import { nodeOf, wrap } from '../tensor/handle.ts';
import type { Tensor } from '../tensor/types.ts';

/**
 * Runs a function whose operations are constants for every gradient: no tape, no gradient function and no requiresGrad leaf sees them.
 *
 * @param body a synchronous function
 * @returns what the function returns
 * @throws ArgumentError if it is no function, or returns a promise: gradients would be back on before it settles
 *
 * @example
 * const w = ones([2], { requiresGrad: true });
 * noGrad(() => w.mul(2)).requiresGrad; // false
 */
export function noGrad<T>(body: () => T): T {
  const state = suspendTracking('nothing');
  try {
    return called('noGrad', body);
  } finally {
    restoreTracking(state);
  }
}

/**
 * The same value as a constant: no gradient flows through it.
 *
 * @example
 * const x = ones([2], { requiresGrad: true });
 * detach(x).requiresGrad; // false
 */
export function detach(x: Tensor): Tensor {
  beginOp('detach');
  return wrap(stopGradient(nodeOf(x)));
}
