/**
 * Whether the engine is live, disposed or lost, and errors that the driver reports asynchronously, outside of any call.
 * Everything the engine has promised ends with the loss, and the next read tells of the rest.
 */
import { DeviceLostError, EngineDisposedError, type EngineLostInfo, PolygradError } from '@polygrad/core/engine';
import { WebGpuError } from './public.ts';

/**
 * How long a failed promise waits for the news that the device is lost, which would be the reason: so many waits of so many milliseconds,
 * as one long wait may be a single turn of the event loop on a busy machine.
 */
const newsTurns = 10;
const newsMs = 10;

export class EngineState {
  /** Resolves when the engine can no longer be used. */
  readonly lost: Promise<EngineLostInfo>;
  readonly #device: string;
  #tell!: (info: EngineLostInfo) => void;
  #end: Error | null = null;
  readonly #pending = new Set<(error: Error) => void>();
  #reported: Error | null = null;

  constructor(gpu: GPUDevice, device: string) {
    this.#device = device;
    this.lost = new Promise((resolve) => {
      this.#tell = resolve;
    });
    gpu.lost.then(({ reason, message }) => {
      const why = message.trim() || (reason === 'destroyed' ? 'it was destroyed' : 'the driver gives no reason');
      this.#finish({ reason: 'lost', message: why }, new DeviceLostError('webgpu', this.#device, why));
    });
    const told = (event: Event): void => {
      event.preventDefault?.();
      const { error } = event as GPUUncapturedErrorEvent;
      this.report(new WebGpuError(`the device reports an error: ${error.message.trim()}; results may be missing`));
    };
    gpu.addEventListener('uncapturederror', told);
    // Dawn never collects a device that has listeners, nor what they reach, which is this engine.
    this.lost.then(() => gpu.removeEventListener('uncapturederror', told));
  }

  get live(): boolean {
    return this.#end === null;
  }

  /** Why nothing can be asked of the engine any more, or null. */
  get end(): Error | null {
    return this.#end;
  }

  /** Throws where the engine can no longer be used. */
  check(action: string): void {
    if (this.#end === null) return;
    if (this.#end instanceof EngineDisposedError) throw new EngineDisposedError('webgpu', action);
    throw this.#end;
  }

  dispose(): void {
    this.#finish(
      { reason: 'disposed', message: 'the WebGPU engine was disposed' },
      new EngineDisposedError('webgpu', 'a result'),
    );
  }

  /** An error for the next reader. Only the first of several is kept: it explains the others. */
  report(error: Error): void {
    if (this.#end === null) this.#reported ??= error;
  }

  /** The reason of what was reported, if anything was. */
  explain(error: Error): void {
    if (this.#reported !== null) this.#reported = error;
  }

  /** The reported error, which is thrown once. */
  takeReported(): Error | null {
    const error = this.#reported;
    this.#reported = null;
    return error;
  }

  /** The promise, which also rejects when the engine ends. */
  guard<T>(promise: Promise<T>): Promise<T> {
    if (this.#end !== null) return Promise.reject(this.#end);
    return new Promise((resolve, reject) => {
      this.#pending.add(reject);
      promise.then(
        (value) => {
          this.#pending.delete(reject);
          resolve(value);
        },
        async (error: unknown) => {
          // A lost device makes promises fail first and says why afterwards.
          if (this.#end === null && !(error instanceof PolygradError)) await this.#news();
          this.#pending.delete(reject);
          reject(this.#end ?? error);
        },
      );
    });
  }

  async #news(): Promise<void> {
    for (let turn = 0; turn < newsTurns && this.#end === null; turn++)
      await Promise.race([this.lost, new Promise((resolve) => setTimeout(resolve, newsMs))]);
  }

  #finish(info: EngineLostInfo, error: Error): void {
    if (this.#end !== null) return;
    this.#end = error;
    this.#reported = null;
    this.#tell(info);
    for (const reject of this.#pending) reject(error);
    this.#pending.clear();
  }
}
