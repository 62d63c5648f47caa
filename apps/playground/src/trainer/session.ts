/**
 * The worker's side of the page: one network in training, on one engine, and everything a visitor may ask of it. Whatever uses the
 * network takes its turn in a queue, so a prediction is answered between two training steps.
 */
import { getEngine, profile, seed as setSeed } from '@polygrad/core';
import { permutation } from '@polygrad/data';
import { printProgram } from '@polygrad/core/kernel';
import type {
  DataReport,
  EngineChoice,
  EngineReport,
  NetworkReport,
  NetworkSettings,
  Prediction,
  Progress,
  Sample,
  StepProfile,
  TrainerApi,
  TrainerEvent,
} from '../common/protocol.ts';
import { type Digits, fetchDigits, Sampler, samplesOf } from './dataset.ts';
import { findEngines, reportOf, takeEngine } from './engines.ts';
import { explain } from './explain.ts';
import { Pacer } from './pacer.ts';
import { Queue, turn } from './queue.ts';
import { engineFigures, type Means, Training } from './training.ts';
import { decodeWeights, encodeWeights } from './weights.ts';

/** Milliseconds of steps between two looks at the queue. */
const TURN = 30;
/** Images of one slice of an evaluation. */
const SLICE = 500;
/** Test images of an evaluation while training goes on; when it rests, all are used. */
const QUICK = 2000;

export class Session implements TrainerApi {
  readonly #emit: (event: TrainerEvent) => void;
  readonly #queue = new Queue();
  readonly #pacer = new Pacer();
  #choices: EngineChoice[] = [];
  #digits: Digits | null = null;
  #sampler: Sampler | null = null;
  #testOrder: Uint32Array = new Uint32Array();
  #training: Training | null = null;
  #settings: NetworkSettings | null = null;
  #rate = 1e-3;
  #batch = 64;
  #running = false;
  #loop: Promise<void> = Promise.resolve();

  constructor(emit: (event: TrainerEvent) => void) {
    this.#emit = emit;
  }

  async load(base: string): Promise<DataReport> {
    this.#digits ??= await fetchDigits(base);
    const { train, test } = this.#digits;
    this.#testOrder = permutation(test.size, 1, 0);
    return { train: train.size, test: test.size };
  }

  async engines(prefer?: string): Promise<EngineReport> {
    return this.#queue.run(async () => {
      this.#choices = await findEngines();
      try {
        await takeEngine(this.#choices, prefer);
      } catch (error) {
        if (prefer === undefined) throw error;
        this.#emit({ kind: 'notice', message: explain(error) });
        await takeEngine(this.#choices);
      }
      return reportOf(this.#choices);
    });
  }

  async useEngine(name: string): Promise<EngineReport> {
    return this.#queue.run(async () => {
      const before = getEngine();
      if (before.name === name) return reportOf(this.#choices);
      const state = await this.#training?.state();
      const old = this.#training;
      await takeEngine(this.#choices, name);
      if (old !== null && state !== undefined) {
        const next = this.#make(old.model.layers);
        next.load(state.weights, state.optimizer);
        next.steps = old.steps;
        next.images = old.images;
        this.#training = next;
        old.dispose();
      }
      before.dispose();
      this.#pacer.restart();
      return reportOf(this.#choices);
    });
  }

  async build(settings: NetworkSettings): Promise<NetworkReport> {
    await this.#rest();
    return this.#queue.run(() => {
      setSeed(settings.seed);
      const next = this.#make(settings.layers);
      this.#training?.dispose();
      this.#training = next;
      this.#settings = settings;
      this.#sampler = null;
      this.#pacer.restart();
      this.#progress(null, null);
      return { ...settings, parameters: next.model.parameterCount() };
    });
  }

  async start(): Promise<void> {
    if (this.#running) return;
    this.#need();
    this.#sampler ??= new Sampler(this.#images().train, this.#settings!.seed);
    this.#running = true;
    this.#pacer.restart();
    this.#loop = this.#run();
  }

  /** Ends the loop, and measures on all test images. */
  async pause(): Promise<void> {
    if (!this.#running) return;
    await this.#rest();
    if (this.#training === null) return;
    const means = await this.#queue.run(() => this.#training!.means());
    await this.#evaluate(this.#images().test.size, means);
  }

  async setRate(rate: number): Promise<void> {
    this.#rate = rate;
    if (this.#training !== null) this.#training.rate = rate;
  }

  async setBatch(size: number): Promise<void> {
    this.#batch = size;
  }

  async predict(pixels: Uint8Array): Promise<Prediction> {
    return this.#queue.run(async () => ({ probabilities: await this.#need().predict(pixels) }));
  }

  async samples(page: number): Promise<readonly Sample[]> {
    return samplesOf(this.#images().test, page);
  }

  async profileStep(): Promise<StepProfile> {
    return this.#queue.run(async () => {
      const training = this.#need();
      const { seed } = this.#settings!;
      this.#sampler ??= new Sampler(this.#images().train, seed);
      const batch = this.#batch;
      // The first steps make plans and kernels; what is looked at is a step like all later ones.
      for (let i = 0; i < 2; i++) await training.step(this.#sampler.next(batch));
      const images = this.#sampler.next(batch);
      const { kernels, submits, milliseconds } = await profile(() => training.step(images), { sources: true });
      const { name: engine, device } = getEngine();
      return {
        engine,
        device,
        batch,
        submits,
        milliseconds,
        kernels: kernels.map((kernel) => ({
          name: kernel.name,
          grid: kernel.grid,
          group: kernel.group,
          flops: kernel.flops,
          bytes: kernel.bytes,
          milliseconds: kernel.milliseconds,
          program: printProgram(kernel.program),
          language: kernel.source?.language ?? null,
          source: kernel.source?.text ?? null,
        })),
      };
    });
  }

  async save(): Promise<Uint8Array> {
    return this.#queue.run(() => {
      const { model } = this.#need();
      return encodeWeights(model.stateDict(), model.layers);
    });
  }

  async restore(bytes: Uint8Array, name: string): Promise<NetworkReport> {
    const { weights, layers: saved } = decodeWeights(bytes, name);
    await this.#rest();
    return this.#queue.run(() => {
      const current = this.#need();
      const seed = this.#settings!.seed;
      const layers = saved ?? current.model.layers;
      const next = this.#make(layers);
      try {
        next.load(weights);
      } catch (error) {
        next.dispose();
        throw error;
      }
      this.#training = next;
      this.#settings = { layers, seed };
      current.dispose();
      this.#pacer.restart();
      return { layers, seed, parameters: next.model.parameterCount() };
    });
  }

  async measure(): Promise<void> {
    await this.#evaluate(this.#images().test.size, null);
  }

  async loseDevice(): Promise<void> {
    throw new Error('This engine has no device that could be lost.');
  }

  #make(layers: NetworkSettings['layers']): Training {
    return new Training(layers, this.#rate);
  }

  #need(): Training {
    if (this.#training === null) throw new Error('There is no network yet: build one first.');
    return this.#training;
  }

  #images(): Digits {
    if (this.#digits === null) throw new Error('The images are not loaded.');
    return this.#digits;
  }

  /** Ends the loop and waits until it has ended. */
  async #rest(): Promise<void> {
    this.#running = false;
    await this.#loop;
  }

  async #run(): Promise<void> {
    try {
      while (this.#running) {
        const report = await this.#queue.run(() => this.#steps());
        if (report !== undefined) {
          this.#progress(report, null);
          if (report !== null && !Number.isFinite(report.loss)) {
            throw new Error(
              `The loss became ${report.loss}: the learning rate is too high. Lower it and restart the network.`,
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
      this.#progress(null, null);
    }
  }

  /** Some steps; the means if it is time to report. */
  async #steps(): Promise<Means | null | undefined> {
    const training = this.#need();
    const end = performance.now() + TURN;
    const start = performance.now();
    do await training.step(this.#sampler!.next(this.#batch));
    while (performance.now() < end && this.#running);
    let means: Means | null | undefined;
    if (this.#pacer.reportDue()) means = await training.means();
    this.#pacer.trained(performance.now() - start);
    return means;
  }

  /** Recognised test images, in slices between which others have their turn. */
  async #evaluate(count: number, means: Means | null): Promise<void> {
    const start = performance.now();
    const { test } = this.#images();
    const total = Math.min(count, test.size);
    const training = this.#need();
    let right = 0;
    for (let from = 0; from < total; from += SLICE) {
      const part = await this.#queue.run(() =>
        training === this.#training
          ? training.recognised(test, this.#testOrder, from, Math.min(total, from + SLICE))
          : null,
      );
      // The network was exchanged meanwhile.
      if (part === null) return;
      right += part;
      await turn();
    }
    this.#pacer.evaluated(performance.now() - start);
    this.#progress(means, { share: right / total, images: total });
  }

  #progress(means: Means | null, test: { share: number; images: number } | null): void {
    const training = this.#training;
    const progress: Progress = {
      running: this.#running,
      step: training?.steps ?? 0,
      images: training?.images ?? 0,
      epochs: (training?.images ?? 0) / (this.#digits?.train.size ?? 1),
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
