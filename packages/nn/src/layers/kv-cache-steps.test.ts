/** Steps with a cache: how many plans and how much memory they take, prompts of many lengths, and compiled steps. */
import { beforeEach, describe, expect, it } from 'vitest';
import {
  allClose,
  arange,
  clearPlans,
  compile,
  dispose,
  flush,
  hostNumber,
  memory,
  noGrad,
  ones,
  randn,
  scope,
  setDynamicSizes,
  setEngine,
  stats,
  type Tensor,
} from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { KVCache, type KVCacheOptions, TransformerBlock } from '../index.ts';

const [width, heads] = [12, 3];

beforeEach(async () => void (await setEngine(createReferenceEngine())));

describe('plans and memory', () => {
  const step = (block: TransformerBlock, cache: KVCache, x: Tensor): void =>
    noGrad(() => scope(() => block.forward(x, { cache }))).dispose();

  /** Plans made by every one of so many steps. */
  function plansOf(cache: KVCache, count: number): number[] {
    using block = new TransformerBlock(width, heads, { causal: true }).eval();
    using x = ones([1, 1, width]);
    flush();
    return Array.from({ length: count }, () => {
      const before = stats().plansMade;
      step(block, cache, x);
      return stats().plansMade - before;
    });
  }

  it('one plan for all steps of a capacity', () => {
    using cache = new KVCache({ capacity: 12 });
    const made = plansOf(cache, 12);
    expect(made[0]).toBeGreaterThan(0);
    expect(made.slice(1)).toEqual(new Array(11).fill(0));
  });

  it('two for each that it grows to: the step that grows, and those after it', () => {
    using cache = new KVCache({ capacity: 3, growing: true });
    const made = plansOf(cache, 20);
    expect(made.slice(1)).toEqual(Array.from({ length: 19 }, (_, i) => Number([2, 3, 5, 6, 11, 12].includes(i))));
    expect(cache.capacity).toBe(24);
  });

  it('takes no memory with a step, and gives all of it back', () => {
    using block = new TransformerBlock(width, heads, { causal: true }).eval();
    using x = ones([1, 1, width]);
    using first = new KVCache({ capacity: 6 });
    step(block, first, x);
    first.dispose();
    flush();
    const before = memory();
    const cache = new KVCache({ capacity: 6 });
    step(block, cache, x);
    const { bytes, numBuffers, numTensors } = memory();
    for (let i = 1; i < 6; i++) step(block, cache, x);
    expect(memory()).toMatchObject({ bytes, numBuffers, numTensors });
    cache.dispose();
    cache.dispose();
    expect(memory()).toMatchObject({
      bytes: before.bytes,
      numBuffers: before.numBuffers,
      numTensors: before.numTensors,
    });
  });
});

describe('prompts of many lengths', () => {
  const block = (): TransformerBlock => new TransformerBlock(width, heads, { causal: true }).eval();
  const prompt = (layer: TransformerBlock, cache: KVCache, batch: number, length: number): Tensor =>
    noGrad(() => scope(() => layer.forward(randn([batch, length, width], { key: [batch, length] }), { cache })));

  it('share plans, and give what each gives by itself', async () => {
    using layer = block();
    const lengths = [9, 13, 8, 21, 30, 17, 11];
    const alone: Tensor[] = [];
    setDynamicSizes('never');
    for (const length of lengths) {
      using cache = new KVCache({ capacity: 32 });
      alone.push(prompt(layer, cache, 1, length));
      flush();
    }
    setDynamicSizes('automatic');
    clearPlans();
    const made: number[] = [];
    for (const [i, length] of lengths.entries()) {
      using cache = new KVCache({ capacity: 32 });
      const { plansMade } = stats();
      using found = prompt(layer, cache, 1, length);
      expect(await allClose(found, alone[i]!, { rtol: 1e-4, atol: 1e-5 })).toBe(true);
      made.push(stats().plansMade - plansMade);
      expect(cache.length).toBe(length);
      // What follows sees what is kept.
      if (i % 3 !== 0) continue;
      using next = prompt(layer, cache, 1, 1);
      using whole = new KVCache({ capacity: 32 });
      using _ = prompt(layer, whole, 1, length);
      using again = prompt(layer, whole, 1, 1);
      expect(await allClose(next, again, { rtol: 1e-4, atol: 1e-5 })).toBe(true);
    }
    for (const x of alone) x.dispose();
    expect(made.slice(2)).toEqual([0, 0, 0, 0, 0]);
  });

  it('more tokens at once, after others', async () => {
    using layer = block();
    const made: number[] = [];
    const run = (): Tensor[] =>
      [3, 5, 2, 6, 7, 4, 5].map((length) => {
        const { plansMade } = stats();
        using cache = new KVCache({ capacity: 16 });
        prompt(layer, cache, 1, 4).dispose();
        const found = prompt(layer, cache, 1, length);
        flush();
        made.push(stats().plansMade - plansMade);
        return found;
      });
    setDynamicSizes('never');
    const alone = run();
    setDynamicSizes('automatic');
    clearPlans();
    made.length = 0;
    for (const [i, found] of run().entries()) {
      expect(await allClose(found, alone[i]!, { rtol: 1e-4, atol: 1e-5 })).toBe(true);
      dispose([found, alone[i]!]);
    }
    expect(made.slice(2)).toEqual([0, 0, 0, 0, 0]);
  });
});

describe('a compiled step', () => {
  it.each<[string, KVCacheOptions, boolean | number]>([
    ['of fixed capacity', { capacity: 16 }, 128],
    ['that grows', { capacity: 6, growing: true }, 128],
    ['that grows, if each call is compared', { capacity: 6, growing: true }, true],
  ])('gives what it gives uncompiled, with a cache %s', async (_, options, check) => {
    using first = new TransformerBlock(width, heads, { causal: true }).eval();
    using second = new TransformerBlock(width, heads, { causal: true }).eval();
    const stepOf =
      (cache: KVCache) =>
      (x: Tensor): Tensor => {
        // As a model would add them, before the layers have taken the tokens.
        const at = arange(x.shape[1]!, { dtype: 'int32' }).add(hostNumber(() => cache.length, { dtype: 'int32' }));
        const placed = x.add(at.cast('float32').mul(0.1).reshape([-1, 1]));
        return second.forward(first.forward(placed, { cache }), { cache });
      };
    using plainCache = new KVCache(options);
    using cache = new KVCache(options);
    const plain = stepOf(plainCache);
    const step = compile(stepOf(cache), { check });
    for (const round of [0, 1]) {
      const { replays } = stats();
      for (const [i, count] of [3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1].entries()) {
        using x = randn([1, count, width], { key: [round, i] });
        using found = noGrad(() => step(x));
        using expected = noGrad(() => scope(() => plain(x)));
        expect(await allClose(found, expected, { rtol: 0, atol: 0 })).toBe(true);
        expect([cache.length, cache.capacity]).toEqual([plainCache.length, plainCache.capacity]);
      }
      if (check !== true) expect(stats().replays - replays).toBeGreaterThan(2);
      plainCache.reset();
      cache.reset();
    }
    if (cache.growing) return;
    for (let i = 0; i < 16; i++) noGrad(() => step(ones([1, 1, width]))).dispose();
    expect(() => noGrad(() => step(ones([1, 1, width])))).toThrow('no room: 17 positions for a capacity of 16');
    expect(cache.length).toBe(16);
    step.dispose();
  });

  it('has one plan, from its first call on', () => {
    using block = new TransformerBlock(width, heads, { causal: true }).eval();
    using cache = new KVCache({ capacity: 8 });
    const step = compile((x: Tensor) => block.forward(x, { cache }));
    using x = ones([1, 1, width]);
    flush();
    clearPlans();
    const { plansMade, replays } = stats();
    for (let i = 0; i < 8; i++) noGrad(() => step(x)).dispose();
    expect(stats().plansMade - plansMade).toBe(1);
    expect(stats().replays - replays).toBe(3);
    step.dispose();
  });
});
