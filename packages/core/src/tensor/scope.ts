/** How long tensors live: scopes of users, what is held now, and copies that survive a lost device. */
import { beginOp, markAll, userScope, isHandle } from '../graph/scope.ts';
import { ArgumentError, OperationError, showShape } from '../shape/errors.ts';
import { checkFunction, shown } from '../shape/options.ts';
import { nodeOf, type TensorHandle, isTensor } from './handle.ts';
import { say } from '../shape/shown.ts';
import type { DType } from '../shape/dtype.ts';
import type { Tensor } from './types.ts';
import type { IEngine } from '../engine/engine.ts';
import { poolOf } from '../engine/pool.ts';
import { getEngine } from '../engine/registry.ts';
import { graph } from '../graph/state.ts';
import { addState, protectHandles, unprotectHandles } from '../runtime/shadow.ts';

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
  if (graph.placeholders?.reach(node)) {
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

/** Figures of one engine, but `numTensors`, which counts Tensors of all engines. */
export interface MemoryInfo {
  /** Tensors that exist and are not disposed. */
  readonly numTensors: number;
  /** Buffers in use. */
  readonly numBuffers: number;
  /** Bytes of those buffers. */
  readonly bytes: number;
  /** Most bytes in use at any time. */
  readonly peakBytes: number;
  /** Bytes kept for reuse. */
  readonly pooledBytes: number;
}

/**
 * What is held now. Values that are recorded but not computed hold nothing yet.
 *
 * @param engine the current one unless given
 * @throws ArgumentError if it is no engine
 *
 * @example
 * memory().bytes; // bytes of all computed tensors
 */
export function memory(engine: IEngine = getEngine()): MemoryInfo {
  if (typeof engine?.submit !== 'function')
    throw new ArgumentError('memory', say`not an engine: ${shown(engine)}; give one, or leave it out`);
  const { numBuffers, bytes, peakBytes, pooledBytes } = poolOf(engine).memory();
  return { numTensors: graph.live, numBuffers, bytes, peakBytes, pooledBytes };
}

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
