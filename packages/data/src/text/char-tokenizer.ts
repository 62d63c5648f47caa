/** A token for every letter: the smallest tokenizer, for small models of text. */
import { checkFits, checkOptions, DataError, isListOf, isPlain } from '../errors.ts';
import { checkId, listOf } from './tokenizer.ts';

const op = 'CharTokenizer';

/**
 * A token for every letter (code point) of a text, numbered in the order of their code points.
 *
 * @example
 * const tokenizer = CharTokenizer.fit('hello');
 * tokenizer.encode('hole'); // Int32Array [1, 3, 2, 0]
 * tokenizer.decode([1, 0]); // 'he'
 * tokenizer.size; // 4
 */
export class CharTokenizer {
  /** The letters, each at its number. */
  readonly letters: readonly string[];
  readonly #unknown: string | null;
  readonly #ids: ReadonlyMap<string, number>;

  /**
   * @param letters each of one code point, all different
   * @param options unknown: one of the letters, used for all others (default: other letters are an error)
   * @throws DataError `argument`
   */
  constructor(letters: readonly string[], options: { readonly unknown?: string } = {}) {
    checkOptions(op, options, { unknown: 'string' });
    const { unknown = null } = options;
    const isLetter = (letter: unknown): boolean => typeof letter === 'string' && [...letter].length === 1;
    const isWanted = isListOf(letters, isLetter) && letters.length > 0;
    checkFits(
      op,
      'letters',
      letters,
      isWanted && new Set(letters).size === letters.length,
      'a list of different letters',
    );
    checkFits(op, 'unknown', unknown, unknown === null || letters.includes(unknown), 'one of the letters');
    this.letters = [...letters];
    this.#unknown = unknown;
    this.#ids = new Map(letters.map((letter, id) => [letter, id]));
  }

  /** A tokenizer of the letters that occur in texts. @throws DataError `argument` for texts without any */
  static fit(texts: string | Iterable<string>, options: { readonly unknown?: string } = {}): CharTokenizer {
    checkOptions(op, options, { unknown: 'string' });
    const isTexts =
      typeof texts === 'string' || (typeof texts === 'object' && texts !== null && Symbol.iterator in texts);
    checkFits(op, 'texts', texts, isTexts, 'a text, or an iterable of texts');
    const letters = new Set<string>(options.unknown === undefined ? [] : [options.unknown]);
    for (const text of typeof texts === 'string' ? [texts] : texts) {
      checkFits(op, 'text', text, typeof text === 'string', 'a text');
      for (const letter of text) letters.add(letter);
    }
    checkFits(op, 'texts', texts, letters.size > 0, 'a text with at least one letter');
    const inOrder = [...letters].sort((a, b) => a.codePointAt(0)! - b.codePointAt(0)!);
    return new CharTokenizer(inOrder, options);
  }

  /** A tokenizer from what `toJSON` gave. @throws DataError `argument` for anything else */
  static fromJSON(value: unknown): CharTokenizer {
    checkFits(op, 'value', value, isPlain(value), 'what a CharTokenizer gives as JSON');
    const { letters, unknown } = value as { letters: readonly string[]; unknown?: string | null };
    return new CharTokenizer(letters, typeof unknown === 'string' ? { unknown } : {});
  }

  /** Number of tokens. */
  get size(): number {
    return this.letters.length;
  }

  /** The numbers of a text's letters. @throws DataError `mismatch` for a letter without a number */
  encode(text: string): Int32Array {
    checkFits(op, 'text', text, typeof text === 'string', 'a text');
    const other = this.#unknown === null ? undefined : this.#ids.get(this.#unknown);
    return Int32Array.from([...text], (letter, i) => {
      const id = this.#ids.get(letter) ?? other;
      if (id === undefined)
        throw new DataError(
          'mismatch',
          'text',
          `[${op}] letter ${i} is '${letter}', which the tokenizer does not know; fit it on more text, or with unknown`,
        );
      return id;
    });
  }

  /** The letters of numbers. @throws DataError `argument` for numbers that are no letter's */
  decode(ids: ArrayLike<number>): string {
    return listOf(ids)
      .map((id) => {
        checkId(id, this.size);
        return this.letters[id]!;
      })
      .join('');
  }

  toJSON(): { letters: readonly string[]; unknown: string | null } {
    return { letters: this.letters, unknown: this.#unknown };
  }
}
