/** MultiHeadAttention and TransformerBlock: attention with learned projections, and the block that transformers repeat. */
import {
  arange,
  type DType,
  chunk,
  concat,
  dropout,
  expand,
  gelu,
  greaterEqual,
  logicalAnd,
  matmul,
  mean,
  narrow,
  pad,
  permute,
  relu,
  reshape,
  scaledDotProductAttention,
  softmax,
  type Tensor,
  transpose,
  where,
  zeros,
} from '@polygrad/core/functions';
import { told } from '@polygrad/core/engine';
import { checkFits, checkFraction, checkInteger, checkOptions, checkTensor, misfit, NnError } from '../errors.ts';
import { filled } from '../init/filled.ts';
import { xavierNormal, xavierUniform, zerosInit } from '../init/init.ts';
import { Module } from '../module/module.ts';
import { parameter } from '../module/parameter.ts';
import type { KVCache } from './kv-cache.ts';
import { Linear } from './linear.ts';
import { LayerNorm } from './norm.ts';

/** Options of `MultiHeadAttention`. */
export interface MultiHeadAttentionOptions {
  /** Whether projections have biases (default true). */
  readonly bias?: boolean;
  /** Every element sees itself and those before it only (default false). */
  readonly causal?: boolean;
  /** Share of the attention weights that become zero in training (default 0). */
  readonly dropout?: number;
  readonly dtype?: DType;
  /** Size of the last axis of keys (default: that of queries). PyTorch's `kdim`. */
  readonly kdim?: number;
  /** Size of the last axis of values (default: that of queries). PyTorch's `vdim`. */
  readonly vdim?: number;
  /** A learned key and value behind those of each call, which every query sees (default false). */
  readonly addBiasKv?: boolean;
  /** A key and a value of zeros behind all others, which every query sees (default false). */
  readonly addZeroAttn?: boolean;
}

/** What one call of MultiHeadAttention says beside its operands. */
export interface AttentionCall {
  /** Which keys a query sees: bool (true takes part), or numbers that are added to the scores. Broadcasts to [N, heads, L, S]. */
  readonly mask?: Tensor | null;
  /**
   * Keys and values of earlier calls, which the queries see too; those of this call are added. For self-attention that is causal; then S, where the
   * mask has it, is the cache's capacity or all positions so far.
   */
  readonly cache?: KVCache | null;
}

/** What one call for weights says beside its operands. */
export interface WeightsCall {
  /** As in `AttentionCall`. */
  readonly mask?: Tensor | null;
  /** The mean over the heads (default true), or the weights of each. */
  readonly averageAttnWeights?: boolean;
}

/** A result of attention, and the shares the keys had in it: [N, L, S], or [N, heads, L, S] without `averageAttnWeights`. */
export interface AttentionWeights {
  readonly output: Tensor;
  readonly weights: Tensor;
}

/**
 * Attention in several heads, with learned projections before and after. Source: Vaswani et al., "Attention is all you need" (2017);
 * PyTorch `nn.MultiheadAttention` with `batch_first`, whose weights it can load.
 *
 * @example
 * const layer = new MultiHeadAttention(16, 4, { causal: true });
 * layer.forward(zeros([2, 5, 16])).shape; // [2, 5, 16]
 */
export class MultiHeadAttention extends Module<[query: Tensor, key?: Tensor, value?: Tensor, call?: AttentionCall]> {
  /**
   * Projections of queries, keys and values, one below the other: [3 width, width]; null where keys or values have another width. Names as in
   * PyTorch's state dictionaries.
   */
  readonly in_proj_weight: Tensor | null;
  /** Where keys or values have another width, the projection of each: [width, width], [width, kdim], [width, vdim]. */
  readonly q_proj_weight: Tensor | null;
  readonly k_proj_weight: Tensor | null;
  readonly v_proj_weight: Tensor | null;
  /** Shape [3 width], or null without biases. */
  readonly in_proj_bias: Tensor | null;
  /** The key and the value of `addBiasKv`, [1, 1, width], or null without. */
  readonly bias_k: Tensor | null;
  readonly bias_v: Tensor | null;
  readonly out_proj: Linear;
  readonly width: number;
  readonly kdim: number;
  readonly vdim: number;
  readonly heads: number;
  readonly causal: boolean;
  readonly dropout: number;
  readonly addZeroAttn: boolean;

  /**
   * @param width size of the last axis of input and output
   * @param heads must divide the width
   */
  constructor(width: number, heads: number, options: MultiHeadAttentionOptions = {}) {
    super();
    const names = 'bias? causal? dropout dtype kdim vdim addBiasKv? addZeroAttn?';
    checkOptions('MultiHeadAttention', options, names);
    checkInteger('MultiHeadAttention', 'width', width, 1);
    checkInteger('MultiHeadAttention', 'heads', heads, 1);
    if (width % heads !== 0)
      throw new NnError(
        'MultiHeadAttention',
        `${heads} heads do not divide a width of ${width}; choose a divisor of it`,
        ['heads'],
      );
    const { bias = true, causal = false, dropout: share = 0, dtype = 'float32' } = options;
    const { kdim = width, vdim = width, addBiasKv = false, addZeroAttn = false } = options;
    checkFraction('MultiHeadAttention', 'dropout', share);
    checkInteger('MultiHeadAttention', 'kdim', kdim, 1);
    checkInteger('MultiHeadAttention', 'vdim', vdim, 1);
    const apart = kdim !== width || vdim !== width;
    const projection = (rows: number, columns: number): Tensor => parameter(xavierUniform()([rows, columns], dtype));
    this.in_proj_weight = apart ? null : projection(3 * width, width);
    this.q_proj_weight = apart ? projection(width, width) : null;
    this.k_proj_weight = apart ? projection(width, kdim) : null;
    this.v_proj_weight = apart ? projection(width, vdim) : null;
    this.in_proj_bias = bias ? parameter(filled([3 * width], 0, dtype)) : null;
    this.bias_k = addBiasKv ? parameter(xavierNormal()([1, 1, width], dtype)) : null;
    this.bias_v = addBiasKv ? parameter(xavierNormal()([1, 1, width], dtype)) : null;
    this.out_proj = new Linear(width, width, { bias, dtype, biasInit: zerosInit() });
    this.width = width;
    this.kdim = kdim;
    this.vdim = vdim;
    this.heads = heads;
    this.causal = causal;
    this.dropout = share;
    this.addZeroAttn = addZeroAttn;
  }

  /**
   * @param query shape [N, L, width]
   * @param key shape [N, S, kdim] (default: the queries)
   * @param value shape [N, S, vdim] (default: the keys)
   * @param call a mask, a cache
   * @returns shape [N, L, width]
   * @throws NnError for a cache without causal self-attention, or unless all have three axes, the last of size `width`; ShapeError where they do not fit each other
   */
  forward(query: Tensor, key: Tensor = query, value: Tensor = key, call: AttentionCall = {}): Tensor {
    checkOptions('MultiHeadAttention', call, 'mask cache');
    this.#checkAll(query, key, value);
    const { mask = null, cache = null } = call;
    if (cache !== null) this.#checkCache(cache, query === key && key === value);
    const [q, k, v] = this.#projected(query, key, value);
    const operands = [this.#apart(q), this.#apart(k), this.#apart(v)] as const;
    const seen = this.#extra === 0 ? { mask, causal: this.causal } : { mask: this.#maskBeside(query, key, mask) };
    const options = { mask, dropout: this.training ? this.dropout : 0 };
    const mixed =
      cache === null
        ? scaledDotProductAttention(...operands, { ...options, ...seen })
        : cache.attend(this, ...operands, options);
    return this.out_proj.forward(reshape(permute(mixed, [0, 2, 1, 3]), query.shape));
  }

  /**
   * The result with the attention weights, for which all scores are kept: [N, heads, L, S] numbers. S counts what `addBiasKv` and `addZeroAttn` put
   * behind the keys, too. A query that sees no key has weights of zero.
   *
   * @param query, key, value as in `forward`
   * @param call a mask; averageAttnWeights: the mean over the heads (default true)
   * @example
   * const { weights } = new MultiHeadAttention(16, 4).forwardWithWeights(zeros([2, 5, 16]));
   * weights.shape; // [2, 5, 5]
   */
  forwardWithWeights(
    query: Tensor,
    key: Tensor = query,
    value: Tensor = key,
    call: WeightsCall = {},
  ): AttentionWeights {
    checkOptions('MultiHeadAttention', call, 'mask averageAttnWeights?');
    this.#checkAll(query, key, value);
    const { mask: given = null, averageAttnWeights = true } = call;
    const mask = this.#extra === 0 ? given : this.#maskBeside(query, key, given);
    const [q, k, v] = this.#projected(query, key, value).map((t) => this.#apart(t)) as [Tensor, Tensor, Tensor];
    let scores = matmul(q, transpose(k)).mul(1 / Math.sqrt(this.width / this.heads));
    const allowed = [
      ...(this.causal && this.#extra === 0 ? [causalMask(query.shape[1]!, key.shape[1]!)] : []),
      ...(mask?.dtype === 'bool' ? [mask] : []),
    ];
    if (mask !== null && mask.dtype !== 'bool') scores = scores.add(mask);
    const least = scores.dtype === 'float16' ? -65504 : -1e30;
    for (const seen of allowed) scores = where(seen, scores, least);
    let weights = softmax(scores);
    for (const seen of allowed) weights = where(seen, weights, 0);
    const kept = this.training && this.dropout > 0 ? dropout(weights, { p: this.dropout, training: true }) : weights;
    const mixed = reshape(permute(matmul(kept, v), [0, 2, 1, 3]), query.shape);
    return { output: this.out_proj.forward(mixed), weights: averageAttnWeights ? mean(weights, 1) : weights };
  }

  #checkAll(query: Tensor, key: Tensor, value: Tensor): void {
    this.#check('query', query, this.width);
    this.#check('key', key, this.kdim);
    this.#check('value', value, this.vdim);
  }

  #check(name: string, x: Tensor, width: number): void {
    if (told && name !== 'query' && x !== null && Object.getPrototypeOf(x) === Object.prototype) {
      // Keys and values are left out by habit.
      checkOptions('MultiHeadAttention', x as AttentionCall, 'mask cache');
      const wanted = 'a tensor; options come fourth, as in forward(x, x, x, { mask })';
      throw misfit('MultiHeadAttention', name, x, wanted);
    }
    checkTensor('MultiHeadAttention', name, x);
    const { shape } = x;
    if (shape.length !== 3 || shape[2] !== width)
      throw new NnError(
        'MultiHeadAttention',
        `${name} has shape [${shape.join(', ')}]; it must be [N, length, ${width}]`,
        [name],
      );
  }

  #checkCache(cache: KVCache, isOwn: boolean): void {
    checkFits('MultiHeadAttention', 'cache', cache, typeof cache.attend === 'function', 'a KVCache');
    if (!this.causal || !isOwn)
      throw new NnError(
        'MultiHeadAttention',
        'a cache needs self-attention that is causal: what is kept never sees what comes later; make the layer with { causal: true }',
        ['cache'],
      );
    if (this.#extra > 0)
      throw new NnError(
        'MultiHeadAttention',
        'a cache keeps no keys of addBiasKv and addZeroAttn, which would come once more with each call; make the layer without them',
        ['cache'],
      );
  }

  /** How many keys there are beside those of a call. */
  get #extra(): number {
    return (this.bias_k === null ? 0 : 1) + (this.addZeroAttn ? 1 : 0);
  }

  /** Keys or values [N, S, width] with those that the layer adds. */
  #extended(x: Tensor, learned: Tensor | null): Tensor {
    if (this.#extra === 0) return x;
    const one = [x.shape[0]!, 1, this.width];
    const added = [
      ...(learned === null ? [] : [learned]),
      ...(this.addZeroAttn ? [zeros([1, 1, 1], { dtype: x.dtype })] : []),
    ];
    return concat([x, ...added.map((row) => expand(row, one))], { axis: 1 });
  }

  /** Which keys a query sees where the layer adds some: those always, the others by the mask and their order. */
  #maskBeside(query: Tensor, key: Tensor, mask: Tensor | null): Tensor | null {
    const [length, keys] = [query.shape[1]!, key.shape[1]!];
    const order = this.causal ? causalMask(length, keys) : null;
    if (mask === null && order === null) return null;
    const isBool = mask === null || mask.dtype === 'bool';
    let seen = mask ?? order!;
    if (mask !== null && order !== null)
      seen = isBool ? logicalAnd(mask, order) : where(order, mask, Number.NEGATIVE_INFINITY);
    // One column for all keys is not for those that are added.
    if (seen.shape.at(-1) === 1 && keys !== 1) seen = expand(seen, [...seen.shape.slice(0, -1), keys]);
    const widths = seen.shape.map((_, axis): [number, number] => [0, axis === seen.ndim - 1 ? this.#extra : 0]);
    return pad(seen, widths, { value: isBool ? 1 : 0 });
  }

  /** Projections of the three operands, and what is added to keys and values. */
  #projected(query: Tensor, key: Tensor, value: Tensor): readonly [Tensor, Tensor, Tensor] {
    const [q, k, v] = this.#products(query, key, value);
    return [q, this.#extended(k, this.bias_k), this.#extended(v, this.bias_v)];
  }

  /** Projections of the three operands; of one tensor, in one product. */
  #products(query: Tensor, key: Tensor, value: Tensor): readonly [Tensor, Tensor, Tensor] {
    const { q_proj_weight, k_proj_weight, v_proj_weight } = this;
    if (q_proj_weight !== null) {
      const weights = [q_proj_weight, k_proj_weight!, v_proj_weight!] as const;
      return [query, key, value].map((x, i) => {
        const product = matmul(x, transpose(weights[i]!));
        const bias = this.in_proj_bias;
        return bias === null ? product : product.add(narrow(bias, 0, i * this.width, this.width));
      }) as [Tensor, Tensor, Tensor];
    }
    if (query === key && key === value)
      return chunk(this.#product(query, 0, 3), 3, { axis: 2 }) as [Tensor, Tensor, Tensor];
    const q = this.#product(query, 0, 1);
    if (key === value) return [q, ...(chunk(this.#product(key, 1, 2), 2, { axis: 2 }) as [Tensor, Tensor])];
    return [q, this.#product(key, 1, 1), this.#product(value, 2, 1)];
  }

  /** `x` through `count` of the three projections from `first` on. */
  #product(x: Tensor, first: number, count: number): Tensor {
    const part = (t: Tensor): Tensor => (count === 3 ? t : narrow(t, 0, first * this.width, count * this.width));
    const product = matmul(x, transpose(part(this.in_proj_weight!)));
    return this.in_proj_bias === null ? product : product.add(part(this.in_proj_bias));
  }

  /** [N, L, width] to [N, heads, L, width / heads]. */
  #apart(x: Tensor): Tensor {
    const [batch, length] = x.shape as [number, number];
    return permute(reshape(x, [batch, length, this.heads, this.width / this.heads]), [0, 2, 1, 3]);
  }
}

/** Which of S keys each of L queries sees: those before it and its own, [L, S]. */
function causalMask(queries: number, keys: number): Tensor {
  return greaterEqual(reshape(arange(queries, { dtype: 'int32' }), [queries, 1]), arange(keys, { dtype: 'int32' }));
}

/** Options of `TransformerBlock`. */
export interface TransformerBlockOptions
  extends Omit<MultiHeadAttentionOptions, 'kdim' | 'vdim' | 'addBiasKv' | 'addZeroAttn'> {
  /** Width between the two linear layers (default 4 times the block's). */
  readonly dimFeedforward?: number;
  /** Function between them: 'gelu' (default), 'relu', or any other of one tensor. */
  readonly activation?: 'gelu' | 'relu' | ((x: Tensor) => Tensor);
  /** Normalise before attention and linear layers (default) or, as in the paper, the sums after them. */
  readonly normFirst?: boolean;
  /** Added to variances (default 1e-5). */
  readonly layerNormEps?: number;
}

/** The function between the two linear layers. */
export function activationOf(
  op: string,
  activation: NonNullable<TransformerBlockOptions['activation']>,
): (x: Tensor) => Tensor {
  const known = typeof activation === 'function' || activation === 'gelu' || activation === 'relu';
  checkFits(op, 'activation', activation, known, "'gelu', 'relu' or a function of one tensor");
  return activation === 'gelu' ? (x) => gelu(x) : activation === 'relu' ? relu : activation;
}

/**
 * Self-attention and two linear layers, each added to what went into it, with layer norms and dropout. Source: Vaswani et al. (2017); Xiong et al.,
 * "On layer normalization in the transformer architecture" (2020) for `normFirst`; PyTorch `nn.TransformerEncoderLayer` with `batch_first`. It can
 * load that one's weights; 'relu' and `normFirst: false` are the defaults there.
 *
 * @example
 * const block = new TransformerBlock(16, 4, { causal: true, dropout: 0.1 });
 * block.forward(zeros([2, 5, 16])).shape; // [2, 5, 16]
 */
export class TransformerBlock extends Module<[x: Tensor, call?: AttentionCall]> {
  readonly self_attn: MultiHeadAttention;
  readonly linear1: Linear;
  readonly linear2: Linear;
  readonly norm1: LayerNorm;
  readonly norm2: LayerNorm;
  readonly activation: (x: Tensor) => Tensor;
  readonly normFirst: boolean;
  readonly dropout: number;

  /**
   * @param width size of the last axis of input and output
   * @param heads must divide the width
   */
  constructor(width: number, heads: number, options: TransformerBlockOptions = {}) {
    super();
    checkOptions(
      'TransformerBlock',
      options,
      'bias? causal? dropout dtype dimFeedforward activation normFirst? layerNormEps#',
    );
    checkInteger('TransformerBlock', 'width', width, 1);
    const {
      dimFeedforward = 4 * width,
      activation = 'gelu',
      normFirst = true,
      layerNormEps: eps = 1e-5,
      ...attention
    } = options;
    const { bias = true, dtype = 'float32', dropout: share = 0 } = attention;
    checkInteger('TransformerBlock', 'dimFeedforward', dimFeedforward, 1);
    this.self_attn = new MultiHeadAttention(width, heads, attention);
    this.linear1 = new Linear(width, dimFeedforward, { bias, dtype });
    this.linear2 = new Linear(dimFeedforward, width, { bias, dtype });
    this.norm1 = new LayerNorm(width, { eps, dtype });
    this.norm2 = new LayerNorm(width, { eps, dtype });
    this.activation = activationOf('TransformerBlock', activation);
    this.normFirst = normFirst;
    this.dropout = share;
  }

  /**
   * @param x shape [N, L, width]
   * @param call a mask, a cache
   * @returns the same shape
   */
  forward(x: Tensor, call: AttentionCall = {}): Tensor {
    checkTensor('TransformerBlock', 'x', x);
    const attend = (t: Tensor): Tensor => this.#dropped(this.self_attn.forward(t, t, t, call));
    const think = (t: Tensor): Tensor =>
      this.#dropped(this.linear2.forward(this.#dropped(this.activation(this.linear1.forward(t)))));
    if (this.normFirst) {
      const seen = x.add(attend(this.norm1.forward(x)));
      return seen.add(think(this.norm2.forward(seen)));
    }
    const seen = this.norm1.forward(x.add(attend(x)));
    return this.norm2.forward(seen.add(think(seen)));
  }

  #dropped(x: Tensor): Tensor {
    return this.training && this.dropout > 0 ? dropout(x, { p: this.dropout, training: true }) : x;
  }
}
