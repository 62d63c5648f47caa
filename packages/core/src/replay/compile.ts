/**
 * compile: a function that is recorded at first and replayed from then on.
 *
 * A call is replayed if two calls before it did the same, at its sizes or at two of one class. It is not if something visible has changed
 * (run-script.ts). All other calls run the function. Now and then a call runs the function although it could be replayed, and is compared with the
 * recording.
 */
import { getEngine } from '../engine/registry.ts';
import { graph } from '../graph/state.ts';
import { transactions } from '../graph/transactions.ts';
import { queue } from '../runtime/queue.ts';
import { stateOf } from '../runtime/run.ts';
import { runs } from '../runtime/state.ts';
import { flush } from '../runtime/runtime.ts';
import { ArgumentError, OperationError } from '@polygrad/compiler/shape/errors';
import { checkFunction, checkNames, shown } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { called, scope } from '../tensor/scope.ts';
import { Observation, Watch } from './observation.ts';
import {
  type Calls,
  flatten,
  formsOf,
  hashOf,
  type Recorded,
  Recordings,
  type Trust,
  whatDiffers,
  Worth,
} from './recordings.ts';
import {
  type Difference,
  differenceOf,
  endScript,
  freeArguments,
  sameCommands,
  sameDecisions,
  type Script,
} from './script.ts';

/** Options of `compile`. */
export interface CompileOptions {
  /**
   * Number of replays between two calls that run the function and compare (128 if left out). True: every call runs the function and is
   * compared with the first one, for debugging. False: no call does once replays have begun.
   */
  readonly check?: number | boolean;
}

/** A function made by `compile`. */
export interface Compiled<A extends readonly unknown[], R> {
  (...args: A): R;
  /** Forgets all recordings. The function can still be called. */
  dispose(): void;
}

/** After this many calls that all differed, only one call in `seldom` is compared. */
const mostMisses = 6;
const seldom = 128;

const waits = 'its work waits for the device';

class CompiledFunction {
  readonly #f: (...args: unknown[]) => unknown;
  readonly #check: number;
  readonly recordings: Recordings = new Recordings();
  readonly #worth = new Worth();
  #hinted = false;
  /** The arguments of a call that was not recorded, shortly before that is told. */
  #forms: readonly unknown[] | null = null;

  constructor(f: (...args: unknown[]) => unknown, check: number) {
    this.#f = f;
    this.#check = check;
  }

  call(args: readonly unknown[]): unknown {
    if (isInside()) return scope(() => called('compile', this.#f, ...args));
    const flat = flatten(args);
    settle();
    const hash = hashOf(flat);
    const known = this.recordings.find(hash, flat);
    if (known === null && !this.#worth.isNew(hash)) {
      this.#inVain(flat);
      return this.#watched(args);
    }
    const calls = known ?? this.recordings.open(hash, flat);
    for (const recorded of calls.recorded) {
      const { trust, runner } = recorded;
      if (!trust.confirmed || !isSettled() || !runner.fits(flat)) continue;
      if (trust.replays >= trust.until) return this.#observed(calls, flat, args, recorded);
      const done = runner.run(flat);
      if (done === null) break;
      trust.replays++;
      calls.misses = 0;
      this.#worth.replayed();
      return done.value;
    }
    const expected = this.#check === 0 ? (calls.recorded[0] ?? null) : null;
    if (calls.misses >= mostMisses && ++calls.misses % seldom !== 0) return this.#watched(args);
    if (known !== null && expected === null && !this.#worth.records()) return this.#watched(args);
    return this.#observed(calls, flat, args, expected);
  }

  /** Runs the function and learns nothing. */
  #watched(args: readonly unknown[]): unknown {
    return watched(() => {
      const value = scope(() => called('compile', this.#f, ...args));
      settle();
      return value;
    });
  }

  /** Says once that arguments hardly ever come again. */
  #inVain(flat: readonly unknown[]): void {
    if (!this.#worth.ran() || this.#hinted) return;
    const before = this.#forms;
    this.#forms = formsOf(flat);
    if (before !== null)
      this.#hint(
        `a compiled function runs as without compile, because ${whatDiffers(flat, before)}. Only calls whose arguments came before are replayed: have fewer sizes (padded ones, say), pass numbers as tensors, or do without compile`,
      );
  }

  /** Runs the function and learns from it. `expected`: what a replay would have done. */
  #observed(calls: Calls, flat: readonly unknown[], args: readonly unknown[], expected: Recorded | null): unknown {
    flush();
    const observation = new Observation(stateOf(getEngine()), flat);
    let value: unknown;
    try {
      value = observation.during(() => {
        const made = scope(() => called('compile', this.#f, ...args));
        flush();
        return made;
      });
      if (observation.refused !== null) throw observation.refused;
    } catch (error) {
      observation.end();
      throw observation.refused ?? error;
    }
    const script = observation.finish(value);
    const difference = this.#learn(calls, script, observation, expected);
    if (difference === null || difference.seen || expected === null) {
      observation.forget();
      return value;
    }
    observation.disposeMade();
    const { replays } = expected.trust;
    this.recordings.distrust(expected.trust);
    throw new OperationError(
      'compile',
      `the function did not do what was recorded: ${difference.text}. ${replays === 0 ? 'No call was replayed since it was compared' : `${replays === 1 ? 'The call' : `The ${replays} calls`} before this one did as recorded`}; pass what changes as an argument, or read it with hostNumber(() => ...) or hostValue(() => ...)`,
    );
  }

  /** Keeps the script of a call, or confirms one. Returns how it differs from the expected one. */
  #learn(
    calls: Calls,
    script: Script | null,
    { reason, decisions }: Observation,
    expected: Recorded | null,
  ): Difference | null {
    if (script === null) {
      if (reason === waits) return null;
      this.#miss(calls, reason!);
      if (expected?.trust.confirmed !== true) return null;
      return { text: reason!, seen: !sameDecisions(expected.runner.script.decisions, decisions) };
    }
    let difference: Difference | null = null;
    for (const recorded of calls.recorded) {
      const found = differenceOf(recorded.runner.script, script);
      if (recorded === (expected ?? calls.recorded[0])) difference = found;
      if (found !== null) continue;
      calls.misses = 0;
      this.#confirm(recorded, script);
      return expected === null || recorded === expected ? null : difference;
    }
    const isFirst = calls.recorded.length === 0;
    const { trust } = this.recordings.add(calls, script);
    if (trust.members.size > 1) {
      // It does what calls of other sizes did.
      if (!trust.confirmed) this.#trust(trust);
      calls.misses = 0;
    } else if (!isFirst) this.#miss(calls, difference!.text);
    return difference;
  }

  #trust(trust: Trust): void {
    trust.until = trust.confirmed ? Math.min(2 * trust.until, this.#check) : Math.min(1, this.#check);
    if (this.#check === Number.POSITIVE_INFINITY) trust.until = this.#check;
    trust.confirmed = true;
    trust.replays = 0;
  }

  #confirm(recorded: Recorded, script: Script): void {
    const before = recorded.runner.script;
    freeArguments(before, script);
    this.#trust(recorded.trust);
    if (sameCommands(before, script)) {
      endScript(script);
      return;
    }
    // The planner has planned the same work again.
    for (const [i, { sources }] of script.inputs.entries())
      for (const [k, source] of sources.entries()) source.handle = before.inputs[i]!.sources[k]!.handle;
    this.recordings.replace(recorded, script);
  }

  #miss(calls: Calls, reason: string): void {
    if (++calls.misses < mostMisses || this.#hinted) return;
    this.#hint(`a compiled function is recorded at every call, as without compile: ${reason}`);
  }

  #hint(text: string): void {
    this.#hinted = true;
    runs.logger?.(`[compile] ${text}. docs/compile.md says what can be replayed`);
  }
}

/** Releases what the recordings hold of functions that were garbage collected without `dispose()`. */
const backstop = new FinalizationRegistry<CompiledFunction>(({ recordings }) => recordings.clear());

/** True inside another function of the library, a tape, or a rehearsal: those need every operation. */
function isInside(): boolean {
  const g = graph;
  return (
    g.refuseRead !== null ||
    g.holding !== 0 ||
    g.composing !== 0 ||
    g.taken !== 0 ||
    g.placeholders !== null ||
    g.limits.nodes < 0 ||
    transactions.rehearsal !== null
  );
}

/** Flushes what was recorded before, because a call is a separate flush. */
function settle(): void {
  for (const { disposed, node } of graph.pending) {
    if (disposed || node.storage !== null) continue;
    flush();
    return;
  }
}

/** True if no work is pending that a flush would do first. */
function isSettled(): boolean {
  return queue.states.length === 0 && runs.awaited === null && transactions.current.entries.size === 0;
}

/** Runs a call that is not recorded. */
function watched(body: () => unknown): unknown {
  const watch = new Watch();
  const value = watch.watching(body);
  if (watch.refused !== null) throw watch.refused;
  return value;
}

/**
 * The same function, recorded at first and replayed from then on: a replay hands the recorded commands to the engine, with the
 * tensors and numbers of the call, and records nothing. Results are those of the function, bit for bit.
 *
 * The first call with arguments of new shapes, dtypes or other values records. If the second one does the same, later calls are replayed. Of sizes that share a
 * plan one call each is recorded; arguments that never come again are left to the function. Tensors
 * from outside may be used and assigned. A replay does not run the function: JavaScript values that it reads besides its arguments count as
 * recorded. They do not if it declares them by `hostNumber`, `hostValue` or `hostEffect`, as modules and optimizers of `@polygrad/nn` do. Now and then a call runs
 * the function and compares. A function that does something else each time is recorded each time.
 *
 * A call is a `scope`, and a separate flush. Inside gradient functions, tapes and `vmap` the function itself is called.
 *
 * @param f a synchronous function; arguments and results are tensors, other values, and arrays and plain objects of such
 * @param options check: how often a call runs the function and compares
 * @returns a function of the same arguments, with `dispose()`
 * @throws OperationError if f reads a value, or does something else than was replayed; ArgumentError if it returns a promise, or gets a
 *   typed array
 *
 * @example
 * const step = compile((x: Tensor, y: Tensor) => x.mul(2).add(y));
 * step(tensor([1, 2]), tensor([3, 4])); // [5, 8]
 * step(tensor([1, 1]), tensor([1, 1])); // [3, 3]
 * step(tensor([5, 6]), tensor([7, 8])); // [17, 20], replayed
 */
export function compile<A extends readonly unknown[], R>(
  f: (...args: A) => R,
  options: CompileOptions = {},
): Compiled<A, R> {
  checkNames('compile', options, 'check');
  checkFunction('compile', f);
  const compiled = new CompiledFunction(f as unknown as (...args: unknown[]) => unknown, replaysBetween(options.check));
  const call = (...args: A): R => compiled.call(args) as R;
  const dispose = (): void => {
    compiled.recordings.clear();
  };
  backstop.register(call, compiled);
  return Object.assign(call, { dispose });
}

function replaysBetween(check: unknown = 128): number {
  if (typeof check === 'boolean') return check ? 0 : Number.POSITIVE_INFINITY;
  if (typeof check === 'number' && check >= 0) return check;
  throw new ArgumentError(
    'compile',
    say`bad check: ${shown(check)}; must be a number of replays, such as 128, or true or false`,
  );
}
