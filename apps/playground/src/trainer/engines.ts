/** Which engines there are on this machine, which one runs, and why: what auto-detection reports, and the choice of another. */
import { autoDetectAndConfigureGpu, type BackendReport, type Verdict, knownBackends } from '@polygrad/auto-detect';
import { getEngine, setEngine } from '@polygrad/core';
import type { EngineChoice, EngineReport } from '../common/protocol.ts';
import { explain } from './explain.ts';

/** What a visitor may choose all the same. */
const USABLE: readonly Verdict[] = ['chosen', 'slower', 'not preferred', 'software adapter', 'left out'];

/** Milliseconds that a backend has to say what it found, and to start: a busy machine takes its time. */
const PATIENCE = 15_000;
/** For those who ask for one by name. */
const MORE_PATIENCE = 120_000;

function choiceOf({ name, device, score, verdict, reason }: BackendReport): EngineChoice {
  return { name, device: device ?? '', score, reason, usable: USABLE.includes(verdict) && score > 0 };
}

export class EngineChoices {
  readonly #options: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  #found: readonly EngineChoice[] = [];

  /** @param onCompile is told how many kernels of those asked for are ready */
  constructor(onCompile: (done: number, total: number) => void) {
    this.#options = {
      webgpu: { onCompile: ({ done, total }: { done: number; total: number }) => onCompile(done, total) },
    };
  }

  /** Asks every backend, and takes the preferred or the best. Returns in words why the preferred one was not taken, or null. */
  async find(prefer?: string): Promise<string | null> {
    const { engine, report } = await autoDetectAndConfigureGpu({
      timeout: prefer === undefined ? PATIENCE : MORE_PATIENCE,
      // A name from the page's address may be anything.
      ...(prefer !== undefined && knownBackends().includes(prefer) ? { prefer } : {}),
      engineOptions: this.#options,
    });
    this.#found = report.map(choiceOf);
    // So that one that takes its place after a loss reports its compilation too.
    await setEngine(engine, this.#options[engine.name]);
    if (prefer === undefined || engine.name === prefer) return null;
    const why = this.#found.find(({ name }) => name === prefer)?.reason;
    return `The engine '${prefer}' cannot run here${why === undefined ? '' : `: ${why.replace(/\.$/, '')}`}.`;
  }

  /** Makes the named engine the current one. The one before is not disposed. */
  async take(name: string): Promise<void> {
    try {
      await setEngine(name, this.#options[name]);
    } catch (error) {
      this.#markUnusable(name, explain(error));
      throw new Error(`The engine '${name}' does not start: ${explain(error)}`, { cause: error });
    }
  }

  /** An engine was lost and another has taken its place. */
  lost(name: string): void {
    if (getEngine().name !== name) this.#markUnusable(name, 'Its device was lost. Reload the page to try it again.');
  }

  /** What the page shows. */
  report(): EngineReport {
    const { name, device } = getEngine();
    // What runs now may have been passed over at first.
    const choices = this.#found.map((choice) =>
      choice.name === name
        ? { ...choice, reason: choice.reason.replace(/^(scored (lower than|as) \w+|\w+ is); /, '') }
        : choice,
    );
    return { current: name, device, choices, notes: notes() };
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
