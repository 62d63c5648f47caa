/**
 * What pages load when they need it: work on several engines, and what devices need: which engine follows a lost one, time limits of answers.
 *
 * The first is loaded before a second engine is set, and with an engine that needs the CPU engine beside it where that is there at once, so that
 * reading at once stays possible; where nothing is there at once anyway, by whoever needs it first. The other is loaded before a device is set.
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
import type { House } from './devices.ts';
import type { EngineState } from './per-engine.ts';

/** Work on several engines, once it is there. */
export let multiEngine: typeof import('./multi-engine.ts') | null = null;
let devices: typeof import('./devices.ts') | null = null;

/** Loads what several engines need. */
export const load = async (): Promise<void> => {
  multiEngine ??= await import('./multi-engine.ts');
};

const loadDevices = async (): Promise<typeof import('./devices.ts')> => (devices ??= await import('./devices.ts'));

beforeOthers((alone) => Promise.all([loadDevices(), alone || load()]));

/** What devices.ts is given. */
const house: House = {
  current: getEngine,
  cpu: cpuEngine,
  backend: getBackend,
  options: optionsOf,
  pool: poolOf,
  replace: replaceEngine,
  Lost: DeviceLostError,
};

/** A promise that may fail without anybody listening. */
export function quiet(promise: Promise<unknown>): Promise<void> {
  const result = promise.then(() => undefined);
  result.catch(() => undefined);
  return result;
}

/**
 * Puts another engine in the place of the current one if that is lost.
 *
 * @returns null if there is a working one now; else a promise that resolves when there is
 * @throws DeviceLostError if nothing may or can take its place
 */
export function recover(): Promise<void> | null {
  if (poolOf(getEngine()).lost === null) return null;
  const state = engines;
  return devices === null
    ? quiet(loadDevices().then(({ succeed }) => succeed(house, state)))
    : devices.succeed(house, state);
}

/** The limit where `setRecovery` sets none, in milliseconds for each batch. */
const usualLimit = 300_000;

/**
 * The answer of an engine, or a DeviceLostError where it takes longer than `setRecovery({ timeout })` says.
 *
 * @param what was asked for, in words: `a read of 16 bytes`
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
