/**
 * Attention in one kernel against sums in float64: values, gradients, gradients of gradients, tangents and batches, on the interpreter for both kinds of
 * targets, which finds races and accesses out of bounds.
 */
import { createReferenceEngine } from '@polygrad/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';

const engines = {
  'one thread': () => createReferenceEngine(),
  'groups of threads': () => createReferenceEngine({ simt: true, maxGroup: 256 }),
};

/** Numbers from -1 to 1 that look random. */
function drawn(length: number, seed: number): number[] {
  let state = seed * 2654435761;
  return Array.from({ length }, () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    return ((state >>> 8) % 2001) / 1000 - 1;
  });
}

interface Case {
  readonly heads: number;
  readonly shared: number;
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
  readonly width: number;
  readonly causal?: number;
  readonly mask?: 'bool' | 'added';
  readonly factor?: number;
}

interface Drawn {
  readonly q: number[];
  readonly k: number[];
  readonly v: number[];
  readonly mask: number[] | null;
}

function draw(c: Case): Drawn {
  const factor = c.factor ?? 1;
  return {
    q: drawn(c.heads * c.shared * c.rows * c.depth, 1).map((x) => x * factor),
    k: drawn(c.heads * c.columns * c.depth, 2),
    v: drawn(c.heads * c.columns * c.width, 3),
    mask:
      c.mask === undefined
        ? null
        : drawn(c.rows * c.columns, 4).map((x) =>
            c.mask === 'bool' ? Number(x > -0.2) : x < -0.5 ? Number.NEGATIVE_INFINITY : x,
          ),
  };
}

/** The definition, in float64. */
function formula(c: Case, { q, k, v, mask }: Drawn): number[] {
  const result: number[] = [];
  for (let h = 0; h < c.heads * c.shared; h++)
    for (let i = 0; i < c.rows; i++) {
      const head = Math.floor(h / c.shared);
      const scores = Array.from({ length: c.columns }, (_, j) => {
        if (c.causal !== undefined && j > i + c.causal) return null;
        const own = mask?.[i * c.columns + j] ?? 0;
        if (mask !== null && (c.mask === 'bool' ? own === 0 : own === Number.NEGATIVE_INFINITY)) return null;
        let sum = 0;
        for (let x = 0; x < c.depth; x++)
          sum += q[(h * c.rows + i) * c.depth + x]! * k[(head * c.columns + j) * c.depth + x]!;
        return sum / Math.sqrt(c.depth) + (c.mask === 'added' ? own : 0);
      });
      const top = Math.max(...scores.map((s) => s ?? Number.NEGATIVE_INFINITY));
      const weights = scores.map((s) => (s === null ? 0 : Math.exp(s - top)));
      const total = weights.reduce((a, b) => a + b, 0);
      for (let x = 0; x < c.width; x++)
        result.push(
          total === 0
            ? 0
            : weights.reduce((a, weight, j) => a + weight * v[(head * c.columns + j) * c.width + x]!, 0) / total,
        );
    }
  return result;
}

function tensors(c: Case, d: Drawn, dtype: pg.DType = 'float32'): pg.Tensor[] {
  const t = (values: number[], shape: number[]): pg.Tensor => pg.tensor(values, { dtype }).reshape(shape);
  return [
    t(d.q, [1, c.heads * c.shared, c.rows, c.depth]),
    t(d.k, [1, c.heads, c.columns, c.depth]),
    t(d.v, [1, c.heads, c.columns, c.width]),
  ];
}

function optionsOf(c: Case, d: Drawn, form: 'kernel' | 'whole', dtype: pg.DType = 'float32'): pg.AttentionOptions {
  return {
    form,
    ...(c.causal === undefined ? {} : { causal: true, causalOffset: c.causal }),
    ...(d.mask === null
      ? {}
      : {
          mask: (c.mask === 'bool' ? pg.tensor(d.mask, { dtype: 'bool' }) : pg.tensor(d.mask, { dtype })).reshape([
            c.rows,
            c.columns,
          ]),
        }),
  };
}

const plain: Case = { heads: 2, shared: 1, rows: 5, columns: 7, depth: 4, width: 3 };

const cases: readonly Case[] = [
  { heads: 1, shared: 1, rows: 1, columns: 1, depth: 1, width: 1 },
  plain,
  { ...plain, rows: 1, columns: 33 },
  { ...plain, causal: 0 },
  { ...plain, causal: 2 },
  // Queries that see nothing.
  { ...plain, causal: -2 },
  { ...plain, shared: 3, causal: 1 },
  { ...plain, mask: 'bool' },
  { ...plain, mask: 'added' },
  { ...plain, mask: 'added', causal: 1, shared: 2 },
  // Logits of hundreds.
  { ...plain, factor: 1000 },
  { heads: 1, shared: 1, rows: 67, columns: 65, depth: 8, width: 8, causal: 0 },
  { heads: 1, shared: 2, rows: 33, columns: 130, depth: 5, width: 12, mask: 'bool' },
  { heads: 1, shared: 1, rows: 16, columns: 64, depth: 128, width: 1 },
  { heads: 1, shared: 1, rows: 9, columns: 20, depth: 2, width: 128 },
];

const named = (c: Case): string => JSON.stringify(c);

function close(actual: ArrayLike<number>, expected: ArrayLike<number>, tolerance: number): void {
  expect(actual.length).toBe(expected.length);
  const size = Math.max(1, ...Array.from(expected, Math.abs));
  for (let i = 0; i < expected.length; i++)
    if (!(Math.abs(actual[i]! - expected[i]!) <= tolerance * size))
      expect.fail(`element ${i}: ${actual[i]} for ${expected[i]}`);
}

async function numbers(t: pg.Tensor): Promise<number[]> {
  return Array.from((await t.data()) as Float32Array);
}

for (const [name, make] of Object.entries(engines))
  describe(`attention in one kernel, ${name}`, () => {
    beforeEach(async () => {
      await pg.setEngine(make());
    });

    for (const c of cases)
      it(`has the values of the definition: ${named(c)}`, async () => {
        const d = draw(c);
        const [q, k, v] = tensors(c, d) as [pg.Tensor, pg.Tensor, pg.Tensor];
        const result = pg.scaledDotProductAttention(q, k, v, optionsOf(c, d, 'kernel'));
        close(await numbers(result), formula(c, d), (c.factor ?? 1) > 1 ? 1e-4 : 3e-6);
      });

    for (const c of cases)
      it(`has the gradients of the whole form: ${named(c)}`, async () => {
        const d = draw(c);
        const found = await Promise.all(
          (['kernel', 'whole'] as const).map((form) => {
            const gradients = pg.grads((...xs: pg.Tensor[]) =>
              pg.sum(
                pg.square(
                  pg.scaledDotProductAttention(xs[0]!, xs[1]!, xs[2]!, optionsOf(c, d, form, 'float64')),
                ),
              ),
            )(...tensors(c, d, 'float64'));
            return Promise.all(gradients.map(numbers));
          }),
        );
        found[0]!.forEach((gradient, i) => close(gradient, found[1]![i]!, 1e-11));
      });
  });
