/**
 * Loads two modules when a program needs them: multi-engine.ts (work on several engines) and devices.ts (lost devices, time limits).
 *
 * The first is loaded before a second engine is set. An engine may need the CPU engine beside it. Then the first is loaded with
 * it where values can be read synchronously, so that they still can; otherwise at first use. The second is loaded before a device is set.
 */
import { DeviceLostError } from '../engine/errors.ts';
import { poolOf } from '../engine/pool.ts';
import {
  beforeOthers,
  cpuEngine,
  engines,
  getBackend,
  getEngine,
  optionsOf,
  replaceEngine,
} from '../engine/registry.ts';
import type { EngineAccess } from './devices.ts';
import type { EngineState } from './state.ts';

/** The code for several engines, once it is loaded. */
export let multiEngine: typeof import('./multi-engine.ts') | null = null;
let devices: typeof import('./devices.ts') | null = null;

/** Loads the code for several engines. */
export const load = async (): Promise<void> => {
  multiEngine ??= await import('./multi-engine.ts');
};

const loadDevices = async (): Promise<typeof import('./devices.ts')> => (devices ??= await import('./devices.ts'));

beforeOthers((alone) => Promise.all([loadDevices(), alone || load()]));

/** What devices.ts needs. */
const engineAccess: EngineAccess = {
  current: getEngine,
  cpu: cpuEngine,
  backend: getBackend,
  options: optionsOf,
  pool: poolOf,
  replace: replaceEngine,
  Lost: DeviceLostError,
};

/** The same promise, but its rejection does not count as unhandled. */
export function quiet(promise: Promise<unknown>): Promise<void> {
  const result = promise.then(() => undefined);
  result.catch(() => undefined);
  return result;
}

/**
 * Replaces the current engine if it is lost.
 *
 * @returns null if the current engine works; else a promise that resolves when a successor does
 * @throws DeviceLostError if there is no successor, or the policy allows none
 */
export function recover(): Promise<void> | null {
  if (poolOf(getEngine()).lost === null) return null;
  const state = engines;
  return devices === null
    ? quiet(loadDevices().then(({ succeed }) => succeed(engineAccess, state)))
    : devices.succeed(engineAccess, state);
}

/** The limit that applies unless `setRecovery` sets one, in milliseconds per batch. */
const usualLimit = 300_000;

/**
 * The answer of an engine, or a DeviceLostError if it takes longer than `setRecovery({ timeout })` allows.
 *
 * @param what the request in words: `a read of 16 bytes`
 */
export function inTime<T>(state: EngineState, answer: Promise<T>, what: string): Promise<T> {
  const { engine, flushes } = state;
  const limit = engines.policy.timeout ?? (engine.inHostMemory === true ? Number.POSITIVE_INFINITY : usualLimit);
  if (limit === Number.POSITIVE_INFINITY) return answer;
  const watched = ({ within }: NonNullable<typeof devices>): Promise<T> =>
    within(state, answer, what, limit, flushes, DeviceLostError);
  if (devices !== null) return watched(devices);
  quiet(answer);
  return loadDevices().then(watched);
}
