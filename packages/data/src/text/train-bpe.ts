/**
 * Byte-pair encoding learned from texts: the most frequent pair of neighbours becomes a token, again and again. The result is what a
 * `tokenizer.json` holds, of the kind of GPT-2.
 *
 * Source: Sennrich, Haddow, Birch, "Neural machine translation of rare words with subword units" (2016); on bytes: Radford et al., "Language
 * models are unsupervised multitask learners" (2019). Order of equals and of numbers: the trainer of Hugging Face's `tokenizers`.
 */
import TinyQueue from 'tinyqueue';
import { checkFits, checkInteger, checkOptions, isList } from '../errors.ts';

/** Options of `trainBpe`. */
export interface TrainBpeOptions {
  /** Tokens in all: 256 bytes, the special ones, and as many merges as fit or are found. */
  readonly vocabSize: number;
  /** Special tokens without text, such as '<|endoftext|>'; they get the first numbers. */
  readonly specialTokens?: readonly string[];
  /** How often a pair must occur to be merged (default 2). */
  readonly minFrequency?: number;
}

/** What a `tokenizer.json` holds, as far as it is made here. */
export interface TokenizerFile {
  readonly version: string;
  readonly added_tokens: readonly object[];
  readonly model: {
    readonly type: 'BPE';
    readonly vocab: Readonly<Record<string, number>>;
    readonly merges: readonly string[];
  };
  readonly [part: string]: unknown;
}

const op = 'trainBpe';

/** Words as GPT-2 cuts text into them. */
const words = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu;

/** A letter for each byte, none of them a space or a control character: GPT-2's `bytes_to_unicode`. */
function byteLetters(): string[] {
  let next = 256;
  const isShown = (byte: number): boolean => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isShown(byte) ? byte : next++));
}

/** A word of the texts: its tokens, and how often it occurs. */
interface Word {
  ids: number[];
  readonly count: number;
}

/** A pair of neighbours, how often it occurs, and in which words. */
interface Pair {
  readonly left: number;
  readonly right: number;
  count: number;
  readonly words: Set<number>;
}

/** A place in the queue: out of date where the pair's count has changed. */
interface Entry {
  readonly pair: Pair;
  readonly count: number;
}

/** All pairs of neighbours, the most frequent first; of equals the one of the earlier tokens. */
class Pairs {
  readonly #byKey = new Map<number, Pair>();
  readonly #queue = new TinyQueue<Entry>(
    [],
    (a, b) => b.count - a.count || a.pair.left - b.pair.left || a.pair.right - b.pair.right,
  );
  readonly #changed = new Set<Pair>();

  add(left: number, right: number, count: number, word: number): void {
    const key = left * 2 ** 24 + right;
    let pair = this.#byKey.get(key);
    if (pair === undefined) {
      pair = { left, right, count: 0, words: new Set() };
      this.#byKey.set(key, pair);
    }
    pair.count += count;
    if (count > 0) pair.words.add(word);
    this.#changed.add(pair);
  }

  /** The most frequent pair; undefined if there is none. */
  best(): Pair | undefined {
    for (const pair of this.#changed) if (pair.count > 0) this.#queue.push({ pair, count: pair.count });
    this.#changed.clear();
    for (let entry = this.#queue.pop(); entry !== undefined; entry = this.#queue.pop())
      if (entry.count === entry.pair.count && entry.pair.count > 0) return entry.pair;
    return undefined;
  }
}

/** The words of texts as numbers of bytes, each once. */
function countWords(texts: Iterable<string>, firstByte: ReadonlyMap<string, number>): Word[] {
  const letters = byteLetters();
  const counts = new Map<string, number>();
  for (const text of texts) {
    checkFits(op, 'text', text, typeof text === 'string', 'a text');
    for (const [word] of text.matchAll(words)) counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const encoder = new TextEncoder();
  return [...counts].map(([word, count]) => ({
    ids: Array.from(encoder.encode(word), (byte) => firstByte.get(letters[byte]!)!),
    count,
  }));
}

/** Makes a pair of a word one token, and tells what that does to its neighbours. */
function mergeIn(word: Word, index: number, { left, right }: Pair, made: number, pairs: Pairs): void {
  const { ids, count } = word;
  for (let i = 0; i + 1 < ids.length; i++) pairs.add(ids[i]!, ids[i + 1]!, -count, index);
  const merged: number[] = [];
  for (let i = 0; i < ids.length; i++) {
    const isPair = ids[i] === left && ids[i + 1] === right;
    merged.push(isPair ? made : ids[i]!);
    if (isPair) i++;
  }
  word.ids = merged;
  for (let i = 0; i + 1 < merged.length; i++) pairs.add(merged[i]!, merged[i + 1]!, count, index);
}

/**
 * Learns a byte-level BPE tokenizer from texts. Any text can be told in its tokens, since all bytes are among them.
 *
 * @param texts what to learn from, or one text
 * @param options vocabSize, specialTokens ([]), minFrequency (2)
 * @returns what a `tokenizer.json` holds: for `loadTokenizer`, for a file, for other libraries
 * @throws DataError `argument`
 * @example
 * const file = trainBpe(['hug pug hugs bun pun hug'], { vocabSize: 258 });
 * file.model.merges; // ['u g', 'h ug']
 */
export function trainBpe(texts: string | Iterable<string>, options: TrainBpeOptions): TokenizerFile {
  checkOptions(op, options, { vocabSize: 'number', specialTokens: 'any', minFrequency: 'number' });
  const isTexts =
    typeof texts === 'string' || (typeof texts === 'object' && texts !== null && Symbol.iterator in texts);
  checkFits(op, 'texts', texts, isTexts, 'a text, or an iterable of texts');
  const { vocabSize, specialTokens = [], minFrequency = 2 } = options;
  const isSpecial = isList(specialTokens) && specialTokens.every((token) => typeof token === 'string' && token !== '');
  checkFits(op, 'specialTokens', specialTokens, isSpecial, 'a list of texts');
  const letters = byteLetters().sort((a, b) => a.charCodeAt(0) - b.charCodeAt(0));
  const tokens = [...new Set([...specialTokens, ...letters])];
  checkInteger(op, 'vocabSize', vocabSize, tokens.length, 2 ** 24 - 1);
  checkInteger(op, 'minFrequency', minFrequency, 1);
  const ids = new Map(tokens.map((token, id) => [token, id]));
  const known = countWords(typeof texts === 'string' ? [texts] : texts, ids);
  const pairs = new Pairs();
  for (const [index, { ids: word, count }] of known.entries())
    for (let i = 0; i + 1 < word.length; i++) pairs.add(word[i]!, word[i + 1]!, count, index);
  const merges: string[] = [];
  while (tokens.length < vocabSize) {
    const pair = pairs.best();
    if (pair === undefined || pair.count < minFrequency) break;
    const [left, right] = [tokens[pair.left]!, tokens[pair.right]!];
    // Two ways to the same letters are one token.
    const made = ids.get(left + right) ?? tokens.push(left + right) - 1;
    ids.set(left + right, made);
    merges.push(`${left} ${right}`);
    for (const index of [...pair.words]) mergeIn(known[index]!, index, pair, made, pairs);
  }
  const special = specialTokens.map((content) => ({
    id: ids.get(content)!,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true,
  }));
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true };
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: special,
    normalizer: null,
    pre_tokenizer: byteLevel,
    post_processor: { ...byteLevel, trim_offsets: false },
    decoder: byteLevel,
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      vocab: Object.fromEntries(ids),
      merges,
    } as TokenizerFile['model'],
  };
}
