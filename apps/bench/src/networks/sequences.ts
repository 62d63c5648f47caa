/** Networks over sequences: a language model of transformer blocks, and an LSTM. */
import { arange, compile, crossEntropy, hostNumber, max, reshape, select, type Tensor } from '@polygrad/core';
import { Embedding, KVCache, LayerNorm, Linear, LSTM, Module, TransformerBlock } from '@polygrad/nn';
import type { NetworkSpec } from '../work/networks.ts';
import type { Network } from './network.ts';

type Spec<Name extends NetworkSpec['network']> = Extract<NetworkSpec, { network: Name }>;

class Gpt extends Module {
  readonly tokens: Embedding;
  readonly places: Embedding;
  readonly blocks: readonly TransformerBlock[];
  readonly last: LayerNorm;
  readonly head: Linear;

  constructor({ layers, width, heads, vocabulary, places }: Spec<'gpt'>) {
    super();
    this.tokens = new Embedding(vocabulary, width);
    this.places = new Embedding(places, width);
    this.blocks = Array.from({ length: layers }, () => new TransformerBlock(width, heads, { causal: true }));
    this.last = new LayerNorm(width);
    this.head = new Linear(width, vocabulary);
  }

  /** States behind every token; with a cache, of tokens that follow those it has. */
  forward(ids: Tensor, cache: KVCache | null = null): Tensor {
    const places = arange(ids.shape[1]!, { dtype: 'int32' });
    const at = cache === null ? places : places.add(hostNumber(() => cache.length, { dtype: 'int32' }));
    let x = this.tokens.forward(ids).add(this.places.forward(at));
    for (const block of this.blocks) x = block.forward(x, { cache });
    return this.last.forward(x);
  }
}

export function gpt(spec: Spec<'gpt'>): Network {
  const model = new Gpt(spec);
  return {
    model,
    loss: (ids, next) => {
      const logits = model.head.forward(model.forward(ids as Tensor));
      return crossEntropy(reshape(logits, [-1, spec.vocabulary]), reshape(next as Tensor, [-1]));
    },
    infer: (ids) => max(model.head.forward(select(model.forward(ids as Tensor), 1, -1))),
    decoder: () => {
      const cache = new KVCache({ capacity: spec.places });
      const step = compile((token: Tensor) => max(model.head.forward(model.forward(token, cache))));
      return {
        step,
        dispose: () => {
          step.dispose();
          cache.dispose();
        },
      };
    },
  };
}

class Classifier extends Module {
  readonly lstm: LSTM;
  readonly head: Linear;

  constructor({ inputs, hidden, outputs }: Spec<'lstm'>) {
    super();
    this.lstm = new LSTM(inputs, hidden);
    this.head = new Linear(hidden, outputs);
  }

  forward(x: Tensor): Tensor {
    return this.head.forward(select(this.lstm.forward(x).output, 1, -1));
  }
}

export function lstm(spec: Spec<'lstm'>): Network {
  const model = new Classifier(spec);
  return {
    model,
    loss: (x, y) => crossEntropy(model.forward(x as Tensor), y as Tensor),
    infer: (x) => max(model.forward(x as Tensor)),
  };
}
