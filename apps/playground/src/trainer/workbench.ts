/**
 * One network on one engine, and turns at it. Whatever uses the network waits for its turn, so a prediction is answered between two training steps.
 * Where a device goes away, core puts another engine in its place and brings parameters and optimizer state back from copies it keeps
 * (`setRecovery`). Here the work that was under way is done again, and the visitor is told.
 */
import { DeviceLostError, getEngine, idle, onLost, setRecovery } from '@polygrad/core';
import { engineText } from '../common/engine-names.ts';
import type { LayerSpec } from '../common/layers.ts';
import type { EngineReport, TrainerEvent } from '../common/protocol.ts';
import { EngineChoices } from './engines.ts';
import { Queue } from './queue.ts';
import { Training } from './training.ts';

/** Milliseconds between two copies of the weights in host memory, and those a new engine has to start. */
const COPY_EVERY = 500;
const PATIENCE = 15_000;
/** Losses in one piece of work that are taken for chance. */
const MOST_LOSSES = 4;

export class Workbench {
  readonly #emit: (event: TrainerEvent) => void;
  readonly #queue = new Queue();
  readonly #engines: EngineChoices;
  #training: Training | null = null;
  /** A loss that the visitor has not been told of. */
  #loss: DeviceLostError | null = null;
  rate = 1e-3;

  constructor(emit: (event: TrainerEvent) => void) {
    this.#emit = emit;
    this.#engines = new EngineChoices((done, total) => emit({ kind: 'compiling', done, total }));
    setRecovery({ shadow: true, interval: COPY_EVERY, patience: PATIENCE });
    onLost(({ error }) => {
      this.#loss = error;
      // While nothing runs, no other code would notice.
      void this.#queue.run(() => this.#settle());
    });
  }

  get training(): Training | null {
    return this.#training;
  }

  need(): Training {
    if (this.#training === null) throw new Error('There is no network yet: build one first.');
    return this.#training;
  }

  /** Finds engines and takes the best, or the preferred one if it is usable. */
  open(prefer?: string): Promise<EngineReport> {
    return this.#queue.run(async () => {
      const refused = await this.#engines.find(prefer);
      if (refused !== null) this.#emit({ kind: 'notice', message: refused });
      return this.#engines.report();
    });
  }

  /** Runs work on the network when its turn comes; again, if the device is lost meanwhile. */
  use<T>(work: (training: Training) => T | Promise<T>): Promise<T> {
    return this.#queue.run(async () => {
      for (let losses = 0; ; losses++) {
        try {
          await this.#settle();
          return await work(this.need());
        } catch (error) {
          if (!(error instanceof DeviceLostError) || losses >= MOST_LOSSES) throw error;
          this.#loss ??= error;
        }
      }
    });
  }

  /** Puts a network in the place of the one before. `prepare` may fail: then that one stays. */
  replace(layers: readonly LayerSpec[], prepare: (training: Training) => void = () => {}): Promise<Training> {
    return this.#queue.run(async () => {
      await this.#settle();
      const next = new Training(layers, this.rate);
      try {
        prepare(next);
      } catch (error) {
        next.dispose();
        throw error;
      }
      this.#training?.dispose();
      this.#training = next;
      return next;
    });
  }

  /** Moves the network to another engine. */
  move(name: string): Promise<EngineReport> {
    return this.#queue.run(async () => {
      await this.#settle();
      const before = getEngine();
      if (before.name === name) return this.#engines.report();
      const old = this.#training;
      const state = await old?.state();
      await this.#engines.take(name);
      if (old !== null && state !== undefined) {
        const next = new Training(old.model.layers, this.rate);
        next.load(state.weights, state.optimizer);
        next.steps = old.steps;
        next.images = old.images;
        this.#training = next;
        old.dispose();
      }
      before.dispose();
      return this.#engines.report();
    });
  }

  /** After a loss: waits for the engine that takes over, and tells of it. */
  async #settle(): Promise<void> {
    const loss = this.#loss;
    if (loss === null) return;
    this.#loss = null;
    // What was being compiled for the lost device never will be.
    this.#emit({ kind: 'compiling', done: 0, total: 0 });
    await idle();
    this.#training?.forget();
    this.#engines.lost(loss.engine);
    const reason = loss.reason.split(';')[0]?.replace(/[.\s]+$/, '');
    const { name, device } = getEngine();
    const kept = this.#training === null ? '' : 'The network is kept, with weights at most a second old. ';
    this.#emit({
      kind: 'notice',
      message: `The device ${loss.device} was lost: ${reason}. ${kept}It runs on ${engineText(name, device)} now.`,
    });
    this.#emit({ kind: 'engine', report: this.#engines.report() });
  }
}
