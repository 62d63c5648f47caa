/** Stretches of a long text for a language model: tokens, and the tokens behind each of them. */
import { checkInteger, checkOptions, DataError } from '../errors.ts';
import { Dataset } from '../pipeline/dataset.ts';
import { listOf } from './tokenizer.ts';

/** Options of `tokenWindows`. */
export interface TokenWindowsOptions {
  /** Tokens of a stretch. */
  readonly length: number;
  /** Tokens from the beginning of one to that of the next (default the length: none overlaps another). */
  readonly stride?: number;
}

/** One stretch: `length` tokens, and the one behind each. */
export interface TokenWindow {
  readonly x: Int32Array;
  readonly y: Int32Array;
}

/**
 * Stretches of a long list of tokens: `x` has `length` of them, `y` those one further on, which a language model is to predict.
 *
 * @param ids the tokens of the whole text
 * @param options length, stride (the length)
 * @throws DataError `argument`, also for texts shorter than one stretch
 * @example
 * const data = tokenWindows([1, 2, 3, 4, 5], { length: 2 });
 * data.length; // 2
 * (await data.toArray())[1]!.y; // Int32Array [4, 5]
 */
export function tokenWindows(ids: ArrayLike<number>, options: TokenWindowsOptions): Dataset<TokenWindow> {
  checkOptions('tokenWindows', options, { length: 'number', stride: 'number' });
  const { length, stride = length } = options;
  checkInteger('tokenWindows', 'length', length, 1);
  checkInteger('tokenWindows', 'stride', stride, 1);
  const tokens = ids instanceof Int32Array ? ids : Int32Array.from(listOf(ids));
  if (tokens.length < length + 1)
    throw new DataError(
      'argument',
      'ids',
      `[tokenWindows] there are ${tokens.length} tokens; a stretch of ${length} and the token behind it need ${length + 1}`,
    );
  const count = Math.floor((tokens.length - 1 - length) / stride) + 1;
  const starts = Array.from({ length: count }, (_, i) => i * stride);
  return Dataset.from(starts).map((start) => ({
    x: tokens.subarray(start, start + length),
    y: tokens.subarray(start + 1, start + length + 1),
  }));
}
