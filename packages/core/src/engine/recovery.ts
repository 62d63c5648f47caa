/**
 * Losses of devices: detection and listeners.
 *
 * runtime/devices.ts knows which engine takes over, and runtime/shadow.ts which tensors survive.
 */
import type { IEngine } from './engine.ts';
import { DeviceLostError, EngineDisposedError } from './errors.ts';
import { poolOf } from './pool.ts';
import { type Engines, engines, type LostEvent } from './registry.ts';

/**
 * Calls a function whenever a device is lost, before another engine takes over. Returns a function that ends this.
 *
 * @example
 * const stop = onLost(({ error }) => console.error(error.message));
 * stop();
 */
export function onLost(listener: (event: LostEvent) => void): () => void {
  const { listeners } = engines;
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Marks an engine as lost, the first time, and calls the listeners of a runtime. */
function declareLost(engine: IEngine, error: DeviceLostError, state: Engines): void {
  const pool = poolOf(engine);
  if (pool.lost !== null) return;
  pool.lose(error);
  state.losses++;
  for (const listener of [...state.listeners]) {
    try {
      listener({ engine, error });
    } catch (mistake) {
      // A listener's error must neither stop the recovery nor go unseen.
      queueMicrotask(() => {
        throw mistake;
      });
    }
  }
}

/** Declares the engine lost, or disposed, if the error says so; returns the error. */
export function noticed(engine: IEngine, error: unknown): unknown {
  if (error instanceof DeviceLostError) declareLost(engine, error, engines);
  if (error instanceof EngineDisposedError) declareDisposed(engine, engines);
  return error;
}

/** Notes that copies on the engine are gone. Values that an earlier loss left only there must be looked for again. */
function declareDisposed(engine: IEngine, state: Engines): void {
  const pool = poolOf(engine);
  if (pool.disposed) return;
  pool.disposed = true;
  if (state.losses > 0) state.losses++;
}

/** Watches for the loss of an engine that the runtime has begun to use. */
export function watchEngine(engine: IEngine): void {
  const state = engines;
  void engine.lost.then(({ reason, message, error }) => {
    if (reason === 'disposed') declareDisposed(engine, state);
    else declareLost(engine, error ?? new DeviceLostError(engine.name, engine.device, message), state);
  });
}
