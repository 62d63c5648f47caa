/** Loads devices.ts (lost devices, time limits) before a device is set (queue.ts), or when a program first needs it. */
import { DeviceLostError } from '../engine/errors.ts';
import { poolOf } from '../engine/pool.ts';
import { cpuEngine, engines, getBackend, getEngine, optionsOf, replaceEngine } from '../engine/registry.ts';
import type { EngineAccess } from './devices.ts';
import type { EngineState } from './state.ts';

let devices: typeof import('./devices.ts') | null = null;

/** Loads the code for lost devices and time limits. */
export const loadDevices = async (): Promise<typeof import('./devices.ts')> =>
  (devices ??= await import('./devices.ts'));

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
