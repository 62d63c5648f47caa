/** What attention holds in memory, on an engine without a device: large score matrices never exist, forward or backward. */
import { beforeEach, describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import { createNullEngine, type NullEngine } from '@polygrad/testing';

let engine: NullEngine;

beforeEach(async () => {
  engine = createNullEngine();
  await pg.setEngine(engine);
});

const bytesOf = (...shape: number[]): number => shape.reduce((a, b) => a * b, 4);

/** Most bytes held above the operands while `f` of query, key and value is computed. */
function peak(shape: readonly number[], f: (q: pg.Tensor, k: pg.Tensor, v: pg.Tensor) => unknown): number {
  const [q, k, v] = [0, 1, 2].map((key) => pg.rand(shape, { key })) as [pg.Tensor, pg.Tensor, pg.Tensor];
  pg.flush();
  engine.reset();
  const before = engine.memory().bytes;
  f(q, k, v);
  pg.flush();
  return engine.counts().peakBytes - before;
}

function gradients(options: pg.AttentionOptions) {
  return (q: pg.Tensor, k: pg.Tensor, v: pg.Tensor): unknown =>
    pg.grads((...xs: pg.Tensor[]) =>
      pg.sum(
        pg.square(pg.scaledDotProductAttention(xs[0] as pg.Tensor, xs[1] as pg.Tensor, xs[2] as pg.Tensor, options)),
      ),
    )(q, k, v);
}

describe('attention of 2048 queries and keys in 8 heads', () => {
  const shape = [1, 8, 2048, 64];
  const scores = bytesOf(1, 8, 2048, 2048);

  const operand = bytesOf(...shape);

  it('holds queries with their scale, values with logarithms, and the result forward, in three kernels', () => {
    for (const options of [{}, { causal: true }]) {
      expect(peak(shape, (q, k, v) => pg.scaledDotProductAttention(q, k, v, options))).toBeLessThan(3.5 * operand);
      expect(engine.counts().dispatches).toBe(3);
    }
  });

  it('and no more than ten operands backward, whose gradients are three', () => {
    for (const options of [{}, { causal: true }])
      expect(peak(shape, gradients(options))).toBeLessThanOrEqual(10 * operand);
  });

  it('holds a small part of the scores in blocks', () => {
    for (const options of [{ form: 'blocks' }, { form: 'blocks', causal: true }] as const) {
      expect(peak(shape, (q, k, v) => pg.scaledDotProductAttention(q, k, v, options))).toBeLessThan(scores / 3);
      expect(peak(shape, gradients(options))).toBeLessThan(scores / 2);
    }
  });

  it('is computed whole where asked for', () => {
    expect(peak(shape, (q, k, v) => pg.scaledDotProductAttention(q, k, v, { form: 'whole' }))).toBeGreaterThan(scores);
  });
});

describe('attention of one query', () => {
  it('needs no blocks', () => {
    expect(peak([1, 8, 1, 64], (q, k, v) => pg.scaledDotProductAttention(q, k, v))).toBeLessThan(bytesOf(1, 8, 64, 8));
    expect(engine.counts().dispatches).toBeLessThan(8);
  });
});
