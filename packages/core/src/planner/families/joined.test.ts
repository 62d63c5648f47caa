/** Plans that sizes share along axes that are joined, cut and padded: sizes that are sums of others. */
import { createReferenceEngine } from '@polygrad/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import { clearPlans, setDynamicSizes, setEngine, stats, type Tensor, tensor } from '../../index.ts';
import { kinds, numbers, rows, valuesOf } from './fixtures/at-sizes.ts';
import { sampled } from '@polygrad/compiler/fixtures/everyday';

const behind = (n: number, ...inner: number[]): Tensor =>
  pg.concat([pg.square(rows(n, ...inner)), rows(1, ...inner)], { axis: 0 });

const cases: Readonly<Record<string, (n: number) => Tensor>> = {
  'one more row': (n) => behind(n, 3),
  'rows in front, and more than one': (n) =>
    pg.concat([rows(3, 2), pg.square(rows(n, 2)), rows(2, 2)], { axis: 0 }).mul(2),
  'rows between two of the size': (n) =>
    pg.sum(pg.concat([rows(n, 3), rows(2, 3), pg.exp(rows(n, 3))], { axis: 0 }), 1),
  'many parts': (n) => pg.concat([rows(n), rows(1), rows(n), rows(2), rows(n), rows(3)], { axis: 0 }).add(1),
  'along the last axis': (n) => pg.concat([pg.square(rows(3, n)), rows(3, 2)], { axis: 1 }).mul(rows(3, n + 2)),
  'sums of what is joined': (n) => pg.sum(behind(n, 3), 0).add(pg.max(behind(n, 3), 0)),
  'means of what is joined': (n) => pg.mean(behind(n, 3), 0),
  'softmax of what is joined': (n) => pg.softmax(pg.mul(pg.concat([rows(3, n), rows(3, 1)], { axis: 1 }), 0.25), 1),
  'product with what is joined': (n) => pg.matmul(behind(n, 4), tensor(numbers(20), { shape: [4, 5] })),
  'product summed over what is joined': (n) => pg.matmul(pg.permute(behind(n, 4), [1, 0]), behind(n, 4)),
  'what is joined in one row': (n) => pg.reshape(behind(n, 4), [4 * (n + 1)]).add(1),
  'what is joined in stretches': (n) =>
    pg.reshape(pg.permute(behind(n, 4), [1, 0]), [4 * (n + 1)]).mul(rows(4 * n + 4)),
  'numbers of what is joined': (n) => behind(n, 3).add(pg.arange(0, 3 * (n + 1), 1).reshape([n + 1, 3])),
  'all but the first': (n) => pg.slice(pg.square(rows(n + 1, 3)), [{ start: 1 }]).mul(rows(n, 3)),
  'all but the last': (n) => pg.slice(pg.square(rows(n + 2, 3)), [{ start: 0, stop: n }]).mul(rows(n, 3)),
  'the middle': (n) => pg.slice(pg.square(rows(n + 3, 3)), [{ start: 2, stop: n + 2 }]).mul(rows(n, 3)),
  'the second half': (n) => pg.slice(pg.square(rows(2 * n, 3)), [{ start: n, stop: 2 * n }]).mul(rows(n, 3)),
  'the first rows': (n) => pg.slice(pg.square(rows(n + 1, 3)), [{ start: 0, stop: 2 }]).add(pg.sum(rows(n, 3), 0)),
  'the second row': (n) => pg.select(pg.square(rows(n + 1, 3)), 0, 1).add(pg.sum(rows(n, 3), 0)),
  'differences of neighbours': (n) => {
    const x = pg.square(rows(n + 1, 3));
    return pg.sub(pg.slice(x, [{ start: 1 }]), pg.slice(x, [{ start: 0, stop: n }]));
  },
  'padding of a size': (n) =>
    pg.pad(pg.square(rows(n, 3)), [
      [2, 1],
      [0, 1],
    ]),
  'padding by a size': (n) =>
    pg.pad(pg.square(rows(n, 3)), [
      [n, 0],
      [0, 0],
    ]),
  'the gradient of joined rows': (n) =>
    pg.grad((x: Tensor) => pg.sum(pg.square(pg.concat([rows(2, 3), pg.tanh(x), rows(1, 3)], { axis: 0 }))))(rows(n, 3)),
  'the gradient of neighbours': (n) =>
    pg.grad((x: Tensor) => {
      const y = pg.square(x);
      return pg.sum(pg.mul(pg.slice(y, [{ start: 1 }]), pg.slice(y, [{ start: 0, stop: n }])));
    })(rows(n + 1, 3)),
  'the gradient of the first rows': (n) =>
    pg.grad((x: Tensor) => pg.sum(pg.square(pg.slice(pg.square(x), [{ start: 0, stop: 2 }]))))(rows(n, 3)),
  'attention to joined rows': (n) => {
    const keys = pg.concat([rows(n, 4), rows(1, 4)], { axis: 0 });
    const scores = pg.matmul(rows(1, 4), pg.permute(keys, [1, 0]));
    return pg.matmul(pg.softmax(pg.mul(scores, 0.25), 1), keys);
  },
};

/** Runs at sizes with shared plans, and each alone; the values must be close. Gives how often a plan was bound. */
async function near(
  f: (n: number) => Tensor,
  sizes: readonly number[],
  mode: 'automatic' | 'always' = 'automatic',
): Promise<number> {
  const alone: number[][] = [];
  setDynamicSizes('never');
  clearPlans();
  for (const n of sizes) alone.push(await valuesOf(() => f(n)));
  setDynamicSizes(mode);
  clearPlans();
  const { binds } = stats();
  for (const [i, n] of sizes.entries()) {
    const values = await valuesOf(() => f(n));
    expect(values.length).toBe(alone[i]!.length);
    // Sums may be taken in another order.
    for (const [k, x] of values.entries()) expect(x, `${n}: ${k}`).toBeCloseTo(alone[i]![k]!, 4);
  }
  return stats().binds - binds;
}

describe.each(kinds)('%s', (kind, options) => {
  const turn = kinds.findIndex(([name]) => name === kind);
  beforeEach(async () => {
    await setEngine(createReferenceEngine(options));
  });

  it.each(sampled(Object.entries(cases), 2, turn))('%s', async (_, f) => {
    expect(await near(f, [9, 13, 8, 15, 11, 17, 31, 9, 35, 127])).toBe(8);
    await near(f, [4, 7, 5, 6, 2, 3]);
    await near(f, [1, 2, 3, 4, 5, 6]);
  });

  it.each(sampled(Object.entries(cases), 2, turn + 1))('from the first on: %s', async (_, f) => {
    await near(f, [9, 13, 8, 31, 5, 2], 'always');
  });

  it('rows from the tenth on, of which short tensors have none', async () => {
    const widths = [
      [1, 10],
      [0, 0],
    ] as const;
    const f = (n: number): Tensor => pg.slice(pg.pad(rows(n, 3), widths), [{ start: 11, stop: n + 11 }]);
    // Those of 8 and 9 rows have plans of their own.
    expect(await near(f, [9, 13, 8, 15, 11, 17, 31, 9, 35, 127])).toBe(7);
    await near(f, [4, 7, 5, 6, 2, 3]);
    await near(f, [9, 13, 8, 31, 5, 2], 'always');
  });

  it('two sizes and their sum', async () => {
    const sizes = [
      [9, 20],
      [10, 22],
      [12, 9],
      [31, 8],
      [8, 31],
      [11, 11],
      [3, 5],
      [5, 3],
    ] as const;
    const f = (i: number): Tensor => {
      const [n, m] = sizes[i]!;
      const all = pg.concat([pg.square(rows(n, 3)), rows(2, 3), pg.exp(pg.mul(rows(m, 3), 0.5))], { axis: 0 });
      return all.add(rows(n + m + 2, 1));
    };
    expect(await near(f, [...sizes.keys()])).toBe(7);
  });

  it.each(['automatic', 'always'] as const)('parts of what the same flush stores, %s', async (mode) => {
    setDynamicSizes(mode);
    clearPlans();
    for (const n of [20, 13, 17, 9]) {
      const x = pg.square(rows(n, 2));
      const parts = [
        [n - 4, n - 1],
        [2, 4],
        [1, n],
        [0, n - 1],
      ] as const;
      const found = parts.map(([start, stop]) => pg.slice(x, [{ start, stop }]));
      pg.flush();
      for (const [i, [start, stop]] of parts.entries())
        expect(Array.from((await found[i]!.data()) as ArrayLike<number>), `${n}: ${start}`).toEqual(
          numbers(2 * n)
            .slice(2 * start, 2 * stop)
            .map((v) => v * v),
        );
      pg.dispose([x, ...found]);
    }
  });

  it.each(['automatic', 'always'] as const)('parts of pages whose lengths change, %s', async (mode) => {
    setDynamicSizes(mode);
    clearPlans();
    const pages = 3;
    for (const n of [3, 5, 4, 9, 10, 21]) {
      const of = (page: number, from: number, to: number): number[] =>
        numbers(pages * n * 4)
          .map((v) => v * v)
          .filter((_, i) => Math.floor(i / (4 * n)) === page && i % 4 >= from && i % 4 < to);
      // Each begins at a page, whose length is a multiple of the size, and some at a column in it, which adds a fixed number.
      for (let page = 0; page < pages; page++)
        for (const [from, to] of [
          [0, 2],
          [2, 4],
        ] as const) {
          const y = pg.square(tensor(numbers(pages * n * 4), { shape: [pages, n, 4] }));
          const found = pg.slice(y, [page, null, { start: from, stop: to }]);
          pg.flush();
          expect(await valuesOf(() => found), `${n}: page ${page} from ${from}`).toEqual(of(page, from, to));
          y.dispose();
        }
    }
  });

  it('part of an axis that is stretches one after another is cut from a plan of its own', async () => {
    const f = (n: number): Tensor => {
      const four = pg.mul(rows(4 * n).reshape([4, n]), tensor([1, 2, 3, 4], { shape: [4, 1] }));
      return pg.slice(pg.reshape(four, [4 * n]), [{ start: 0, stop: 3 * n }]).mul(2);
    };
    await near(f, [9, 13, 8, 15, 11, 4]);
    for (const n of [9, 13])
      expect(await valuesOf(() => f(n))).toEqual(numbers(3 * n).map((x, i) => 2 * x * (Math.floor(i / n) + 1)));
  });

  it('rows joined one by one to what is held share plans with those before', async () => {
    setDynamicSizes('automatic');
    clearPlans();
    let held = pg.scope(() => pg.keep(rows(1, 4).mul(1)));
    const { plansMade } = stats();
    for (let n = 1; n < 40; n++) {
      const { next, sum } = pg.scope(() => {
        const next = pg.concat([held, pg.mul(pg.mean(held, { axis: 0, keepDims: true }), 2)], { axis: 0 });
        return { next, sum: pg.sum(pg.softmax(next, 0), 1) };
      });
      const values = Array.from((await sum.data()) as ArrayLike<number>);
      expect(values.length).toBe(n + 1);
      expect(values.reduce((a, b) => a + b, 0)).toBeCloseTo(4, 4);
      pg.dispose([held, sum]);
      held = next;
    }
    held.dispose();
    // For one row, for 2 to 7, for 8 to 31 and on.
    expect(stats().plansMade - plansMade).toBeLessThanOrEqual('simt' in options ? 4 : 3);
  });
});
