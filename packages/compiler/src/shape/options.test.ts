/** What the type checker and the check itself know of options: each has its name in the text, and no other is there. */
import { describe, expect, it } from 'vitest';
import { ArgumentError, type DType } from '@polygrad/core';
import { checkFields, checkNames, numberFrom, type OptionRules, oneOf } from './options.ts';

interface Options {
  readonly axis?: number | readonly number[];
  readonly keepDims?: boolean;
  readonly p?: number;
  readonly dtype?: DType;
  readonly mask?: object | null;
  readonly onStep?: (step: number) => void;
}
const options: Options = { axis: 1, keepDims: true };

describe('checkNames', () => {
  it('takes the options of the type, with marks that fit or without', () => {
    checkNames('f', options, 'axis keepDims? p# dtype% mask@ onStep!');
    checkNames('f', options, 'onStep mask dtype p keepDims? axis');
    checkNames('f', undefined as Options | undefined, 'axis keepDims? p dtype mask onStep');
    checkNames('f', { a: 1 } as { a?: number } | { b?: boolean }, 'a# b?');
    checkNames<unknown, string>('f', options, ['axis', 'keepDims?'].join(' '));
    expect(() => checkNames('f', { p: '2' } as unknown as Options, 'axis keepDims? p# dtype mask onStep')).toThrow(
      new ArgumentError('f', "bad p: '2'; must be a number"),
    );
  });

  it('is refused by the type checker otherwise', () => {
    // @ts-expect-error keepDim is no option
    expect(() => checkNames('f', options, 'axis keepDim? p dtype mask onStep')).toThrow("no option 'keepDims'");
    // @ts-expect-error p is left out
    checkNames('f', options, 'axis keepDims? dtype mask onStep');
    // @ts-expect-error there is no q
    checkNames('f', options, 'axis keepDims? p q dtype mask onStep');
    // @ts-expect-error axis may be a list
    checkNames('f', {} as Options, 'axis# keepDims? p dtype mask onStep');
    // @ts-expect-error a boolean has a mark: nothing else checks it
    checkNames('f', options, 'axis keepDims p dtype mask onStep');
    // @ts-expect-error p is no dtype
    checkNames('f', {} as Options, 'axis keepDims? p% dtype mask onStep');
    // @ts-expect-error p is no tensor
    checkNames('f', {} as Options, 'axis keepDims? p@ dtype mask onStep');
    // @ts-expect-error a mask is no function
    checkNames('f', {} as Options, 'axis keepDims? p dtype mask! onStep');
    // @ts-expect-error b is of one member of a union, and left out
    checkNames('f', {} as { a?: number } | { b?: boolean }, 'a#');
  });
});

describe('checkFields', () => {
  it('takes one rule for each option', () => {
    const rules: OptionRules<{ readonly threads?: number; readonly mode?: 'a' | 'b' }> = {
      threads: numberFrom(1),
      mode: oneOf('a', 'b'),
    };
    checkFields('f', { threads: 2 } as { readonly threads?: number; readonly mode?: 'a' | 'b' }, rules);
    // @ts-expect-error threads has no rule
    checkFields('f', {} as { readonly threads?: number }, {});
    // @ts-expect-error there is no thread
    checkFields('f', {} as { readonly threads?: number }, { threads: numberFrom(1), thread: numberFrom(1) });
    // @ts-expect-error mode has no rule
    const fewer: OptionRules<{ readonly threads?: number; readonly mode?: string }> = { threads: numberFrom(1) };
    expect(Object.keys(fewer)).toEqual(['threads']);
  });
});
