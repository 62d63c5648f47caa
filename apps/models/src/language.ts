/**
 * lande: which language a text is in, by shares of its letters and groups of letters and a network of two layers. The package has the
 * preparation of texts, the weights (of toygrad, quantised to 8 bits) and sentences with their languages.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type DType, type Tensor, add, matmul, relu, scope, softmax, tensor, transpose } from '@polygrad/core';
import { packageFolder } from './package-folder.ts';

interface Dense {
  readonly type: 'dense';
  readonly filters: number;
  readonly _biases: string;
  readonly _filters: readonly string[];
}

type LayerOptions = Dense | { readonly type: 'input'; readonly sz: number } | { readonly type: 'relu' | 'softmax' };

interface Grams {
  readonly unigrams: readonly string[];
  readonly bigrams: readonly string[];
  readonly trigrams: readonly string[];
  readonly quadgrams: readonly string[];
}

interface Preparation {
  readonly getNormalized: (text: string) => string;
  readonly getNgrams: (text: string, length: number) => Readonly<Record<string, { readonly frequency: number }>>;
}

export interface LanguageModel {
  readonly languages: readonly string[];
  /** What the network looks at: shares of these groups of letters among all of their length. */
  readonly features: (text: string) => number[];
  /** From texts' features [N, features] to probabilities [N, languages]. */
  readonly predict: (features: Tensor) => Tensor;
  readonly dispose: () => void;
}

/** '1', a scale, '|', and bytes in base 64: (byte - 127) / scale. Source: toygrad's encoder, precision f8. */
function decodeWeights(text: string): number[] {
  const bar = text.indexOf('|');
  if (text[0] !== '1' || text[1] === '-' || bar < 0)
    throw new Error(`[models] unknown encoding of weights: ${text.slice(0, 8)}`);
  const scale = Number(text.slice(1, bar));
  return Array.from(Buffer.from(text.slice(bar + 1), 'base64'), (byte) => Math.fround((byte - 127) / scale));
}

/** Reads the network out of the installed package; its weights are float32 values, held in `dtype`. */
export async function readLanguageModel(dtype: DType = 'float32'): Promise<LanguageModel> {
  const folder = join(packageFolder('lande'), 'standalone');
  const load = async (name: string): Promise<unknown> => import(pathToFileURL(join(folder, name)).href);
  const { default: languages } = (await load('t50-langs.js')) as { default: string[] };
  const { default: grams } = (await load('t50-ngrams.js')) as { default: Grams };
  const { default: options } = (await load('t50-options.js')) as { default: { layers: LayerOptions[] } };
  const { getNormalized, getNgrams } = (await load('utils.js')) as Preparation;
  const dense = new Map<LayerOptions, { readonly filters: Tensor; readonly biases: Tensor }>();
  for (const layer of options.layers) {
    if (layer.type !== 'dense') continue;
    const rows = layer._filters.map(decodeWeights);
    dense.set(layer, { filters: tensor(rows, { dtype }), biases: tensor(decodeWeights(layer._biases), { dtype }) });
  }
  const step = (x: Tensor, layer: LayerOptions): Tensor => {
    switch (layer.type) {
      case 'input':
        return x;
      case 'dense': {
        const { filters, biases } = dense.get(layer) as { filters: Tensor; biases: Tensor };
        return add(matmul(x, transpose(filters)), biases);
      }
      case 'relu':
        return relu(x);
      case 'softmax':
        return softmax(x, 1);
      default:
        return layer satisfies never;
    }
  };
  return {
    languages,
    features: (text) => {
      const normal = getNormalized(text);
      return [grams.unigrams, grams.bigrams, grams.trigrams, grams.quadgrams].flatMap((list, i) => {
        const shares = getNgrams(normal, i + 1);
        return list.map((gram) => shares[gram]?.frequency ?? 0);
      });
    },
    predict: (features) => scope(() => options.layers.reduce(step, features)),
    dispose: () => {
      for (const { filters, biases } of dense.values()) {
        filters.dispose();
        biases.dispose();
      }
    },
  };
}
