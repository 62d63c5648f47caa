/** Sequential: modules one after the other, each given what the one before returned. */
import { isTensor, type Tensor } from '@polygrad/core/functions';
import { checkFits } from '../errors.ts';
import { isModule, Module } from './module.ts';

/** A layer as Sequential takes it: a module from tensor to tensor, or a function. */
export type Layer = Module<[x: Tensor], Tensor> | ((x: Tensor) => Tensor);

/**
 * Modules in a row. Their names in state dictionaries are their places: '0.weight', '3.bias'.
 *
 * @example
 * const model = new Sequential(new Linear(2, 8), new ReLU(), new Linear(8, 1));
 * const y = model.forward(tensor([[1, 2]])); // shape [1, 1]
 */
export class Sequential extends Module {
  /** The layers, in order; frozen. For another one make `new Sequential(...model.layers.slice(0, -1), other)`. A plain function has no parameters. */
  readonly layers: readonly Layer[];

  constructor(...layers: readonly Layer[]) {
    super();
    for (const [index, layer] of layers.entries()) {
      const isClass = typeof layer === 'function' && isModule(layer.prototype);
      const fits = !isClass && (isModule(layer) || typeof layer === 'function');
      checkFits(
        'Sequential',
        `layer ${index}`,
        layer,
        fits,
        isClass ? `made with new ${layer.name}()` : 'a module or a function, and those of a list come as ...list',
      );
      if (isModule(layer)) Object.defineProperty(this, index, { value: layer, enumerable: true });
    }
    this.layers = Object.freeze(layers);
    // The places above are what the state's names come from; the array would add every layer a second time.
    Object.defineProperty(this, 'layers', { enumerable: false });
  }

  forward(x: Tensor): Tensor {
    let value = x;
    for (const [index, layer] of this.layers.entries()) {
      value = typeof layer === 'function' ? layer(value) : layer.forward(value);
      checkFits(
        'Sequential',
        `result of layer ${index}`,
        value,
        isTensor(value),
        'one tensor: write a Module for others',
      );
    }
    return value;
  }
}
