import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  allClose,
  arange,
  clearPlans,
  concat,
  type DType,
  flush,
  grad,
  idle,
  memory,
  narrow,
  noGrad,
  ones,
  OutOfMemoryError,
  randn,
  scaledDotProductAttention,
  scope,
  setEngine,
  sum,
  type Tensor,
  tensor,
  warmup,
  zeros,
} from '@polygrad/core';
import { createFaultyEngine, createReferenceEngine } from '@polygrad/testing';
import {
  KVCache,
  type KVCacheOptions,
  MultiHeadAttention,
  NnError,
  Transformer,
  TransformerBlock,
  TransformerEncoder,
} from '../index.ts';

const [N, width, heads] = [2, 12, 3];

beforeEach(async () => void (await setEngine(createReferenceEngine())));

/** Results for the parts of a sequence, one call each. */
function inParts(
  forward: (x: Tensor, cache: KVCache) => Tensor,
  x: Tensor,
  parts: readonly number[],
  cache: KVCache,
): Tensor {
  return noGrad(() =>
    scope(() => {
      let at = 0;
      const results = parts.map((length) => {
        const result = scope(() => forward(narrow(x, 1, at, length), cache));
        at += length;
        expect(cache.length).toBe(at);
        flush();
        return result;
      });
      return concat(results, 1);
    }),
  );
}

describe('cached attention', () => {
  const parts = [5, 1, 1, 3, 1, 1];
  const length = 12;

  it.each<[string, KVCacheOptions]>([
    ['of fixed capacity', { capacity: 12 }],
    ['with room to spare', { capacity: 40 }],
    ['that grows', { capacity: 2, growing: true }],
    ['as it is by default', {}],
  ])('%s is that of the whole sequence', async (_, options) => {
    using x = randn([N, length, width], { key: 1 });
    for (const normFirst of [true, false]) {
      using block = new TransformerBlock(width, heads, { causal: true, normFirst }).eval();
      using cache = new KVCache(options);
      using whole = noGrad(() => scope(() => block.forward(x)));
      using found = inParts((part, kept) => block.forward(part, { cache: kept }), x, parts, cache);
      expect(await allClose(found, whole, { rtol: 1e-5, atol: 1e-5 })).toBe(true);
    }
  });

  it('is what plain numbers give', async () => {
    using attention = new MultiHeadAttention(width, heads, { causal: true }).eval();
    using x = randn([N, length, width], { key: 2 });
    using cache = new KVCache({ capacity: 16 });
    using found = inParts((part, kept) => attention.forward(part, part, part, { cache: kept }), x, parts, cache);
    const values = async (t: Tensor | null): Promise<number[]> => [...((await t!.data()) as Float32Array)];
    const [input, weight, bias] = [
      await values(x),
      await values(attention.in_proj_weight!),
      await values(attention.in_proj_bias),
    ];
    const [out, shift] = [await values(attention.out_proj.weight), await values(attention.out_proj.bias)];
    const line = (row: number[], w: number[], b: number[]): number[] =>
      b.map((start, j) => row.reduce((total, value, i) => total + value * w[j * row.length + i]!, start));
    const size = width / heads;
    const expected: number[] = [];
    for (let n = 0; n < N; n++) {
      const rows = Array.from({ length }, (__, t) =>
        line(input.slice((n * length + t) * width, (n * length + t + 1) * width), weight, bias),
      );
      for (let t = 0; t < length; t++) {
        const mixed = new Array<number>(width).fill(0);
        for (let h = 0; h < heads; h++) {
          const part = (row: number[], which: number): number[] =>
            row.slice(which * width + h * size, which * width + (h + 1) * size);
          const scores = rows
            .slice(0, t + 1)
            .map((row) =>
              Math.exp(part(row, 1).reduce((s, k, i) => s + k * part(rows[t]!, 0)[i]!, 0) / Math.sqrt(size)),
            );
          const total = scores.reduce((a, b) => a + b, 0);
          for (const [s, score] of scores.entries())
            for (const [i, v] of part(rows[s]!, 2).entries()) mixed[h * size + i]! += (score / total) * v;
        }
        expected.push(...line(mixed, out, shift));
      }
    }
    const got = await values(found);
    for (const [i, value] of expected.entries()) expect(got[i]).toBeCloseTo(value, 5);
  });

  it.each<DType>(['float16', 'bfloat16', 'float64'])(
    'in %s, and with keys and values kept in 16 bits',
    async (dtype) => {
      using block = new TransformerBlock(width, heads, { causal: true, dtype }).eval();
      using x = randn([N, length, width], { key: 3, dtype });
      using whole = noGrad(() => scope(() => block.forward(x)));
      const [rtol, atol] = dtype === 'float64' ? [1e-12, 1e-12] : dtype === 'float16' ? [1e-2, 1e-2] : [6e-2, 6e-2];
      using cache = new KVCache({ capacity: 12 });
      using found = inParts((part, kept) => block.forward(part, { cache: kept }), x, parts, cache);
      expect(found.dtype).toBe(dtype);
      expect(await allClose(found, whole, { rtol, atol })).toBe(true);
      using small = new KVCache({ capacity: 12, dtype: 'float16' });
      using rounded = inParts((part, kept) => block.forward(part, { cache: kept }), x, parts, small);
      expect(await allClose(rounded, whole, { rtol: Math.max(rtol, 1e-2), atol: Math.max(atol, 1e-2) })).toBe(true);
    },
  );

  it('hides what a mask hides', async () => {
    using attention = new MultiHeadAttention(width, heads, { causal: true }).eval();
    using x = randn([N, length, width], { key: 4 });
    // The second sequence begins three places later.
    const hidden = (n: number): Tensor => {
      const data = Array.from({ length: N * n }, (_, i) => i < n || i % n >= 3);
      return tensor(data, { dtype: 'bool', shape: [N, 1, 1, n] });
    };
    using whole = noGrad(() => scope(() => attention.forward(x, x, x, { mask: hidden(length) })));
    const masks: ((cache: KVCache, so: number) => Tensor)[] = [
      () => hidden(16),
      (_, so) => hidden(so),
      () => hidden(16).cast('float32').sub(1).mul(3e38),
      () => hidden(16).logicalNot().cast('float32').mul(-Infinity).nanToNum({ nan: 0, negInf: -Infinity }),
    ];
    for (const mask of masks) {
      using cache = new KVCache({ capacity: 16 });
      using found = inParts(
        (part, kept) =>
          attention.forward(part, part, part, { cache: kept, mask: mask(kept, kept.length + part.shape[1]!) }),
        x,
        parts,
        cache,
      );
      expect(await allClose(found, whole, { rtol: 1e-5, atol: 1e-5 })).toBe(true);
    }
  });

  it('serves several layers, and begins again after reset', async () => {
    using x = randn([N, length, width], { key: 5 });
    const blocks = Array.from({ length: 3 }, () => new TransformerBlock(width, heads, { causal: true }).eval());
    const through = (t: Tensor, cache?: KVCache): Tensor =>
      blocks.reduce((y, block) => block.forward(y, cache ? { cache } : {}), t);
    using whole = noGrad(() => scope(() => through(x)));
    using cache = new KVCache({ capacity: length });
    for (const batch of [N, 1]) {
      using some = narrow(x, 0, 0, batch);
      using expected = narrow(whole, 0, 0, batch);
      using found = inParts(through, some, parts, cache);
      expect(await allClose(found, expected, { rtol: 1e-5, atol: 1e-5 })).toBe(true);
      cache.reset();
      expect(cache.length).toBe(0);
    }
    for (const block of blocks) block.dispose();
  });

  it('serves a decoder, whose targets also see what an encoder made, and a stack of encoder layers', async () => {
    using model = new Transformer({
      dModel: width,
      nhead: heads,
      numEncoderLayers: 2,
      numDecoderLayers: 2,
      dimFeedforward: 16,
      causal: true,
    }).eval();
    using source = randn([N, 7, width], { key: 6 });
    using target = randn([N, length, width], { key: 7 });
    using memoryMask = arange(7).less(5);
    using memory = noGrad(() => scope(() => model.encoder.forward(source)));
    using whole = noGrad(() => scope(() => model.forward(source, target, { memoryMask })));
    using cache = new KVCache({ capacity: length });
    const decode = (x: Tensor, kept: KVCache): Tensor => model.decoder.forward(x, memory, { memoryMask, cache: kept });
    using found = inParts(decode, target, parts, cache);
    expect(await allClose(found, whole, { rtol: 1e-4, atol: 1e-5 })).toBe(true);
    using stack = new TransformerEncoder(() => new TransformerBlock(width, heads, { causal: true }), 2).eval();
    using other = new KVCache();
    using again = inParts((x, kept) => stack.forward(x, { cache: kept }), target, parts, other);
    using once = noGrad(() => scope(() => stack.forward(target)));
    expect(await allClose(again, once, { rtol: 1e-4, atol: 1e-5 })).toBe(true);
    // Targets that see later ones cannot be kept.
    using open = new Transformer({
      dModel: width,
      nhead: heads,
      numEncoderLayers: 1,
      numDecoderLayers: 1,
      dimFeedforward: 16,
    });
    expect(() => open.decoder.forward(target, memory, { cache: new KVCache() })).toThrow(/causal/);
  });

  it('is another length only after the values are there', async () => {
    using block = new TransformerBlock(width, heads, { causal: true }).eval();
    using cache = new KVCache({ capacity: 8 });
    using x = ones([1, 1, width]);
    await warmup(() => noGrad(() => block.forward(x, { cache })));
    expect(cache.length).toBe(0);
    using _ = noGrad(() => scope(() => block.forward(x, { cache })));
    expect(cache.length).toBe(1);
  });

  it('gives gradients to what is computed now', async () => {
    using attention = new MultiHeadAttention(width, heads, { causal: true });
    using x = randn([1, 6, width], { key: 6 });
    using cache = new KVCache({ capacity: 8 });
    using _ = noGrad(() => scope(() => attention.forward(narrow(x, 1, 0, 4), undefined, undefined, { cache })));
    using last = narrow(x, 1, 4, 2);
    using found = grad((t: Tensor) => sum(attention.forward(t, t, t, { cache }).square()))(last);
    // By the last inputs only, with earlier keys and values as they are.
    using expected = grad((t: Tensor) => {
      const all = concat([narrow(x, 1, 0, 4), t], 1);
      return sum(narrow(attention.forward(all, all, all), 1, 4, 2).square());
    })(last);
    expect(await allClose(found, expected, { rtol: 1e-4, atol: 1e-5 })).toBe(true);
  });
});

describe('a flush that fails', () => {
  it('leaves the length as it was, and what is kept', async () => {
    const engine = createFaultyEngine(createReferenceEngine());
    await setEngine(engine);
    using layer = new TransformerBlock(width, heads, { causal: true }).eval();
    using cache = new KVCache({ capacity: 8 });
    using prompt = randn([1, 3, width], { key: 1 });
    using token = randn([1, 1, width], { key: 2 });
    const next = (x: Tensor): Tensor => noGrad(() => scope(() => layer.forward(x, { cache })));
    next(prompt).dispose();
    using _ = next(token);
    await idle();
    expect(cache.length).toBe(4);
    const { numBuffers } = memory();
    for (let i = 0; i < 2; i++) {
      clearPlans();
      engine.arm({ member: 'compile', at: 1, kind: 'memory', times: 1000 });
      expect(() => next(token)).toThrow(OutOfMemoryError);
      engine.arm(null);
      expect(cache.length).toBe(4);
      expect(memory().numBuffers).toBeLessThanOrEqual(numBuffers);
    }
    using found = next(token);
    expect(cache.length).toBe(5);
    // As many tokens, where nothing fails.
    using other = new KVCache({ capacity: 8 });
    const plain = (x: Tensor): Tensor => noGrad(() => scope(() => layer.forward(x, { cache: other })));
    plain(prompt).dispose();
    plain(token).dispose();
    using expected = plain(token);
    expect(await allClose(found, expected, { rtol: 1e-5, atol: 1e-6 })).toBe(true);
  });
});

describe('what is refused', () => {
  it('leaves the cache as it was', async () => {
    const cache = new KVCache({ capacity: 8 });
    const layer = {};
    const [first, next] = [randn([1, 1, 2, 4], { key: 1 }), randn([1, 1, 1, 4], { key: 2 })];
    const all = (mask?: Tensor): Tensor =>
      scope(() => cache.attend(layer, next, next, next, mask === undefined ? {} : { mask }));
    scope(() => void cache.attend(layer, first, first, first));
    expect(() => all(ones([1, 1, 1, 5], { dtype: 'bool' }))).toThrow(/mask has shape \[1, 1, 1, 5\]/);
    expect(() => all(ones([1, 1, 7, 8], { dtype: 'bool' }))).toThrow(/mask/);
    expect(cache.length).toBe(2);
    const whole = concat([first, next], 2);
    const direct = scaledDotProductAttention(next, whole, whole);
    expect(await allClose(all(), direct)).toBe(true);
    expect(cache.length).toBe(3);
    cache.reset();
  });

  const caches: KVCache[] = [];
  const cacheOf = (options: KVCacheOptions): KVCache => {
    caches.push(new KVCache(options));
    return caches.at(-1)!;
  };
  afterEach(() => {
    for (const cache of caches.splice(0)) cache.dispose();
  });

  it('more positions than there is room for, without a trace', () => {
    using block = new TransformerBlock(width, heads, { causal: true }).eval();
    const cache = cacheOf({ capacity: 4 });
    using _ = noGrad(() => scope(() => block.forward(ones([1, 3, width]), { cache })));
    expect(() => scope(() => block.forward(ones([1, 2, width]), { cache }))).toThrow(
      '[KVCache] no room: 5 positions for a capacity of 4; give a greater capacity or { growing: true }, or call reset()',
    );
    expect(cache.length).toBe(3);
    expect(() => scope(() => block.forward(ones([2, 1, width]), { cache }))).toThrow(
      'keys have shape [2, 3, 1, 4], those kept [1, 3, 4, 4]; only the length may differ: call reset() before another batch',
    );
  });

  it('layers that look ahead or elsewhere, and wrong arguments', () => {
    const cache = cacheOf({ capacity: 4 });
    using open = new MultiHeadAttention(width, heads);
    using causal = new MultiHeadAttention(width, heads, { causal: true });
    const x = ones([1, 1, width]);
    const y = zeros([1, 1, width]);
    expect(() => open.forward(x, x, x, { cache })).toThrow('make the layer with { causal: true }');
    expect(() => causal.forward(x, y, y, { cache })).toThrow('self-attention that is causal');
    expect(() => causal.forward(x, x, x, { cache, mask: arange(3).less(2) })).toThrow(
      'mask has shape [3]; its last axis must be 1, the 1 positions or the capacity of 4',
    );
    expect(() => cache.attend({}, x, x, x)).toThrow('query has shape [1, 1, 12]; it must be [N, heads, L, E]');
    expect(() => new KVCache({ capacity: 0 })).toThrow(NnError);
    expect(() => new KVCache({ capacity: 1.5 })).toThrow('capacity is 1.5');
    expect(() => new KVCache({ size: 4 } as never)).toThrow('size');
    expect(() => causal.forward(x, x, x, { cache: {} as never })).toThrow(NnError);
  });
});
