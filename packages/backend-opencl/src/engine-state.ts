/** Whether the engine is live, disposed or lost, and which of that a failure of the driver means: out of memory, or lost for good. */
import { DeviceLostError, EngineDisposedError, type EngineLostInfo } from '@polygrad/core/engine';
import { type MemoryFigures, translate } from './errors.ts';

export class EngineState {
  readonly lost: Promise<EngineLostInfo>;
  readonly #device: string;
  #state: 'live' | 'disposed' | 'lost' = 'live';
  /** What the driver said when it lost the device. */
  #loss = '';
  #tell!: (info: EngineLostInfo) => void;

  constructor(device: string) {
    this.#device = device;
    this.lost = new Promise((resolve) => {
      this.#tell = resolve;
    });
  }

  get live(): boolean {
    return this.#state === 'live';
  }

  /** Throws where the engine can no longer be used. */
  check(action: string): void {
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
      this.#tell({ reason: 'lost', message: error.message });
    }
    return error;
  }

  /** False if it was disposed before. */
  dispose(): boolean {
    if (this.#state === 'disposed') return false;
    if (this.#state === 'live') this.#tell({ reason: 'disposed', message: 'the OpenCL engine was disposed' });
    this.#state = 'disposed';
    return true;
  }
}
