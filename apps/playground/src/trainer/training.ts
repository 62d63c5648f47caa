/**
 * A network in training: its parameters, its optimizer, and the running means of what it does, on the current engine. One step,
 * one evaluation, one prediction at a time; when is session.ts's business.
 */
import { crossEntropy, memory, noGrad, scope, softmax, stats, type Tensor, tensor, throttle } from '@polygrad/core';
import type { Batch, ImageDataset } from '@polygrad/data';
import { Adam, accuracy, hostState, Meter, type OptimizerState, type StateValues, lossAndGrad } from '@polygrad/nn';
import type { LayerSpec } from '../common/layers.ts';
import { DEVIATION, MEAN } from './dataset.ts';
import { DigitNetwork } from './network.ts';

type Images = Batch<'x' | 'y'>;

/** Everything of a network that another engine needs to go on. */
export interface TrainingState {
  readonly weights: StateValues;
  readonly optimizer: OptimizerState;
}

/** Means over the images since the last reading. */
export interface Means {
  readonly images: number;
  readonly loss: number;
  readonly accuracy: number;
}

function upload({ x, y }: Images): { x: Tensor; y: Tensor; rows: number } {
  return {
    x: tensor(x.data, { shape: x.shape, dtype: x.dtype }),
    y: tensor(y.data, { shape: y.shape, dtype: y.dtype }),
    rows: y.shape[0]!,
  };
}

export class Training {
  readonly model: DigitNetwork;
  readonly #optimizer: Adam;
  readonly #meter = new Meter(['loss', 'accuracy']);
  steps = 0;
  images = 0;

  /** First weights come from the seed that is set. @throws LayerError */
  constructor(layers: readonly LayerSpec[], rate: number) {
    this.model = new DigitNetwork(layers);
    this.#optimizer = new Adam(this.model.parameters(), { lr: rate });
  }

  /** A number of the next step; no plan depends on it. */
  set rate(value: number) {
    this.#optimizer.learningRate = value;
  }

  /** One step of the optimizer; returns when it is submitted, or when a device that lags behind has caught up. */
  async step(batch: Images): Promise<void> {
    scope(() => {
      const { x, y, rows } = upload(batch);
      const { value, grads, aux } = lossAndGrad(this.model, (): [Tensor, Tensor] => {
        const logits = this.model.forward(x);
        return [crossEntropy(logits, y), logits];
      });
      this.#meter.add([value.mul(rows), accuracy(aux, y)], rows);
      this.#optimizer.step(grads);
    });
    this.steps++;
    this.images += batch.y.shape[0]!;
    await throttle();
  }

  /** Means since the last call; null if no step was taken. Waits for the device. */
  async means(): Promise<Means | null> {
    const { rows } = this.#meter;
    if (rows === 0) return null;
    const { loss, accuracy: share } = await this.#meter.read();
    this.#meter.reset();
    return { images: rows, loss: loss!, accuracy: share! };
  }

  /** Drops what was summed up: sums are not kept when a device goes away. */
  forget(): void {
    this.#meter.reset();
  }

  /** How many of the rows `order[from] ...` are recognised. */
  async recognised(data: ImageDataset, order: Uint32Array, from: number, to: number): Promise<number> {
    const count = scope(() =>
      noGrad(() => {
        const { x, y } = upload(data.gather(order, from, to));
        return accuracy(this.model.forward(x), y).sum();
      }),
    );
    try {
      return await count.item();
    } finally {
      count.dispose();
    }
  }

  /** Probabilities of the ten digits for one image of 28 x 28 grey values. */
  async predict(pixels: Uint8Array): Promise<number[]> {
    const values = Float32Array.from(pixels, (byte) => (byte / 255 - MEAN) / DEVIATION);
    const result = scope(() => noGrad(() => softmax(this.model.forward(tensor(values, { shape: [1, 1, 28, 28] })), 1)));
    try {
      return Array.from((await result.data()) as Float32Array);
    } finally {
      result.dispose();
    }
  }

  /** Weights and optimizer in host memory. */
  async state(): Promise<TrainingState> {
    return { weights: await hostState(this.model.stateDict()), optimizer: await this.#optimizer.state() };
  }

  /** Goes on from a state; without an optimizer's, its running means start anew. */
  load(weights: StateValues, optimizer?: OptimizerState): void {
    this.model.loadStateDict(weights);
    if (optimizer !== undefined) this.#optimizer.loadState(optimizer);
  }

  /** Runs steps and takes back what they changed: weights, optimizer, counts. */
  async undone<T>(body: () => Promise<T>): Promise<T> {
    const { steps, images } = this;
    const { weights, optimizer } = await this.state();
    try {
      return await body();
    } finally {
      this.load(weights, optimizer);
      this.steps = steps;
      this.images = images;
    }
  }

  dispose(): void {
    this.model.dispose();
    this.#optimizer.dispose();
    this.#meter.dispose();
  }
}

/** What the current engine holds, and how many plans it made. */
export function engineFigures(): { usedBytes: number; pooledBytes: number; newPlans: number } {
  const { bytes, pooledBytes } = memory();
  return { usedBytes: bytes, pooledBytes, newPlans: stats().planMisses };
}
