/**
 * The encoder and decoder of "Attention is all you need", with PyTorch's names, defaults and parameters; and rotary embeddings as a layer.
 *
 * TransformerBlock in attention.ts is the same encoder layer with the defaults of later language models.
 */
import { dropout, rotaryEmbedding, type RotaryOptions, type Tensor } from '@polygrad/core/functions';
import { checkFits, checkInteger, checkOptions, checkTensor } from '../errors.ts';
import { xavierUniform } from '../init/init.ts';
import { isModule, Module } from '../module/module.ts';
import {
  activationOf,
  type AttentionCall,
  MultiHeadAttention,
  TransformerBlock,
  type TransformerBlockOptions,
} from './attention.ts';
import type { KVCache } from './kv-cache.ts';
import { Linear } from './linear.ts';
import { LayerNorm } from './norm.ts';

/** Options of encoder and decoder layers; defaults are PyTorch's: dimFeedforward 2048, dropout 0.1, 'relu', norms after the sums. */
export type TransformerLayerOptions = TransformerBlockOptions;

const layerOptions = 'bias? causal? dropout dtype dimFeedforward activation normFirst? layerNormEps#';

/** What PyTorch has where nothing is said. */
const defaults = { dimFeedforward: 2048, dropout: 0.1, activation: 'relu', normFirst: false } as const;

/**
 * Self-attention and two linear layers, each added to what went into it. Source: Vaswani et al. (2017); PyTorch `nn.TransformerEncoderLayer` with
 * `batch_first`, whose weights it can load.
 *
 * @example
 * const layer = new TransformerEncoderLayer(16, 4, { dimFeedforward: 32 });
 * layer.forward(zeros([2, 5, 16])).shape; // [2, 5, 16]
 */
export class TransformerEncoderLayer extends TransformerBlock {
  /**
   * @param width size of the last axis of input and output
   * @param heads must divide the width
   */
  constructor(width: number, heads: number, options: TransformerLayerOptions = {}) {
    checkOptions('TransformerEncoderLayer', options, layerOptions);
    super(width, heads, { ...defaults, ...options });
  }
}

/** What one call of a decoder says beside its operands. */
export interface DecoderCall {
  /** Which targets a target sees: bool (true takes part), or numbers that are added to the scores. Broadcasts to [N, heads, L, L]. */
  readonly mask?: Tensor | null;
  /** Which elements of the memory a target sees. Broadcasts to [N, heads, L, S]. */
  readonly memoryMask?: Tensor | null;
  /** Keys and values of earlier targets, for layers that are causal: a call then gives its new targets only. */
  readonly cache?: KVCache | null;
}

/**
 * Self-attention, attention to what an encoder made, and two linear layers, each added to what went into it. Source: Vaswani et al. (2017); PyTorch
 * `nn.TransformerDecoderLayer` with `batch_first`, whose weights it can load.
 *
 * @example
 * const layer = new TransformerDecoderLayer(16, 4, { dimFeedforward: 32, causal: true });
 * layer.forward(zeros([2, 5, 16]), zeros([2, 7, 16])).shape; // [2, 5, 16]
 */
export class TransformerDecoderLayer extends Module<[x: Tensor, memory: Tensor, call?: DecoderCall]> {
  readonly self_attn: MultiHeadAttention;
  readonly multihead_attn: MultiHeadAttention;
  readonly linear1: Linear;
  readonly linear2: Linear;
  readonly norm1: LayerNorm;
  readonly norm2: LayerNorm;
  readonly norm3: LayerNorm;
  readonly activation: (x: Tensor) => Tensor;
  readonly normFirst: boolean;
  readonly dropout: number;

  /**
   * @param width size of the last axis of input and output
   * @param heads must divide the width
   */
  constructor(width: number, heads: number, options: TransformerLayerOptions = {}) {
    super();
    const op = 'TransformerDecoderLayer';
    checkOptions(op, options, layerOptions);
    checkInteger(op, 'width', width, 1);
    const {
      dimFeedforward,
      activation,
      normFirst,
      layerNormEps: eps = 1e-5,
      causal = false,
      ...attention
    } = { ...defaults, ...options };
    const { bias = true, dtype = 'float32', dropout: share } = attention;
    checkInteger(op, 'dimFeedforward', dimFeedforward, 1);
    this.self_attn = new MultiHeadAttention(width, heads, { ...attention, causal });
    this.multihead_attn = new MultiHeadAttention(width, heads, attention);
    this.linear1 = new Linear(width, dimFeedforward, { bias, dtype });
    this.linear2 = new Linear(dimFeedforward, width, { bias, dtype });
    this.norm1 = new LayerNorm(width, { eps, dtype });
    this.norm2 = new LayerNorm(width, { eps, dtype });
    this.norm3 = new LayerNorm(width, { eps, dtype });
    this.activation = activationOf(op, activation);
    this.normFirst = normFirst;
    this.dropout = share;
  }

  /**
   * @param x targets, shape [N, L, width]
   * @param memory what the encoder made, shape [N, S, width]
   * @param call masks, a cache
   * @returns the shape of x
   */
  forward(x: Tensor, memory: Tensor, call: DecoderCall = {}): Tensor {
    checkOptions('TransformerDecoderLayer', call, 'mask memoryMask cache');
    checkTensor('TransformerDecoderLayer', 'x', x);
    const { mask = null, memoryMask = null, cache = null } = call;
    const parts: readonly (readonly [norm: LayerNorm, part: (t: Tensor) => Tensor])[] = [
      [this.norm1, (t) => this.self_attn.forward(t, t, t, { mask, cache })],
      [this.norm2, (t) => this.multihead_attn.forward(t, memory, memory, { mask: memoryMask })],
      [this.norm3, (t) => this.linear2.forward(this.#dropped(this.activation(this.linear1.forward(t))))],
    ];
    let value = x;
    for (const [norm, part] of parts)
      value = this.normFirst
        ? value.add(this.#dropped(part(norm.forward(value))))
        : norm.forward(value.add(this.#dropped(part(value))));
    return value;
  }

  #dropped(x: Tensor): Tensor {
    return this.training && this.dropout > 0 ? dropout(x, { p: this.dropout, training: true }) : x;
  }
}

/** Several of what a function makes. */
function repeated<Layer>(op: string, make: () => Layer, count: number): Layer[] {
  checkFits(op, 'make', make, typeof make === 'function' && !isModule(make), 'a function that makes a layer');
  checkInteger(op, 'count', count, 1, 1024);
  return Array.from({ length: count }, () => make());
}

/**
 * Encoder layers in a row, and a norm behind them. Source: PyTorch `nn.TransformerEncoder`, whose weights it can load.
 *
 * @example
 * const encoder = new TransformerEncoder(() => new TransformerEncoderLayer(16, 4, { dimFeedforward: 32 }), 2);
 * encoder.forward(zeros([2, 5, 16])).shape; // [2, 5, 16]
 */
export class TransformerEncoder extends Module<[x: Tensor, call?: AttentionCall]> {
  readonly layers: readonly TransformerBlock[];
  readonly norm: LayerNorm | null;

  /**
   * @param make makes one layer, with its initial values
   * @param count how many
   * @param norm of the result (default none)
   */
  constructor(make: () => TransformerBlock, count: number, norm: LayerNorm | null = null) {
    super();
    this.layers = repeated('TransformerEncoder', make, count);
    this.norm = norm;
  }

  /**
   * @param x shape [N, L, width]
   * @param call a mask; a cache, where the layers are causal
   */
  forward(x: Tensor, call: AttentionCall = {}): Tensor {
    const value = this.layers.reduce((t, layer) => layer.forward(t, call), x);
    return this.norm === null ? value : this.norm.forward(value);
  }
}

/**
 * Decoder layers in a row, and a norm behind them. Source: PyTorch `nn.TransformerDecoder`, whose weights it can load.
 *
 * @example
 * const decoder = new TransformerDecoder(() => new TransformerDecoderLayer(16, 4, { dimFeedforward: 32 }), 2);
 * decoder.forward(zeros([2, 5, 16]), zeros([2, 7, 16])).shape; // [2, 5, 16]
 */
export class TransformerDecoder extends Module<[x: Tensor, memory: Tensor, call?: DecoderCall]> {
  readonly layers: readonly TransformerDecoderLayer[];
  readonly norm: LayerNorm | null;

  /**
   * @param make makes one layer, with its initial values
   * @param count how many
   * @param norm of the result (default none)
   */
  constructor(make: () => TransformerDecoderLayer, count: number, norm: LayerNorm | null = null) {
    super();
    this.layers = repeated('TransformerDecoder', make, count);
    this.norm = norm;
  }

  /**
   * @param x targets, shape [N, L, width]
   * @param memory what the encoder made, shape [N, S, width]
   * @param call masks, a cache
   */
  forward(x: Tensor, memory: Tensor, call: DecoderCall = {}): Tensor {
    const value = this.layers.reduce((t, layer) => layer.forward(t, memory, call), x);
    return this.norm === null ? value : this.norm.forward(value);
  }
}

/** Options of `Transformer`. */
export interface TransformerOptions extends Omit<TransformerLayerOptions, 'causal' | 'bias'> {
  /** Size of the last axis of everything (default 512). */
  readonly dModel?: number;
  /** Must divide the width (default 8). */
  readonly nhead?: number;
  /** Default 6. */
  readonly numEncoderLayers?: number;
  /** Default 6. */
  readonly numDecoderLayers?: number;
  /** No target sees later ones (default false, as in PyTorch, where it is a mask). Sources see all sources either way. */
  readonly causal?: boolean;
}

/** What one call of Transformer says beside its operands. */
export interface TransformerCall {
  /** Which sources a source sees. */
  readonly sourceMask?: Tensor | null;
  /** Which targets a target sees. */
  readonly targetMask?: Tensor | null;
  /** Which sources a target sees. */
  readonly memoryMask?: Tensor | null;
}

/**
 * An encoder and a decoder, each with a norm behind it; embeddings and the last linear layer are the caller's. To generate, call `encoder` once and `decoder`
 * with a KVCache for each target. Source: Vaswani et al. (2017); PyTorch
 * `nn.Transformer` with `batch_first`, whose weights it can load.
 *
 * @example
 * const model = new Transformer({ dModel: 16, nhead: 4, numEncoderLayers: 1, numDecoderLayers: 1, dimFeedforward: 32 });
 * model.forward(zeros([2, 7, 16]), zeros([2, 5, 16])).shape; // [2, 5, 16]
 */
export class Transformer extends Module<[source: Tensor, target: Tensor, call?: TransformerCall]> {
  readonly encoder: TransformerEncoder;
  readonly decoder: TransformerDecoder;

  constructor(options: TransformerOptions = {}) {
    super();
    const names =
      'dropout dtype dimFeedforward activation normFirst? layerNormEps# dModel nhead numEncoderLayers numDecoderLayers causal?';
    checkOptions('Transformer', options, names);
    const {
      dModel: width = 512,
      nhead: heads = 8,
      numEncoderLayers = 6,
      numDecoderLayers = 6,
      causal = false,
      ...layer
    } = options;
    const { layerNormEps: eps = 1e-5, dtype = 'float32' } = layer;
    const norm = (): LayerNorm => new LayerNorm(width, { eps, dtype });
    this.encoder = new TransformerEncoder(
      () => new TransformerEncoderLayer(width, heads, layer),
      numEncoderLayers,
      norm(),
    );
    this.decoder = new TransformerDecoder(
      () => new TransformerDecoderLayer(width, heads, { ...layer, causal }),
      numDecoderLayers,
      norm(),
    );
    for (const tensor of this.parameters()) {
      if (tensor.ndim < 2) continue;
      const first = xavierUniform()(tensor.shape, tensor.dtype);
      tensor.assign(first);
      first.dispose();
    }
  }

  /**
   * @param source shape [N, S, width]
   * @param target shape [N, L, width]
   * @param call masks: bool (true takes part), or numbers that are added to the scores
   * @returns shape [N, L, width]
   */
  forward(source: Tensor, target: Tensor, call: TransformerCall = {}): Tensor {
    checkOptions('Transformer', call, 'sourceMask targetMask memoryMask');
    const { sourceMask = null, targetMask = null, memoryMask = null } = call;
    return this.decoder.forward(target, this.encoder.forward(source, { mask: sourceMask }), {
      mask: targetMask,
      memoryMask,
    });
  }
}

/**
 * Pairs of numbers turned by angles proportional to their position. Source: Su et al., "RoFormer" (2021).
 *
 * @example
 * new RotaryEmbedding({ style: 'half' }).forward(ones([2, 5, 8])).shape; // [2, 5, 8]
 */
export class RotaryEmbedding extends Module<[x: Tensor, offset?: number]> {
  readonly options: Omit<RotaryOptions, 'positions' | 'offset'>;

  /** @param options base (10000), style ('interleaved'; 'half' as in GPT-NeoX and Llama), dims (the whole width) */
  constructor(options: Omit<RotaryOptions, 'positions' | 'offset'> = {}) {
    super();
    checkOptions('RotaryEmbedding', options, 'base style dims');
    const { base = 10000 } = options;
    checkFits('RotaryEmbedding', 'base', base, typeof base === 'number' && base > 0, 'a number above 0');
    this.options = options;
  }

  /**
   * @param x queries or keys, shape [..., positions, width]
   * @param offset positions that came before (default 0)
   */
  forward(x: Tensor, offset: number = 0): Tensor {
    checkInteger('RotaryEmbedding', 'offset', offset, 0);
    return rotaryEmbedding(x, { ...this.options, offset });
  }
}
