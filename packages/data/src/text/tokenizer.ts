/**
 * Tokenizers: text to the numbers of tokens and back. Files of Hugging Face's format (`tokenizer.json`) are read by its own library
 * `@huggingface/tokenizers`, in JavaScript alone. It is loaded with the first of them, and this file checks what a damaged one would break.
 */
import { checkFits, checkInteger, checkOptions, DataError, isPlain, reasonOf, shown, isList } from '../errors.ts';
import { parsedJson, wholeText } from '../tables/chunks.ts';

/** What is used of the library; its own types do not resolve in Node's way. */
interface Library {
  encode(text: string, options: { add_special_tokens: boolean }): { readonly ids: readonly number[] };
  decode(ids: readonly number[], options: { skip_special_tokens: boolean }): string;
  token_to_id(token: string): number | undefined;
  get_vocab(withAdded: boolean): ReadonlyMap<string, number>;
}

/** Options of `encode` of a tokenizer. */
export interface EncodeOptions {
  /** Add the tokens that the file puts before and after a text, such as `<s>` (default true). */
  readonly special?: boolean;
}

/** Options of `decode` of a tokenizer. */
export interface DecodeTextOptions {
  /** Leave special tokens out of the text (default true). */
  readonly skipSpecial?: boolean;
}

const op = 'tokenizer';

type Json = Readonly<Record<string, unknown>>;

/** Tokens of a file; more are no vocabulary. */
const mostTokens = 2 ** 24;

/** Throws unless a file has what a tokenizer is made of. */
function checkFile(file: unknown, source: string): Json {
  const bad = (text: string): DataError =>
    new DataError(
      'format',
      source,
      `[${op}] ${source}: ${text}; it is no tokenizer.json of Hugging Face, or it is damaged`,
    );
  if (!isPlain(file)) throw bad(`it holds ${shown(file)}, not an object`);
  const { model, added_tokens: added = [] } = file as Json;
  if (!isPlain(model)) throw bad('it has no model');
  const { type, vocab, merges } = model as Json;
  const kinds = ['BPE', 'WordPiece', 'Unigram', undefined];
  if (!kinds.includes(type as string)) throw bad(`its model is ${shown(type)}; BPE, WordPiece and Unigram are read`);
  const isId = (id: unknown): id is number =>
    Number.isInteger(id) && (id as number) >= 0 && (id as number) < mostTokens;
  if (isList(vocab)) {
    const stray = vocab.findIndex(
      (entry) => !isList(entry) || typeof entry[0] !== 'string' || typeof entry[1] !== 'number',
    );
    if (stray >= 0) throw bad(`entry ${stray} of its vocabulary is no token with a score`);
  } else {
    if (!isPlain(vocab)) throw bad('its model has no vocabulary');
    const taken = new Map<number, string>();
    for (const [token, id] of Object.entries(vocab)) {
      if (!isId(id)) throw bad(`token '${token}' has the number ${shown(id)}`);
      const other = taken.get(id);
      if (other !== undefined) throw bad(`tokens '${other}' and '${token}' have the number ${id}`);
      taken.set(id, token);
    }
  }
  if (type === 'BPE' || merges !== undefined) {
    if (!isList(merges)) throw bad('its model has no merges');
    merges.forEach((merge: unknown, i) => {
      const parts: unknown[] = typeof merge === 'string' ? merge.split(' ') : isList(merge) ? merge : [];
      const isPair = parts.length === 2 && parts.every((part) => typeof part === 'string' && part !== '');
      if (!isPair) throw bad(`merge ${i} is ${shown(merge)}, not two tokens`);
      const result = parts.join('');
      if (isPlain(vocab) && !Object.hasOwn(vocab, result))
        throw bad(`merge ${i} makes '${result}', which the vocabulary lacks`);
    });
  }
  if (!isList(added)) throw bad('its added_tokens are no list');
  added.forEach((token: unknown, i) => {
    const { id, content } = (isPlain(token) ? token : {}) as Json;
    if (!isId(id) || typeof content !== 'string') throw bad(`added token ${i} has no number or no content`);
  });
  // Parts that say nothing may be left out.
  const nothing = { normalizer: null, pre_tokenizer: null, post_processor: null, decoder: null, added_tokens: [] };
  return { ...nothing, ...file };
}

/**
 * A tokenizer of a `tokenizer.json`; made by `loadTokenizer`.
 *
 * @example
 * const tokenizer = await loadTokenizer(trainBpe(['low lower lowest'], { vocabSize: 260 }));
 * const ids = tokenizer.encode('lower');
 * tokenizer.decode(ids); // 'lower'
 * tokenizer.size; // 260
 */
export class Tokenizer {
  readonly #library: Library;
  /** One more than the greatest number of a token: the rows of an embedding. */
  readonly size: number;
  readonly #tokens: ReadonlyMap<number, string>;

  /** @param library what reads the file, made by `loadTokenizer` */
  constructor(library: Library) {
    this.#library = library;
    const tokens = new Map<number, string>();
    for (const [token, id] of library.get_vocab(true)) tokens.set(id, token);
    this.#tokens = tokens;
    let size = 0;
    for (const id of tokens.keys()) size = Math.max(size, id + 1);
    this.size = size;
  }

  /**
   * The numbers of the tokens of a text.
   *
   * @throws DataError `argument` for what is no text, `mismatch` for a text that no tokens make up
   */
  encode(text: string, options: EncodeOptions = {}): Int32Array {
    checkFits(op, 'text', text, typeof text === 'string', 'a text');
    checkOptions(op, options, { special: 'boolean' });
    const { ids } = this.#library.encode(text, { add_special_tokens: options.special ?? true });
    const stray = ids.findIndex((id) => !Number.isInteger(id));
    if (stray >= 0)
      throw new DataError(
        'mismatch',
        'text',
        `[${op}] token ${stray} of the text is not in the vocabulary, which has no token for unknown ones`,
      );
    return Int32Array.from(ids);
  }

  /** The text of tokens. @throws DataError `argument` for numbers that are no token's */
  decode(ids: ArrayLike<number>, options: DecodeTextOptions = {}): string {
    checkOptions(op, options, { skipSpecial: 'boolean' });
    const list = listOf(ids);
    list.forEach((id, i) => {
      if (!this.#tokens.has(id))
        throw new DataError(
          'argument',
          'ids',
          `[${op}] ids[${i}] is ${shown(id)}, which is no token; numbers go to ${this.size - 1}`,
        );
    });
    if (list.length === 0) return '';
    return this.#library.decode(list, { skip_special_tokens: options.skipSpecial ?? true });
  }

  /** The number of a token as the vocabulary writes it, such as `<|endoftext|>`; undefined if it has none. */
  idOf(token: string): number | undefined {
    return this.#library.token_to_id(token);
  }

  /** The token of a number as the vocabulary writes it; undefined where there is none. */
  tokenOf(id: number): string | undefined {
    return this.#tokens.get(id);
  }

  /** What JSON and consoles show. */
  toJSON(): object {
    return { size: this.size };
  }
}

/** Numbers in a list, of anything like one. */
export function listOf(ids: ArrayLike<number>): number[] {
  const isWanted = isList(ids) || (ArrayBuffer.isView(ids) && !(ids instanceof DataView));
  checkFits(op, 'ids', ids, isWanted, 'a list of numbers, or an Int32Array');
  return Array.from(ids as ArrayLike<number | bigint>, (id, i) => {
    // A list in its place would be turned into text, which can take for ever.
    checkFits(op, `ids[${i}]`, id, typeof id === 'number' || typeof id === 'bigint', 'a number');
    return Number(id);
  });
}

/**
 * Reads a `tokenizer.json` of Hugging Face: byte-level BPE as of GPT-2 and Llama 3, BPE with byte fallback as of Llama 2, WordPiece, Unigram;
 * added and special tokens, normalizers and pre-tokenizers.
 *
 * @param file its text or bytes, or the object that it holds
 * @param options source: what to call the file in errors
 * @throws DataError `format` for a file that is damaged or of another kind
 * @example
 * const tokenizer = await loadTokenizer(trainBpe(['a cat, a hat'], { vocabSize: 259, specialTokens: ['<end>'] }));
 * tokenizer.idOf('<end>'); // 0
 * tokenizer.decode(tokenizer.encode('a cat é')); // 'a cat é'
 */
export async function loadTokenizer(
  file: string | Uint8Array | ArrayBuffer | object,
  options: { readonly source?: string } = {},
): Promise<Tokenizer> {
  checkOptions('loadTokenizer', options, { source: 'string' });
  const { source = 'tokenizer.json' } = options;
  const isContent = typeof file === 'string' || file instanceof Uint8Array || file instanceof ArrayBuffer;
  let value: unknown = file;
  if (isContent) {
    const parsed = parsedJson(wholeText(op, file, source));
    if ('problem' in parsed) {
      const isPath = typeof file === 'string' && /^[^{]*\.json\s*$/.test(file);
      const remedy = isPath ? 'give what is in the file, not its path' : 'get the file again';
      throw new DataError('format', source, `[${op}] ${source} is no JSON: ${parsed.problem}; ${remedy}`);
    }
    value = parsed.value;
  }
  const json = checkFile(value, source);
  const library = (await import('@huggingface/tokenizers')) as unknown as {
    Tokenizer: new (file: object, config: object) => Library;
  };
  try {
    // Spaces before full stops are part of a text here, as in the library for Python.
    return new Tokenizer(new library.Tokenizer(json, { clean_up_tokenization_spaces: false }));
  } catch (error) {
    const text = `[${op}] ${source} cannot be used: ${reasonOf(error)}; get the file again, or one of a supported kind`;
    throw new DataError('format', source, text, { cause: error });
  }
}

/** Throws unless a number is one of a vocabulary of `size`. */
export function checkId(id: number, size: number): void {
  checkInteger(op, 'id', id, 0, size - 1);
}
