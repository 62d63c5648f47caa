/** What a network of the benchmarks is, in Polygrad, and how its parameters get the numbers that all participants have. */
import type { Tensor } from '@polygrad/core';
import type { AnyModule } from '@polygrad/nn';
import { parameterOf } from '../work/networks.ts';

export interface Network {
  readonly model: AnyModule;
  /** The loss of a training step, of the inputs that `inputsOf` names. */
  loss(...inputs: readonly Tensor[]): Tensor;
  /** One number of what inference gives; for language models the greatest logit behind the last token. */
  infer(...inputs: readonly Tensor[]): Tensor;
  /** Takes the tokens of a sequence one by one, and gives what `infer` gives for all of them: of language models. */
  decoder?(): Decoder;
}

export interface Decoder {
  /** @param token shape [1, 1] */
  step(token: Tensor): Tensor;
  dispose(): void;
}

/** Gives parameters their numbers. */
export function withParameters(network: Network): Network {
  const values = network.model.namedParameters().map(([name, { shape }]) => {
    return [name, { dtype: 'float32', shape, data: parameterOf(name, shape) }] as const;
  });
  network.model.loadStateDict(new Map(values), { strict: false });
  return network;
}
