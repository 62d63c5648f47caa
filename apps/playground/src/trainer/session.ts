/** The worker's side of the page: everything a visitor may ask of the network, in terms of the workbench and the loop. */
import { getEngine, profile, seed as setSeed } from '@polygrad/core';
import { printProgram } from '@polygrad/core/kernel';
import { shuffledIndices } from '@polygrad/data';
import type {
  DataReport,
  EngineReport,
  NetworkReport,
  NetworkSettings,
  Prediction,
  Sample,
  StepProfile,
  TrainerApi,
  TrainerEvent,
} from '../common/protocol.ts';
import { type Digits, fetchDigits, Sampler, samplesOf } from './dataset.ts';
import { destroyDevices } from './debug.ts';
import { Loop } from './loop.ts';
import { Workbench } from './workbench.ts';
import { decodeWeights, encodeWeights } from './weights.ts';

export class Session implements TrainerApi {
  readonly #bench: Workbench;
  readonly #loop: Loop;
  readonly #emit: (event: TrainerEvent) => void;
  #digits: Digits | null = null;
  #seed = 1;

  constructor(emit: (event: TrainerEvent) => void) {
    this.#emit = emit;
    this.#bench = new Workbench(emit);
    this.#loop = new Loop(this.#bench, emit);
  }

  async load(base: string): Promise<DataReport> {
    this.#digits ??= await fetchDigits(base, (done, total) => this.#emit({ kind: 'loading', done, total }));
    const { train, test } = this.#digits;
    this.#loop.take({
      sampler: new Sampler(train, this.#seed),
      size: train.size,
      test,
      order: shuffledIndices(test.size, 1, 0),
    });
    return { train: train.size, test: test.size };
  }

  engines(prefer?: string): Promise<EngineReport> {
    return this.#bench.open(prefer);
  }

  async useEngine(name: string): Promise<EngineReport> {
    const report = await this.#bench.move(name);
    this.#loop.restart();
    return report;
  }

  async build({ layers, seed }: NetworkSettings): Promise<NetworkReport> {
    await this.#loop.stop();
    setSeed(seed);
    return this.#begin(seed, await this.#bench.replace(layers));
  }

  async start(): Promise<void> {
    this.#bench.need();
    this.#loop.start();
  }

  async pause(): Promise<void> {
    if (!this.#loop.running) return;
    await this.#loop.stop();
    await this.#loop.measure();
  }

  async setRate(rate: number): Promise<void> {
    this.#bench.rate = rate;
    if (this.#bench.training !== null) this.#bench.training.rate = rate;
  }

  async setBatch(size: number): Promise<void> {
    this.#loop.batch = size;
  }

  predict(pixels: Uint8Array): Promise<Prediction> {
    return this.#bench.use(async (training) => ({ probabilities: await training.predict(pixels) }));
  }

  async samples(page: number): Promise<readonly Sample[]> {
    if (this.#digits === null) throw new Error('The images are not loaded.');
    return samplesOf(this.#digits.test, page);
  }

  profileStep(): Promise<StepProfile> {
    return this.#bench.use(async (training) => {
      const { batch } = this.#loop;
      // The first steps make plans and kernels; what is looked at is a step like all later ones.
      const inspected = async () => {
        for (let i = 0; i < 2; i++) await training.step(this.#loop.images());
        const images = this.#loop.images();
        const measured = await profile(() => training.step(images), { sources: true });
        // Not part of what is plotted: these steps were measured one kernel at a time.
        await training.means();
        return measured;
      };
      // Who stopped the training looks at it only.
      const { kernels, submits, milliseconds } = await (this.#loop.running ? inspected() : training.undone(inspected));
      this.#loop.restart();
      const { name: engine, device } = getEngine();
      return {
        engine,
        device,
        batch,
        submits,
        milliseconds,
        kernels: kernels.map((kernel) => ({
          name: kernel.name,
          engine: kernel.engine,
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

  save(): Promise<Uint8Array> {
    return this.#bench.use(({ model }) => encodeWeights(model.stateDict(), model.layers));
  }

  async restore(bytes: Uint8Array, name: string): Promise<NetworkReport> {
    const { weights, layers: saved } = decodeWeights(bytes, name);
    await this.#loop.stop();
    const layers = saved ?? this.#bench.need().model.layers;
    return this.#begin(this.#seed, await this.#bench.replace(layers, (training) => training.load(weights)));
  }

  async measure(): Promise<void> {
    await this.#loop.measure();
  }

  async loseDevice(): Promise<void> {
    destroyDevices();
  }

  /** A network in its place: the order of images starts anew with it. */
  #begin(
    seed: number,
    { model }: { readonly model: { readonly layers: NetworkSettings['layers']; parameterCount(): number } },
  ): NetworkReport {
    this.#seed = seed;
    if (this.#digits !== null) this.#loop.reorder(new Sampler(this.#digits.train, seed));
    this.#loop.restart();
    return { layers: model.layers, seed, parameters: model.parameterCount() };
  }
}
