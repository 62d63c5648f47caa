/** Whether the engine is live or disposed. A processor is not lost. */
import { EngineDisposedError, type EngineLostInfo } from '@polygrad/core/engine';

export class EngineState {
  /** Resolves when the engine can no longer be used. */
  readonly lost: Promise<EngineLostInfo>;
  #live = true;
  #tell!: (info: EngineLostInfo) => void;

  constructor() {
    this.lost = new Promise((resolve) => {
      this.#tell = resolve;
    });
  }

  get live(): boolean {
    return this.#live;
  }

  /** Throws where the engine can no longer be used. */
  check(action: string): void {
    if (!this.#live) throw new EngineDisposedError('cpu', action);
  }

  /** False if it was disposed before. */
  dispose(): boolean {
    if (!this.#live) return false;
    this.#live = false;
    this.#tell({ reason: 'disposed', message: 'the CPU engine was disposed' });
    return true;
  }
}
