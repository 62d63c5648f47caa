/**
 * Losses of devices: detection, listeners, and the policy's type.
 *
 * runtime/devices.ts knows which engine takes over, and runtime/shadow.ts which tensors survive.
 */
import type { IEngine } from './engine.ts';
import { DeviceLostError, EngineDisposedError } from './errors.ts';
import { poolOf } from './pool.ts';
import { type Engines, engines } from './registry.ts';

/** How losses and full devices are handled. */
export interface RecoveryPolicy {
  /**
   * How often the backend of a lost engine is asked for a new one. Default 1. A new engine that is lost within a minute is
   * not replaced by the same backend again: browsers refuse adapters to a page after repeated losses.
   */
  readonly retry: number;
  /** What takes over then: the CPU engine (default), or none: every operation throws the DeviceLostError until setEngine(). */
  readonly fallback: 'cpu' | 'error';
  /**
   * When memory is full even after unused memory was freed: an OutOfMemoryError (default), or the work and the data that
   * do not fit go to the CPU engine.
   */
  readonly outOfMemory: 'error' | 'cpu';
  /** Keeps copies of all parameters, buffers and optimizer states of `@polygrad/nn`, as if they were given to protect(). Default false. */
  readonly shadow: boolean;
  /** Least milliseconds between the copies that protect() and `shadow` make. Default 1000. */
  readonly interval: number;
  /** Milliseconds that a new engine has to start. Default 10000. */
  readonly patience: number;
  /**
   * Milliseconds that a device has to answer a read, or `idle()`, for each unfinished batch of work; `Infinity`: no limit.
   * A device that does not answer counts as lost. Time during which the program itself stands still (a sleeping computer, a debugger) does not
   * count. Default: 300000, five minutes, and no limit for engines that compute in memory of the program.
   */
  readonly timeout: number | undefined;
}

/** The event of a loss, as listeners get it. */
export interface LostEvent {
  /** The engine that is lost. */
  readonly engine: IEngine;
  readonly error: DeviceLostError;
}

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
