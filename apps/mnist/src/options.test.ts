import { describe, expect, it } from 'vitest';
import { UsageError } from './errors.ts';
import { readOptions } from './options.ts';

describe('readOptions', () => {
  it('has defaults', () => {
    expect(readOptions([])).toEqual({
      epochs: 3,
      batch: 64,
      limit: undefined,
      engine: 'auto',
      seed: 1,
      threads: undefined,
      data: undefined,
      out: 'out/mnist',
    });
  });

  it('reads every option', () => {
    const args = '--epochs 2 --batch=32 --limit 100 --engine reference --seed 0 --threads 2 --data d --out o'.split(
      ' ',
    );
    expect(readOptions(args)).toEqual({
      epochs: 2,
      batch: 32,
      limit: 100,
      engine: 'reference',
      seed: 0,
      threads: 2,
      data: 'd',
      out: 'o',
    });
    expect(readOptions(['--epochs', '0', '--help'])).toBe('help');
  });

  const wrong: [string[], RegExp][] = [
    [['--epochs', '0'], /--epochs is '0'; it must be an integer from 1/],
    [['--epochs', 'two'], /--epochs is 'two'/],
    [['--batch', '1.5'], /--batch is '1.5'/],
    [['--batch', '1e2'], /--batch is '1e2'/],
    [['--limit=-4'], /--limit is '-4'/],
    [['--seed', '4294967296'], /--seed is '4294967296'/],
    [['--threads', '0'], /--threads is '0'/],
    [['--threads', '65'], /--threads is '65'; it must be an integer from 1 to 64/],
    [['--epochs', '-1'], /--epochs is '-1'; it must be an integer from 1/],
    [['--seed', '-1'], /--seed is '-1'; it must be an integer from 0/],
    [['--out', ''], /--out is empty/],
    [['--epochs'], /--epochs/],
    [['--epoch', '3'], /--epoch.*--help lists/],
    [['more'], /more.*--help lists/],
  ];
  for (const [args, text] of wrong) {
    it(`refuses ${args.join(' ')}`, () => {
      expect(() => readOptions(args)).toThrow(UsageError);
      expect(() => readOptions(args)).toThrow(text);
      expect(() => readOptions(args)).not.toThrow(/\n/);
    });
  }
});
