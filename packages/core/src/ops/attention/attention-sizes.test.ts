/**
 * Attention in one kernel for sizes that change: plans for classes of lengths, of keys, of heads and of batches, bound to several sizes each. They are
 * compared with plans of their own on the interpreter, for both kinds of targets; it finds races and accesses out of bounds. And how many plans a growing
 * context makes.
 */
import { createNullEngine, createReferenceEngine } from '@polygrad/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import { sampled } from '@polygrad/compiler/fixtures/everyday';

const engines = {
  'one thread': () => createReferenceEngine(),
  'groups of threads': () => createReferenceEngine({ simt: true, maxGroup: 256 }),
};

interface Sizes {
  readonly batch: number;
  readonly heads: number;
  readonly shared: number;
  readonly rows: number;
  readonly columns: number;
}

const depth = 5;
const width = 3;

/** Numbers that look random and depend on the shape and which tensor it is. */
function drawn(shape: readonly number[], seed: number): pg.Tensor {
  let state = seed * 2654435761;
  const length = shape.reduce((a, b) => a * b, 1);
  const data = Float32Array.from({ length }, () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    return ((state >>> 8) % 2001) / 1000 - 1;
  });
  return pg.tensor(data, { shape: [...shape] });
}

type Run = (sizes: Sizes) => readonly pg.Tensor[];

const operands = ({ batch, heads, shared, rows, columns }: Sizes): [pg.Tensor, pg.Tensor, pg.Tensor] => [
  drawn([batch, heads * shared, rows, depth], 1),
  drawn([batch, heads, columns, depth], 2),
  drawn([batch, heads, columns, width], 3),
];

const forward =
  (options: (sizes: Sizes) => pg.AttentionOptions): Run =>
  (sizes) => [pg.scaledDotProductAttention(...operands(sizes), { form: 'kernel', ...options(sizes) })];

const learning =
  (options: (sizes: Sizes) => pg.AttentionOptions): Run =>
  (sizes) =>
    pg.grads((...xs: pg.Tensor[]) =>
      pg.sum(pg.square(pg.scaledDotProductAttention(xs[0]!, xs[1]!, xs[2]!, { form: 'kernel', ...options(sizes) }))),
    )(...operands(sizes));

/** Operands that are computed, so that a plan keeps them to itself. */
const computed: Run = (sizes) => {
  const [q, k, v] = operands(sizes).map((x) => pg.matmul(x, pg.eye(x.shape[3]!).mul(2))) as [
    pg.Tensor,
    pg.Tensor,
    pg.Tensor,
  ];
  const mask = drawn([sizes.rows, sizes.columns], 4);
  return [pg.sum(pg.scaledDotProductAttention(q, k, v, { form: 'kernel', mask }), 2)];
};

const base: Sizes = { batch: 1, heads: 2, shared: 1, rows: 9, columns: 9 };
const one: Sizes = { ...base, heads: 1 };
const lengths = (...all: number[]): Sizes[] => all.map((n) => ({ ...base, rows: n, columns: n }));

const cases: Readonly<Record<string, { readonly run: Run; readonly sizes: readonly Sizes[]; readonly plans: number }>> =
  {
    'a length': { run: forward(() => ({ causal: true })), sizes: lengths(9, 31, 8, 24), plans: 2 },
    'a length longer than blocks': {
      run: forward(() => ({})),
      sizes: [70, 33].map((n) => ({ ...one, rows: n, columns: n })),
      plans: 2,
    },
    'a length, backward': { run: learning(() => ({ causal: true })), sizes: lengths(9, 13, 8), plans: 2 },
    'a length, backward, longer than blocks': {
      run: learning(() => ({})),
      sizes: [40, 65].map((n) => ({ ...one, rows: n, columns: n })),
      plans: 2,
    },
    'a mask of numbers': {
      run: learning(({ rows, columns }) => ({ mask: drawn([rows, columns], 4) })),
      sizes: lengths(9, 17),
      plans: 2,
    },
    'a mask of bits, for each batch': {
      run: forward(({ batch, columns }) => ({ mask: pg.greater(drawn([batch, 1, 1, columns], 4), -0.5) })),
      sizes: lengths(9, 17),
      plans: 2,
    },
    'operands of the plan': { run: computed, sizes: lengths(9, 17), plans: 2 },
    'keys alone': {
      run: forward(() => ({})),
      sizes: [9, 17].map((columns) => ({ ...base, rows: 4, columns })),
      plans: 2,
    },
    'keys alone, backward': {
      run: learning(() => ({})),
      sizes: [9, 17].map((columns) => ({ ...base, rows: 4, columns })),
      plans: 2,
    },
    'queries and keys': {
      run: learning(() => ({ causal: true })),
      sizes: [
        [9, 20],
        [11, 25],
      ].map(([rows, columns]) => ({ ...base, rows: rows!, columns: columns! })),
      plans: 2,
    },
    'batch and length': {
      run: learning(() => ({ causal: true })),
      sizes: [
        [2, 10],
        [3, 11],
      ].map(([batch, n]) => ({ ...one, shared: 2, batch: batch!, rows: n!, columns: n! })),
      plans: 2,
    },
    heads: {
      run: learning(() => ({})),
      sizes: [11, 13].map((heads) => ({ ...base, batch: 1, heads, rows: 4, columns: 6 })),
      plans: 2,
    },
  };

async function numbers(all: readonly pg.Tensor[]): Promise<number[][]> {
  pg.flush();
  return Promise.all(all.map(async (t) => Array.from((await t.data()) as Float32Array)));
}

function close(actual: readonly number[][], expected: readonly number[][]): void {
  expect(actual.map((x) => x.length)).toEqual(expected.map((x) => x.length));
  for (const [k, own] of expected.entries()) {
    const size = Math.max(1, ...own.map(Math.abs));
    for (const [i, x] of own.entries())
      if (!(Math.abs(actual[k]![i]! - x) <= 1e-5 * size))
        expect.fail(`element ${i} of ${k}: ${actual[k]![i]} for ${x}`);
  }
}

for (const [turn, [name, make]] of Object.entries(engines).entries())
  describe(`attention for classes of sizes, ${name}`, () => {
    beforeEach(async () => {
      await pg.setEngine(make());
      pg.clearPlans();
    });

    for (const [what, { run, sizes, plans }] of sampled(Object.entries(cases), 2, turn))
      it(`has the values of plans of their own: ${what}`, async () => {
        pg.setDynamicSizes('never');
        const own: number[][][] = [];
        for (const s of sizes) own.push(await numbers(run(s)));
        for (const mode of ['automatic', 'always'] as const) {
          pg.clearPlans();
          pg.setDynamicSizes(mode);
          const before = pg.stats().plansMade;
          for (const [i, s] of sizes.entries()) close(await numbers(run(s)), own[i]!);
          if (mode === 'automatic') expect(pg.stats().plansMade - before, mode).toBeLessThanOrEqual(plans);
        }
      });
  });

describe('a context that grows from 1 to 200', () => {
  for (const run of [forward(() => ({ causal: true })), learning(() => ({ causal: true }))])
    it('has a plan for one, and one for each class of lengths', async () => {
      await pg.setEngine(createNullEngine());
      pg.setDynamicSizes('automatic');
      pg.clearPlans();
      const before = pg.stats().plansMade;
      for (let n = 1; n <= 200; n++) {
        pg.scope(() => {
          run({ ...one, rows: n, columns: n });
          pg.flush();
        });
      }
      expect(pg.stats().plansMade - before).toBeLessThanOrEqual(6);
    });
});

describe('keys before the first query', () => {
  it.each(['whole', 'blocks'] as const)('are a number that is bound, form %s', async (form) => {
    await pg.setEngine(createReferenceEngine());
    pg.setDynamicSizes('never');
    pg.clearPlans();
    const [rows, columns] = [3, 16];
    const before = pg.stats().plansMade;
    for (let offset = 1; offset <= 12; offset++) {
      const [q, k, v] = operands({ ...one, rows, columns });
      const blockSize = form === 'blocks' ? ([rows, columns] as const) : undefined;
      const options = { form, ...(blockSize && { blockSize }) };
      const made = pg.scaledDotProductAttention(q, k, v, { ...options, causal: true, causalOffset: offset });
      const sees = pg.tensor(
        Array.from({ length: rows }, (_, i) => Array.from({ length: columns }, (_, j) => j <= i + offset)),
      );
      close(
        await numbers([made]),
        await numbers([pg.scaledDotProductAttention(q, k, v, { form: 'whole', mask: sees })]),
      );
    }
    // One with each kind of mask.
    expect(pg.stats().plansMade - before).toBeLessThanOrEqual(2);
  });
});
