/** KVCache where several continuations are tried: positions forgotten again (speculative decoding), and other sequences of a batch (beam search). */
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  allClose,
  arange,
  argMax,
  compile,
  hostNumber,
  logSoftmax,
  memory,
  narrow,
  noGrad,
  randn,
  scope,
  seed,
  select,
  setEngine,
  stats,
  type Tensor,
  tensor,
  topK,
} from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { Embedding, KVCache, Linear, Module, TransformerBlock } from '../index.ts';

const [letters, width] = [7, 8];

class Model extends Module<[ids: Tensor, cache?: KVCache]> {
  readonly tokens = new Embedding(letters, width);
  readonly places = new Embedding(32, width);
  readonly blocks = [0, 1].map(() => new TransformerBlock(width, 2, { causal: true }));
  readonly head = new Linear(width, letters);

  forward(ids: Tensor, cache?: KVCache): Tensor {
    const at = arange(ids.shape[1]!, { dtype: 'int32' }).add(hostNumber(() => cache?.length ?? 0, { dtype: 'int32' }));
    let x = this.tokens.forward(ids).add(this.places.forward(at));
    for (const block of this.blocks) x = cache === undefined ? block.forward(x) : block.forward(x, { cache });
    return this.head.forward(x);
  }
}

const integers = (rows: readonly (readonly number[])[]): Tensor =>
  tensor(
    rows.map((row) => [...row]),
    { dtype: 'int32' },
  );
let model: Model;
let cheap: Model;

beforeEach(async () => {
  await setEngine(createReferenceEngine());
  seed(3);
  model = new Model();
  cheap = new Model();
  for (const each of [model, cheap]) each.eval();
});

afterEach(() => {
  model.dispose();
  cheap.dispose();
});

/** The likeliest token behind each of the last tokens. */
async function choices(of: Model, ids: readonly number[], cache?: KVCache): Promise<number[]> {
  using best = noGrad(() => scope(() => argMax(of.forward(integers([ids]), cache), 2).flatten()));
  return Array.from((await best.data()) as Int32Array);
}

/** Token by token, without a cache. */
async function greedy(prompt: readonly number[], count: number): Promise<number[]> {
  const result = [...prompt];
  while (result.length < prompt.length + count) result.push((await choices(model, result)).at(-1)!);
  return result;
}

it('speculative decoding gives the tokens of the model, whatever is proposed', async () => {
  const prompt = [1, 4, 2];
  const expected = await greedy(prompt, 9);
  for (const draft of [cheap, model]) {
    using cache = new KVCache({ capacity: 32 });
    using guessed = new KVCache({ capacity: 32 });
    const result = [...prompt];
    let calls = 0;
    while (result.length < expected.length) {
      const guesses: number[] = [];
      // What the draft has not seen of the result, then its own tokens.
      let unseen = result.slice(guessed.length);
      while (guesses.length < 3) {
        guesses.push((await choices(draft, unseen, guessed)).at(-1)!);
        unseen = guesses.slice(-1);
      }
      const found = await choices(model, [...result.slice(cache.length), ...guesses], cache);
      calls++;
      const behind = found.slice(-guesses.length - 1);
      let right = 0;
      while (right < guesses.length && guesses[right] === behind[right]) right++;
      result.push(...guesses.slice(0, right), behind[right]!);
      // The last token is new to both.
      cache.truncate(result.length - 1);
      guessed.truncate(Math.min(guessed.length, result.length - 1));
    }
    expect(result.slice(0, expected.length)).toEqual(expected);
    if (draft === model) expect(calls).toBeLessThan(4);
  }
});

it('truncated positions are as if they had never been, in a compiled call too', async () => {
  using x = randn([2, 9, width], { key: 1 });
  const block = model.blocks[0]!;
  using whole = noGrad(() => block.forward(x));
  using cache = new KVCache({ capacity: 16 });
  const forward = (from: Tensor): Tensor => block.forward(from, { cache });
  noGrad(() => scope(() => forward(narrow(x, 1, 0, 4)))).dispose();
  const step = compile(forward);
  const { plansMade: first } = stats();
  let made = 0;
  for (let i = 4; i < 9; i++) {
    using wrong = randn([2, 1, width], { key: i });
    noGrad(() => step(wrong)).dispose();
    cache.truncate(i);
    expect(cache.length).toBe(i);
    using token = narrow(x, 1, i, 1);
    using found = noGrad(() => step(token));
    using wanted = narrow(whole, 1, i, 1);
    expect(await allClose(found, wanted, { rtol: 1e-4, atol: 1e-5 })).toBe(true);
    if (i === 5) made = stats().plansMade;
  }
  expect(made).toBeGreaterThan(first);
  cache.truncate(0);
  using again = noGrad(() => scope(() => forward(narrow(x, 1, 0, 3))));
  using start = narrow(whole, 1, 0, 3);
  expect(await allClose(again, start, { rtol: 1e-4, atol: 1e-5 })).toBe(true);
  expect(() => cache.truncate(4)).toThrow('length is 4, and 3 positions are kept; give at most as many');
  expect(() => cache.truncate(-1)).toThrow('length');
  step.dispose();
});

it('beam search finds the best of all sequences where beams are enough', async () => {
  const [prompt, count] = [[1, 4, 2], 3];
  const logs = async (ids: readonly (readonly number[])[], cache?: KVCache): Promise<number[][]> => {
    using found = noGrad(() => scope(() => logSoftmax(select(model.forward(integers(ids), cache), 1, -1), 1)));
    return (await found.array()) as number[][];
  };
  // All of them, without a cache.
  let all: { ids: number[]; score: number }[] = [{ ids: prompt, score: 0 }];
  for (let i = 0; i < count; i++) {
    const next = await logs(all.map(({ ids }) => ids));
    all = all.flatMap(({ ids, score }, k) =>
      next[k]!.map((value, token) => ({ ids: [...ids, token], score: score + value })),
    );
  }
  const best = all.reduce((a, b) => (b.score > a.score ? b : a));

  const beams = letters ** (count - 1);
  using cache = new KVCache({ capacity: 8 });
  let scores = [0];
  let kept: number[][] = [prompt];
  let fed: number[][] = [prompt];
  for (let i = 0; i < count; i++) {
    const next = (await logs(fed, cache)).map((row, k) => row.map((value) => value + scores[k]!));
    using flat = tensor(next.flat());
    const [values, places] = topK(flat, Math.min(beams, flat.size));
    const at = Array.from((await places.data()) as Int32Array);
    scores = Array.from((await values.data()) as Float32Array);
    kept = at.map((place) => [...kept[Math.floor(place / letters)]!, place % letters]);
    cache.reorder(at.map((place) => Math.floor(place / letters)));
    fed = kept.map((ids) => ids.slice(-1));
    values.dispose();
    places.dispose();
  }
  expect(kept[0]).toEqual(best.ids);
  expect(scores[0]).toBeCloseTo(best.score, 4);
});

it('sequences in another order go on as they would have, compiled too, and take no memory', async () => {
  using x = randn([3, 7, width], { key: 2 });
  const block = model.blocks[0]!;
  using cache = new KVCache({ capacity: 8 });
  const step = compile((from: Tensor) => block.forward(from, { cache }));
  using prompt = narrow(x, 1, 0, 3);
  noGrad(() => step(prompt)).dispose();
  let order = [0, 1, 2];
  let before = memory();
  for (let i = 3; i < 7; i++) {
    if (i === 5) before = memory();
    const moved = i % 2 === 0 ? [2, 0, 0] : [1, 2, 1];
    order = moved.map((k) => order[k]!);
    if (i % 2 === 0) cache.reorder(moved);
    else {
      using list = tensor(moved, { dtype: 'int32' });
      cache.reorder(list);
    }
    using rows = scope(() => x.take(order, { axis: 0 }));
    using token = narrow(rows, 1, i, 1);
    using found = noGrad(() => step(token));
    using wanted = noGrad(() => scope(() => narrow(block.forward(narrow(rows, 1, 0, i + 1)), 1, i, 1)));
    expect(await allClose(found, wanted, { rtol: 1e-4, atol: 1e-5 })).toBe(true);
  }
  expect(memory()).toMatchObject({ numTensors: before.numTensors, numBuffers: before.numBuffers });
  expect(() => cache.reorder([0, 3])).toThrow('3');
  expect(() => cache.reorder(2 as never)).toThrow('bad indices: 2; must be a list of numbers, or an integer tensor');
  expect(cache.length).toBe(7);
  step.dispose();
});
