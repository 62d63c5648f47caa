/**
 * Networks in TensorFlow.js's layers format: a JSON topology of Keras layers, and weights as raw little-endian float32 in shards.
 *
 * Knows the layers of convolutional image networks: Conv2D, Activation, Add, Concatenate, UpSampling2D (nearest).
 */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Tensor, add, concat, conv2d, permute, relu, repeatInterleave, scope, tensor } from '@polygrad/core';

interface Layer {
  readonly class_name: string;
  readonly name: string;
  readonly config: Readonly<Record<string, unknown>>;
  /** Per use of the layer, its inputs: [name, use, output, arguments]. */
  readonly inbound_nodes: readonly (readonly (readonly [string, ...unknown[]])[])[];
}

interface ModelFile {
  readonly modelTopology: {
    readonly model_config: {
      readonly config: { readonly layers: readonly Layer[]; readonly output_layers: readonly [string][] };
    };
  };
  readonly weightsManifest: readonly {
    readonly paths: readonly string[];
    readonly weights: readonly { readonly name: string; readonly shape: readonly number[]; readonly dtype: string }[];
  }[];
}

export interface LayersModel {
  readonly layers: readonly Layer[];
  readonly output: string;
  /** By name, as 'F_0/kernel'. The caller disposes them. */
  readonly weights: ReadonlyMap<string, Tensor>;
}

/** Reads a model.json and the weight shards beside it. */
export function readLayersModel(path: string): LayersModel {
  const file = JSON.parse(readFileSync(path, 'utf8')) as ModelFile;
  const weights = new Map<string, Tensor>();
  for (const group of file.weightsManifest) {
    const bytes = Buffer.concat(group.paths.map((shard) => readFileSync(join(dirname(path), shard))));
    let at = 0;
    for (const { name, shape, dtype } of group.weights) {
      if (dtype !== 'float32') throw new Error(`[models] weight ${name} is ${dtype}; only float32 is read`);
      const size = shape.reduce((product, n) => product * n, 1);
      const values = Float32Array.from({ length: size }, (_, i) => bytes.readFloatLE(at + 4 * i));
      weights.set(name, tensor(values, { shape }));
      at += 4 * size;
    }
    if (at !== bytes.length) throw new Error(`[models] the shards hold ${bytes.length} bytes, the manifest ${at}`);
  }
  const { layers, output_layers } = file.modelTopology.model_config.config;
  return { layers, output: (output_layers[0] as [string])[0], weights };
}

/** What a layer makes of its inputs, images of shape [N, H, W, C]. */
function apply({ class_name: kind, name, config }: Layer, inputs: Tensor[], model: LayersModel): Tensor {
  const [x] = inputs as [Tensor];
  switch (kind) {
    case 'Conv2D': {
      const kernel = model.weights.get(`${name}/kernel`) as Tensor;
      const result = conv2d(x, permute(kernel, [3, 2, 0, 1]), {
        bias: config.use_bias ? (model.weights.get(`${name}/bias`) as Tensor) : null,
        stride: config.strides as number[],
        padding: config.padding as 'same' | 'valid',
        dilation: (config.dilation_rate as number[] | undefined) ?? 1,
        layout: 'nhwc',
      });
      return activate(config.activation, result);
    }
    case 'Activation':
      return activate(config.activation, x);
    case 'Add':
      return inputs.reduce((a, b) => add(a, b));
    case 'Concatenate':
      return concat(inputs, config.axis as number);
    case 'UpSampling2D': {
      if (config.interpolation !== 'nearest')
        throw new Error(`[models] ${name}: unknown interpolation ${config.interpolation}`);
      const [height, width] = config.size as [number, number];
      return repeatInterleave(repeatInterleave(x, height, { axis: 1 }), width, { axis: 2 });
    }
    default:
      throw new Error(`[models] layer ${name}: ${kind} is not known here`);
  }
}

function activate(name: unknown, x: Tensor): Tensor {
  if (name === 'linear') return x;
  if (name === 'relu') return relu(x);
  throw new Error(`[models] unknown activation: ${name}`);
}

/** Runs the network on images of shape [N, H, W, C]. Layers stand in the file after what they need. */
export function predict(model: LayersModel, images: Tensor): Tensor {
  return scope(() => {
    const results = new Map<string, Tensor>();
    for (const layer of model.layers) {
      const inputs = (layer.inbound_nodes[0] ?? []).map(([name]) => results.get(name) as Tensor);
      results.set(layer.name, layer.class_name === 'InputLayer' ? images : apply(layer, inputs, model));
    }
    return results.get(model.output) as Tensor;
  });
}
