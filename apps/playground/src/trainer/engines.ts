/** Which engines there are on this machine, which one runs, and why. */
import '@polygrad/backend-cpu';
import '@polygrad/backend-webgpu';
import { getBackend, getEngine, listBackends, setEngine } from '@polygrad/core';
import type { EngineChoice, EngineReport } from '../common/protocol.ts';
import { explain } from './explain.ts';

/** Milliseconds that a backend has to say what it found. */
const PATIENCE = 5000;

async function probe(name: string): Promise<EngineChoice> {
  const none = (reason: string): EngineChoice => ({ name, device: 'none', score: 0, reason, usable: false });
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<EngineChoice>((resolve) => {
    timer = setTimeout(() => resolve(none('It does not answer.')), PATIENCE);
  });
  const answer = getBackend(name)!
    .probe()
    .then(
      ({ score, reason, device }): EngineChoice => ({ name, device, score, reason, usable: score > 0 }),
      (error: unknown) => none(explain(error)),
    );
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
}

export class EngineChoices {
  readonly #onCompile: (done: number, total: number) => void;
  #found: readonly EngineChoice[] = [];

  /** @param onCompile is told how many kernels of those asked for are ready */
  constructor(onCompile: (done: number, total: number) => void) {
    this.#onCompile = onCompile;
  }

  /** Asks every backend, and takes the preferred or the best. Returns in words why the preferred one was not taken, or null. */
  async find(prefer?: string): Promise<string | null> {
    const found = await Promise.all(listBackends().map(probe));
    this.#found = found.sort((a, b) => b.score - a.score);
    if (prefer !== undefined) {
      try {
        await this.take(prefer);
        return null;
      } catch (error) {
        await this.take();
        return explain(error);
      }
    }
    await this.take();
    return null;
  }

  /** Makes the named engine, or the best that starts, the current one. The one before is not disposed. */
  async take(name?: string): Promise<void> {
    const usable = this.#found.filter((choice) => choice.usable && (name === undefined || choice.name === name));
    let failure = new Error(
      name === undefined ? 'No engine can run here.' : `There is no engine '${name}' that can run here.`,
    );
    for (const choice of usable) {
      try {
        await setEngine(choice.name, this.#optionsOf(choice.name));
        return;
      } catch (error) {
        failure = new Error(`The engine '${choice.name}' does not start: ${explain(error)}`, { cause: error });
        this.#markUnusable(choice.name, explain(error));
      }
    }
    throw failure;
  }

  /** In the place of a lost one: another device of the same kind if `again`, or else the best of the others. */
  async replaceLost(name: string, again: boolean): Promise<void> {
    if (
      again &&
      (await this.take(name).then(
        () => true,
        () => false,
      ))
    )
      return;
    this.#markUnusable(name, 'Its device was lost. Reload the page to try it again.');
    await this.take();
  }

  /** What the page shows. */
  report(): EngineReport {
    const { name, device } = getEngine();
    return { current: name, device, choices: this.#found, notes: notes() };
  }

  #optionsOf(name: string): Readonly<Record<string, unknown>> | undefined {
    if (name !== 'webgpu') return undefined;
    return { onCompile: ({ done, total }: { done: number; total: number }) => this.#onCompile(done, total) };
  }

  #markUnusable(name: string, reason: string): void {
    this.#found = this.#found.map((choice) =>
      choice.name === name ? { ...choice, usable: false, score: 0, reason } : choice,
    );
  }
}

function notes(): string[] {
  const found: string[] = [];
  if (!globalThis.crossOriginIsolated) {
    found.push(
      'This page is not cross-origin isolated, so memory cannot be shared and the CPU engine runs on one thread. A server that sends the headers Cross-Origin-Opener-Policy and Cross-Origin-Embedder-Policy changes that.',
    );
  }
  return found;
}
