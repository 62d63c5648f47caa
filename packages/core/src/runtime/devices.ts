/**
 * What devices need and engines in memory of the host do not: which engine takes the place of one that is lost, and the clock of answers.
 *
 * An engine that is lost stays the current one until the next operation needs one; then its backend is asked for another, and
 * after that the CPU engine takes over. Pages load this with a device (late.ts).
 */
import type { IEngine } from '../engine/engine.ts';
import { DeviceLostError } from '../engine/errors.ts';
import { poolOf } from '../engine/pool.ts';
import { cpuEngine, engines, getBackend, getEngine, optionsOf, replaceEngine } from '../engine/registry.ts';

export { within } from './answers.ts';

/** An engine made after a loss must live this long before its backend is trusted with another. */
const probation = 60_000;

const revived = new WeakMap<IEngine, number>();
const failures = new WeakMap<IEngine, Error>();

/**
 * Puts another engine in the place of the current one if that is lost.
 *
 * @returns null if there is a working one now; else a promise that resolves when there is
 * @throws DeviceLostError if nothing may or can take its place
 */
export function succeed(): Promise<void> | null {
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
