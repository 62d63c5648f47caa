/** compile: functions whose arguments have other sizes at every call. */
import { createNullEngine, createReferenceEngine } from '@polygrad/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  compile,
  flush,
  grad,
  memory,
  ones,
  scope,
  seed,
  setDynamicSizes,
  setEngine,
  setLogger,
  softmax,
  stats,
  type Tensor,
  tensor,
  zeros,
} from '../index.ts';
import { batch, numbers, replaysOf, type Program } from './fixtures/programs.ts';

beforeEach(async () => {
  await setEngine(createReferenceEngine());
  setDynamicSizes('automatic');
  setLogger(null);
  seed(0);
});

/** Numbers of rows that come again and again, in no order. */
const rows = (count: number, among: number): number[] =>
  Array.from({ length: count }, (_, i) => 10 + ((7 * i * i + 3 * i) % among));

const inputs = (counts: readonly number[]): (() => Tensor)[] => counts.map((n, i) => () => batch(i, [n, 3]));

/** A step of training: means over rows, and weights that are assigned. */
function training(): Program {
  const w = batch(100, [3, 2]);
  const momentum = zeros([3, 2]);
  const step = grad((x: Tensor, v: Tensor) => softmax(x.matmul(v), 1).square().mean(), { argnums: 1 });
  const f = (x: Tensor): Tensor => {
    const g = step(x, w) as Tensor;
    momentum.assign(momentum.mul(0.9).add(g));
    w.assign(w.sub(momentum.mul(0.1)));
    return x.matmul(w).mean();
  };
  return { f, state: [w, momentum] };
}

/** Calls a compiled function with other numbers of rows and compares; returns how often the function ran. */
async function runsOf(
  f: (x: Tensor) => Tensor,
  counts: readonly number[],
  before: (i: number) => void = () => {},
): Promise<number> {
  let calls = 0;
  const step = compile((x: Tensor) => {
    calls++;
    return f(x);
  });
  for (const [i, n] of counts.entries()) {
    before(i);
    using x = batch(i, [n, 3]);
    using y = step(x);
    using expected = scope(() => f(x));
    expect(await numbers(y)).toEqual(await numbers(expected));
  }
  step.dispose();
  expect(stats().recordings).toBe(0);
  return calls;
}

describe('sizes of one class', () => {
  it('are replayed bit for bit, with weights that are assigned', async () => {
    expect(await replaysOf(training, inputs(rows(60, 20)))).toBeGreaterThan(25);
  });

  it('are recorded once each', async () => {
    const counts = [40, 41, 42, 43, 44, 45, 46];
    // The first size has its own plan, the two after it confirm each other, and one call in 1, 2, 4 ... is compared.
    const calls = await runsOf((x) => x.mul(2).sum(1).div(3), [...counts, ...counts, ...counts]);
    expect(calls).toBeLessThanOrEqual(counts.length + 1 + 4);
  });

  it('are recorded once each where numbers follow from the sizes', async () => {
    const counts = [40, 41, 42, 43, 44, 45, 46];
    const f = (x: Tensor): Tensor => {
      const n = x.shape[0]!;
      return x
        .sum(0)
        .div(n)
        .add(
          x
            .square()
            .mean(0)
            .mul(n / (n - 1)),
        )
        .add(x.sum(0).div(n - 1))
        .mul(n);
    };
    const g = (x: Tensor): Tensor =>
      x
        .sum(0)
        .div(x.shape[0]!)
        .add(x.mean().div(x.shape[0]! - 1))
        .mul(2 * x.shape[0]!);
    expect(await runsOf(g, [...counts, ...counts, ...counts])).toBeLessThanOrEqual(counts.length + 1 + 4);
    // Two calls each where a number follows otherwise, and each size is compared on its own.
    const calls = await runsOf(f, [...counts, ...counts, ...counts]);
    expect(calls).toBeGreaterThanOrEqual(2 * counts.length);
  });

  it.each([
    ['operations', (x: Tensor) => (x.shape[0]! > 30 ? x.mul(2) : x.exp())],
    ['numbers', (x: Tensor) => x.mul(x.shape[0]! % 3)],
    ['data', (x: Tensor) => x.add(tensor([x.shape[0]! % 2, 1, 2]))],
    ['results', (x: Tensor) => [x.mul(2), x.mul(3)][x.shape[0]! % 2]!],
  ])('may branch on the shape: other %s', async (_, f) => {
    await runsOf(f, [...rows(30, 40), ...rows(30, 40)]);
  });

  it('may use tensors from outside that belong to a size', async () => {
    const tables = new Map<number, Tensor>();
    for (let n = 10; n < 20; n++) tables.set(n, batch(n, [1, 3]));
    await runsOf((x) => x.mul(tables.get(x.shape[0]!)!), [...rows(20, 10), ...rows(20, 10)]);
    const c = ones([3]);
    await runsOf(
      (x) => x.mul(c),
      rows(60, 10),
      (i) => void c.assign(batch(i, [3])),
    );
  });

  it('are not trusted together where a number changes otherwise', async () => {
    let rate = 1;
    // Another rate at each call, and none twice with one size: what is replayed would have an older one.
    const calls = await runsOf(
      (x) => x.mul(rate),
      Array.from({ length: 30 }, (_, i) => 10 + (i % 12)),
      (i) => {
        rate = 1 / (3 + ((i * 5) % 7));
      },
    );
    expect(calls).toBe(30);
  });

  it('are all recorded anew once one is found to be old', async () => {
    let rate = 2;
    const step = compile((x: Tensor) => x.mul(rate), { check: 2 });
    const call = async (n: number): Promise<number> => {
      using x = ones([n]);
      using y = step(x);
      return (await numbers(y))[n - 1]!;
    };
    const sizes = [40, 41, 42, 43, 44];
    for (let round = 0; round < 4; round++) for (const n of sizes) expect(await call(n)).toBe(2);
    rate = 3;
    let errors = 0;
    const found: number[] = [];
    for (let i = 0; i < 40; i++) {
      try {
        found.push(await call(sizes[i % 5]!));
      } catch (error) {
        expect(String(error)).toMatch(/a number in it is 3, and was 2/);
        errors++;
      }
    }
    expect(errors).toBeGreaterThan(0);
    expect(errors).toBeLessThan(4);
    expect(found.slice(-20)).toEqual(new Array(20).fill(3));
    step.dispose();
  });
});

describe('sizes that never come again', () => {
  it('are recorded a few times, then told once and left to the function', async () => {
    const hints: string[] = [];
    setLogger((text) => text.startsWith('[compile]') && hints.push(text));
    let [calls, n] = [0, 2];
    const step = compile((x: Tensor) => {
      calls++;
      return x.mul(2);
    });
    for (; n < 400; n++) {
      using x = ones([n]);
      step(x).dispose();
    }
    expect(calls).toBe(398);
    expect(stats().recordings).toBeLessThanOrEqual(16);
    expect(hints).toEqual([
      expect.stringMatching(
        /runs as without compile, because the shapes of its arguments change \(\[\d+\], then \[\d+\]\).*have fewer sizes/,
      ),
    ]);
    // Sizes that come again are recorded then.
    const { replays } = stats();
    for (let round = 0; round < 6; round++)
      for (let m = 395; m < 400; m++) {
        using x = ones([m]);
        using y = step(x);
        expect((await numbers(y))[m - 1]).toBe(2);
      }
    expect(stats().replays - replays).toBeGreaterThan(10);
    step.dispose();
  });

  it('and numbers that never come again are told as such', () => {
    const hints: string[] = [];
    setLogger((text) => text.startsWith('[compile]') && hints.push(text));
    const step = compile((x: Tensor, i: number) => x.mul(i));
    using x = ones([2]);
    for (let i = 0; i < 400; i++) step(x, i).dispose();
    expect(hints).toEqual([expect.stringMatching(/values among its arguments change \(\d+, then \d+\).*as tensors/)]);
    step.dispose();
  });

  it('still may not read values', () => {
    const step = compile((x: Tensor, i: number) => (i > 100 ? [x.sum().itemSync()] : x.mul(i)));
    using x = ones([2]);
    for (let i = 0; i < 100; i++) step(x, i);
    expect(() => step(x, 101)).toThrow(/a value is read inside a compiled function/);
    step.dispose();
  });
});

describe('what is kept', () => {
  it('is bounded by the data that it holds', async () => {
    await setEngine(createNullEngine());
    const step = compile((x: Tensor, i: number) => x.add(tensor(new Float32Array(2 ** 18).fill(i))));
    using x = ones([1]);
    flush();
    const { numBuffers } = memory();
    // Each holds 1 MiB twice: for comparison, and as a tensor.
    for (let i = 0; i < 30; i++) for (let k = 0; k < 3; k++) step(x, i).dispose();
    expect(stats().recordings).toBe(16);
    step.dispose();
    expect(stats().recordings).toBe(0);
    expect(memory().numBuffers).toBe(numBuffers);
  });

  it('goes beyond 16 forms where it is small', () => {
    const step = compile((x: Tensor, i: number) => x.mul(i));
    using x = ones([1]);
    for (let i = 0; i < 100; i++) for (let k = 0; k < 3; k++) step(x, i).dispose();
    expect(stats().recordings).toBe(100);
    step.dispose();
  });
});
