/** Plans that sizes share, on the engine that checks every access: when they are made and bound, what breaks a guess, what is let go. */
import { stateOf } from '../../runtime/run.ts';
import { createNullEngine, createReferenceEngine } from '@polygrad/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import { clearPlans, setDynamicSizes, setEngine, stats, type Tensor, tensor } from '../../index.ts';
import { getEngine } from '../../engine/registry.ts';

const numbers = (n: number, salt = 0): number[] => Array.from({ length: n }, (_, i) => ((i * 7 + salt) % 11) - 5);

/** What a function of tensors gives. */
async function valuesOf(f: () => Tensor): Promise<number[]> {
  const y = pg.scope(f);
  try {
    return Array.from((await y.data()) as ArrayLike<number>);
  } finally {
    y.dispose();
  }
}

const rows = (n: number, ...inner: number[]): Tensor =>
  tensor(numbers(inner.reduce((p, m) => p * m, n)), { shape: [n, ...inner] });

/** Runs at sizes with shared plans, and each alone; the values must be equal. Gives how often a plan was bound. */
async function sameAtSizes(f: (n: number) => Tensor, sizes: readonly number[]): Promise<number> {
  const alone: number[][] = [];
  setDynamicSizes('never');
  clearPlans();
  for (const n of sizes) alone.push(await valuesOf(() => f(n)));
  setDynamicSizes('automatic');
  clearPlans();
  const before = stats().binds;
  for (const [i, n] of sizes.entries()) expect(await valuesOf(() => f(n)), `size ${n}`).toEqual(alone[i]);
  return stats().binds - before;
}

/** Kernels shaped for vectors, and for groups of threads. */
const kinds = [
  ['vectors', {}],
  ['threads', { simt: true, maxGroup: 32 }],
  ['subgroups', { simt: true, maxGroup: 64, subgroup: 8 }],
] as const;

describe.each(kinds)('%s', (_, options) => {
  beforeEach(async () => {
    await setEngine(createReferenceEngine(options));
    setDynamicSizes('automatic');
  });

  describe('sharing', () => {
    it('makes a plan for each class of sizes', async () => {
      const f = (n: number) => pg.mul(rows(n, 3), 2);
      await sameAtSizes(f, [9]);
      expect(stats()).toMatchObject({ families: 0, binds: 0 });
      await valuesOf(() => f(13));
      expect(stats()).toMatchObject({ families: 1, binds: 1 });
      for (const n of [8, 31, 11]) await valuesOf(() => f(n));
      expect(stats()).toMatchObject({ families: 1, binds: 4 });
      await valuesOf(() => f(32));
      await valuesOf(() => f(127));
      // Little is computed: without threads, 32 to 511 are of the class of 8.
      expect(stats()).toMatchObject({ families: 'simt' in options ? 2 : 1, binds: 6 });
      await valuesOf(() => f(11));
      expect(stats()).toMatchObject({ families: 'simt' in options ? 2 : 1, binds: 6 });
      for (const n of [2, 7, 128, 255, 256]) await valuesOf(() => f(n));
      expect(stats()).toMatchObject({ families: 'simt' in options ? 5 : 2, binds: 11 });
      for (const n of [511, 512, 1023]) await valuesOf(() => f(n));
      expect(stats()).toMatchObject({ families: 'simt' in options ? 6 : 3, binds: 14 });
    });

    it('has narrower classes where much is computed', async () => {
      // 511 rows of 1024 numbers, multiplied 200 times: more than 256 MB.
      await setEngine(createNullEngine());
      const f = (n: number): void => {
        const y = pg.scope(() => {
          let x = pg.tensor(new Float32Array(n * 1024), { shape: [n, 1024] });
          for (let i = 0; i < 200; i++) x = pg.mul(x, 0.99);
          return x;
        });
        y.dispose();
      };
      for (const [n, families] of [
        [100, 0],
        [101, 1],
        [128, 2],
        [255, 2],
        [256, 3],
      ] as const) {
        f(n);
        expect(stats(), `at ${n}`).toMatchObject({ families });
      }
    });

    it('begins with the second size where one element became two', async () => {
      const w = (): Tensor => tensor(numbers(2 * 5, 3), { shape: [2, 5] });
      const f = (n: number): Tensor => pg.softmax(pg.matmul(rows(n, 2), w()).add(rows(5)), 1);
      expect(await sameAtSizes(f, [1, 2, 3, 7, 2])).toBe(3);
      expect(stats()).toMatchObject({ families: 1 });
      // Numbers that are not the size, and equal it: of what is held, of what is computed.
      expect(await sameAtSizes((n) => pg.mul(rows(n, 3), pg.broadcastTo(rows(1, 3), [n, 3])), [1, 2, 4])).toBe(2);
      await sameAtSizes((n) => pg.sum(pg.mul(rows(n, 4).reshape([n, 2, 2]), rows(2, 2)), 2), [1, 2, 3, 5]);
      await sameAtSizes((n) => pg.mean(pg.mul(rows(n, 4), pg.broadcastTo(rows(4), [n, 4]))), [1, 2, 3, 5]);
    });

    it('of more than two is a plan of its own after one element', async () => {
      expect(await sameAtSizes((n) => pg.mul(rows(n, 5), rows(5)), [1, 9])).toBe(0);
    });

    it('is not there where it is turned off', async () => {
      const before = stats().binds;
      setDynamicSizes('never');
      for (const n of [5, 6, 7]) await valuesOf(() => pg.add(rows(n), 1));
      expect(stats()).toMatchObject({ families: 0, binds: before });
    });

    it('keeps forms apart that come by turns', async () => {
      const bound = await sameAtSizes(
        (n) => (n % 2 === 0 ? pg.sum(rows(n, 4), 0) : pg.max(rows(n, 4), 1)),
        [9, 10, 11, 12, 13, 14, 15, 8],
      );
      expect(bound).toBe(6);
    });

    it('of attributes that differ otherwise is none', async () => {
      // The same structure and sizes; but which of two axes is summed changes with them.
      await sameAtSizes((n) => pg.sum(tensor(numbers(n * 27), { shape: [n, 3, 3, 3] }), n % 3), [9, 10, 11, 12, 13]);
      await sameAtSizes((n) => pg.sum(rows(n, 3, 3, 3), n === 4 ? 3 : 2), [2, 4, 3, 5, 6]);
    });

    it('takes another guess where a later size breaks the first', async () => {
      // 8 and 12 are twice and three times what follows from them; 9 is not.
      const f = (n: number) => pg.sum(pg.mul(rows(n, 2), Math.floor(n / 4)), 0);
      expect(await sameAtSizes(f, [8, 12, 9, 13, 8, 11, 14])).toBeGreaterThan(2);
      const g = (n: number) =>
        pg.sum(pg.add(rows(n, 2), rows(1, 2 * Math.floor(n / 8)).slice([null, { start: 0, stop: 2 }])), 0);
      await sameAtSizes(g, [8, 16, 9, 17, 24, 13]);
    });

    it('reads constants that were computed before as it reads other data', async () => {
      for (const n of [9, 13, 8, 15, 11]) {
        const held = pg.ones([3, n]);
        pg.flush();
        const sum = pg.sum(pg.mul(held, rows(3, n)), 1);
        const expected = [0, 1, 2].map((row) =>
          numbers(3 * n)
            .slice(row * n, (row + 1) * n)
            .reduce((a, b) => a + b, 0),
        );
        for (const [row, x] of [...(await sum.data())].entries()) expect(x).toBeCloseTo(expected[row]!, 4);
      }
    });

    it('counts sizes that equal other extents', async () => {
      const f = (n: number) => pg.matmul(rows(n, 13), tensor(numbers(13 * 11, 3), { shape: [13, 11] }));
      expect(await sameAtSizes(f, [13, 11, 12, 13, 15, 8])).toBeGreaterThan(3);
      await sameAtSizes((n) => pg.add(rows(n, n), rows(n)), [11, 13, 9, 11]);
    });
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
    it.each(Object.entries(cases))('%s', async (_, f) => {
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
    it.each(Object.entries(ends))('%s', async (name, f) => {
      const bound = await sameAtSizes(f, [9, 13, 8, 15, 11, 17, 31, 9, 35, 120]);
      // What is told from the beginning is refused.
      if (!/behind|stretch/.test(name)) expect(bound).toBe(8);
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

  describe('what is kept', () => {
    it('lets kernels go with the last plan that holds them', async () => {
      const state = stateOf(getEngine());
      clearPlans();
      const before = state.kernelCache.size;
      for (const n of [9, 13, 8, 7]) await valuesOf(() => pg.mul(pg.sum(rows(n, 3), 0), 2));
      expect(stats().families).toBe(2);
      expect(state.kernelCache.size).toBeGreaterThan(before);
      clearPlans();
      expect(stats().families).toBe(0);
      expect(state.kernelCache.size).toBe(before);
    });

    it('forgets the form that was used longest ago', async () => {
      const state = stateOf(getEngine());
      clearPlans();
      const chain = (length: number) => (n: number) => {
        let x = rows(n, 2);
        for (let i = 0; i < length; i++) x = pg.mul(x, 1 + (i % 2));
        return x;
      };
      for (const n of [9, 13]) await valuesOf(() => chain(1)(n));
      expect(stats().families).toBe(1);
      for (let length = 2; length < 70; length++) for (const n of [9, 13]) await valuesOf(() => chain(length)(n));
      expect(stats().families).toBeLessThanOrEqual(64);
      const held = new Set<unknown>();
      expect(state.families!.size).toBe(stats().families);
      held.clear();
      clearPlans();
      expect(state.kernelCache.size).toBe(0);
    });

    it('gives up where the greatest size of a class has no room and a smaller one has', async () => {
      const engine = createReferenceEngine(options);
      Object.defineProperty(engine, 'caps', { value: { ...engine.caps, maxBufferBytes: 4000 } });
      await setEngine(engine);
      const square = (salt: number): Tensor => tensor(numbers(64, salt), { shape: [8, 8] });
      const f = (n: number): Tensor => pg.sum(pg.matmul(pg.matmul(rows(n, 8), square(1)), square(2)));
      expect(await sameAtSizes(f, [99, 100, 97])).toBe(0);
      expect(await sameAtSizes(f, [9, 12, 11])).toBe(2);
    });

    it('keeps not much more than the greatest size of a class takes, however many operations there are', async () => {
      const engine = createReferenceEngine(options);
      Object.defineProperty(engine, 'caps', { value: { ...engine.caps, maxBufferBytes: 4000 } });
      await setEngine(engine);
      const square = (salt: number): Tensor => tensor(numbers(64, salt), { shape: [8, 8] });
      const f = (n: number): Tensor => {
        let x = rows(n, 8);
        for (let i = 0; i < 60; i++) x = pg.sub(pg.mul(x, 1), 0);
        return pg.sum(pg.matmul(pg.matmul(x, square(1)), square(2)));
      };
      expect(await sameAtSizes(f, [9, 12, 11])).toBe(2);
    });

    it('gives up on a form that differs in no size', async () => {
      const before = stats().binds;
      for (let i = 0; i < 8; i++) await valuesOf(() => pg.flip(rows(9 + i, 2), 0));
      expect(stats()).toMatchObject({ families: 0, binds: before });
    });

    it('refuses modes that are none', () => {
      expect(() => setDynamicSizes('sometimes' as never)).toThrow(/setDynamicSizes.*'sometimes'/);
    });
  });
});

it('large products of a size alone have plans of their own where vectors need a loop of fixed length', async () => {
  await setEngine(createNullEngine());
  setDynamicSizes('automatic');
  const compute = (...shapes: readonly (readonly [number, number])[]): void => {
    const [a, b] = shapes.map(([m, n]) => rows(m, n)) as [Tensor, Tensor];
    const y = pg.matmul(a, b);
    pg.flush();
    for (const t of [a, b, y]) t.dispose();
  };
  for (const n of [150, 200]) compute([n, n], [n, n]);
  expect(stats().binds).toBe(0);
  await setEngine(createNullEngine());
  for (const n of [150, 200]) compute([n, n], [n, 64]);
  expect(stats().binds).toBe(1);
});

it('gradients by weights of large layers with other channels have plans of their own, as vectors have no loop of fixed length', async () => {
  const compute = (channels: number, images: number): void => {
    const [x, w] = [rows(images, channels, 12, 12), rows(channels, channels, 3, 3)];
    const by = pg.grad((k: Tensor) => pg.conv2d(x, k, { padding: 1 }).square().sum())(w);
    pg.flush();
    for (const t of [x, w, by]) t.dispose();
  };
  const binds = async (channels: readonly number[], images: readonly number[]): Promise<number> => {
    await setEngine(createNullEngine());
    setDynamicSizes('automatic');
    for (const [i, n] of channels.entries()) compute(n, images[i]!);
    return stats().binds;
  };
  expect(await binds([72, 96], [16, 16])).toBe(0);
  // Channels are fixed, or there is little to compute.
  expect(await binds([72, 72], [16, 24])).toBeGreaterThan(0);
  expect(await binds([3, 5], [2, 2])).toBeGreaterThan(0);
});
