/** Scopes for users: what is made inside and not returned is given back at the end. */
import { dependsOnPlaceholder, hasPlaceholders } from '../graph/placeholder.ts';
import { beginOp, markAll, userScope } from '../graph/scope.ts';
import { ArgumentError, OperationError, showShape } from '../shape/errors.ts';
import { checkFunction } from '../shape/options.ts';
import { nodeOf, type TensorHandle } from './handle.ts';
import { say } from '../shape/shown.ts';
import type { DType } from '../shape/dtype.ts';
import type { Tensor } from './types.ts';

/**
 * Runs a function; tensors made inside are disposed when it returns or throws, except those it returns (also inside arrays, Maps and
 * plain objects) and those given to keep(). When the outermost scope ends, everything recorded is submitted to the engine.
 *
 * @param body a synchronous function: recording never waits; read values after the scope
 * @returns what the function returns
 * @throws ArgumentError if it is no function, or returns a promise
 *
 * @example
 * const y = scope(() => {
 *   const x = ones([1000]);
 *   return x.mul(2).sum(); // x and x * 2 are given back, the sum stays
 * });
 */
export function scope<T>(body: () => T): T {
  return userScope(() => called('scope', body));
}

/** Calls a user's function that must not be asynchronous. Throws ArgumentError in the name of `op` if it is, or is no function. */
export function called<A extends readonly unknown[], T>(op: string, f: (...args: A) => T, ...args: A): T {
  checkFunction(op, f);
  return refusePromise(op, f(...args));
}

/** The result of a function that must not be asynchronous. Throws ArgumentError in the name of `op` if it is a promise. */
export function refusePromise<T>(op: string, result: T): T {
  if (typeof result === 'object' && result !== null && typeof (result as { then?: unknown }).then === 'function') {
    // Nobody waits for it: if it fails in turn, that must not end the process.
    (result as unknown as PromiseLike<unknown>).then(undefined, () => {});
    throw new ArgumentError(
      op,
      say`the function returned a promise: ${op} ends before it settles; record inside and await values after it`,
    );
  }
  return result;
}

/**
 * Takes a tensor out of every scope: it lives until it is disposed. Returns the tensor.
 *
 * @throws OperationError if it depends on an example inside vmap
 *
 * @example
 * let best: Tensor | undefined;
 * scope(() => {
 *   best = keep(ones([2]));
 * });
 */
export function keep<D extends DType>(t: Tensor<D>): Tensor<D> {
  beginOp('keep');
  const node = nodeOf(t);
  const handle = t as unknown as TensorHandle;
  if (hasPlaceholders() && dependsOnPlaceholder(node)) {
    throw new OperationError(
      'keep',
      say`the ${node.dtype} ${showShape(node.shape)} depends on an example inside vmap, which exists only until the function returns; return it from the function`,
    );
  }
  handle.kept = true;
  return t;
}

/**
 * Disposes all tensors inside arrays, Maps and plain objects; other values are left alone.
 *
 * @example
 * dispose([ones([1]), { bias: zeros([1]) }]);
 */
export function dispose(value: unknown): void {
  markAll(value, (handle) => handle.dispose());
}
