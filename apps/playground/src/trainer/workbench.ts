/**
 * One network on one engine, and turns at it. Whatever uses the network waits for its turn, so a prediction is answered between two
 * training steps; and where the device goes away, the network goes on from its last copy in host memory on an engine that is there.
 */
import { DeviceLostError, getEngine, type IEngine } from '@polygrad/core';
import type { LayerSpec } from '../common/layers.ts';
import type { EngineReport, TrainerEvent } from '../common/protocol.ts';
import { EngineChoices } from './engines.ts';
import { Queue } from './queue.ts';
import { Training, type TrainingState } from './training.ts';

/** A network as it was, in host memory. */
interface Copy {
  readonly layers: readonly LayerSpec[];
  readonly state: TrainingState;
  readonly steps: number;
  readonly images: number;
}

export class Workbench {
  readonly #emit: (event: TrainerEvent) => void;
  readonly #queue = new Queue();
  readonly #engines: EngineChoices;
  #training: Training | null = null;
  #copy: Copy | null = null;
  #losses = 0;
  rate = 1e-3;

  constructor(emit: (event: TrainerEvent) => void) {
    this.#emit = emit;
    this.#engines = new EngineChoices((done, total) => emit({ kind: 'compiling', done, total }));
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
      this.#watch(getEngine());
      return this.#engines.report();
    });
  }

  /** Runs work on the network when its turn comes. After a lost device it is run again on what took its place. */
  use<T>(work: (training: Training) => T | Promise<T>): Promise<T> {
    return this.#queue.run(async () => {
      for (;;) {
        try {
          return await work(this.need());
        } catch (error) {
          // Ends: the CPU engine comes last, and has no device to lose.
          if (!(error instanceof DeviceLostError) || error.engine !== getEngine().name) throw error;
          await this.#recover(error);
        }
      }
    });
  }

  /** Puts a network in the place of the one before. `make` may fail: then that one stays. */
  replace(layers: readonly LayerSpec[], prepare: (training: Training) => void = () => {}): Promise<Training> {
    return this.#queue.run(async () => {
      const next = new Training(layers, this.rate);
      try {
        prepare(next);
        this.#copy = await this.#copyOf(next);
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
      const before = getEngine();
      if (before.name === name) return this.#engines.report();
      const old = this.#training;
      const copy = old === null ? null : await this.#copyOf(old);
      await this.#engines.take(name);
      this.#watch(getEngine());
      old?.dispose();
      this.#revive(copy);
      before.dispose();
      return this.#engines.report();
    });
  }

  /** Copies the network to host memory, from where it comes back if the device goes away. */
  async remember(): Promise<void> {
    await this.use(async (training) => {
      this.#copy = await this.#copyOf(training);
    });
  }

  async #copyOf(training: Training): Promise<Copy> {
    const { steps, images, model } = training;
    return { layers: model.layers, state: await training.state(), steps, images };
  }

  #revive(copy: Copy | null): void {
    this.#training = null;
    if (copy === null) return;
    const next = new Training(copy.layers, this.rate);
    next.load(copy.state.weights, copy.state.optimizer);
    next.steps = copy.steps;
    next.images = copy.images;
    this.#training = next;
    this.#copy = copy;
  }

  /** Told of a loss that nobody has run into yet. */
  #watch(engine: IEngine): void {
    void engine.lost.then(({ reason, message }) => {
      if (reason === 'disposed') return;
      void this.#queue.run(async () => {
        if (getEngine() === engine) await this.#recover(new DeviceLostError(engine.name, engine.device, message));
      });
    });
  }

  /** Another device of the same kind, once; then the CPU engine. */
  async #recover(error: DeviceLostError): Promise<void> {
    const lost = getEngine();
    const old = this.#training;
    this.#losses++;
    await this.#engines.replaceLost(lost.name, this.#losses <= 1);
    this.#watch(getEngine());
    old?.dispose();
    lost.dispose();
    this.#revive(this.#copy);
    const { name, device } = getEngine();
    const steps = this.#copy?.steps ?? 0;
    // What was being compiled for the lost device never will be.
    this.#emit({ kind: 'compiling', done: 0, total: 0 });
    const reason = error.reason.split(';')[0]?.replace(/[.\s]+$/, '');
    const went = `The device ${error.device} was lost: ${reason}. The network went on with the weights of step ${steps}, on ${name} (${device}).`;
    this.#emit({ kind: 'notice', message: went });
    this.#emit({ kind: 'engine', report: this.#engines.report() });
  }
}
