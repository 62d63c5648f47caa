/** Elements picked and put by index tensors, masks, and matrices of a pattern. */
import { describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import type { Tensor } from '../../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { f64, i32, range, values } from '../fixtures/values.ts';

await pg.setEngine(createReferenceEngine());

describe('indexing', () => {
  it('takes negative indices and moves computed ones to the ends', async () => {
    const x = pg.tensor([10, 20, 30]);
    expect(await values(pg.take(x, i32([-2, 4, -10, 0]).add(1)))).toEqual([30, 30, 10, 20]);
    expect(
      pg.take(
        range([2, 3]),
        i32([
          [0, 1],
          [1, 0],
        ]),
        1,
      ).shape,
    ).toEqual([2, 2, 2]);
    expect(() => pg.take(x, pg.tensor([0.5]))).toThrow(/\[take\].*float32/);
  });

  it('says of arguments that are no integers what was given, and the order of all', () => {
    const [table, ids] = [pg.zeros([4, 2]), i32([1, 2])];
    const given =
      'indices have dtype float32 and shape [4, 2]: need integers; convert with cast(), or give the arguments';
    const swapped: [string, string, () => unknown][] = [
      ['embedding', 'indices, weight', () => pg.embedding(table, ids)],
      ['embeddingBag', 'indices, weight', () => pg.embeddingBag(table, ids.reshape([1, 2]))],
      ['take', 'x, indices', () => pg.take(ids, table)],
      ['gather', 'x, indices', () => pg.gather(ids.reshape([1, 2]), table)],
      ['gatherNd', 'x, indices', () => pg.gatherNd(ids, table)],
      ['scatterNd', 'indices, updates, shape', () => pg.scatterNd(table, ids, [4])],
      ['oneHot', 'indices, classes', () => pg.oneHot(table, 3)],
    ];
    for (const [op, order, call] of swapped) expect(call, op).toThrow(`[${op}] ${given} in the order ${op}(${order})`);
    expect(() => pg.embeddingBag(ids, table, { offsets: pg.zeros([2]) })).toThrow(
      '[embeddingBag] offsets have dtype float32 and shape [2]: need integers; convert with cast()',
    );
  });

  it('refuses indices that the host knows to be outside', async () => {
    const x = range([3, 2]);
    const bad = /index out of range: 3 for size 3; must be an integer from -3 to 2/;
    for (const dtype of ['int32', 'int16', 'uint32', 'int64', 'uint64', 'uint16'] as const)
      expect(() => pg.take(x, pg.tensor([0, 3], { dtype }))).toThrow(bad);
    expect(() => pg.take(x, i32([-4]))).toThrow(/index out of range: -4/);
    expect(() => pg.take(x, pg.tensor([2n ** 40n]))).toThrow(/index out of range: 1099511627776/);
    // Moved, stretched and cast.
    expect(() => pg.embedding(i32([0, 3]).reshape([2, 1]), x)).toThrow(bad);
    expect(() =>
      pg.embedding(
        i32([[0, 3]])
          .transpose()
          .cast('int64'),
        x,
      ),
    ).toThrow(bad);
    expect(() => pg.take(x, i32([3]).broadcastTo([4]))).toThrow(bad);
    const index = i32([
      [0, 1],
      [0, 3],
    ]);
    expect(() => pg.gather(x, index, 0)).toThrow(/^\[gather\] index out of range: 3/);
    expect(() => pg.takeAlongAxis(x, index, 0)).toThrow(/^\[takeAlongAxis\]/);
    expect(() => pg.indexSelect(x, i32([3]))).toThrow(/^\[indexSelect\]/);
    expect(() => pg.scatterAdd(x, index, pg.zeros([2, 2], { dtype: 'float64' }), 0)).toThrow(/^\[scatterAdd\]/);
    expect(() => pg.indexAdd(x, i32([3]), pg.zeros([1, 2], { dtype: 'float64' }))).toThrow(/^\[indexAdd\]/);
    expect(() => pg.indexCopy(x, i32([3]), pg.zeros([1, 2], { dtype: 'float64' }))).toThrow(/^\[indexCopy\]/);
    expect(() => pg.embeddingBag(i32([[3]]), x)).toThrow(/^\[embeddingBag\]/);
    expect(() => pg.gatherNd(x, [[1, 2]])).toThrow(/^\[gatherNd\] index out of range: 2 for size 2/);
    expect(() => pg.gatherNd(x, i32([[3, 0]]))).toThrow(/^\[gatherNd\] index out of range: 3 for size 3/);
    expect(() => pg.scatterNd([[4]], pg.tensor([1]), [4])).toThrow(/^\[scatterNd\] index out of range: 4 for size 4/);
    // A part may leave out what is outside, so it counts as computed; so do integers of 8 bits.
    expect(await values(pg.take(x, i32([1, 3]).narrow(0, 0, 1)))).toEqual([2, 3]);
    expect(await values(pg.take(x, pg.tensor([9], { dtype: 'uint8' })))).toEqual([4, 5]);
    expect(pg.take(x, pg.zeros([0], { dtype: 'int32' })).shape).toEqual([0, 2]);
  });

  it('knows numbers that are moved, widened or all the same also when they have been computed', async () => {
    const x = f64([1, 2, 3]);
    const same = pg.full([2], 3, { dtype: 'int32' });
    const wide = pg
      .tensor([[3, 0]], { dtype: 'int16' })
      .cast('int32')
      .transpose();
    await same.data();
    await wide.data();
    expect(() => pg.take(x, same)).toThrow(/index out of range: 3 for size 3/);
    expect(() => pg.take(x, wide)).toThrow(/index out of range: 3 for size 3/);
  });

  it('takes from a tensor that is one number everywhere and nowhere in memory', async () => {
    expect(await values(pg.take(pg.full([3], 7), i32([0, 2])))).toEqual([7, 7]);
    expect(await values(pg.embedding([1], pg.full([3, 2], 7)))).toEqual([7, 7]);
    expect(await values(pg.pad(pg.take(pg.full([1], 7), i32([0])), [[1, 1]]))).toEqual([0, 7, 0]);
    expect(await values(pg.gatherNd(pg.transpose(pg.full([2, 3], 7)), [[2, 1]]))).toEqual([7]);
  });

  it('refuses coordinates outside in host arrays, each by the size of its own axis', async () => {
    const x = pg.zeros([2, 3]);
    expect(() =>
      pg.gatherNd(x, [
        [1, 2],
        [2, 0],
      ]),
    ).toThrow(/\[gatherNd\] index out of range: 2 for size 2/);
    expect(() => pg.gatherNd(x, [[[0, -4]]])).toThrow(/\[gatherNd\] index out of range: -4 for size 3/);
    expect(() => pg.gatherNd(x, [5])).toThrow(/\[gatherNd\] index out of range: 5 for size 2/);
    expect(() => pg.scatterNd([[9]], pg.ones([1]), [4])).toThrow(/\[scatterNd\] index out of range: 9 for size 4/);
    expect(() => pg.gatherNd(x, [[0.5, 0]])).toThrow(/\[gatherNd\].*0.5/);
    expect(
      await values(
        pg.gatherNd(range([2, 3]), [
          [-2, -1],
          [1, 2],
        ]),
      ),
    ).toEqual([2, 5]);
  });

  it('gathers and scatters along an axis', async () => {
    const x = range([2, 3]);
    expect(await values(pg.gather(x, i32([[2, 0]]), 1))).toEqual([2, 0]);
    expect(await values(pg.takeAlongAxis(x, i32([[1], [2]]), 1))).toEqual([1, 5]);
    expect(await values(pg.takeAlongAxis(x, i32([[1]]), 1))).toEqual([1, 4]);
    expect(
      await values(
        pg.scatterAdd(
          pg.zeros([2, 3], { dtype: 'float64' }),
          i32([
            [0, 0],
            [2, 1],
          ]),
          f64([
            [1, 2],
            [3, 4],
          ]),
          1,
        ),
      ),
    ).toEqual([3, 0, 0, 0, 4, 3]);
  });

  it('has the gradient of a greatest element that is a sum: one that is computed once, not in two kernels in two orders', async () => {
    const shape = [2, 2, 6];
    const index = i32([
      [0, 0],
      [1, 1],
    ]);
    let compared = 0;
    for (let seed = 0; seed < 5; seed++) {
      const numbers = (count: number, from: number): number[] =>
        Array.from({ length: count }, (_, i) => Math.sin(i * 1.7 + from + seed * 0.37));
      const [xs, vs, us, ws] = [numbers(24, 1), numbers(6, 3), numbers(4, 5).map((u) => u - 3), numbers(4, 9)] as const;
      const [v, w] = [f64(vs), f64(ws).reshape([2, 2])];
      const f = (x: Tensor, u: Tensor): Tensor =>
        pg.sum(pg.mul(pg.scatterReduce(pg.matmul(x, v), index, u, 'max', { axis: 0 }), w));
      const [ofX, ofU] = pg.grads(f)(f64(xs).reshape(shape), f64(us).reshape([2, 2])) as [Tensor, Tensor];
      const [x, u] = [await values(ofX), await values(ofU)] as number[][];
      for (let at = 0; at < 4; at++) {
        const base = vs.reduce((sum, b, k) => sum + xs[at * 6 + k]! * b, 0);
        const wins = base > us[at]!;
        expect(u![at]).toBe(wins ? 0 : ws[at]);
        for (const [k, b] of vs.entries()) expect(x![at * 6 + k]).toBeCloseTo(wins ? ws[at]! * b : 0, 12);
        compared += Number(wins);
      }
    }
    expect(compared).toBeGreaterThan(5);
  });

  it('embeds without gradient for the padding row', async () => {
    const w = f64([
      [1, 2],
      [3, 4],
      [5, 6],
    ]);
    const g = pg.grad((t: Tensor) => pg.sum(pg.embedding(i32([1, 2, 1]), t, { paddingIdx: 1 })))(w);
    expect(await values(g)).toEqual([0, 0, 0, 0, 1, 1]);
  });

  it('masks and one-hot rows', async () => {
    expect(await values(pg.maskedFill(range([3]), pg.tensor([true, false, true]), -1))).toEqual([-1, 1, -1]);
    expect(await values(pg.oneHot(i32([1, 5, -1]), 3))).toEqual([0, 1, 0, 0, 0, 0, 0, 0, 0]);
    expect(await values(pg.diagonal(range([3, 4]), { offset: 1 }))).toEqual([1, 6, 11]);
    expect(await values(pg.diagonal(range([3, 4]), { offset: -1 }))).toEqual([4, 9]);
    expect(await values(pg.diagonal(range([2, 2]), { offset: 5 }))).toEqual([]);
    expect(await values(pg.arange(5, 0, -2))).toEqual([5, 3, 1]);
    expect(await values(pg.linspace(0, 1, 1))).toEqual([0]);
    expect(await values(pg.eye(2, 3, { diagonal: 1 }))).toEqual([0, 1, 0, 0, 0, 1]);
    expect(await values(pg.triu(pg.ones([2, 3]), { diagonal: 1 }))).toEqual([0, 1, 1, 0, 0, 1]);
  });

  it('the gradient of a bag whose rows are all -infinity goes to the first of its own that counts', async () => {
    const none = Number.NEGATIVE_INFINITY;
    const table = f64([
      [none, 5],
      [none, 1],
      [none, 2],
      [none, 9],
    ]);
    const rows = (f: (t: Tensor) => Tensor): Tensor =>
      pg.grad((t: Tensor) => pg.sum(f(t).mul(f64([[1], [10]]))))(table) as Tensor;
    const lists = (t: Tensor): Tensor =>
      pg.embeddingBag([3, 1, 0, 2], t, { mode: 'max', offsets: [0, 2], paddingIdx: 3 });
    const matrix = (t: Tensor): Tensor =>
      pg.embeddingBag(
        [
          [3, 1],
          [0, 2],
        ],
        t,
        { mode: 'max', paddingIdx: 3 },
      );
    for (const bags of [lists, matrix]) {
      expect(await values(bags(table))).toEqual([none, 1, none, 5]);
      expect(await values(rows(bags))).toEqual([10, 10, 1, 1, 0, 0, 0, 0]);
      expect(await values(pg.jvp(bags, [table], [range([4, 2])])[1])).toEqual([2, 3, 0, 1]);
    }
    // As many examples at once: the mask of a bag is batched with its rows.
    const many = pg.vmap(pg.grad((t: Tensor) => pg.sum(lists(t))) as (t: Tensor) => Tensor);
    expect(await values(many(pg.stack([table, table])))).toEqual([1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0]);
  });

  it('computed indices beyond int32 are moved to the ends, too', async () => {
    const far = pg.add(pg.tensor([2n ** 32n + 1n, 2n ** 63n - 1n, -(2n ** 32n) + 1n, 1n]), 0n);
    expect(await values(pg.take(f64([10, 11, 12]), far))).toEqual([12, 12, 10, 11]);
    expect(await values(pg.oneHot(far, 2))).toEqual([0, 0, 0, 0, 0, 0, 0, 1]);
    const losses = pg.crossEntropy(pg.zeros([4, 2]), far, { reduction: 'none' });
    expect((await values(losses)).map(Number.isNaN)).toEqual([true, true, true, false]);
    for (const data of [
      [4e9, 2 ** 31, 0],
      [2n ** 64n - 1n, 2n ** 32n, 0n],
    ] as const) {
      const dtype = typeof data[0] === 'number' ? 'uint32' : 'uint64';
      const unsigned = pg.maximum(pg.tensor([...data] as number[], { dtype }), pg.zeros([3], { dtype }));
      expect(await values(pg.take(f64([10, 11, 12]), unsigned))).toEqual([12, 12, 10]);
      expect(await values(pg.oneHot(unsigned, 1))).toEqual([0, 0, 1]);
    }
  });
});
