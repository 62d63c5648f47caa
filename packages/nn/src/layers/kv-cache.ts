/**
 * KVCache: keys and values of the positions that attention has seen, so that a sequence is generated without computing them again.
 *
 * Keys and values of a layer are one tensor with room for `capacity` positions. New ones are scattered into it, in place, at positions that are data.
 * Attention runs over all of the room, and a mask by position hides what is not filled. So every step has the same plan.
 */
import {
  arange,
  cast,
  concat,
  type DType,
  detach,
  hostEffect,
  hostNumber,
  hostValue,
  indexCopy,
  indexSelect,
  isTensor,
  keep,
  lessEqual,
  logicalAnd,
  noGrad,
  pad,
  reshape,
  scaledDotProductAttention,
  scope,
  select,
  stack,
  type Tensor,
  tensor,
  where,
  zeros,
} from '@polygrad/core/functions';
import { checkFits, checkFraction, checkInteger, checkOptions, checkTensor, NnError } from '../errors.ts';
import { filled } from '../init/filled.ts';

/** Options of `KVCache`. */
export interface KVCacheOptions {
  /** Positions there is room for, from the first call on. Default: 128, and more as they are needed. */
  readonly capacity?: number;
  /** Twice the room when more is needed, instead of an error. Default: true where no capacity is given. */
  readonly growing?: boolean;
  /** What keys and values are kept as. Default: the dtype that they have. */
  readonly dtype?: DType;
}

/** What one call of `attend` says beside its operands. */
export interface CachedAttentionOptions {
  /** Which keys a query sees, beside those that come later: bool, or numbers to add. Broadcasts to [N, heads, L, capacity or positions]. */
  readonly mask?: Tensor | null;
  /** Factor of the products. Default 1 / sqrt(E). */
  readonly scale?: number;
  /** Share of the attention weights that become zero. Default 0. */
  readonly dropout?: number;
}

/** What is kept of one layer. */
interface Entry {
  /** Keys, and behind them values: [2, N, heads, capacity, E]. */
  kept: Tensor;
  length: number;
}

/** Positions of one call, shared by its layers: where they go [L], and which positions each of them sees [L, capacity]. */
interface Step {
  readonly start: number;
  readonly count: number;
  readonly capacity: number;
  readonly at: Tensor;
  readonly seen: Tensor;
}

/** The axis of positions. */
const axis = 3;
const op = 'KVCache';

/**
 * Keys and values that attention keeps from call to call, so that each call computes its own tokens only. One cache serves all layers of a
 * network: `MultiHeadAttention` and `TransformerBlock` take it as `{ cache }` and keep their own part in it. Source: PyTorch torchtune `KVCache`,
 * `StaticCache` and `DynamicCache` of Hugging Face transformers.
 *
 * What is kept is constant: no gradient flows into earlier calls. Call the network in a `scope`, which writes in place instead of copying. Or call it
 * in a function of `compile`, which replays the steps of a capacity.
 *
 * @example
 * const block = new TransformerBlock(16, 4, { causal: true }).eval();
 * const cache = new KVCache({ capacity: 32 });
 * block.forward(zeros([1, 5, 16]), { cache }).shape; // [1, 5, 16]
 * block.forward(zeros([1, 1, 16]), { cache }).shape; // [1, 1, 16]
 * console.log(cache.length); //=> 6
 * cache.reset();
 */
export class KVCache {
  readonly growing: boolean;
  readonly dtype: DType | null;
  readonly #first: number;
  readonly #entries = new Map<object, Entry>();
  #step: Step | null = null;

  constructor(options: KVCacheOptions = {}) {
    checkOptions(op, options, 'capacity growing? dtype');
    const { capacity = 128, growing = options.capacity === undefined, dtype = null } = options;
    checkInteger(op, 'capacity', capacity, 1);
    this.#first = capacity;
    this.growing = growing;
    this.dtype = dtype;
  }

  /** How many positions are kept, by the layer that came first: the position of the next token. */
  get length(): number {
    for (const { length } of this.#entries.values()) return length;
    return 0;
  }

  /** Positions there is room for now. */
  get capacity(): number {
    for (const { kept } of this.#entries.values()) return kept.shape[axis]!;
    return this.#first;
  }

  /**
   * Attention of new positions to themselves, to those before them and to all that are kept; their keys and values are kept from now on. For
   * layers of your own: those of this package call it.
   *
   * @param layer whose keys and values they are: any object, the same at each call
   * @param query shape [N, heads, L, E]
   * @param key shape [N, heads or a divisor of it, L, E]
   * @param value the same shape
   * @param options mask, scale, dropout
   * @returns shape [N, heads, L, E]
   * @throws NnError where there is no room, or the shape is not that of what is kept
   *
   * @example
   * const cache = new KVCache({ capacity: 8 });
   * const layer = {};
   * const x = ones([1, 2, 3, 4]);
   * cache.attend(layer, x, x, x).shape; // [1, 2, 3, 4]
   * cache.reset();
   */
  attend(layer: object, query: Tensor, key: Tensor, value: Tensor, options: CachedAttentionOptions = {}): Tensor {
    checkOptions(op, options, 'mask scale# dropout');
    for (const [name, x] of Object.entries({ query, key, value })) checkHeads(name, x);
    const { mask = null, dropout = 0 } = options;
    checkFraction(op, 'dropout', dropout);
    const scale = options.scale === undefined ? {} : { scale: options.scale };
    const fresh = cast(stack([key, value]), this.dtype ?? key.dtype);
    const count = key.shape[2]!;
    const start = this.#entries.get(layer)?.length ?? 0;
    // Growing is another step than those before it, and so are those behind it, or in another sequence.
    hostValue(() => this.#entries.get(layer)?.kept);
    hostValue(() => (this.#entries.get(layer)?.length ?? 0) + count > this.#roomOf(layer));
    const capacity = this.#roomFor(this.#entries.get(layer), fresh, start + count);
    const entry = this.#entryOf(layer, fresh, capacity);
    const { at, seen } = this.#stepOf(entry, count, capacity);
    const all = indexCopy(entry.kept, at, fresh, axis);
    const isFirst = count > 1 && hostValue(() => entry.length === 0);
    // A prompt sees itself alone: its scores need not be as wide as the room.
    const alone = isFirst && (mask === null || mask.shape.at(-1) !== capacity);
    const [keys, values] = [0, 1].map((part) => select(alone ? fresh : all, 0, part)) as [Tensor, Tensor];
    const masks = alone
      ? { mask, causal: true }
      : { mask: mask === null ? seen : maskedBy(seen, wide(mask, start + count, capacity)) };
    const result = scaledDotProductAttention(query, keys, values, { ...scale, ...masks, dropout });
    // Behind all that may throw: a call that is refused leaves the cache as it is.
    entry.kept.assign(detach(all));
    hostEffect(
      () => {
        if (entry.length + count > capacity) throw noRoom(entry.length + count, capacity);
        entry.length += count;
      },
      () => {
        entry.length -= count;
      },
    );
    return result;
  }

  /** How much room there is now. */
  #roomOf(layer: object): number {
    return this.#entries.get(layer)?.kept.shape[axis] ?? this.#first;
  }

  /** How much room there must be for so many positions. */
  #roomFor(known: Entry | undefined, fresh: Tensor, needed: number): number {
    const shape = known?.kept.shape ?? fresh.shape;
    if (fresh.shape.some((n, i) => i !== axis && n !== shape[i]))
      throw new NnError(
        op,
        `keys have shape [${fresh.shape.slice(1).join(', ')}], those kept [${shape.slice(1).join(', ')}]; only the length may differ: call reset() before another batch`,
        ['key'],
      );
    const room = known?.kept.shape[axis] ?? this.#first;
    if (needed > room && !this.growing) throw noRoom(needed, room);
    let capacity = room;
    while (capacity < needed) capacity *= 2;
    return capacity;
  }

  /** The layer's part, with that room. */
  #entryOf(layer: object, fresh: Tensor, capacity: number): Entry {
    const known = this.#entries.get(layer);
    if (known === undefined) {
      const size = fresh.shape.map((n, i) => (i === axis ? capacity : n));
      // Uploaded: a constant would be another plan than what is in memory.
      const entry = { kept: keep(filled(size, 0, fresh.dtype)), length: 0 };
      this.#entries.set(layer, entry);
      return entry;
    }
    const { kept } = known;
    const room = kept.shape[axis]!;
    if (capacity > room) {
      const more = kept.shape.map((n, i) => (i === axis ? capacity - room : n));
      known.kept = keep(concat([kept, zeros(more, { dtype: kept.dtype })], axis));
      kept.dispose();
    }
    return known;
  }

  /** Layers of one call share its positions and its mask, as long as these live. */
  #stepOf(entry: Entry, count: number, capacity: number): Step {
    const { length: start } = entry;
    const known = this.#step;
    const isSame = known !== null && known.start === start && known.count === count && known.capacity === capacity;
    if (isSame && !known.at.disposed && !known.seen.disposed) return known;
    this.#forgetStep();
    const first = hostNumber(() => entry.length, { dtype: 'int32' });
    const at = arange(count, { dtype: 'int32' }).add(first);
    const seen = lessEqual(arange(capacity, { dtype: 'int32' }), reshape(at, [count, 1]));
    this.#step = { start, count, capacity, at, seen };
    return this.#step;
  }

  #forgetStep(): void {
    this.#step?.at.dispose();
    this.#step?.seen.dispose();
    this.#step = null;
  }

  /**
   * Forgets the positions from `length` on; the next call goes on behind those that are left. For tokens that were proposed and refused, as in
   * speculative decoding. It computes nothing. Source: `crop` of `DynamicCache` of Hugging Face transformers.
   *
   * @param length how many positions stay; in a function of `compile` the number it was recorded with
   * @throws NnError for more positions than are kept
   *
   * @example
   * const block = new TransformerBlock(16, 4, { causal: true }).eval();
   * const cache = new KVCache({ capacity: 8 });
   * block.forward(zeros([1, 5, 16]), { cache }); // two tokens that are known, and three guesses
   * cache.truncate(3); // one of the guesses was right
   * console.log(cache.length); //=> 3
   * cache.reset();
   */
  truncate(length: number): void {
    checkInteger(op, 'length', length, 0);
    if (length > this.length)
      throw new NnError(op, `length is ${length}, and ${this.length} positions are kept; give at most as many`, [
        'length',
      ]);
    for (const entry of this.#entries.values()) {
      let cut = 0;
      hostEffect(
        () => {
          cut = Math.max(0, entry.length - length);
          entry.length -= cut;
        },
        () => {
          entry.length += cut;
        },
      );
    }
  }

  /**
   * Takes other sequences of the batch: sequence i is what sequence `indices[i]` was. For beam search, where the best continuations may be of the same
   * beginning. There may be more or fewer than before, such as the beams of one prompt. Source: `reorder_cache` of Hugging Face transformers.
   *
   * @param indices numbers of sequences: a list, or an integer tensor of one axis
   * @throws NnError for other tensors, ArgumentError for numbers outside of the batch
   *
   * @example
   * const block = new TransformerBlock(16, 4, { causal: true }).eval();
   * const cache = new KVCache({ capacity: 8 });
   * block.forward(zeros([1, 3, 16]), { cache }); // the prompt
   * cache.reorder([0, 0, 0]); // three beams
   * block.forward(zeros([3, 1, 16]), { cache }).shape; // [3, 1, 16]
   * cache.reset();
   */
  reorder(indices: readonly number[] | Tensor): void {
    if (isTensor(indices)) checkFits(op, 'indices', indices, indices.ndim === 1, 'a tensor of one axis');
    else checkFits(op, 'indices', indices, Array.isArray(indices), 'a list of numbers, or an integer tensor');
    noGrad(() =>
      scope(() => {
        const at = isTensor(indices) ? indices : tensor([...indices], { dtype: 'int32' });
        for (const entry of this.#entries.values()) {
          const taken = indexSelect(entry.kept, at, 1);
          if (taken.shape[1] === entry.kept.shape[1]) entry.kept.assign(taken);
          else {
            entry.kept.dispose();
            entry.kept = keep(taken);
          }
        }
      }),
    );
  }

  /** Forgets all positions, and gives their memory back; the next call begins a sequence, of whatever batch. */
  reset(): void {
    this.#forgetStep();
    for (const { kept } of this.#entries.values()) kept.dispose();
    this.#entries.clear();
  }

  /** Gives the memory back: the same as `reset`. */
  dispose(): void {
    this.reset();
  }

  [Symbol.dispose](): void {
    this.reset();
  }
}

function noRoom(needed: number, room: number): NnError {
  return new NnError(
    op,
    `no room: ${needed} positions for a capacity of ${room}; give a greater capacity or { growing: true }, or call reset() before another sequence`,
    ['capacity'],
  );
}

function checkHeads(name: string, x: Tensor): void {
  checkTensor(op, name, x);
  if (x.shape.length !== 4)
    throw new NnError(op, `${name} has shape [${x.shape.join(', ')}]; it must be [N, heads, L, E]`, [name]);
}

/** The mask for all positions there is room for. */
function wide(mask: Tensor, length: number, capacity: number): Tensor {
  const { shape } = mask;
  const last = shape.at(-1) ?? 1;
  if (last === 1 || last === capacity) return mask;
  if (last === length)
    return pad(mask, [...shape.slice(1).map((): [number, number] => [0, 0]), [0, capacity - length]]);
  throw new NnError(
    op,
    `mask has shape [${shape.join(', ')}]; its last axis must be 1, the ${length} positions or the capacity of ${capacity}`,
    ['mask'],
  );
}

function maskedBy(seen: Tensor, mask: Tensor): Tensor {
  return mask.dtype === 'bool' ? logicalAnd(seen, mask) : where(seen, mask, Number.NEGATIVE_INFINITY);
}
