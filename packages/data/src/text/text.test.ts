/** Tokenizers against GPT-2's own vocabulary and published numbers, and a slow trainer; damaged files. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { DataError, isDataError } from '../errors.ts';
import { RandomStream } from '../random.ts';
import { CharTokenizer } from './char-tokenizer.ts';
import { loadTokenizer, type Tokenizer } from './tokenizer.ts';
import { trainBpe } from './train-bpe.ts';
import { tokenWindows } from './windows.ts';

const require = createRequire(import.meta.url);

/** GPT-2's files as OpenAI published them, put into the form of `tokenizer.json`. */
function gpt2File(): object {
  const read = (name: string): string => readFileSync(require.resolve(`gpt-3-encoder/${name}`), 'utf8');
  const vocab = JSON.parse(read('encoder.json')) as Record<string, number>;
  const merges = read('vocab.bpe')
    .split('\n')
    .slice(1)
    .filter((line) => line !== ''); // prettier-ignore
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true };
  const end = {
    id: 50256,
    content: '<|endoftext|>',
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: true,
    special: true,
  }; // prettier-ignore
  return {
    version: '1.0',
    added_tokens: [end],
    normalizer: null,
    pre_tokenizer: byteLevel,
    post_processor: byteLevel,
    decoder: byteLevel,
    model: { type: 'BPE', vocab, merges },
  };
}

const corpus = readFileSync(new URL('../../../../CONTRIBUTING.md', import.meta.url), 'utf8');
const samples = [
  '',
  ' ',
  'Hello world',
  "I'll go, we've 12,345 of  them.\n\n\tOK?",
  'é漢😀\u0000\ufeff',
  "don't  stop   ",
  corpus,
];

describe('loadTokenizer', () => {
  let gpt2: Tokenizer;
  beforeAll(async () => {
    gpt2 = await loadTokenizer(JSON.stringify(gpt2File()));
  });

  it("gives GPT-2's published numbers", () => {
    // From the README of the package tiktoken, and the documentation of OpenAI and Hugging Face.
    expect([...gpt2.encode('Hello world')]).toEqual([15496, 995]);
    expect([...gpt2.encode('Hello, my dog is cute')]).toEqual([15496, 11, 616, 3290, 318, 13779]);
    expect([...gpt2.encode('The quick brown fox jumps over the lazy dog')]).toEqual([
      464, 2068, 7586, 21831, 18045, 625, 262, 16931, 3290,
    ]); // prettier-ignore
    expect([gpt2.size, gpt2.idOf('<|endoftext|>'), gpt2.tokenOf(995)]).toEqual([50257, 50256, 'Ġworld']);
    expect([...gpt2.encode('a<|endoftext|>b')]).toEqual([64, 50256, 65]);
    expect(gpt2.decode([64, 50256, 65])).toBe('ab');
    expect(gpt2.decode([64, 50256, 65], { skipSpecial: false })).toBe('a<|endoftext|>b');
  });

  it("is what another program makes of GPT-2's files, and comes back", () => {
    const other = require('gpt-3-encoder') as { encode(text: string): number[] };
    for (const text of samples) {
      const ids = gpt2.encode(text);
      expect([...ids]).toEqual(other.encode(text));
      expect(gpt2.decode(ids)).toBe(text);
    }
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 40 }), (text) => {
        expect([...gpt2.encode(text)]).toEqual(other.encode(text));
        expect(gpt2.decode(gpt2.encode(text))).toBe(text);
      }),
      { seed: 4, numRuns: 300 },
    );
  });

  it("reads files of Llama's form: spaces as ▁, bytes for what is unknown, a token before each text", async () => {
    const bytes = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`);
    const pieces = ['▁', 'a', 'b', 'c', 'ab', '▁ab', 'abc'];
    const tokens = ['<unk>', '<s>', '</s>', ...bytes, ...pieces];
    const added = ['<unk>', '<s>', '</s>'].map((content, id) => ({
      id,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })); // prettier-ignore
    const llama = await loadTokenizer({
      version: '1.0',
      added_tokens: added,
      normalizer: {
        type: 'Sequence',
        normalizers: [
          { type: 'Prepend', prepend: '▁' },
          { type: 'Replace', pattern: { String: ' ' }, content: '▁' },
        ],
      },
      pre_tokenizer: null,
      post_processor: {
        type: 'TemplateProcessing',
        single: [{ SpecialToken: { id: '<s>', type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }],
        pair: [],
        special_tokens: { '<s>': { id: '<s>', ids: [1], tokens: ['<s>'] } },
      },
      decoder: {
        type: 'Sequence',
        decoders: [
          { type: 'Replace', pattern: { String: '▁' }, content: ' ' },
          { type: 'ByteFallback' },
          { type: 'Fuse' },
          { type: 'Strip', content: ' ', start: 1, stop: 0 },
        ],
      },
      model: {
        type: 'BPE',
        unk_token: '<unk>',
        fuse_unk: true,
        byte_fallback: true,
        vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
        merges: ['a b', '▁ ab', 'ab c'],
      },
    });
    const id = (token: string): number => tokens.indexOf(token);
    expect([...llama.encode('ab abc')]).toEqual([1, id('▁ab'), id('▁ab'), id('c')]);
    expect([...llama.encode('ab', { special: false })]).toEqual([id('▁ab')]);
    expect([...llama.encode('é', { special: false })]).toEqual([id('▁'), id('<0xC3>'), id('<0xA9>')]);
    for (const text of ['ab abc', 'é 😀 ab', 'xyz']) expect(llama.decode(llama.encode(text))).toBe(text);
  });

  it('refuses what is no tokenizer, and what its tokens are not', async () => {
    const failure = (file: unknown) =>
      loadTokenizer(file as never, { source: 't.json' }).then(
        () => null,
        (error) => error as DataError,
      ); // prettier-ignore
    const model = { type: 'BPE', vocab: { a: 0, b: 1, ab: 2 }, merges: ['a b'] };
    const cases: [unknown, RegExp][] = [
      ['{"model":', /t.json is no JSON.*get the file again/],
      ['tokenizer.json', /is no JSON.*give what is in the file, not its path/],
      ['[]', /holds a list of 0, not an object/],
      [{}, /it has no model/],
      [{ model: { ...model, type: 'Char' } }, /its model is 'Char'; BPE, WordPiece and Unigram/],
      [{ model: { ...model, vocab: { a: 0, b: 0 } } }, /tokens 'a' and 'b' have the number 0/],
      [{ model: { ...model, vocab: { a: -1 } } }, /token 'a' has the number -1/],
      [{ model: { ...model, merges: ['a'] } }, /merge 0 is 'a', not two tokens/],
      [{ model: { ...model, merges: ['b a'] } }, /makes 'ba', which the vocabulary lacks/],
      [{ model: { ...model, merges: undefined } }, /no merges/],
      [{ model, added_tokens: [{ id: 'x', content: 'y' }] }, /added token 0 has no number/],
      [{ model, decoder: null, pre_tokenizer: { type: 'Nothing' } }, /t.json cannot be used: .*Nothing/],
      [Uint8Array.of(0xff), /no UTF-8/],
    ];
    for (const [file, message] of cases) {
      const error = await failure(file);
      expect(error?.message).toMatch(message);
      expect([error?.code, error?.source]).toEqual(['format', 't.json']);
    }
    for (const file of [null, undefined, 5, Symbol('x')]) expect(await failure(file)).toBeInstanceOf(DataError);
    expect(() => gpt2.decode([50257])).toThrow(/ids\[0\] is 50257, which is no token/);
    expect(() => gpt2.decode('15' as never)).toThrow(DataError);
    for (const text of [null, 5, {}]) expect(() => gpt2.encode(text as never)).toThrow(DataError);
    const small = await loadTokenizer({ model });
    // Without a token for unknown ones they are left out, as by the library in Rust.
    expect([...small.encode('abz')]).toEqual([2]);
  });

  it('is not thrown off by damage: a tokenizer or a DataError, always', async () => {
    const whole = new TextEncoder().encode(
      JSON.stringify(trainBpe(['the cat sat on the mat the cat'], { vocabSize: 265 })),
    );
    const random = new RandomStream(5);
    let refused = 0;
    for (let round = 0; round < 300; round++) {
      let damaged = whole.slice();
      if (round % 2) damaged = damaged.slice(0, random.below(whole.length));
      else for (let i = 0; i <= round % 4; i++) damaged[random.below(whole.length)]! ^= 1 << random.below(8);
      try {
        const tokenizer = await loadTokenizer(damaged);
        tokenizer.decode(tokenizer.encode('the cat'));
      } catch (error) {
        if (!isDataError(error)) throw error;
        refused++;
      }
    }
    expect(refused).toBeGreaterThan(200);
  });
});

/** The merges of a text, all pairs counted anew each time. */
function slowMerges(text: string, count: number): string[] {
  const words = new Map<string, number>();
  for (const [word] of text.matchAll(/ ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu))
    words.set(word, (words.get(word) ?? 0) + 1); // prettier-ignore
  // Letters of ASCII are their own bytes; a space is Ġ, a line end Ċ.
  let split = [...words].map(([word, times]) => ({
    parts: [...word.replaceAll(' ', 'Ġ').replaceAll('\n', 'Ċ')],
    times,
  }));
  const order = new Map<string, number>();
  const rank = (part: string): number => order.get(part) ?? part.charCodeAt(0) - 1e6;
  const merges: string[] = [];
  while (merges.length < count) {
    const counts = new Map<string, number>();
    for (const { parts, times } of split)
      for (let i = 0; i + 1 < parts.length; i++)
        counts.set(`${parts[i]} ${parts[i + 1]}`, (counts.get(`${parts[i]} ${parts[i + 1]}`) ?? 0) + times); // prettier-ignore
    const best = [...counts].sort(([a, m], [b, n]) => {
      const [[a0, a1], [b0, b1]] = [a.split(' '), b.split(' ')] as [[string, string], [string, string]];
      return n - m || rank(a0) - rank(b0) || rank(a1) - rank(b1);
    })[0];
    if (best === undefined || best[1] < 2) break;
    merges.push(best[0]);
    const [left, right] = best[0].split(' ') as [string, string];
    order.set(left + right, merges.length);
    split = split.map(({ parts, times }) => {
      const merged: string[] = [];
      for (let i = 0; i < parts.length; i++)
        merged.push(parts[i] === left && parts[i + 1] === right ? left + parts[++i]! : parts[i]!); // prettier-ignore
      return { parts: merged, times };
    });
  }
  return merges;
}

describe('trainBpe', () => {
  it('finds the merges of a slow trainer', () => {
    const text = corpus.replace(/[^\x20-\x7e\n]|'/g, '').slice(0, 8000);
    const { merges } = trainBpe(text, { vocabSize: 256 + 150 }).model;
    expect(merges).toEqual(slowMerges(text, 150));
    expect(merges.length).toBe(150);
  });

  it('makes a file that is read, shorter texts, and all of them back', async () => {
    const file = trainBpe([corpus], { vocabSize: 600, specialTokens: ['<|endoftext|>', '<pad>'] });
    const tokenizer = await loadTokenizer(JSON.stringify(file));
    expect([tokenizer.size, tokenizer.idOf('<|endoftext|>'), tokenizer.idOf('<pad>')]).toEqual([600, 0, 1]);
    for (const text of samples) expect(tokenizer.decode(tokenizer.encode(text))).toBe(text);
    expect(tokenizer.encode(corpus).length).toBeLessThan(corpus.length / 2);
    expect([...tokenizer.encode('<pad>a')].slice(0, 1)).toEqual([1]);
    expect(trainBpe([corpus], { vocabSize: 600, specialTokens: ['<|endoftext|>', '<pad>'] })).toEqual(file);
  });

  it('ends where nothing is frequent, and refuses what does not fit', () => {
    expect(trainBpe('abc', { vocabSize: 1000 }).model.merges).toEqual([]);
    expect(trainBpe('abc', { vocabSize: 257, minFrequency: 1 }).model.merges).toEqual(['a b']);
    expect(() => trainBpe('abc', { vocabSize: 255 })).toThrow(/vocabSize is 255; it must be an integer from 256/);
    for (const call of [
      () => trainBpe(5 as never, { vocabSize: 300 }),
      () => trainBpe([5] as never, { vocabSize: 300 }),
      () => trainBpe('a', undefined as never),
      () => trainBpe('a', { vocabSize: 300, specialTokens: [''] }),
      () => trainBpe('a', { vocabSize: 300, size: 3 } as never),
    ])
      expect(call).toThrow(DataError);
  });
});

describe('CharTokenizer', () => {
  it('numbers letters, whatever their size', () => {
    const tokenizer = CharTokenizer.fit(['b😀a', 'é'], { unknown: '?' });
    expect(tokenizer.letters).toEqual(['?', 'a', 'b', 'é', '😀']);
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...tokenizer.letters), { maxLength: 20 }), (letters) => {
        const ids = tokenizer.encode(letters.join(''));
        expect(ids.length).toBe(letters.length);
        expect(tokenizer.decode(ids)).toBe(letters.join(''));
      }),
      { seed: 1 },
    );
    expect([...tokenizer.encode('xa')]).toEqual([0, 1]);
    expect(CharTokenizer.fromJSON(JSON.parse(JSON.stringify(tokenizer))).encode('zé')).toEqual(Int32Array.of(0, 3));
  });

  it('refuses what it does not know', () => {
    const tokenizer = CharTokenizer.fit('ab');
    expect(() => tokenizer.encode('abc')).toThrow(/letter 2 is 'c'/);
    expect(() => tokenizer.decode([2])).toThrow(/id is 2/);
    for (const letters of [[], ['ab'], ['a', 'a'], 'ab', null])
      expect(() => new CharTokenizer(letters as never)).toThrow(DataError); // prettier-ignore
    expect(() => CharTokenizer.fit('')).toThrow(DataError);
    expect(() => CharTokenizer.fromJSON(null)).toThrow(DataError);
    expect(() => new CharTokenizer(['a'], { unknown: 'b' })).toThrow(/unknown is 'b'/);
  });
});

describe('tokenWindows', () => {
  it('gives every stretch that has a token behind it', async () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 0, max: 30 }),
        (length, stride, more) => {
          const ids = Int32Array.from({ length: length + 1 + more }, (_, i) => i * 3);
          let expected = 0;
          for (let start = 0; start + length + 1 <= ids.length; start += stride) expected++;
          expect(tokenWindows(ids, { length, stride }).length).toBe(expected);
        },
      ), // prettier-ignore
      { seed: 1 },
    );
    const [, second] = await tokenWindows([5, 6, 7, 8, 9], { length: 3, stride: 1 }).batch(1).toArray(); // prettier-ignore
    expect([second!.x.data, second!.y.data, second!.x.dtype]).toEqual([
      Int32Array.of(6, 7, 8),
      Int32Array.of(7, 8, 9),
      'int32',
    ]); // prettier-ignore
    expect(() => tokenWindows([1, 2], { length: 2 })).toThrow(/need 3/);
  });
});
