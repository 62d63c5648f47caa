/** Plans that several sizes share which change on their own, on the engine that checks every access. */
import { createNullEngine, createReferenceEngine } from '@polygrad/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import { clearPlans, setDynamicSizes, setEngine, stats, type Tensor, tensor } from '../../index.ts';
import { numbers, valuesOf } from './fixtures/at-sizes.ts';
import { sampled } from '@polygrad/compiler/fixtures/everyday';

const of = (...shape: number[]): Tensor =>
  tensor(
    numbers(
      shape.reduce((a, b) => a * b, 1),
      shape.length,
    ),
    { shape },
  );

type Pair = readonly [n: number, m: number];

/** Runs at sizes with shared plans, and each alone; the values must be close. Gives how many plans were made, and how often one was bound. */
async function sameAtSizes(
  f: (n: number, m: number) => Tensor,
  sizes: readonly Pair[],
  mode: 'automatic' | 'always' = 'automatic',
): Promise<{ plansMade: number; binds: number }> {
  const alone: number[][] = [];
  setDynamicSizes('never');
  clearPlans();
  for (const [n, m] of sizes) alone.push(await valuesOf(() => f(n, m)));
  setDynamicSizes(mode);
  clearPlans();
  const before = stats();
  for (const [i, [n, m]] of sizes.entries()) {
    const values = await valuesOf(() => f(n, m));
    expect(values.length).toBe(alone[i]!.length);
    for (const [k, x] of values.entries()) expect(x, `${n}, ${m}: ${k}`).toBeCloseTo(alone[i]![k]!, 4);
  }
  const after = stats();
  return { plansMade: after.plansMade - before.plansMade, binds: after.binds - before.binds };
}

const byTurns: readonly Pair[] = [
  [3, 9],
  [5, 12],
  [2, 11],
  [7, 31],
  [4, 8],
];

const attention = (q: Tensor, kv: Tensor): Tensor => {
  const scores = pg.mul(pg.matmul(q, pg.permute(kv, [0, 1, 3, 2])), 0.5);
  return pg.matmul(pg.softmax(scores, -1), kv);
};

const cases: Readonly<Record<string, (n: number, m: number) => Tensor>> = {
  elementwise: (n, m) => pg.add(pg.mul(of(n, m), 2), of(m)),
  'sums over either, and over both': (n, m) => {
    const x = pg.square(of(n, m, 3));
    return pg.add(pg.add(pg.sum(pg.sum(x, 0), 0), pg.sum(pg.sum(x, 1), 0)), pg.mean(x, [0, 1]));
  },
  'both as one axis': (n, m) => pg.matmul(pg.reshape(pg.exp(of(n, m, 3)), [n * m, 3]), of(3, 4)),
  'both as one axis, and apart again': (n, m) =>
    pg.reshape(pg.matmul(pg.reshape(pg.tanh(of(n, m, 3)), [n * m, 3]), of(3, 4)), [n, m, 4]).add(of(n, m, 1)),
  'both in one row': (n, m) => pg.add(pg.reshape(pg.exp(of(n, 2, m)), [2 * n * m]), 1),
  'an axis that is taken apart': (n, m) => pg.sum(pg.reshape(pg.tanh(of(n * m)), [n, m]), 1).add(of(n)),
  transposed: (n, m) => pg.add(pg.permute(pg.square(of(n, m, 2)), [2, 1, 0]), 1),
  product: (n, m) => pg.matmul(of(n, 5), of(5, m)),
  'product over a size': (n, m) => pg.matmul(of(n, m), pg.square(of(m, 3))),
  'product of both': (n, m) => pg.matmul(pg.permute(pg.square(of(m, n)), [1, 0]), of(m, n)),
  softmax: (n, m) => pg.softmax(pg.mul(of(n, m), 0.3), -1),
  'attention of queries to keys': (n, m) => attention(of(1, 2, n, 4), of(1, 2, m, 4)),
  'attention of a batch': (n, m) => attention(of(n, 2, m, 4), of(n, 2, m, 4)),
  'layer norm': (n, m) => pg.layerNorm(of(n, m, 6)),
  embedding: (n, m) =>
    pg.take(
      of(9, 4),
      tensor(
        numbers(n * m).map((x) => Math.abs(x) % 9),
        { dtype: 'int32', shape: [n, m] },
      ),
      0,
    ),
  'gradient of an embedding': (n, m) =>
    pg.grad((table: Tensor) =>
      pg.sum(
        pg.square(
          pg.take(
            table,
            tensor(
              numbers(n * m).map((x) => Math.abs(x) % 9),
              { dtype: 'int32', shape: [n, m] },
            ),
            0,
          ),
        ),
      ),
    )(of(9, 4)),
  'gradients by weights': (n, m) =>
    pg.grad((w: Tensor) => pg.mean(pg.square(pg.tanh(pg.matmul(of(n, m, 3), w)))))(of(3, 5)),
  'gradients of attention': (n, m) =>
    pg.grad((w: Tensor) => {
      const x = pg.matmul(pg.reshape(of(n, m, 4), [n, 1, m, 4]), w);
      return pg.mean(pg.square(attention(x, x)));
    })(of(4, 4)),
  'cross entropy of rows': (n, m) =>
    pg.grad((w: Tensor) => {
      const logits = pg.reshape(pg.matmul(of(n, m, 3), w), [n * m, 5]);
      const labels = tensor(
        numbers(n * m).map((x) => Math.abs(x) % 5),
        { dtype: 'int32', shape: [n * m, 1] },
      );
      return pg.mean(pg.takeAlongAxis(pg.logSoftmax(logits, 1), labels, 1));
    })(of(3, 5)),
  'rows of both, chosen': (n, m) => {
    const rows = pg.reshape(pg.square(of(n, m, 3)), [n * m, 3]);
    const chosen = pg.sub(n * m - 1, pg.arange(n * m, { dtype: 'int32' }));
    return pg.grad((x: Tensor) => pg.sum(pg.mul(pg.take(pg.square(x), chosen, 0), of(n * m, 3))))(rows);
  },
  'the last of each row': (n, m) => pg.select(pg.exp(of(n, m, 3)), 1, -1).add(pg.sum(of(n, m, 3), 1)),
  'masks of random numbers': (n, m) => pg.rand([n, m, 3], { key: [1, 2] }).add(of(n, m, 1)),
  'random numbers of a later size': (n, m) => pg.rand([2, n, m], { key: [1, 2] }).add(of(n, m)),
  positions: (n, m) => pg.add(pg.reshape(pg.arange(n), [n, 1]), pg.add(pg.arange(m), of(n, m))),
  'positions of the greatest': (n, m) => pg.argMax(of(n, m, 3), 1),
  'positions of the greatest of both': (n, m) => pg.argMax(pg.square(of(n, m)), [0, 1]).add(0),
  'a causal mask': (n, m) =>
    pg.softmax(
      pg.where(
        pg.lessEqual(pg.arange(m), pg.reshape(pg.arange(m), [m, 1])),
        pg.mul(of(n, m, m), 0.2),
        Number.NEGATIVE_INFINITY,
      ),
      -1,
    ),
  'flat maps of images': (n, m) => pg.matmul(pg.reshape(pg.square(of(2, 3, n, m)), [2, 3, n * m]), of(2, n * m, 2)),
  'means of images': (n, m) => pg.mean(pg.relu(pg.mul(of(2, 3, n, m), pg.reshape(of(3), [3, 1, 1]))), [2, 3]),
  running: (n, m) => pg.cumSum(of(n, m), 1),
  sorted: (n, m) => pg.sort(of(n, m), { axis: 1 }),
  flipped: (n, m) => pg.flip(of(n, m), 1).add(1),
  joined: (n, m) => pg.concat([of(n, 3), of(m, 3)], 0).add(1),
  scalars: (n, m) => pg.mul(pg.sum(of(n, m)), n * m),
};

/** Cases that get plans of their own. */
const refused = new Set(['sorted', 'running', 'flipped', 'joined', 'positions of the greatest of both']);

/** Cases that groups of threads compute in another way than vectors. */
const onThreads = /^(sums over|both as one|product|softmax|attention of a|gradients of|rows of both|random)/;

describe.each([
  ['vectors', {}],
  ['threads', { simt: true, maxGroup: 32 }],
  ['subgroups', { simt: true, maxGroup: 64, subgroup: 8 }],
] as const)('%s', (kind, options) => {
  beforeEach(async () => {
    await setEngine(createReferenceEngine(options));
  });

  it.each(sampled(Object.entries(cases), 2).filter(([name]) => kind === 'vectors' || onThreads.test(name)))(
    '%s',
    async (name, f) => {
      const { plansMade, binds } = await sameAtSizes(f, byTurns);
      if (!refused.has(name)) expect({ plansMade, binds }).toEqual({ plansMade: 2, binds: 4 });
      if (kind === 'vectors') await sameAtSizes(f, byTurns.slice(0, 2), 'always');
    },
  );
});

describe('sharing', () => {
  beforeEach(async () => {
    await setEngine(createReferenceEngine());
  });

  const f = (n: number, m: number): Tensor => pg.sum(pg.mul(of(n, m), 2), 1);

  it('finds a size that changes later than another', async () => {
    const made = await sameAtSizes(f, [
      [4, 9],
      [4, 12],
      [4, 15],
      [5, 15],
      [6, 20],
      [4, 22],
      [7, 10],
    ]);
    // One for the first, one where 4 is fixed, one for both sizes.
    expect(made).toEqual({ plansMade: 3, binds: 6 });
  });

  it('finds one that changes alone', async () => {
    const made = await sameAtSizes(f, [
      [4, 9],
      [4, 12],
      [5, 9],
      [6, 9],
      [6, 17],
    ]);
    expect(made).toEqual({ plansMade: 3, binds: 4 });
  });

  it('of a multiple that was one by chance goes on with two', async () => {
    const made = await sameAtSizes(f, [
      [4, 8],
      [6, 12],
      [5, 10],
      [5, 12],
      [7, 9],
      [4, 31],
    ]);
    expect(made.plansMade).toBe(3);
  });

  it('has plans for classes of each', async () => {
    const sizes = [2, 9, 33];
    const pairs = sizes.flatMap((n) => sizes.map((m): Pair => [n, m]));
    const { plansMade } = await sameAtSizes(f, [[3, 10], ...pairs, ...pairs.map(([n, m]): Pair => [n + 1, m + 2])]);
    expect(plansMade).toBe(1 + 9);
  });

  const filled = (...shape: number[]): Tensor => tensor(new Float32Array(shape.reduce((a, b) => a * b, 1)), { shape });

  /** Plans that each of some sizes makes, on an engine that computes nothing. */
  const made = async (f: (n: number, m: number) => Tensor, pairs: readonly Pair[]): Promise<number[]> => {
    await setEngine(createNullEngine());
    setDynamicSizes('automatic');
    clearPlans();
    return pairs.map(([n, m]) => {
      const { plansMade } = stats();
      pg.scope(() => f(n, m)).dispose();
      return stats().plansMade - plansMade;
    });
  };

  it('has one plan for scores of attention, of which there are more than a long sum has terms', async () => {
    const scores = (n: number, m: number): Tensor => {
      const x = filled(n, 4, m, 8);
      return pg.softmax(pg.matmul(x, pg.permute(x, [0, 1, 3, 2])), -1);
    };
    // Of its own, of one size, of both.
    expect(
      await made(scores, [
        [20, 70],
        [20, 80],
        [21, 90],
        [22, 100],
        [23, 110],
        [31, 127],
        [8, 64],
      ]),
    ).toEqual([1, 1, 1, 0, 0, 0, 0]);
  });

  it('has plans of their own for large sums that are done in two steps', async () => {
    const sums = (n: number, m: number): Tensor => pg.sum(filled(n, m, 64), [1, 2]);
    const pairs: Pair[] = [
      [20, 600],
      [20, 700],
      [21, 800],
      [22, 900],
      [23, 1000],
    ];
    expect((await made(sums, pairs)).at(-1)).toBe(1);
  });
});
