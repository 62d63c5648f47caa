/** Whether the engine can be used, and what becomes of it when the driver fails: out of memory, or lost for good. */
import { DeviceLostError, EngineDisposedError, type EngineLostInfo } from '@polygrad/core/engine';
import { type MemoryFigures, translate } from './errors.ts';

export class Life {
  readonly lost: Promise<EngineLostInfo>;
  readonly #device: string;
  #state: 'live' | 'disposed' | 'lost' = 'live';
  /** What the driver said when it lost the device. */
  #loss = '';
  #onLost!: (info: EngineLostInfo) => void;

  constructor(device: string) {
    this.#device = device;
    this.lost = new Promise((resolve) => {
      this.#onLost = resolve;
    });
  }

  get live(): boolean {
    return this.#state === 'live';
  }

  get disposed(): boolean {
    return this.#state === 'disposed';
  }

  /** Throws where the engine can no longer be used. */
  use(action: string): void {
    if (this.#state === 'disposed') throw new EngineDisposedError('opencl', action);
    if (this.#state === 'lost') throw new DeviceLostError('opencl', this.#device, this.#loss);
  }

  /** Calls the driver; its errors become the library's. */
  call<T>(action: string, call: () => T, memory: MemoryFigures): T {
    try {
      return call();
    } catch (error) {
      throw this.failed(error, action, memory);
    }
  }

  /** The library's error for one of the driver's. */
  failed(error: unknown, action: string, memory: MemoryFigures): unknown {
    const translated = translate(error, action, this.#device, memory);
    return translated instanceof DeviceLostError ? this.lose(translated.reason, error) : translated;
  }

  /** From now on the device is lost. */
  lose(reason: string, cause: unknown): DeviceLostError {
    const error = new DeviceLostError('opencl', this.#device, reason, { cause });
    if (this.#state === 'live') {
      this.#state = 'lost';
      this.#loss = reason;
      this.#onLost({ reason: 'lost', message: error.message });
    }
    return error;
  }

  /** False if it was disposed before. */
  dispose(): boolean {
    if (this.#state === 'disposed') return false;
    if (this.#state === 'live') this.#onLost({ reason: 'disposed', message: 'the OpenCL engine was disposed' });
    this.#state = 'disposed';
    return true;
  }
}
