/**
 * Pace: what a loop of many steps owes to its surroundings. It must not run far ahead of a device that works
 * asynchronously, and it must let timers, signals and screens have their turn where the device works synchronously.
 */
import { throttle } from '@polygrad/core/functions';

/** Longest time in milliseconds that a loop keeps the event loop to itself. */
const LONGEST_HOLD = 50;

interface Host {
  setImmediate?(callback: () => void): unknown;
  setTimeout(callback: () => void, milliseconds: number): unknown;
}

const host = globalThis as unknown as Host;

/** Resolves after timers and events that are due. setImmediate where there is one: it does not wait a millisecond. */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    if (host.setImmediate === undefined) host.setTimeout(resolve, 0);
    else host.setImmediate(resolve);
  });
}

/** Waited for between steps. */
export class Pace {
  #since: number = performance.now();

  /** Resolves when the next step may be recorded. */
  async next(): Promise<void> {
    await throttle();
    if (performance.now() - this.#since < LONGEST_HOLD) return;
    await turn();
    this.#since = performance.now();
  }
}
