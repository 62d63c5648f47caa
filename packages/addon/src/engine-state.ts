/** Whether the engine is live, disposed or lost, and which of that a failure of the driver means: out of memory, or lost for good. */
import { DeviceLostError, EngineDisposedError, type EngineLostInfo } from '@polygrad/core/engine';
import { withDriverCode } from './native-error.ts';

/** Bytes for the message of an error about memory. */
export interface MemoryFigures {
  readonly requested: number;
  readonly live: number;
  readonly limit: number;
}

/** Converts an addon's error to the library's; anything else is returned unchanged. */
export type Translate = (error: unknown, action: string, device: string, memory: MemoryFigures) => unknown;

/**
 * Live until it is lost or disposed.
 *
 * @example
 * const state = new EngineState('mine', 'a card', (error) => error);
 * state.live; // true
 * state.dispose();
 * state.check('alloc'); // throws EngineDisposedError
 */
export class EngineState {
  readonly lost: Promise<EngineLostInfo>;
  readonly #engine: string;
  readonly #device: string;
  readonly #translate: Translate;
  #state: 'live' | 'disposed' | 'lost' = 'live';
  /** Makes the error that says how the device was lost. */
  #loss: (() => DeviceLostError) | null = null;
  #first: DeviceLostError | null = null;
  #tell!: (info: EngineLostInfo) => void;

  constructor(engine: string, device: string, translate: Translate) {
    this.#engine = engine;
    this.#device = device;
    this.#translate = translate;
    this.lost = new Promise((resolve) => {
      this.#tell = resolve;
    });
  }

  get live(): boolean {
    return this.#state === 'live';
  }

  /** The error that said first that the device is lost, or null. */
  get loss(): DeviceLostError | null {
    return this.#first;
  }

  /** Throws where the engine can no longer be used. */
  check(action: string): void {
    if (this.#state === 'disposed') throw new EngineDisposedError(this.#engine, action);
    if (this.#loss !== null) throw this.#loss();
  }

  /** Calls the driver; its errors become the library's. */
  call<T>(action: string, call: () => T, memory: MemoryFigures): T {
    try {
      return call();
    } catch (error) {
      throw this.failed(error, action, memory);
    }
  }

  /** The library's error for one of the driver's, with the driver's code. */
  failed(error: unknown, action: string, memory: MemoryFigures): unknown {
    const make = (): unknown => this.#translate(error, action, this.#device, memory);
    const translated = withDriverCode(make(), error);
    return translated instanceof DeviceLostError ? this.lose(make as () => DeviceLostError, error) : translated;
  }

  /** From now on the device is lost; every later call throws an error made anew. `from`: the driver's error that says so. */
  lose(make: () => DeviceLostError, from: unknown): DeviceLostError {
    const loss = (): DeviceLostError => withDriverCode(make(), from);
    const error = loss();
    if (this.#state === 'live') {
      this.#state = 'lost';
      this.#loss = loss;
      this.#first = error;
      this.#tell({ reason: 'lost', message: error.message, error });
    }
    return error;
  }

  /** False if it was disposed before. */
  dispose(): boolean {
    if (this.#state === 'disposed') return false;
    if (this.#state === 'live')
      this.#tell({ reason: 'disposed', message: `the engine '${this.#engine}' was disposed` });
    this.#state = 'disposed';
    return true;
  }
}
