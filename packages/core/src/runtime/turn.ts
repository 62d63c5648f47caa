/**
 * Turns of the event loop. A promise that is settled already resumes its loop before any timer, message, signal, frame of a page or
 * collected handle is looked at: a loop that only ever awaits such promises keeps all of them waiting, and the memory of every Tensor
 * it forgot. Where the engine has computed before a read returns, reads see to it that they get their turn.
 */

import { hints } from '../engine/collector.ts';

/** Longest time in milliseconds that a loop of reads keeps the event loop to itself. */
const longestHold = 50;

interface Host {
  setImmediate?(callback: () => void): unknown;
  setTimeout(callback: () => void, milliseconds: number): unknown;
}

// What tests put in the place of timers later is not asked: they would stop it.
const { setImmediate, setTimeout } = globalThis as unknown as Host;

/** A collector that was told to look for forgotten Tensors needs about so many turns until it gives their memory back. */
const turnsOfHint = 8;

/** When the last turn was asked for. */
let since = 0;
/** Hints to the collector that are known here, and turns it is still to have. */
let known = 0;
let owed = 0;

/** A promise of after what is due in the event loop, or null where that had its turn a moment ago. */
export function turn(): Promise<void> | null {
  const now = performance.now();
  if (hints !== known) {
    known = hints;
    owed = turnsOfHint;
  }
  if (now - since < longestHold && owed === 0) return null;
  since = now;
  if (owed > 0) owed--;
  return new Promise((resolve) => {
    if (setImmediate !== undefined) setImmediate(resolve);
    else if (typeof MessageChannel === 'undefined') setTimeout(resolve, 0);
    else {
      // Timers of pages wait: four milliseconds always, a second or a minute while nobody looks at the page.
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        port1.close();
        resolve();
      };
      port2.postMessage(null);
    }
  });
}
