/**
 * Attention in one kernel against sums in float64: values, gradients, gradients of gradients, tangents and batches, for all kinds of targets. They run
 * on the interpreter, which finds races, copies without a wait, and accesses out of bounds.
 */
import { createReferenceEngine } from '@polygrad/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import { sampled } from '@polygrad/compiler/fixtures/everyday';

const engines = {
  'one thread': () => createReferenceEngine(),
  'groups of threads': () => createReferenceEngine({ simt: true, maxGroup: 256 }),
  'groups of threads that copy': () => createReferenceEngine({ simt: true, maxGroup: 256, subgroup: 32, matrix: [] }),
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
  // As many queries as keys: all gradients are in one row.
  { ...plain, rows: 7, causal: 0 },
  { ...plain, rows: 7, shared: 2, mask: 'added', depth: 8, width: 4 },
  { ...plain, mask: 'bool' },
  { ...plain, mask: 'added' },
  { ...plain, mask: 'added', causal: 1, shared: 2 },
  // Logits of hundreds.
  { ...plain, factor: 1000 },
  { heads: 1, shared: 1, rows: 67, columns: 65, depth: 8, width: 8, causal: 0 },
  { heads: 1, shared: 2, rows: 33, columns: 66, depth: 5, width: 12, mask: 'bool' },
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

type Values = (c: Case, form: 'kernel' | 'whole') => Promise<number[][]>;

/** Gradients of queries, keys and values in float64. */
const gradients: Values = (c, form) => {
  const d = draw(c);
  const of = pg.grads((...xs: pg.Tensor[]) =>
    pg.sum(pg.square(pg.scaledDotProductAttention(xs[0]!, xs[1]!, xs[2]!, optionsOf(c, d, form, 'float64')))),
  )(...tensors(c, d, 'float64'));
  return Promise.all(of.map(numbers));
};

/** Gradients of gradients, batches and tangents in float64. */
const derivatives: Values = (c, form) => {
  const d = draw(c);
  const xs = tensors(c, d, 'float64');
  const f = (q: pg.Tensor, k: pg.Tensor, v: pg.Tensor): pg.Tensor =>
    pg.scaledDotProductAttention(q, k, v, optionsOf(c, d, form, 'float64'));
  const [q, k, v] = xs as [pg.Tensor, pg.Tensor, pg.Tensor];
  const loss = (...ys: pg.Tensor[]): pg.Tensor => pg.sum(pg.exp(f(ys[0]!, ys[1]!, ys[2]!)));
  const second = pg.grads((...ys: pg.Tensor[]) =>
    pg
      .grads(loss)(...ys)
      .reduce((sum, g) => pg.add(sum, pg.sum(pg.square(g))), pg.tensor(0, { dtype: 'float64' })),
  )(...xs);
  const batched = pg.vmap((one: pg.Tensor) => f(one, k, v))(pg.stack([q, pg.neg(q), pg.mul(q, 0.5)], 0));
  const tangent = pg.jvp((...ys: pg.Tensor[]) => f(ys[0]!, ys[1]!, ys[2]!), xs, [pg.sin(q), pg.cos(k), v]);
  const all = [...second, batched, ...(Array.isArray(tangent) ? tangent : Object.values(tangent))] as pg.Tensor[];
  return Promise.all(all.map(numbers));
};

/** What the whole form gives, by operations that have tests of their own: once, on one thread, for all engines. */
const known = new Map<string, number[][]>();
async function byWholeForm(what: Values, c: Case): Promise<number[][]> {
  const key = what === gradients ? named(c) : `derivatives ${named(c)}`;
  const found = known.get(key);
  if (found !== undefined) return found;
  await pg.setEngine(engines['one thread']());
  const values = await what(c, 'whole');
  known.set(key, values);
  return values;
}

for (const [name, make] of Object.entries(engines))
  describe(`attention in one kernel, ${name}`, () => {
    beforeEach(async () => {
      await pg.setEngine(make());
    });

    for (const c of sampled(cases, 2))
      it(`has the values of the definition: ${named(c)}`, async () => {
        const d = draw(c);
        const [q, k, v] = tensors(c, d) as [pg.Tensor, pg.Tensor, pg.Tensor];
        const result = pg.scaledDotProductAttention(q, k, v, optionsOf(c, d, 'kernel'));
        close(await numbers(result), formula(c, d), (c.factor ?? 1) > 1 ? 1e-4 : 3e-6);
      });

    for (const c of sampled(cases, 3))
      it(`has the gradients of the whole form: ${named(c)}`, async () => {
        const wanted = await byWholeForm(gradients, c);
        await pg.setEngine(make());
        for (const [i, found] of (await gradients(c, 'kernel')).entries()) close(found, wanted[i]!, 1e-11);
      });

    it('gives a row NaN where a score is NaN, and no other', async () => {
      const d = draw(plain);
      d.q[4 * 1] = Number.NaN;
      const [q, k, v] = tensors(plain, d) as [pg.Tensor, pg.Tensor, pg.Tensor];
      const found = await numbers(pg.scaledDotProductAttention(q, k, v, { form: 'kernel' }));
      expect(found.map(Number.isNaN)).toEqual(found.map((_, i) => i >= 3 && i < 6));
    });

    it('gives NaN where a score is plus infinity, as the whole form does', async () => {
      const d = draw(plain);
      d.q[0] = 3e38;
      d.k.fill(3e38, 0, 1);
      const [q, k, v] = tensors(plain, d) as [pg.Tensor, pg.Tensor, pg.Tensor];
      for (const form of ['kernel', 'whole'] as const) {
        const found = await numbers(pg.scaledDotProductAttention(q, k, v, { form }));
        expect(found.map(Number.isNaN), form).toEqual(found.map((_, i) => i < 3));
      }
    });

    it('takes tensors with strides, and one for all three operands', async () => {
      const c = { ...plain, columns: 5, width: 4 };
      const d = { ...draw(c), v: draw(c).k, q: draw(c).k };
      const x = pg.permute(pg.tensor(d.k).reshape([2, 5, 4]), [2, 0, 1]).contiguous();
      const turned = pg.permute(x, [1, 2, 0]).reshape([1, 2, 5, 4]);
      const found = await numbers(pg.scaledDotProductAttention(turned, turned, turned, { form: 'kernel' }));
      close(found, formula(c, d), 3e-6);
    });

    it('is right for tangents, batches and derivatives of derivatives', async () => {
      for (const c of [
        { ...plain, causal: 1 },
        { ...plain, rows: 7, shared: 2, causal: 0 },
      ]) {
        const wanted = await byWholeForm(derivatives, c);
        await pg.setEngine(make());
        for (const [i, found] of (await derivatives(c, 'kernel')).entries()) close(found, wanted[i]!, 1e-10);
      }
    });
  });

const tiles = {
  float16: [{ dtype: 'float16', tile: 'm16n8k16' }],
  'float16, on older cards': [{ dtype: 'float16', tile: 'm16n8k8' }],
  bfloat16: [{ dtype: 'bfloat16', tile: 'm16n8k16' }],
  float32: [{ dtype: 'float32', tile: 'm16n8k8' }],
} as const;
/** What a factor's digits leave of a number, with room for sums of several. */
const digits = { float16: 2 ** -10, bfloat16: 2 ** -7, float32: 2 ** -10 } as const;

describe('attention by tiles of matrices', () => {
  const wide: readonly Case[] = [
    { heads: 1, shared: 1, rows: 20, columns: 20, depth: 16, width: 8, causal: 0 },
    { heads: 1, shared: 2, rows: 5, columns: 40, depth: 12, width: 20, mask: 'added' },
    { heads: 2, shared: 1, rows: 33, columns: 18, depth: 24, width: 16, causal: 3 },
  ];
  for (const [name, matrix] of Object.entries(tiles))
    for (const c of wide)
      it(`is the float64 formula within the digits of ${name}, with its gradients: ${named(c)}`, async () => {
        const [{ dtype }] = matrix;
        const products: string[] = [];
        const engine = createReferenceEngine({ simt: true, maxGroup: 256, subgroup: 32, matrix });
        const compile = engine.compile.bind(engine);
        engine.compile = (programs) => {
          for (const { body } of programs) products.push(...body.filter((n) => n.op === 'MATRIX').map((n) => n.op));
          return compile(programs);
        };
        await pg.setEngine(engine);
        const d = draw(c);
        const xs = tensors(c, d, dtype);
        const rounded = await Promise.all(xs.map((x) => numbers(pg.cast(x, 'float32'))));
        const [q, k, v] = rounded as [number[], number[], number[]];
        const loss = (f: pg.DType, ...ys: pg.Tensor[]): pg.Tensor =>
          pg.sum(
            pg.square(
              pg.cast(
                pg.scaledDotProductAttention(
                  ys[0]!,
                  ys[1]!,
                  ys[2]!,
                  optionsOf(c, d, f === 'float64' ? 'whole' : 'kernel', f === 'float64' ? f : 'float32'),
                ),
                f,
              ),
            ),
          );
        const result = pg.scaledDotProductAttention(xs[0]!, xs[1]!, xs[2]!, optionsOf(c, d, 'kernel', 'float32'));
        close(await numbers(pg.cast(result, 'float32')), formula(c, { ...d, q, k, v }), digits[dtype]);
        expect(products.length).toBeGreaterThan(0);
        const own = await Promise.all(
          pg
            .grads((...ys: pg.Tensor[]) => loss('float32', ...ys))(...xs)
            .map((gradient) => numbers(pg.cast(gradient, 'float32'))),
        );
        await pg.setEngine(engines['one thread']());
        const exact = pg.grads((...ys: pg.Tensor[]) => loss('float64', ...ys))(
          ...tensors(c, { ...d, q, k, v }, 'float64'),
        );
        for (const [i, gradient] of own.entries()) close(gradient, await numbers(exact[i]!), 4 * digits[dtype]);
      });
});

it('keys and values are copied beside other work, all but those of one block before it is needed', async () => {
  const copies: Record<string, number> = {};
  const engine = createReferenceEngine({ simt: true, maxGroup: 256, subgroup: 32, matrix: [] });
  const compile = engine.compile.bind(engine);
  engine.compile = (programs) => {
    for (const { name, body } of programs) copies[name] = body.filter(({ op }) => op === 'COPY').length;
    return compile(programs);
  };
  await pg.setEngine(engine);
  const c: Case = { heads: 1, shared: 1, rows: 40, columns: 72, depth: 8, width: 8 };
  const gradients = pg.grads((...xs: pg.Tensor[]) =>
    pg.sum(pg.scaledDotProductAttention(xs[0]!, xs[1]!, xs[2]!, { form: 'kernel' })),
  )(...tensors(c, draw(c)));
  await Promise.all(gradients.map(numbers));
  // Queries once; keys and values, of which those of a later block are asked for in the block before.
  expect(copies).toMatchObject({ attention: 4, attention_gradient_queries: 5, attention_gradient_keys: 4 });
});

describe('gradients on processors', () => {
  it('are the same bits with one pass over the scores and with two', async () => {
    const c: Case = { heads: 2, shared: 2, rows: 75, columns: 75, depth: 8, width: 4, causal: 0 };
    const d = draw(c);
    const found: number[][][] = [];
    for (const parallelism of [1, 64]) {
      const engine = createReferenceEngine();
      await pg.setEngine({ ...engine, caps: { ...engine.caps, parallelism } });
      const gradients = pg.grads((...xs: pg.Tensor[]) =>
        pg.sum(pg.square(pg.scaledDotProductAttention(xs[0]!, xs[1]!, xs[2]!, optionsOf(c, d, 'kernel')))),
      )(...tensors(c, d));
      found.push(await Promise.all(gradients.map(numbers)));
    }
    expect(found[0]).toEqual(found[1]);
  });
});
