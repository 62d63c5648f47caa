/**
 * Linear layers whose weights are int8, for inference: a quarter of the memory, and of the traffic where rows are few.
 *
 * Weights become floats where the product loads them; where rows are few nothing holds them as floats.
 */
import {
  abs,
  cast,
  clip,
  div,
  equal,
  flush,
  floatFor,
  matmul,
  max,
  noGrad,
  round,
  scope,
  type Tensor,
  transpose,
  unsqueeze,
  where,
} from '@polygrad/core/functions';
import { checkFunction, checkInteger, checkOptions, NnError } from '../errors.ts';
import { filled } from '../init/filled.ts';
import { Linear } from '../layers/linear.ts';
import { type AnyModule, checkModule, Module } from '../module/module.ts';
import { buffer, roleOf } from '../module/parameter.ts';

/** Options of `QuantizedLinear`. */
export interface QuantizedLinearOptions {
  /** Whether there is a bias (default true). */
  readonly bias?: boolean;
}

/**
 * `x W^T + b` with `W = scale q`: q is int8, with a scale for each output. It has no parameters, so nothing learns; gradients flow to x. Source: Dettmers
 * et al., "LLM.int8()" (2022), section 2; PyTorch `quantize_per_channel`, symmetric.
 *
 * 16-bit inputs are computed in float32 and rounded once. In `autocast` the product has 16 bits before the scale: in float16 results above 65504 scale become
 * infinite, which bfloat16 does not do.
 *
 * `quantize` makes them of `Linear` layers. The constructor is for loading a saved state: all weights are 0.
 *
 * @example
 * const layer = quantize(new Linear(3, 2)) as QuantizedLinear;
 * layer.weight.dtype; // 'int8'
 * layer.forward(ones([5, 3])).shape; // [5, 2]
 */
export class QuantizedLinear extends Module {
  /** int8 from -127 to 127, shape [outputs, inputs]. */
  declare readonly weight: Tensor;
  /** float32 above 0, shape [outputs]. */
  declare readonly scale: Tensor;
  /** Shape [outputs], or null without one. */
  declare readonly bias: Tensor | null;

  /**
   * @param inputs size of the last axis of the input
   * @param outputs size of the last axis of the output
   */
  constructor(inputs: number, outputs: number, options: QuantizedLinearOptions = {}) {
    super();
    checkOptions('QuantizedLinear', options, 'bias?');
    checkInteger('QuantizedLinear', 'inputs', inputs, 1);
    checkInteger('QuantizedLinear', 'outputs', outputs, 1);
    const { bias = true } = options;
    define(this, filled([outputs, inputs], 0, 'int8'), filled([outputs], 1), bias ? filled([outputs], 0) : null);
  }

  /** @param x shape [..., inputs] */
  forward(x: Tensor): Tensor {
    const dtype = floatFor(x.dtype);
    const wide = dtype === 'float64' ? dtype : 'float32';
    // The scale is applied to results, of which there are fewer than weights. Integers up to 127 are exact in every float.
    const weight = cast(this.weight, wide);
    const [left, right] = [cast(x, wide), transpose(weight)];
    const product = matmul(left, right);
    const scaled = product.mul(this.scale);
    const narrow = product.dtype === wide ? dtype : product.dtype;
    const result = cast(this.bias === null ? scaled : scaled.add(this.bias), narrow);
    // A tensor that lives is computed: the weights as floats would be, too.
    for (const part of [weight, left, right]) part.dispose();
    return result;
  }
}

function define(layer: object, weight: Tensor, scale: Tensor, bias: Tensor | null): void {
  for (const [name, value] of Object.entries({ weight, scale, bias }))
    Object.defineProperty(layer, name, {
      value: value === null ? null : buffer(value),
      enumerable: true,
      configurable: true,
      writable: true,
    });
}

/** Options of `quantize`. */
export interface QuantizeOptions {
  /** Which layers, by their names in the model (default: all). */
  readonly filter?: (name: string, layer: Linear) => boolean;
}

/** Makes a Linear the QuantizedLinear of its values. */
function converted(layer: Linear): void {
  const { weight, bias } = layer;
  const [q, scale] = scope(() =>
    noGrad(() => {
      const wide = cast(weight, 'float32');
      const largest = max(abs(wide), 1);
      // A row of zeros has any scale.
      const steps = where(equal(largest, 0), 1, div(largest, 127));
      return [cast(clip(round(div(wide, unsqueeze(steps, 1))), -127, 127), 'int8'), steps] as const;
    }),
  );
  if (bias !== null) bias.requiresGrad = false;
  define(layer, q, scale, bias);
  // The same object, so that lists, dictionaries and other holders of the layer keep it.
  Object.setPrototypeOf(layer, QuantizedLinear.prototype);
}

/**
 * Makes every `Linear` of a model a `QuantizedLinear`, in place. Each row of weights is divided by its largest magnitude / 127 and rounded, half to
 * even. An element is off by at most half of its row's scale. Layers of classes derived from `Linear` stay as they are. The float weights are
 * disposed, but for those that the model uses elsewhere.
 *
 * @param model changed; a `Linear` itself becomes the quantized layer
 * @param options filter
 * @returns the model
 * @throws NnError where a layer has hooks or a weight that is computed from others; nothing is changed then
 * @example
 * const model = new Sequential(new Linear(64, 64), new ReLU(), new Linear(64, 10));
 * const before = summary(model, [1, 64]).stateBytes; // 19240
 * summary(quantize(model), [1, 64]).stateBytes; // 5328
 */
export function quantize<M extends AnyModule>(model: M, options: QuantizeOptions = {}): M {
  checkModule('quantize', model);
  checkOptions('quantize', options, 'filter!');
  const { filter = () => true } = options;
  checkFunction('quantize', 'filter', filter);
  const layers = new Set<Linear>();
  for (const [name, module] of model.namedModules()) {
    if (Object.getPrototypeOf(module) !== Linear.prototype) continue;
    const layer = module as unknown as Linear;
    if (!filter(name, layer)) continue;
    if (roleOf(layer.weight) !== 'parameter')
      throw new NnError(
        'quantize',
        `the weight of layer '${name}' is computed; call removeWeightNorm() or removeSpectralNorm() first`,
        [name],
      );
    if (Object.hasOwn(layer, 'forward'))
      throw new NnError('quantize', `layer '${name}' has hooks; remove them first, and add them again afterwards`, [
        name,
      ]);
    layers.add(layer);
  }
  const weights = [...layers].map(({ weight }) => weight);
  for (const layer of layers) converted(layer);
  // The first call finds finished weights, and makes the plan of all others.
  flush();
  const used = new Set(model.parameters());
  for (const weight of weights) if (!used.has(weight)) weight.dispose();
  return model;
}
