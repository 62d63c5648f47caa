/** Which arguments are alike for a compiled function, and which have a recording of their own. */
import { createReferenceEngine } from '@polygrad/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import { compile, seed, setEngine, setLogger, softmax, stats, type Tensor, tensor } from '../index.ts';
import { batch, numbers } from './fixtures/programs.ts';

beforeEach(async () => {
  await setEngine(createReferenceEngine());
  setLogger(null);
  seed(0);
});

describe('other arguments', () => {
  it('record anew, and share plans of a class', async () => {
    const step = compile((x: Tensor) => softmax(x.mul(2)));
    const check = async (n: number): Promise<void> => {
      using x = tensor(new Float32Array(4 * n).fill(n), { shape: [n, 4] });
      using y = step(x);
      using expected = softmax(x.mul(2));
      expect(await numbers(y)).toEqual(await numbers(expected));
    };
    for (const n of [40, 40, 40, 50, 50, 50]) await check(n);
    const { plansMade } = stats();
    expect(stats().recordings).toBe(2);
    for (let n = 60; n < 76; n++) await check(n);
    expect(stats().plansMade).toBe(plansMade);
    expect(stats().recordings).toBe(18);
    await check(40);
    step.dispose();
    expect(stats().recordings).toBe(0);
    await check(40);
    step.dispose();
  });

  it('count by value, where they are no tensors, and by dtype and layout, where they are', async () => {
    const step = compile((x: Tensor, by: number | string) => x.mul(Number(by)));
    const matrix = batch(1, [2, 3]);
    for (let round = 0; round < 4; round++) {
      for (const by of [2, '3', -0, 0, Number.NaN])
        expect(await numbers(step(matrix, by))).toEqual(await numbers(matrix.mul(Number(by))));
      expect(await numbers(step(matrix.transpose(), 2))).toEqual(await numbers(matrix.transpose().mul(2)));
      const other = matrix.cast('int32');
      expect(step(other, 2).dtype).toBe('int32');
    }
    expect(stats().replays).toBeGreaterThan(5);
    step.dispose();
  });

  it('are told apart where two are one tensor, or one is a tensor from outside', async () => {
    const w = batch(9);
    const step = compile((x: Tensor, y: Tensor) => x.mul(2).add(y).sub(w));
    const check = async (x: Tensor, y: Tensor): Promise<void> => {
      expect(await numbers(step(x, y))).toEqual(await numbers(x.mul(2).add(y).sub(w)));
    };
    const [a, b] = [batch(1), batch(2)];
    for (const [x, y] of [
      [a, a],
      [a, a],
      [a, a],
      [b, b],
      [b, b],
      [a, b],
      [b, a],
      [a, b],
      [w, w],
      [w, w],
      [w, w],
      [a, w],
      [a, w],
      [b, w],
      [b, a],
      [a, a],
    ] as const)
      await check(x, y);
    step.dispose();
  });

  it('that are the tensor it assigns are not written over unseen', async () => {
    const w = batch(9);
    const step = compile((x: Tensor) => {
      w.assign(w.mul(2));
      return x.add(w);
    });
    const check = async (x: Tensor): Promise<void> => {
      const before = await numbers(w);
      // What is assigned is the argument itself, or what it was a view of.
      const given = (await numbers(x)).map((value) => (x === w ? 2 * value : value));
      const sum = given.map((value, i) => Math.fround(value + Math.fround(2 * before[i]!)));
      expect(await numbers(step(x))).toEqual(sum);
    };
    for (let i = 0; i < 4; i++) await check(batch(i));
    await check(w);
    await check(w);
    using view = w.reshape([4]);
    for (let i = 0; i < 3; i++) await check(view);
    await check(batch(3));
    step.dispose();
  });

  it.each([
    ['a typed array', [new Float32Array(2)], /an argument is a Float32Array, whose contents may change/],
    [
      'a list that holds itself',
      [
        (() => {
          const l: unknown[] = [];
          l.push(l);
          return l;
        })(),
      ],
      /holds itself/,
    ],
  ])('that cannot be: %s', (_, args, message) => {
    const step = compile((...all: unknown[]) => void all);
    expect(() => step(...args)).toThrow(message);
  });
});
