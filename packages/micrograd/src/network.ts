/**
 * Neurons, layers and networks of them. They hold numbers of one device and are written with its operations alone; `to` moves them to another one.
 */
import { cpu, type Device, type Matrix } from './device.ts';

/** What a neuron does with its sum. */
export type Activation = 'tanh' | 'relu' | 'none';

/** Numbers from -1 to 1, the same for the same seed (mulberry32). */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 31 - 1;
  };
}

/**
 * A layer: a neuron for every column of its weights. A batch goes in as rows, and comes out as rows of one number per neuron.
 *
 * @example
 * const layer = Layer.random(2, 3, 'tanh', 1);
 * layer.forward(cpu.from([[1, -1]]))[0]!.length; // 3
 */
export class Layer<T> {
  readonly device: Device<T>;
  readonly activation: Activation;
  /** Weights [inputs, outputs] and biases [1, outputs]. */
  readonly parameters: readonly [weights: T, biases: T];

  constructor(device: Device<T>, parameters: readonly [T, T], activation: Activation) {
    this.device = device;
    this.parameters = parameters;
    this.activation = activation;
  }

  /** Weights from -1 to 1, smaller the more inputs there are; biases of 0. */
  static random(inputs: number, outputs: number, activation: Activation, seed: number): Layer<Matrix> {
    const next = generator(seed);
    const scale = Math.sqrt(1 / inputs);
    const weights = Array.from({ length: inputs }, () => Array.from({ length: outputs }, () => next() * scale));
    return new Layer(cpu, [cpu.from(weights, true), cpu.from([new Array<number>(outputs).fill(0)], true)], activation);
  }

  forward(x: T): T {
    const { device, activation } = this;
    const sums = device.linear(x, ...this.parameters);
    return activation === 'none' ? sums : device[activation](sums);
  }

  async to<U>(device: Device<U>): Promise<Layer<U>> {
    const [weights, biases] = await Promise.all(this.parameters.map((p) => this.device.read(p)));
    return new Layer(device, [device.from(weights!, true), device.from(biases!, true)], this.activation);
  }
}

/**
 * One neuron: a layer with one output, for a start.
 *
 * @example
 * const neuron = new Neuron(3, 'tanh', 7);
 * neuron.forward(cpu.from([[1, 2, 3]]))[0]![0]!.op; // 'tanh'
 */
export class Neuron extends Layer<Matrix> {
  constructor(inputs: number, activation: Activation = 'tanh', seed = 1) {
    const { parameters } = Layer.random(inputs, 1, activation, seed);
    super(cpu, parameters, activation);
  }
}

/**
 * A network of layers one after the other (multilayer perceptron).
 *
 * @example
 * const net = MLP.random([2, 8, 1], 'tanh', 3);
 * net.layers.length; // 2
 */
export class MLP<T> {
  readonly layers: readonly Layer<T>[];

  constructor(layers: readonly Layer<T>[]) {
    this.layers = layers;
  }

  /** Layers between the sizes given; the last one has no activation. */
  static random(sizes: readonly number[], activation: Activation = 'tanh', seed = 1): MLP<Matrix> {
    const last = sizes.length - 2;
    const layers = sizes.slice(1).map((n, i) => Layer.random(sizes[i]!, n, i === last ? 'none' : activation, seed + i));
    return new MLP(layers);
  }

  get device(): Device<T> {
    return this.layers[0]!.device;
  }

  forward(x: T): T {
    return this.layers.reduce((y, layer) => layer.forward(y), x);
  }

  /** The same network, with the same numbers, on another device. */
  async to<U>(device: Device<U>): Promise<MLP<U>> {
    return new MLP(await Promise.all(this.layers.map((layer) => layer.to(device))));
  }

  /** One step of gradient descent on a batch; the loss before it. */
  step(x: T, y: T, rate: number): T {
    const { device } = this;
    return device.scope(() => {
      const loss = device.meanSquare(this.forward(x), y);
      const parameters = this.layers.flatMap((layer) => layer.parameters);
      const gradients = device.gradients(loss, parameters);
      for (const [i, parameter] of parameters.entries()) device.update(parameter, gradients[i]!, rate);
      return loss;
    });
  }
}
