/**
 * Tuning by itself, for engines that ask for it (`IEngine.tuning`): tiles of earlier runs are loaded when the engine is first
 * used, and a class of contractions that is new is measured soon after it was first run.
 */
import type { IEngine } from '../engine/engine.ts';
import { choicesOf, storeKey } from './choices.ts';
import { measureTiles } from './measure.ts';

/** Milliseconds after which no further candidate of a class is begun, and before the first. */
const budget = 500;
const pause = 50;

/** Starts it. `forget` is called when kernels should be lowered anew. */
export function startTuning(engine: IEngine, forget: () => void): void {
  const { tuning, library } = engine;
  if (!engine.caps.simt && library === undefined) return;
  // Not at once: it may fail in the middle of a plan that would be forgotten.
  library?.onFailure(() => queueMicrotask(forget));
  if (tuning === undefined) return;
  const { store, automatic = false, now = () => performance.now() } = tuning;
  const choices = choicesOf(engine);
  const key = storeKey(engine);
  let running = false;
  let over = false;
  engine.lost.then(() => {
    over = true;
  });
  const run = async (): Promise<void> => {
    if (running || over) return;
    running = true;
    try {
      for (;;) {
        const [first] = choices.wanted();
        if (first === undefined || over) break;
        const [name, seen] = first;
        const [best, ...others] = await measureTiles(engine, seen, { budget, now });
        if (over || best === undefined) break;
        choices.set(name, best.tile);
        if (others.length > 0) forget();
        await store?.save(key, choices.write());
      }
    } catch {
      // What cannot be measured runs with the default tile.
      over = true;
    } finally {
      running = false;
    }
  };
  const soon = (): void => {
    const timer: unknown = setTimeout(() => void run(), pause);
    // A program that has ended need not wait for this.
    (timer as { unref?: () => void }).unref?.();
  };
  const loaded = store?.load(key) ?? Promise.resolve(null);
  void loaded.then(
    (text) => {
      if (text !== null && choices.read(text) > 0) forget();
      if (!automatic) return;
      choices.onNew = soon;
      if (choices.wanted().size > 0) soon();
    },
    () => {},
  );
}
