/** The network of a list of layers, as a module whose weights are named as those of `npm start`. */
import { flatten, type Tensor } from '@polygrad/core';
import { Conv2d, Linear, MaxPool2d, Module } from '@polygrad/nn';
import { CLASSES, IMAGE_SIZE, type LayerSpec, planNetwork } from '../common/layers.ts';

type Step = (x: Tensor) => Tensor;

/**
 * Convolutions are `conv1`, `conv2` ..., hidden linear layers `linear1` ..., the last layer is `out`. The default list has the names and shapes of
 * apps/mnist, so that its files load here.
 */
export class DigitNetwork extends Module {
  readonly layers: readonly LayerSpec[];
  readonly #steps: readonly Step[];

  /** @throws LayerError for a list that cannot be built */
  constructor(layers: readonly LayerSpec[]) {
    super();
    this.layers = layers;
    const plan = planNetwork(layers);
    const counts = { conv: 0, linear: 0 };
    const own = <M extends Module>(name: string, module: M): M => {
      Object.defineProperty(this, name, { value: module, enumerable: true });
      return module;
    };
    let shape: readonly number[] = [1, IMAGE_SIZE, IMAGE_SIZE];
    const flat: Step = (x) => (x.ndim > 2 ? flatten(x, { start: 1 }) : x);
    const features = (): number => shape.reduce((product, n) => product * n, 1);
    const steps = layers.map((layer, index): Step => {
      let step: Step;
      if (layer.kind === 'conv') {
        const options = { padding: 'same' } as const;
        const conv = own(`conv${++counts.conv}`, new Conv2d(shape[0]!, layer.channels, layer.kernel, options));
        step = (x) => conv.forward(x).relu();
      } else if (layer.kind === 'pool') {
        const pool = new MaxPool2d(layer.size);
        step = (x) => pool.forward(x);
      } else {
        const linear = own(`linear${++counts.linear}`, new Linear(features(), layer.units));
        step = (x) => linear.forward(flat(x)).relu();
      }
      shape = plan.shapes[index]!;
      return step;
    });
    const out = own('out', new Linear(plan.features, CLASSES));
    this.#steps = [...steps, (x) => out.forward(flat(x))];
  }

  /** @param x shape [rows, 1, 28, 28]; returns logits [rows, 10] */
  forward(x: Tensor): Tensor {
    return this.#steps.reduce((value, step) => step(value), x);
  }
}
