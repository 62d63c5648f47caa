import { describe, expect, it } from 'vitest';
import { readOptions, UsageError } from './options.ts';

describe('readOptions', () => {
  it('serves unless told otherwise', () => {
    expect(readOptions([])).toEqual({ mode: 'serve', port: 5173, out: 'out/playground' });
    expect(readOptions(['--port', '0'])).toMatchObject({ mode: 'serve', port: 0 });
    expect(readOptions(['--dev'])).toMatchObject({ mode: 'dev' });
    expect(readOptions(['-h'])).toBe('help');
  });

  it('builds a folder', () => {
    expect(readOptions(['--build'])).toMatchObject({ mode: 'build', out: 'out/playground' });
    expect(readOptions(['--build', 'a'])).toMatchObject({ mode: 'build', out: 'a' });
    expect(readOptions(['--build=a'])).toMatchObject({ mode: 'build', out: 'a' });
  });

  const wrong: [string[], RegExp][] = [
    [['--port', 'x'], /--port is 'x'; it must be an integer/],
    [['--port=65536'], /--port is '65536'/],
    [['folder'], /'folder' is not an option/],
    [['--build', 'a', 'b'], /'b' is not an option/],
    [['--build', '--dev'], /exclude each other/],
    [['--host'], /--host.*--help lists/],
  ];
  for (const [args, text] of wrong) {
    it(`refuses ${args.join(' ')}`, () => {
      expect(() => readOptions(args)).toThrow(UsageError);
      expect(() => readOptions(args)).toThrow(text);
    });
  }
});
