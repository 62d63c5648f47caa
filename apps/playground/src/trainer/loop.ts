/** The training loop: steps in short turns, a report several times a second, now and then a look at the test images. */
import { idle } from '@polygrad/core';
import type { ImageDataset } from '@polygrad/data';
import type { Progress, TrainerEvent } from '../common/protocol.ts';
import type { Sampler } from './dataset.ts';
import { explain } from './explain.ts';
import { Pacer } from './pacer.ts';
import { turn } from './queue.ts';
import { engineFigures, type Means, type Training } from './training.ts';
import type { Workbench } from './workbench.ts';

/** Images of one slice of an evaluation. */
const SLICE = 500;
/** Test images of an evaluation while training goes on; when it rests, all are used. */
const QUICK = 2000;

/** Milliseconds after which an evaluation makes do with the images it has seen: nobody waits longer for a training to stop. */
const LONGEST = 8000;

/** What a loop needs of the images. */
export interface LoopData {
  readonly sampler: Sampler;
  /** Images of an epoch. */
  readonly size: number;
  readonly test: ImageDataset;
  /** In which order test images are taken. */
  readonly order: Uint32Array;
}

export class Loop {
  readonly #bench: Workbench;
  readonly #emit: (event: TrainerEvent) => void;
  readonly #pacer = new Pacer();
  #data: LoopData | null = null;
  #running = false;
  #ended: Promise<void> = Promise.resolve();
  /** Images per step. */
  batch = 64;

  constructor(bench: Workbench, emit: (event: TrainerEvent) => void) {
    this.#bench = bench;
    this.#emit = emit;
  }

  get running(): boolean {
    return this.#running;
  }

  take(data: LoopData): void {
    this.#data = data;
  }

  /** Another order of the training images. */
  reorder(sampler: Sampler): void {
    this.#data = { ...this.#need(), sampler };
  }

  /** Forgets what was measured of a network or engine before. */
  restart(): void {
    this.#pacer.restart();
    this.#report(null, null);
  }

  /** The images of the next step. */
  images(): ReturnType<Sampler['next']> {
    return this.#need().sampler.next(this.batch);
  }

  start(): void {
    if (this.#running) return;
    this.#need();
    this.#running = true;
    this.#pacer.restart();
    this.#ended = this.#run();
  }

  /** Ends the loop and waits until it has ended. */
  async stop(): Promise<void> {
    this.#running = false;
    await this.#ended;
  }

  /** Counts the test images that are recognised, all of them if there is time, and reports. */
  async measure(): Promise<void> {
    const means = await this.#bench.use((training) => training.means());
    await this.#evaluate(this.#need().test.size, means);
  }

  #need(): LoopData {
    if (this.#data === null) throw new Error('The images are not loaded.');
    return this.#data;
  }

  async #run(): Promise<void> {
    try {
      while (this.#running) {
        const means = await this.#bench.use((training) => this.#steps(training));
        if (means !== null) {
          this.#report(means, null);
          if (!Number.isFinite(means.loss)) {
            throw new Error(
              `The loss became ${means.loss}: the learning rate is too high. Lower it and restart the network.`,
            );
          }
          if (this.#pacer.evaluationDue()) await this.#evaluate(QUICK, null);
        }
        await turn();
      }
    } catch (error) {
      this.#emit({ kind: 'trouble', message: explain(error), fatal: true });
    } finally {
      this.#running = false;
      this.#report(null, null);
    }
  }

  /** As many steps as fit into a turn, done when it returns; the means if it is time to report. */
  async #steps(training: Training): Promise<Means | null> {
    const start = performance.now();
    const count = this.#pacer.steps;
    let done = 0;
    while (done < count && (done === 0 || this.#running)) {
      await training.step(this.images());
      done++;
    }
    await idle();
    this.#pacer.trained(done, performance.now() - start);
    return this.#pacer.reportDue() ? training.means() : null;
  }

  /** Recognised test images, in slices between which others have their turn. */
  async #evaluate(count: number, means: Means | null): Promise<void> {
    const start = performance.now();
    const { test, order } = this.#need();
    const total = Math.min(count, test.size);
    const network = this.#bench.need();
    let [right, seen] = [0, 0];
    for (let from = 0; from < total && (from === 0 || performance.now() - start < LONGEST); from += SLICE) {
      const part = await this.#bench.use((training) =>
        training === network ? training.recognised(test, order, from, Math.min(total, from + SLICE)) : null,
      );
      // Another network has taken its place.
      if (part === null) return;
      right += part;
      seen = Math.min(total, from + SLICE);
      await turn();
    }
    this.#pacer.evaluated(performance.now() - start);
    this.#report(means, { share: right / seen, images: seen });
  }

  #report(means: Means | null, test: { readonly share: number; readonly images: number } | null): void {
    const { training } = this.#bench;
    const progress: Progress = {
      running: this.#running,
      step: training?.steps ?? 0,
      images: training?.images ?? 0,
      epochs: (training?.images ?? 0) / (this.#data?.size ?? 1),
      loss: means?.loss ?? null,
      trainAccuracy: means?.accuracy ?? null,
      testAccuracy: test?.share ?? null,
      testImages: test?.images ?? 0,
      imagesPerSecond: means === null ? null : this.#pacer.rate(means.images),
      ...engineFigures(),
    };
    this.#emit({ kind: 'progress', progress });
  }
}
