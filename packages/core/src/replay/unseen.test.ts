/** compile: all that a replay cannot see, is found by comparing, or is asked for at every call. */
import { createReferenceEngine } from '@polygrad/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  compile,
  hostEffect,
  hostNumber,
  hostValue,
  idle,
  keep,
  noGrad,
  ones,
  permutation,
  rand,
  seed,
  setEngine,
  setLogger,
  stats,
  type Tensor,
  tensor,
  zeros,
} from '../index.ts';
import { numbers } from './fixtures/programs.ts';

beforeEach(async () => {
  await setEngine(createReferenceEngine());
  setLogger(null);
  seed(0);
});

describe('what a replay cannot see', () => {
  it.each(['dataSync', 'itemSync', 'arraySync'] as const)('%s() inside is an error that says what to do', (name) => {
    const step = compile((x: Tensor) => {
      x.sum()[name]();
      return x;
    });
    for (let i = 0; i < 3; i++)
      expect(() => step(ones([2]))).toThrow(
        /^\[compile\] a value is read inside a compiled function.*return the tensor and read it after the call/,
      );
  });

  it('refuses promises, and reads that nobody waits for', async () => {
    const step = compile(async (x: Tensor) => (await x.data()).length);
    expect(() => step(ones([2]))).toThrow(/\[compile\]/);
    const caught: unknown[] = [];
    const other = compile((x: Tensor) => {
      x.data().catch((error: unknown) => caught.push(error));
      return x.mul(2);
    });
    expect(() => other(ones([2]))).toThrow(/a value is read inside/);
    await idle();
    expect(caught.length).toBe(1);
    expect(stats().recordings).toBe(0);
  });

  it('a number that changes from call to call is recorded each time, with a hint', async () => {
    const hints: string[] = [];
    setLogger((text) => hints.push(text));
    let rate = 1;
    const step = compile((x: Tensor) => x.mul(rate));
    for (let i = 0; i < 10; i++) {
      rate = 1 / (i + 1);
      expect(await numbers(step(ones([1])))).toEqual([Math.fround(rate)]);
    }
    expect(stats().replays).toBe(0);
    expect(hints.length).toBe(1);
    expect(hints[0]).toMatch(/recorded at every call.*a number in it is 0\.\d+, and was 0\.\d+/);
    step.dispose();
    expect(stats().recordings).toBe(0);
  });

  it('a number that changes later is found by a comparison, and is an error', () => {
    let rate = 1;
    const step = compile((x: Tensor) => x.mul(rate), { check: 4 });
    const x = ones([1]);
    for (let i = 0; i < 12; i++) step(x);
    expect(stats().replays).toBeGreaterThan(6);
    rate = 2;
    expect(() => {
      for (let i = 0; i < 5; i++) step(x);
    }).toThrow(
      /did not do what was recorded: a number in it is 2, and was 1\. The (\d calls|call) before .*hostNumber/,
    );
    step.dispose();
  });

  it('check: true compares every call, check: false none after the second', () => {
    let rate = 1;
    const x = ones([1]);
    const strict = compile((y: Tensor) => y.mul(rate), { check: true });
    for (let i = 0; i < 3; i++) strict(x);
    expect(stats().replays).toBe(0);
    rate = 2;
    expect(() => strict(x)).toThrow(/a number in it is 2, and was 1/);
    let calls = 0;
    const loose = compile(
      (y: Tensor) => {
        calls++;
        return y.mul(2);
      },
      { check: false },
    );
    for (let i = 0; i < 300; i++) loose(x).dispose();
    expect(calls).toBe(2);
    for (const check of [-1, Number.NaN, '3', null])
      expect(() => compile(() => {}, { check: check as number })).toThrow(/bad check/);
    strict.dispose();
    loose.dispose();
  });

  it.each([
    ['other operations', (n: number, x: Tensor) => (n < 6 ? x.mul(2) : x.add(2)), /other operations/],
    ['another result', (n: number, x: Tensor) => [x, n < 6 ? 1 : 2], /returns something else/],
    ['other data', (n: number, x: Tensor) => x.mul(tensor([n < 6 ? 1 : 2])), /other data/],
    ['a tensor kept', (n: number, x: Tensor) => (n < 6 ? x : keep(x.mul(2)).mul(2)), /keeps a tensor/],
  ])('finds %s', (_, f, message) => {
    let n = 0;
    let inside = 0;
    const step = compile((x: Tensor) => f(n, x) as Tensor, { check: 1 });
    const x = ones([1]);
    expect(() => {
      for (; n < 12; n++, inside++) step(x);
    }).toThrow(message);
    expect(inside).toBeGreaterThan(5);
    step.dispose();
  });

  it('finds another tensor from outside', () => {
    let w = ones([2]);
    const step = compile((x: Tensor) => x.mul(w), { check: 1 });
    const x = ones([2]);
    for (let i = 0; i < 4; i++) step(x);
    w = zeros([2]);
    expect(() => {
      for (let i = 0; i < 2; i++) step(x);
    }).toThrow(/other tensors from outside/);
    step.dispose();
  });

  it('values that graphs are made for are part of what is recorded', async () => {
    const c = zeros([4]);
    const step = compile((x: Tensor) => x.add(c.sum()));
    const x = ones([2]);
    for (let i = 0; i < 4; i++) expect(await numbers(step(x))).toEqual([1, 1]);
    c.assign(ones([4]));
    for (let i = 0; i < 4; i++) expect(await numbers(step(x))).toEqual([5, 5]);
    const scale = compile((v: Tensor) => v.mul(2));
    for (const v of [zeros([2]), zeros([2]), zeros([2]), ones([2]), tensor([3, 3]), zeros([2])])
      expect(await numbers(scale(v))).toEqual((await numbers(v)).map((n) => 2 * n));
    step.dispose();
    scale.dispose();
  });

  it('hostNumber, hostValue and hostEffect are asked for at every call', async () => {
    let rate = 0;
    let mode = 'on';
    let count = 0;
    const step = compile((x: Tensor) => {
      hostEffect(
        () => void count++,
        () => void count--,
      );
      return hostValue(() => mode) === 'on' ? x.mul(hostNumber(() => rate)) : x.neg();
    });
    const x = ones([1]);
    for (let i = 0; i < 6; i++, rate++) expect(await numbers(step(x))).toEqual([rate]);
    mode = 'off';
    for (let i = 0; i < 4; i++) expect(await numbers(step(x))).toEqual([-1]);
    mode = 'on';
    expect(await numbers(step(x))).toEqual([rate]);
    expect(count).toBe(11);
    expect(stats().replays).toBeGreaterThan(3);
    step.dispose();
    const small = compile((y: Tensor) => y.add(hostNumber(() => rate, { dtype: 'int8' })));
    const eight = zeros([1], { dtype: 'int8' });
    for (rate = 0; rate < 5; rate++) expect(await numbers(small(eight))).toEqual([rate]);
    for (rate of [1.5, 300]) expect(() => small(eight)).toThrow(/\[hostNumber\]/);
    expect(await numbers(hostNumber(() => 3, { dtype: 'int32' }))).toEqual([3]);
    expect(() => hostNumber(3 as never)).toThrow(/hostNumber/);
    expect(() => hostValue(3 as never)).toThrow(/hostValue/);
    expect(() => hostEffect(3 as never)).toThrow(/hostEffect/);
  });

  it('a number is what the effects before it have left, and not those behind it', async () => {
    let count = 0;
    const next = (): void => void count++;
    const back = (): void => void count--;
    const step = compile((x: Tensor) => {
      const before = x.add(hostNumber(() => count));
      hostEffect(next, back);
      const between = before.mul(10).add(hostNumber(() => count));
      hostEffect(next, back);
      return between.mul(10).add(hostNumber(() => count));
    });
    const { replays } = stats();
    for (let i = 0; i < 4; i++) expect(await numbers(step(zeros([1])))).toEqual([222 * i + 12]);
    expect(stats().replays - replays).toBeGreaterThan(0);
    step.dispose();
  });

  it('a tensor that is kept, disposed inside, or drawn on the host is left to the function', async () => {
    const kept: Tensor[] = [];
    const programs: ((x: Tensor) => Tensor)[] = [
      (x) => {
        kept.push(keep(x.mul(2)));
        return x.add(1);
      },
      (x) => {
        const y = x.add(1);
        x.dispose();
        return y;
      },
      (x) => x.add(1).add(permutation(2).mul(0).cast('float32')),
      (x) => {
        seed(4);
        return x.add(1).add(rand([1]).greater(2).cast('float32'));
      },
    ];
    for (const f of programs) {
      const step = compile(f);
      for (let i = 0; i < 10; i++) expect(await numbers(step(ones([2])))).toEqual([2, 2]);
      step.dispose();
    }
    expect(kept.length).toBe(10);
    expect(await numbers(kept[9]!)).toEqual([2, 2]);
    expect(stats().replays).toBe(0);
  });

  it('gradients that backward() leaves, and histories that a result has, are left to the function', async () => {
    const w = tensor([2], { requiresGrad: true });
    const leave = compile((x: Tensor) => w.mul(x).sum().backward());
    for (let i = 0; i < 4; i++) leave(ones([1]));
    expect(await numbers(w.grad!)).toEqual([4]);
    w.grad = null;
    const open = compile((x: Tensor) => w.mul(x).sum());
    for (let i = 0; i < 4; i++) {
      open(ones([1])).backward();
      expect(await numbers(w.grad!)).toEqual([1]);
      w.grad = null;
    }
    const detached = noGrad(() => [0, 1, 2, 3].map(() => open(ones([1])).requiresGrad));
    expect(detached).toEqual([false, false, false, false]);
    w.requiresGrad = false;
    for (let i = 0; i < 4; i++) expect(open(ones([1])).requiresGrad).toBe(false);
    expect(stats().replays).toBeGreaterThan(0);
  });
});
