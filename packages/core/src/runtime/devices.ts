/**
 * What only devices need, not engines in host memory: the successor of a lost engine, and a time limit for answers.
 *
 * A lost engine stays the current one until the next operation needs an engine. Then its backend is asked for another, and
 * failing that the CPU engine takes over.
 *
 * A device that hangs reports nothing, so only a clock can tell. The limit is counted in pieces, each by a separate timer. A computer
 * that sleeps uses up one piece only. So does a program that computes for minutes without a turn of the event loop. Any other answer of
 * the device starts the limit again, because the device works.
 *
 * Pages load this together with a device (late.ts). It imports nothing: bundlers would move shared code into files of their own, which would
 * cost more than they hold.
 */
import type { IEngine } from '../engine/engine.ts';
import type { DeviceLostError } from '../engine/errors.ts';
import type { BufferPool } from '../engine/pool.ts';
import type { BackendProvider, Engines } from '../engine/registry.ts';
import type { EngineState } from './state.ts';

/** The parts of engine/ that this file needs. */
export interface EngineAccess {
  readonly current: () => IEngine;
  readonly cpu: () => IEngine | Promise<IEngine> | null;
  readonly backend: (name: string) => BackendProvider | undefined;
  readonly options: (engine: IEngine) => Readonly<Record<string, unknown>> | undefined;
  readonly pool: (engine: IEngine) => BufferPool;
  readonly replace: (engine: IEngine, madeWith?: Readonly<Record<string, unknown>>) => IEngine;
  /** Makes the error of a lost engine. */
  readonly Lost: typeof DeviceLostError;
}

/** An engine made after a loss must live this long; otherwise its backend is not asked again. */
const probation = 60_000;

const revived = new WeakMap<IEngine, number>();
const failures = new WeakMap<IEngine, Error>();

/**
 * Replaces the current engine if it is lost.
 *
 * @returns null if the current engine works; else a promise that resolves when a successor does
 * @throws DeviceLostError if there is no successor, or the policy allows none
 */
export function succeed(engineAccess: EngineAccess, state: Engines): Promise<void> | null {
  const engine = engineAccess.current();
  const { lost } = engineAccess.pool(engine);
  if (lost === null) return null;
  if (state.underway?.engine === engine) return state.underway.done;
  const failure = failures.get(engine);
  if (failure !== undefined) throw failure;
  let next: IEngine | Promise<IEngine>;
  try {
    next = successor(engineAccess, state, engine, lost);
  } catch (error) {
    failures.set(engine, error as Error);
    throw error;
  }
  if (!('then' in next)) {
    install(engineAccess, engine, next);
    return null;
  }
  const done = next.then(
    (made) => {
      state.underway = null;
      install(engineAccess, engine, made);
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

function install(engineAccess: EngineAccess, lost: IEngine, next: IEngine): void {
  // The program may have set another engine meanwhile.
  if (engineAccess.current() === lost) {
    engineAccess.replace(next, next.name === lost.name ? engineAccess.options(lost) : undefined);
    if (next.name === lost.name) revived.set(next, Date.now());
  } else if (next !== engineAccess.cpu()) next.dispose();
}

/** The successor of a lost engine: another of its kind, or what the policy says. Throws if there is none. */
function successor(
  engineAccess: EngineAccess,
  state: Engines,
  engine: IEngine,
  lost: DeviceLostError,
): IEngine | Promise<IEngine> {
  const { policy } = state;
  const provider = engineAccess.backend(engine.name);
  const born = revived.get(engine);
  const trusted = born === undefined || Date.now() - born > probation;
  const attempt = (left: number): IEngine | Promise<IEngine> => {
    if (left <= 0 || provider === undefined) return last(engineAccess, state, lost);
    let made: IEngine | Promise<IEngine>;
    try {
      made = provider.create(engineAccess.options(engine));
    } catch {
      return attempt(left - 1);
    }
    return 'then' in made ? startedIn(made, state.policy.patience).catch(() => attempt(left - 1)) : made;
  };
  return attempt(trusted ? policy.retry : 0);
}

function last(engineAccess: EngineAccess, state: Engines, lost: DeviceLostError): IEngine | Promise<IEngine> {
  if (state.policy.fallback === 'error') throw lost;
  const cpu = engineAccess.cpu();
  if (cpu === null || (!('then' in cpu) && engineAccess.pool(cpu).lost !== null)) {
    throw new engineAccess.Lost(
      lost.engine,
      lost.device,
      `${lost.reason}; no cpu engine is there to take over (import '@polygrad/backend-cpu', or call setEngine())`,
      { cause: lost },
    );
  }
  return cpu;
}

/** The engine, unless it takes longer than this; an engine that comes later is disposed. */
function startedIn(made: Promise<IEngine>, milliseconds: number): Promise<IEngine> {
  return new Promise((resolve, reject) => {
    let late = false;
    const timer = globalThis.setTimeout(() => {
      late = true;
      reject(new Error(`no engine within ${milliseconds} ms`));
    }, milliseconds);
    made
      .finally(() => globalThis.clearTimeout(timer))
      .then((engine) => (late ? engine.dispose() : resolve(engine)), reject);
  });
}

// Time limits for answers.

/** Number of pieces of a limit. */
const pieces = 8;

/** The longest delay that a timer takes. */
const longest = 2 ** 31 - 1;

interface Host {
  setTimeout(callback: () => void, milliseconds: number): unknown;
  clearTimeout(timer: unknown): void;
}

// The real timers: fake ones that tests install would stop the clock.
const { setTimeout, clearTimeout } = globalThis as unknown as Host;

/**
 * The answer of an engine, or a DeviceLostError if it takes longer than the limit.
 *
 * @param what the request in words: `a read of 16 bytes`
 * @param limit milliseconds for each batch
 * @param flushes how many flushes of the engine must end first
 */
export function within<T>(
  state: EngineState,
  answer: Promise<T>,
  what: string,
  limit: number,
  flushes: number,
  Lost: typeof DeviceLostError,
): Promise<T> {
  const { engine, pool } = state;
  return new Promise((resolve, reject) => {
    let { finished } = state;
    const batches = (): number => Math.max(1, flushes - finished);
    let left = pieces;
    let timer: unknown;
    const wait = (): void => {
      timer = setTimeout(tick, Math.min(longest, (limit * batches()) / pieces));
    };
    const tick = (): void => {
      if (pool.lost !== null) reject(pool.lost);
      else if (state.finished > finished) {
        ({ finished } = state);
        left = pieces;
        wait();
      } else if (--left > 0) wait();
      else {
        const after = `${limit} ms for each of ${batches()} batch${batches() === 1 ? '' : 'es'}`;
        const reason = `${what} did not end within ${after}; if it is only slow, set a longer setRecovery({ timeout })`;
        reject(new Lost(engine.name, engine.device, reason));
      }
    };
    wait();
    answer.then(
      (value) => {
        clearTimeout(timer);
        state.finished = Math.max(state.finished, flushes);
        resolve(value);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
