/**
 * What happens when a device is lost: who is told, and which engine takes over. The policy is set in runtime/policy.ts.
 *
 * An engine that is lost stays the current one until the next operation needs one; then its backend is asked for another, and
 * after that the CPU engine takes over. Which tensors survive is not known here: runtime/shadow.ts brings them back.
 */
import type { IEngine } from './engine.ts';
import { DeviceLostError, EngineDisposedError } from './errors.ts';
import { poolOf } from './pool.ts';
import { cpuEngine, type Engines, engines, getBackend, getEngine, optionsOf, replaceEngine } from './registry.ts';

/** How losses and full devices are dealt with. */
export interface RecoveryPolicy {
  /**
   * How often the backend of a lost engine is asked for a new one. Default 1. An engine made so that is lost within a minute is
   * not replaced by its like again: browsers refuse adapters to a page after repeated losses.
   */
  readonly retry: number;
  /** What takes over then: the CPU engine (default), or nothing: every operation throws the DeviceLostError until setEngine(). */
  readonly fallback: 'cpu' | 'error';
  /**
   * When memory is full even after unused memory was given back: an OutOfMemoryError (default), or the work and the data that
   * do not fit go to the CPU engine.
   */
  readonly outOfMemory: 'error' | 'cpu';
  /** Keeps copies of all parameters, buffers and optimizer states of `@polygrad/nn`, as if they were given to protect(). Default false. */
  readonly shadow: boolean;
  /** Milliseconds between the copies that protect() and `shadow` make, at least. Default 1000. */
  readonly interval: number;
  /** Milliseconds that a new engine has to start. Default 10000. */
  readonly patience: number;
  /**
   * Milliseconds that a device has to answer a read, or `idle()`, for each batch of work it was given and has not finished; `Infinity`: as long as it likes.
   * One that does not answer is taken for lost. Time in which the program itself does not get on (a computer that sleeps, a debugger) does not
   * count. Left out: 300000, five minutes, and no limit for engines that compute in memory of the program.
   */
  readonly timeout: number | undefined;
}

/** A loss, as listeners are told. */
export interface LostEvent {
  /** The engine that is lost. */
  readonly engine: IEngine;
  readonly error: DeviceLostError;
}

/** An engine made after a loss must live this long before its backend is trusted with another. */
const probation = 60_000;

const revived = new WeakMap<IEngine, number>();
const failures = new WeakMap<IEngine, Error>();

/**
 * Calls a function whenever a device is lost, before anything takes its place. Returns a function that ends this.
 *
 * @example
 * const stop = onLost(({ error }) => console.error(error.message));
 * stop();
 */
export function onLost(listener: (event: LostEvent) => void): () => void {
  const { listeners } = engines;
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Marks an engine as lost, the first time, and tells the listeners of a runtime. */
function declareLost(engine: IEngine, error: DeviceLostError, told: Engines): void {
  const pool = poolOf(engine);
  if (pool.lost !== null) return;
  pool.lose(error);
  told.losses++;
  for (const listener of [...told.listeners]) {
    try {
      listener({ engine, error });
    } catch (mistake) {
      // Not ours: it must neither stop the recovery nor go unseen.
      queueMicrotask(() => {
        throw mistake;
      });
    }
  }
}

/** Declares the engine lost, or disposed, if the error says so; returns the error. */
export function noticed(engine: IEngine, error: unknown): unknown {
  if (error instanceof DeviceLostError) declareLost(engine, error, engines);
  if (error instanceof EngineDisposedError) declareDisposed(engine, engines);
  return error;
}

/** Copies there are gone. What an earlier loss left to them is looked for once more. */
function declareDisposed(engine: IEngine, told: Engines): void {
  const pool = poolOf(engine);
  if (pool.disposed) return;
  pool.disposed = true;
  if (told.losses > 0) told.losses++;
}

/** Listens for the loss of an engine that the runtime in use has begun to use. */
export function watchEngine(engine: IEngine): void {
  const told = engines;
  void engine.lost.then(({ reason, message, error }) => {
    if (reason === 'disposed') declareDisposed(engine, told);
    else declareLost(engine, error ?? new DeviceLostError(engine.name, engine.device, message), told);
  });
}

/**
 * Puts another engine in the place of the current one if that is lost.
 *
 * @returns null if there is a working one now; else a promise that resolves when there is
 * @throws DeviceLostError if nothing may or can take its place
 */
export function recover(): Promise<void> | null {
  const engine = getEngine();
  const { lost } = poolOf(engine);
  if (lost === null) return null;
  const state = engines;
  if (state.underway?.engine === engine) return state.underway.done;
  const failure = failures.get(engine);
  if (failure !== undefined) throw failure;
  let next: IEngine | Promise<IEngine>;
  try {
    next = successor(engine, lost);
  } catch (error) {
    failures.set(engine, error as Error);
    throw error;
  }
  if (!('then' in next)) {
    install(engine, next);
    return null;
  }
  const done = next.then(
    (made) => {
      state.underway = null;
      install(engine, made);
    },
    (error: Error) => {
      state.underway = null;
      failures.set(engine, error);
      throw error;
    },
  );
  done.catch(() => undefined);
  state.underway = { engine, done };
  return done;
}

function install(lost: IEngine, next: IEngine): void {
  // Somebody may have chosen an engine meanwhile.
  if (getEngine() === lost) {
    replaceEngine(next, next.name === lost.name ? optionsOf(lost) : undefined);
    if (next.name === lost.name) revived.set(next, Date.now());
  } else if (next !== cpuEngine()) next.dispose();
}

/** What takes the place of a lost engine: another of its kind, or what the policy says. Throws if there is nothing. */
function successor(engine: IEngine, lost: DeviceLostError): IEngine | Promise<IEngine> {
  const provider = getBackend(engine.name);
  const born = revived.get(engine);
  const trusted = born === undefined || Date.now() - born > probation;
  const attempt = (left: number): IEngine | Promise<IEngine> => {
    if (left <= 0 || provider === undefined) return last(lost);
    let made: IEngine | Promise<IEngine>;
    try {
      made = provider.create(optionsOf(engine));
    } catch {
      return attempt(left - 1);
    }
    return 'then' in made ? inTime(made, engines.policy.patience).catch(() => attempt(left - 1)) : made;
  };
  return attempt(trusted ? engines.policy.retry : 0);
}

function last(lost: DeviceLostError): IEngine | Promise<IEngine> {
  if (engines.policy.fallback === 'error') throw lost;
  const cpu = cpuEngine();
  if (cpu === null || (!('then' in cpu) && poolOf(cpu).lost !== null)) {
    throw new DeviceLostError(
      lost.engine,
      lost.device,
      `${lost.reason}; no cpu engine is there to take over (import '@polygrad/backend-cpu', or call setEngine())`,
      { cause: lost },
    );
  }
  return cpu;
}

/** The engine, unless it takes longer; one that comes later is disposed. */
function inTime(made: Promise<IEngine>, milliseconds: number): Promise<IEngine> {
  return new Promise((resolve, reject) => {
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      reject(new Error(`no engine within ${milliseconds} ms`));
    }, milliseconds);
    made.finally(() => clearTimeout(timer)).then((engine) => (late ? engine.dispose() : resolve(engine)), reject);
  });
}
