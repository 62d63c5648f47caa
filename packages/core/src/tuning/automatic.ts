/**
 * Automatic tuning, for engines that ask for it (`IEngine.tuning`). Tiles measured by earlier runs are loaded when the engine is
 * first used. A new class of contractions or attention programs is measured soon after its first run.
 */
import type { IEngine } from '../engine/engine.ts';
import { dtypeInfo } from '@polygrad/compiler/shape/dtype';
import { choicesOf, type Seen, storeKey } from './choices.ts';
import { measureTiles, parametersOf } from './measure.ts';

/** Milliseconds after which no further candidate of a class is begun, and before the first. */
const budget = 500;
const pause = 50;
/** Classes that would need more memory for the measurement are not measured. */
const mostBytes = 2 ** 28;

function bytesOf(seen: Seen): number {
  return parametersOf(seen).reduce((n, p) => n + p.length * dtypeInfo[p.dtype].bytes, 0);
}

/** Calls a function after the pause. A program that has ended does not wait for that. */
function later(f: () => void): void {
  const timer: unknown = setTimeout(f, pause);
  (timer as { unref?: () => void }).unref?.();
}

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
    // Plans are made anew once, for all that was found.
    let better = false;
    try {
      // Whoever waits for kernels of his own comes first.
      await engine.ready?.();
      for (;;) {
        const [first] = choices.wanted();
        if (first === undefined || over) break;
        const [name, seen] = first;
        if (bytesOf(seen) > mostBytes) {
          choices.leave(name);
          continue;
        }
        // What cannot be measured runs with the default tile.
        const [best] = await measureTiles(engine, seen, { budget, now }).catch(() => []);
        if (over) break;
        if (best === undefined) choices.leave(name);
        else {
          choices.set(name, best.tile);
          better ||= !best.standard;
          await store?.save(key, choices.write());
        }
        // Between two classes other work goes on, and a program that has nothing else to do ends.
        if (choices.wanted().size > 0) await new Promise<void>((resolve) => later(resolve));
      }
    } catch {
      over = true;
    } finally {
      if (better && !over) forget();
      running = false;
    }
  };
  const soon = (): void => later(() => void run());
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
