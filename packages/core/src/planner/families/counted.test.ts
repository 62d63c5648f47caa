/** Plans that sizes share: what would count wrong with a size that is bound is refused, or right all the same. */
import { createReferenceEngine } from '@polygrad/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import { clearPlans, setDynamicSizes, setEngine, stats, type Tensor, tensor } from '../../index.ts';
import { kinds, numbers, rows, sameAtSizes, valuesOf } from './fixtures/at-sizes.ts';
import { sampled } from '@polygrad/compiler/fixtures/everyday';

describe.each(kinds)('%s', (_, options) => {
  beforeEach(async () => {
    await setEngine(createReferenceEngine(options));
    setDynamicSizes('automatic');
  });

  describe('what would count wrong is refused or right', () => {
    const cases: Readonly<Record<string, (n: number) => Tensor>> = {
      flip: (n) => pg.flip(rows(n, 3), 0),
      'rows from the end': (n) => pg.slice(rows(n, 3), [{ start: -3, stop: -1 }]),
      'every other row': (n) => pg.slice(rows(n, 3), [{ step: 2 }]),
      'rows of a table': (n) => pg.slice(rows(40, 3), [{ start: 0, stop: n }]).add(rows(n, 3)),
      pad: (n) =>
        pg.pad(rows(n, 3), [
          [1, 2],
          [0, 0],
        ]),
      concat: (n) => pg.concat([rows(n, 3), rows(2, 3)], 0),
      stack: (n) => pg.stack([rows(n, 3), rows(n, 3)], 1),
      'inner reshape': (n) => pg.reshape(pg.permute(rows(n, 3), [1, 0]), [3 * n]).add(1),
      'outer reshape': (n) => pg.reshape(rows(n, 3), [3 * n]).add(1),
      sort: (n) => pg.sort(rows(n)),
      'running sums': (n) => pg.cumSum(rows(n, 3), 0),
      'position of the greatest': (n) => pg.argMax(rows(n, 3), 0),
      softmax: (n) =>
        pg
          .softmax(rows(n, 3), 0)
          .mul(0)
          .add(pg.sum(rows(n, 3), 0)),
      'the mean': (n) => pg.mul(pg.sum(rows(n, 4), 0), n),
      'one in three rows': (n) => pg.unfold(rows(1, 1, n, 3), [2, 2]),
      gather: (n) =>
        pg.take(
          rows(5, 3),
          tensor(
            numbers(n).map((x) => Math.abs(x) % 5),
            { dtype: 'int32' },
          ),
          0,
        ),
      'gather of the size': (n) => pg.take(rows(n, 3), tensor([1, 0, 2], { dtype: 'int32' }), 0),
      products: (n) => pg.matmul(pg.permute(rows(n, 3), [1, 0]), rows(n, 4)),
      'products added to a sum over the size': (n) =>
        pg.add(
          pg.matmul(rows(2, 5), tensor(numbers(15), { shape: [5, 3] })),
          pg.matmul(pg.permute(rows(n, 2), [1, 0]), rows(n, 3)),
        ),
      'a sum over the size added to products': (n) =>
        pg.add(
          pg.matmul(pg.permute(rows(n, 2), [1, 0]), rows(n, 3)),
          pg.matmul(rows(2, 5), tensor(numbers(15), { shape: [5, 3] })),
        ),
      'products of the size': (n) => pg.sum(pg.matmul(rows(n, 3), pg.permute(rows(n, 3), [1, 0])), 1),
      masks: (n) => pg.rand([n, 3], { key: [1, 2] }).add(rows(n, 3)),
      positions: (n) => pg.arange(0, n, 1, { dtype: 'int32' }).add(tensor(numbers(n), { dtype: 'int32' })),
    };
    it.each(sampled(Object.entries(cases), 2))('%s', async (_, f) => {
      await sameAtSizes(f, [9, 13, 8, 15, 11, 17, 31, 9, 35]);
      await sameAtSizes(f, [4, 7, 5, 6]);
    });

    const ends: Readonly<Record<string, (n: number) => Tensor>> = {
      'the last row': (n) => pg.select(pg.exp(rows(n, 3)), 0, -1),
      'the last rows, and where they are from the first': (n) => {
        const x = pg.square(rows(n, 3));
        return pg.add(pg.slice(x, [{ start: -2 }]), pg.sum(x, 0));
      },
      'one row before the last': (n) => pg.mul(pg.select(pg.square(rows(2, n, 3)), 1, -3), 2),
      'the last of several a row': (n) => pg.select(pg.reshape(pg.square(rows(n, 3)), [3 * n]), 0, -1).add(1),
      'the last of each stretch': (n) =>
        pg.slice(pg.reshape(pg.exp(rows(4, n)), [4 * n]), [{ start: -2 }]).add(pg.sum(rows(4, n))),
      'a product of the last row': (n) =>
        pg.matmul(pg.slice(pg.square(rows(n, 6)), [{ start: -1 }]), tensor(numbers(30), { shape: [6, 5] })),
      'padding before': (n) =>
        pg
          .pad(pg.square(rows(2, 3)), [
            [n - 2, 0],
            [0, 0],
          ])
          .add(rows(n, 3)),
      'padding on both sides': (n) =>
        pg
          .pad(pg.square(rows(2, 3)), [
            [n - 4, 2],
            [1, 0],
          ])
          .sum(0)
          .add(pg.sum(rows(n, 4), 0)),
      'padding behind': (n) =>
        pg
          .pad(pg.square(rows(2, 3)), [
            [1, n - 3],
            [0, 0],
          ])
          .add(rows(n, 3)),
      'padding beside stretches': (n) =>
        pg.pad(pg.reshape(pg.square(rows(3, n, 2)), [3 * n, 2]), [
          [0, 0],
          [n - 2, 0],
        ]),
      'the gradient of the last row': (n) =>
        pg.grad((x: Tensor) => pg.sum(pg.exp(pg.mul(pg.select(pg.tanh(x), 0, -1), 0.5))))(rows(n, 3)),
      'the second derivative of the last rows': (n) =>
        pg.grad((x: Tensor) =>
          pg.sum(pg.square(pg.grad((y: Tensor) => pg.sum(pg.square(pg.slice(pg.square(y), [{ start: -2 }]))))(x))),
        )(rows(n, 3)),
      'chosen elements of rows': (n) =>
        pg.grad((x: Tensor) =>
          pg.sum(
            pg.square(
              pg.takeAlongAxis(
                pg.logSoftmax(x, 1),
                tensor(
                  numbers(n).map((i) => Math.abs(i) % 3),
                  { dtype: 'int32', shape: [n, 1] },
                ),
                1,
              ),
            ),
          ),
        )(rows(n, 3)),
    };
    it.each(sampled(Object.entries(ends), 2))('%s', async (name, f) => {
      const bound = await sameAtSizes(f, [9, 13, 8, 15, 11, 17, 31, 9, 35, 120]);
      if (!name.includes('stretch')) expect(bound).toBe(8);
      await sameAtSizes(f, [4, 7, 5, 6]);
    });

    it.each(['set', 'max', 'min', 'prod', 'add'] as const)('updates of places: %s', async (op) => {
      const at = (n: number, most: number): Tensor =>
        tensor(
          Array.from({ length: n }, (_, i) => (i * 5 + 2) % most),
          { dtype: 'int32' },
        );
      const updated = (x: Tensor, index: Tensor, updates: Tensor): Tensor => {
        if (op === 'set') return pg.indexCopy(x, index, updates, 1);
        const wide = pg.broadcastTo(pg.reshape(index, [1, index.shape[0]!, 1]), updates.shape);
        return pg.scatterReduce(x, wide, updates, op === 'add' ? 'sum' : op, { axis: 1 });
      };
      // Places are met several times; the last one is met before.
      const f = (n: number) => updated(rows(2, 7, 3), at(n, 6), pg.add(rows(2, n, 3), 1)).add(1);
      const bound = await sameAtSizes(f, [9, 13, 8, 15, 11, 17, 31, 9, 35]);
      if (op === 'set') expect(bound).toBe(7);
      await sameAtSizes(f, [4, 7, 5, 6]);
      // In the memory of what is updated.
      const inPlace = async (n: number): Promise<number[]> => {
        const x = rows(2, 7, 3);
        pg.flush();
        pg.scope(() => x.assign(updated(x, at(n, 7), pg.square(rows(2, n, 3)))));
        const values = Array.from((await x.data()) as ArrayLike<number>);
        x.dispose();
        return values;
      };
      const sizes = [3, 2, 5, 7, 6, 4];
      setDynamicSizes('never');
      const alone: number[][] = [];
      for (const n of sizes) alone.push(await inPlace(n));
      setDynamicSizes('automatic');
      clearPlans();
      const { binds } = stats();
      for (const [i, n] of sizes.entries()) expect(await inPlace(n)).toEqual(alone[i]);
      if (op === 'set') expect(stats().binds - binds).toBe(5);
    });

    it('sums of extents that equal a capacity', async () => {
      // 19 + 12 is 31, the capacity of sizes of 8 .. 31.
      const f = (n: number) =>
        pg.add(
          pg.matmul(rows(n, 19), tensor(numbers(57), { shape: [19, 3] })),
          pg.matmul(rows(n, 12), tensor(numbers(36), { shape: [12, 3] })),
        );
      await sameAtSizes(f, [9, 13, 8, 15, 11]);
      for (const [a, b] of [
        [1, 30],
        [3, 28],
        [14, 17],
        [15, 16],
        [2, 35],
        [4, 123],
      ] as const) {
        const g = (n: number) =>
          pg.add(
            pg.matmul(rows(n, a), tensor(numbers(3 * a), { shape: [a, 3] })),
            pg.matmul(rows(n, b), tensor(numbers(3 * b), { shape: [b, 3] })),
          );
        await sameAtSizes(g, [9, 13, 8, 15, 11]);
        await sameAtSizes(g, [33, 40, 127]);
      }
      const padded = (n: number) =>
        pg.conv1d(rows(n, 2, 13), tensor(numbers(20), { shape: [2, 2, 5] }), { padding: 2 });
      await sameAtSizes(padded, [9, 13, 8, 15, 11]);
    });

    it('programs that read views whose strides are the size', async () => {
      const held = async (n: number, f: (x: Tensor) => Tensor): Promise<number[]> => {
        const whole = rows(2, 2, n, 2);
        const x = pg.slice(whole, [null, null, { start: 0, stop: 3 }, null]);
        await whole.data();
        await x.data();
        const values = await valuesOf(() => pg.add(f(x), pg.sum(whole)));
        pg.dispose([whole, x]);
        return values;
      };
      const programs: readonly ((x: Tensor) => Tensor)[] = [
        (x) => pg.sort(x, { axis: 2 }),
        (x) => pg.cumSum(x, 2),
        (x) => pg.median(x, { axis: 3 }),
        (x) => pg.scatterReduce(x, tensor([[[[0]]]], { dtype: 'int32' }), tensor([[[[7]]]]), 'max', { axis: 2 }),
      ];
      for (const f of programs) {
        const sizes = [9, 13, 8, 31, 9];
        setDynamicSizes('never');
        const alone: number[][] = [];
        for (const n of sizes) alone.push(await held(n, f));
        setDynamicSizes('automatic');
        clearPlans();
        const before = stats().binds;
        for (const [i, n] of sizes.entries()) expect(await held(n, f)).toEqual(alone[i]);
        expect(stats().binds).toBeGreaterThan(before);
      }
    });

    it('views that run backwards, or of which two axes are the size', async () => {
      const held = async (n: number, view: (x: Tensor) => Tensor): Promise<number[]> => {
        const y = view(rows(32, 16));
        await y.data();
        const values = await valuesOf(() => pg.sum(pg.mul(y, 3), 1));
        y.dispose();
        return values.map((x) => x + n);
      };
      const views = [
        (n: number) => (x: Tensor) => pg.flip(pg.slice(x, [{ start: 0, stop: n }]), 0),
        (n: number) => (x: Tensor) => pg.slice(x, [{ start: 32 - n }, { start: 0, stop: n }]),
        (n: number) => (x: Tensor) => pg.slice(x, [{ start: 1, stop: 1 + n }, { start: 16 - n }]),
        (n: number) => (x: Tensor) => pg.slice(x, [{ start: 32 - n }, { start: 16 - n }]),
        (n: number) => (x: Tensor) => pg.permute(pg.slice(x, [{ start: 3 }, { stop: n }]), [1, 0]),
      ];
      for (const view of views) {
        const sizes = [9, 13, 8, 15, 9];
        setDynamicSizes('never');
        const alone: number[][] = [];
        for (const n of sizes) alone.push(await held(n, view(n)));
        setDynamicSizes('automatic');
        clearPlans();
        for (const [i, n] of sizes.entries()) expect(await held(n, view(n))).toEqual(alone[i]);
      }
    });
  });
});
