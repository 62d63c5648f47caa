/** Lifetime of tensors: scopes, memory statistics, copies that survive a lost device, and rehearsed steps that are undone. */
import { isHeard } from '#families';
import type { IEngine, ReadyProgress } from '../engine/engine.ts';
import { poolOf } from '../engine/pool.ts';
import { getEngine, isEngine } from '../engine/registry.ts';
import { beginOp, isHandle, markAll, userScope, withOperands } from '../graph/scope.ts';
import type { Node } from '../graph/node.ts';
import { graph } from '../graph/state.ts';
import { isRehearsing, type Rehearsal, transactions } from '../graph/transactions.ts';
import { announceTo, prepare, flush } from '../runtime/runtime.ts';
import { stateOf } from '../runtime/run.ts';
import { runs } from '../runtime/state.ts';
import { addState } from '../runtime/copies.ts';
import { protectHandles, unprotectHandles } from '../runtime/shadow.ts';
import type { DType } from '@polygrad/compiler/shape/dtype';
import { ArgumentError } from '@polygrad/compiler/shape/errors';
import { checkFunction, checkNames, shown } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { isTensor, nodeOf, type TensorHandle } from './handle.ts';
import { generatorState, withGenerator } from './random-key.ts';
import type { Tensor } from './types.ts';

/**
 * Runs a function; tensors made inside are disposed when it returns or throws. Those it returns stay, also inside arrays, Maps and plain objects,
 * and so do those given to keep(). When the outermost scope ends, everything recorded is submitted to the engine.
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

/** Calls a user's function that must be synchronous. Throws ArgumentError in the name of `op` if it returns a promise or is no function. */
export function called<A extends readonly unknown[], T>(op: string, f: (...args: A) => T, ...args: A): T {
  checkFunction(op, f);
  return refusePromise(op, f(...args));
}

/**
 * Runs a function in which other tensors stand in for some, wherever operations are given these.
 *
 * @param op who calls, for errors
 * @param values what stands in, by the tensor for which it does
 * @param body a synchronous function
 * @returns what the function returns
 * @throws ArgumentError if it returns a promise
 *
 * @example
 * import { tensor } from '@polygrad/core';
 * import { withStandIns } from '@polygrad/core/engine';
 * import '@polygrad/backend-cpu';
 * const [two, three] = [tensor(2), tensor(3)];
 * const six = withStandIns('example', new Map([[two, three]]), () => two.mul(2));
 * console.log(await six.item()); //=> 6
 */
export function withStandIns<T>(op: string, values: ReadonlyMap<Tensor, Tensor>, body: () => T): T {
  return withOperands(
    (handle, instead) => {
      const value = values.get(handle as unknown as Tensor);
      return value === undefined ? instead : nodeOf(value);
    },
    () => called(op, body),
  );
}

/** The result of a function that must not be asynchronous. Throws ArgumentError in the name of `op` if it is a promise. */
export function refusePromise<T>(op: string, result: T): T {
  if (typeof result === 'object' && result !== null && typeof (result as { then?: unknown }).then === 'function') {
    // The promise has no other handler: a later rejection must not end the process.
    (result as unknown as PromiseLike<unknown>).then(undefined, () => {});
    throw new ArgumentError(
      op,
      say`the function returned a promise: ${op} ends before it settles; record inside and await values after it`,
    );
  }
  return result;
}

/**
 * Removes a tensor from every scope: it lives until it is disposed. Returns the tensor.
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
  const node = nodeOf(t, 'keep');
  const handle = t as unknown as TensorHandle;
  graph.placeholders?.checkKeep(node);
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

/** Figures of one engine, except `numTensors`, which counts Tensors of all engines. */
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
 * What is held now. Recorded values that are not computed hold nothing yet.
 *
 * @param engine the current one unless given
 * @throws ArgumentError if it is no engine
 *
 * @example
 * memory().bytes; // bytes of all computed tensors
 */
export function memory(engine: IEngine = getEngine()): MemoryInfo {
  if (!isEngine(engine))
    throw new ArgumentError('memory', say`not an engine: ${shown(engine)}; give one, or leave it out`);
  const { numBuffers, bytes, peakBytes, pooledBytes } = poolOf(engine).memory();
  return { numTensors: graph.live.tensors, numBuffers, bytes, peakBytes, pooledBytes };
}

/**
 * Keeps copies of tensors in host memory, so that they survive a lost device: afterwards they have the values of the last complete
 * copy. A copy has all protected tensors at one point of the work. Copies are made after flushes, at most one per `interval` of `setRecovery`,
 * without delaying the program. Tensors are held weakly; disposing one ends its protection, as `unprotect` does.
 *
 * @param tensors any shapes and dtypes; protect tensors that belong together (parameters and the optimizer's state) in one call
 * @throws DisposedError if one is disposed; ArgumentError unless they are a list of tensors
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
  // An endless or sparse list ends at its first entry that is no tensor.
  for (const t of tensors) {
    if (!isTensor(t)) throw new ArgumentError(op, say`bad tensors: ${t} is among them; must be a list of tensors`);
    list.push(t);
  }
  return list;
}

/**
 * Ends the protection of tensors and forgets their copies.
 *
 * @throws ArgumentError unless they are a list of tensors
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
 * Registers a tensor as part of a training's state, for your own layers and optimizers: with `setRecovery({ shadow: true })`
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

// warmup: a step's kernels are made before its first run.
//
// The function is recorded as always, but where its flushes would run a plan, the plan is only made. At the end, pending results
// are released, assignments undone, and the generator of random numbers is set back.

/** Options of `warmup`. */
export interface WarmupOptions {
  /** Called with the number of compiled kernels, if the engine knows it (WebGPU): at once, and after every one. */
  readonly onCompile?: (progress: ReadyProgress) => void;
}

/**
 * Makes the kernels of a function, for instance a training step, without running it, and resolves when they are ready. On engines
 * that compile slowly (WebGPU) the first step then starts at once.
 *
 * Call it with the shapes of real steps, and as the step is called: in a `scope` if it is called in one, as what survives is part of a
 * plan. What `scope(() => model.forward(x))` answers later is prepared by `warmup(() => scope(() => model.forward(x)))`.
 *
 * The function is called once: tensors it assigns keep their values, optimizers do not count the step, tensors it makes are disposed; its
 * other effects in JavaScript remain. It should not read values. Of a step that flushes several times, the first flush is prepared exactly,
 * later ones roughly.
 *
 * @param step a synchronous function
 * @param options onCompile: called with the progress
 * @throws ArgumentError if it returns a promise, or inside another warmup
 * @example
 * const w = zeros([4]);
 * const step = () => void w.assign(w.add(ones([4]).mul(2)));
 * await warmup(step);
 * await w.array(); // [0, 0, 0, 0]
 */
export async function warmup(step: () => unknown, options: WarmupOptions = {}): Promise<void> {
  checkNames('warmup', options, 'onCompile!');
  checkFunction('warmup', step);
  const engine = getEngine();
  let missing: Promise<void> | null = null;
  rehearse('warmup', step, (wanted) => {
    const state = stateOf(getEngine());
    missing = prepare(state, wanted, state.global) ?? missing;
  });
  // The first step compiles what is only loaded now.
  await missing;
  await engine.ready?.(options.onCompile);
}

/**
 * Announces a step, such as that of a last batch which is smaller: if a step of another size runs first, both get one plan at once where that is as fast as a
 * plan for each. Nothing is planned, compiled or computed. Announce a step as it is called, in a `scope` if it is called in one. `fit` of `@polygrad/nn`
 * announces its last batch by itself.
 *
 * The function is called once, as by `warmup`: tensors it assigns keep their values, optimizers do not count the step, tensors it makes are disposed. It is
 * not called where sizes share no plans, and not in bundles for browsers, where nothing would come of it.
 *
 * @param step a synchronous function
 * @throws ArgumentError if it returns a promise, or inside another warmup
 * @example
 * const step = (rows = 96) => scope(() => tensor(new Float32Array(rows), { shape: [rows, 1] }).mul(2).sum());
 * announce(() => step());
 * const { plansMade } = stats();
 * for (const rows of [128, 96]) step(rows);
 * stats().plansMade - plansMade; // 1
 */
export function announce(step: () => unknown): void {
  checkFunction('announce', step);
  const state = stateOf(getEngine());
  if (isHeard(runs, state.engine.caps)) rehearse('announce', step, (wanted) => announceTo(state, wanted, state.global));
}

/**
 * Calls a function whose flushes compute nothing: `plan` gets the nodes of each. Afterwards everything is as it was before.
 *
 * @throws ArgumentError if it returns a promise, or inside another such call
 */
export function rehearse(op: string, step: () => unknown, plan: (wanted: readonly Node[]) => void): void {
  if (isRehearsing()) throw new ArgumentError(op, 'a warmup is running already; end it before the next one');
  flush();
  const rehearsal: Rehearsal = transactions.begin();
  // Uses the reference counts that a real run would see.
  rehearsal.plan = (wanted) => {
    rehearsal.letGo();
    try {
      if (wanted.length > 0) plan(wanted);
    } finally {
      rehearsal.hold();
    }
  };
  transactions.rehearsal = rehearsal;
  try {
    withGenerator(generatorState(), () => called(op, step));
    flush();
  } finally {
    const bound = new Set(rehearsal.entries.keys());
    transactions.rollBack(rehearsal);
    transactions.rehearsal = null;
    for (const handle of [...graph.pending]) if (!bound.has(handle) && !handle.kept) handle.dispose();
  }
  flush();
}
