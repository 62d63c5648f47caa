/** Scans in a program: what is planned anew, what is left in memory, steps in a warmup, eager mode and engines one after the other. */
import { createReferenceEngine } from '@polygrad/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  customGradient,
  dispose,
  flush,
  full,
  grad,
  jvp,
  memory,
  noGrad,
  printGraph,
  profile,
  scan,
  scope,
  setDynamicSizes,
  setEager,
  setEngine,
  stats,
  type Tensor,
  tensor,
  vmap,
  warmup,
  zeros,
} from '../index.ts';

beforeEach(async () => {
  await setEngine(createReferenceEngine());
});

const sums = (carry: Tensor, x: Tensor): [Tensor, Tensor] => {
  const next = carry.mul(0.5).add(x);
  return [next, next];
};

/** The last of the running sums. */
const last = (x: Tensor): Tensor => scan(sums, zeros([2]), x)[0];

describe('scan', () => {
  it('plans a step once, and its gradient too, whatever the length', () => {
    const run = (length: number): void =>
      scope(() => void grad((x: Tensor) => last(x).sum())(zeros([length, 2]).add(1)));
    run(3);
    const { planMisses } = stats();
    run(3);
    expect(stats().planMisses).toBe(planMisses);
    run(8);
    // What is outside of the loops: the slices, and what becomes of their gradient.
    expect(stats().planMisses - planMisses).toBeLessThan(4);
  });

  it('leaves nothing in memory', async () => {
    const x = tensor([
      [1, 2],
      [3, 4],
      [5, 6],
    ]);
    flush();
    const before = memory();
    const slopes = scope(() => vmap(grad((v: Tensor) => last(v).sum()))(x.reshape([1, 3, 2])));
    expect(await slopes.array()).toEqual([
      [
        [0.25, 0.25],
        [0.5, 0.5],
        [1, 1],
      ],
    ]);
    slopes.dispose();
    const after = memory();
    expect([after.numTensors, after.numBuffers]).toEqual([before.numTensors, before.numBuffers]);
    x.dispose();
  });

  it('leaves nothing in memory where rules of users name what is kept of each step', async () => {
    const twice = customGradient(
      (x) => x.exp(),
      (g, { inputs: [x] }) => g.mul(x!).mul(7),
    );
    const f = (x: Tensor): Tensor =>
      scan((carry: Tensor, row: Tensor) => [carry.add(twice(row.mul(tensor([2, 3])).sum())), null], zeros([]), x)[0];
    const before = memory();
    const x = tensor([
      [1, 2],
      [3, 4],
    ]);
    const [slope, [value, change]] = scope(() => [grad(f)(x), jvp(f, [x], [x])] as const);
    // 7 s (2, 3) with s = 8 and 18.
    expect(await slope.array()).toEqual([
      [112, 168],
      [252, 378],
    ]);
    expect(await change.item()).toBe(7 * (8 * 8 + 18 * 18));
    dispose([x, slope, value, change]);
    flush();
    const { numTensors, numBuffers } = memory();
    expect([numTensors, numBuffers]).toEqual([before.numTensors, before.numBuffers]);
  });

  it('runs in eager mode, and is shown as a loop', async () => {
    const x = tensor([
      [1, 2],
      [3, 4],
    ]);
    const y = last(x);
    expect(printGraph([y])).toContain('loop');
    setEager(true);
    const eager = last(x);
    setEager(false);
    expect(await eager.array()).toEqual(await y.array());
  });

  it('is prepared by a warmup, which computes nothing that lasts', async () => {
    const w = tensor([1, 2]);
    const step = (): void => scope(() => void w.assign(last(zeros([2, 2]).add(w)).mul(2)));
    await warmup(step);
    expect(await w.array()).toEqual([1, 2]);
    const [{ planMisses }, { numBuffers }] = [stats(), memory()];
    step();
    expect(stats().planMisses).toBe(planMisses);
    expect(await w.array()).toEqual([3, 6]);
    expect(memory().numBuffers).toBe(numBuffers);
    w.dispose();
  });

  it('is seen by a profile, every step of it', async () => {
    const x = zeros([6, 2]).add(1);
    const run = async (steps: number): Promise<number> => {
      let kernels = 0;
      await profile(async () => {
        const before = stats().kernels;
        const y = scope(() => last(x.narrow(0, 0, steps)));
        await y.data();
        y.dispose();
        kernels = stats().kernels - before;
      });
      return kernels;
    };
    expect((await run(6)) - (await run(2))).toBe(4);
    x.dispose();
  });

  it('reads a number that somebody else asked for in the same flush', async () => {
    const run = (x: number): readonly Tensor[] => {
      const two = full([], 2);
      const [carry] = scan(
        (c: Tensor, y: Tensor): [Tensor, Tensor] => [c.mul(two).add(y), y],
        tensor(x),
        tensor([1, 2]),
      );
      return [two, carry];
    };
    const [a, b] = [run(3), run(5)];
    flush();
    expect(await Promise.all([...a, ...b].map((t) => t.item()))).toEqual([2, 16, 2, 24]);
  });

  it('takes what noGrad computes as a constant', async () => {
    const held = (x: Tensor): Tensor => {
      const [sum, all] = scan(
        (carry: Tensor, v: Tensor) => [carry.add(noGrad(() => v.mul(3)).mul(v)), noGrad(() => carry.mul(1)).mul(v)],
        zeros([]),
        x,
      );
      return sum.add(all.sum());
    };
    // Of 3 c v with c = v, and of the carries before each step: 0, 3 and 15.
    expect(await grad(held)(tensor([1, 2, 3])).array()).toEqual([3, 9, 24]);
    const [, change] = jvp(held, [tensor([1, 2, 3])], [tensor([1, 1, 1])]);
    expect(await change.item()).toBe(36);
    expect(await vmap(grad(held))(tensor([[1, 2, 3]])).array()).toEqual([[3, 9, 24]]);
  });

  it('differentiates by what is the same at each step through views of tensors in memory', async () => {
    const row = tensor([[1, 0.5]]);
    const column = row.transpose(); // a view, in memory as soon as it is there
    const grown = (m: Tensor): Tensor => {
      const step = (s: Tensor): [Tensor, null] => [
        s
          .add(m)
          .matmul(column)
          .add(zeros([2, 2])),
        null,
      ];
      return scan(step, zeros([2, 2]), null, { length: 3 })[0].sum();
    };
    // A row [a, b] of m becomes [t, t] with t = (s + a) + (s + b) / 2 of its s before: t = 1.5 s + a + b / 2, so t counts 1 + 1.5 + 2.25 times, twice.
    expect(await grad(grown)(zeros([2, 2])).array()).toEqual([
      [9.5, 4.75],
      [9.5, 4.75],
    ]);
  });

  it('runs as many groups of threads as a size needs, in plans that sizes share', async () => {
    // An engine that checks every address: with the groups of the largest size, those behind the last row read beyond it.
    await setEngine(createReferenceEngine({ simt: true, maxGroup: 256 }));
    setDynamicSizes('always');
    const totals = (m: Tensor): Tensor => scan((s: Tensor) => [s, s.sum(1)], m, null, { length: 3 })[1];
    for (const n of [40, 33, 50]) {
      const rows = Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => ((i * 7 + j) % 5) - 2));
      const once = rows.map((row) => row.reduce((a, b) => a + b));
      expect(await totals(tensor(rows)).array()).toEqual([once, once, once]);
    }
    setDynamicSizes('automatic');
  });
});
