/**
 * Devices answer within a time limit, or count as lost.
 *
 * A device that does not answer says nothing else either, so a clock is all there is. It counts pieces of the limit, each by a timer of its own:
 * a computer that sleeps, or a program that computes for minutes without a turn of the event loop, uses up one of them and no more. Other
 * answers of the same device begin the limit anew, for it works.
 */
import { DeviceLostError } from '../engine/errors.ts';
import { engines } from '../engine/registry.ts';
import type { EngineState } from './run.ts';

/** The limit where `setRecovery` sets none, in milliseconds for each batch. */
const usualLimit = 300_000;

/** Pieces of a limit. */
const pieces = 8;

/** The longest that a timer takes. */
const longest = 2 ** 31 - 1;

interface Host {
  setTimeout(callback: () => void, milliseconds: number): unknown;
  clearTimeout(timer: unknown): void;
}

// What tests put in the place of timers later is not asked: they would stop it.
const { setTimeout, clearTimeout } = globalThis as unknown as Host;

/**
 * The answer of an engine, or a DeviceLostError where it takes longer than `setRecovery({ timeout })` says.
 *
 * @param what was asked for, in words: `a read of 16 bytes`
 */
export function inTime<T>(state: EngineState, answer: Promise<T>, what: string): Promise<T> {
  const { engine, pool, flushes } = state;
  const limit = engines.policy.timeout ?? (engine.inHostMemory === true ? Number.POSITIVE_INFINITY : usualLimit);
  if (limit === Number.POSITIVE_INFINITY) return answer;
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
        reject(new DeviceLostError(engine.name, engine.device, reason));
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
