/**
 * Networks as data, and what they are given: parameters by name and inputs of a step. Every participant builds them in its own language from
 * the same numbers (the Python peer has these rules too), so that losses can be compared.
 */
import { fill, label } from './inputs.ts';

export type NetworkSpec =
  /** Linear, ReLU, Linear. */
  | { readonly network: 'mlp'; readonly inputs: number; readonly hidden: number; readonly outputs: number }
  /** Convolution to 8, pooling, convolution to 16, pooling, Linear, on 28 x 28. */
  | { readonly network: 'cnn' }
  /** For images of `side` in three colours; stages of `width`, 2, 4 and 8 times that; 64 is the published one. */
  | { readonly network: 'resnet18'; readonly width: number; readonly side: number }
  /** A causal language model of transformer blocks, norms first. */
  | {
      readonly network: 'gpt';
      readonly layers: number;
      readonly width: number;
      readonly heads: number;
      readonly vocabulary: number;
      /** Longest sequence. */
      readonly places: number;
    }
  /** One layer over a sequence, then Linear on the last state. */
  | { readonly network: 'lstm'; readonly inputs: number; readonly hidden: number; readonly outputs: number }
  /** A variational autoencoder of 784 pixels. */
  | { readonly network: 'vae'; readonly hidden: number; readonly latent: number }
  /** Two halvings and two doublings with connections across, for images of `side` in one colour. */
  | { readonly network: 'unet'; readonly width: number; readonly side: number }
  /** Burgers' equation, u_t + u u_x = 0.01 u_xx, by a network of tanh layers and its derivatives. */
  | { readonly network: 'pinn'; readonly width: number; readonly layers: number }
  /** 4 numbers to two logits and a value. */
  | { readonly network: 'actor-critic'; readonly hidden: number };

/** Numbers of a parameter in PyTorch's layout: uniform within 1 / sqrt(fan in) by a seed from its name; scales are 1, biases 0. */
export function parameterOf(name: string, shape: readonly number[]): Float32Array<ArrayBuffer> {
  const size = shape.reduce((a, b) => a * b, 1);
  if (shape.length < 2) return new Float32Array(size).fill(name.endsWith('weight') ? 1 : 0);
  let hash = 0;
  for (let i = 0; i < name.length; i++) hash = (Math.imul(hash, 31) + name.charCodeAt(i)) >>> 0;
  const bound = (shape[0]! / size) ** 0.5;
  return fill(1000 + (hash % 65521), size, -bound, bound);
}

/** Something on the host that a participant makes a tensor of. */
export interface HostArray {
  readonly data: Float32Array<ArrayBuffer> | Int32Array<ArrayBuffer>;
  readonly shape: readonly number[];
}

/** What a network is given at a step: images and classes, tokens and those that follow, and so on. Only classes depend on the step. */
export type Inputs = (batch: number, length: number, step: number) => readonly HostArray[];

/** Numbers of inputs up to a batch and a length are drawn here, once: making them is no part of what is measured. */
export function inputsOf(spec: NetworkSpec, mostBatch: number, mostLength: number): Inputs {
  const numbers = (seed: number, low: number, ...shape: readonly number[]) => {
    const size = shape.reduce((a, b) => a * b, 1);
    const all = fill(seed, mostBatch * size, low, 1);
    return (batch: number): HostArray => ({ data: all.subarray(0, batch * size), shape: [batch, ...shape] });
  };
  const classes = (batch: number, step: number, count = 10): HostArray => ({
    data: Int32Array.from({ length: batch }, (_, i) => label(step % 4, i) % count),
    shape: [batch],
  });
  switch (spec.network) {
    case 'mlp': {
      const x = numbers(10, 0, spec.inputs);
      return (batch, _, step) => [x(batch), classes(batch, step)];
    }
    case 'cnn': {
      const x = numbers(20, 0, 1, 28, 28);
      return (batch, _, step) => [x(batch), classes(batch, step)];
    }
    case 'resnet18': {
      const x = numbers(30, -1, 3, spec.side, spec.side);
      return (batch, _, step) => [x(batch), classes(batch, step)];
    }
    case 'gpt': {
      const all = Int32Array.from(fill(40, mostBatch * mostLength + 1, 0, spec.vocabulary));
      const tokens = (first: number, batch: number, length: number): HostArray => ({
        data: all.subarray(first, first + batch * length),
        shape: [batch, length],
      });
      return (batch, length) => [tokens(0, batch, length), tokens(1, batch, length)];
    }
    case 'lstm': {
      const all = fill(50, mostBatch * mostLength * spec.inputs, -1, 1);
      return (batch, length, step) => [
        { data: all.subarray(0, batch * length * spec.inputs), shape: [batch, length, spec.inputs] },
        classes(batch, step, spec.outputs),
      ];
    }
    case 'vae': {
      const [x, noise] = [numbers(60, 0, 784), numbers(61, -1, spec.latent)];
      return (batch) => [x(batch), noise(batch)];
    }
    case 'unet': {
      const [x, mask] = [numbers(70, -1, 1, spec.side, spec.side), numbers(71, 0, 1, spec.side, spec.side)];
      return (batch) => {
        const { data, shape } = mask(batch);
        return [x(batch), { data: Float32Array.from(data, Math.round), shape }];
      };
    }
    case 'pinn': {
      const [x, t] = [numbers(80, -1, 1), numbers(81, 0, 1)];
      return (batch) => [x(batch), t(batch)];
    }
    case 'actor-critic': {
      const [seen, gains] = [numbers(90, -1, 4), numbers(91, 0)];
      return (batch, _, step) => [seen(batch), classes(batch, step, 2), gains(batch)];
    }
  }
  return spec satisfies never;
}
