/** Steps that are announced: one plan from the start for sizes of one class, where that is as fast; else as if nothing had been said. */
import { createNullEngine, createReferenceEngine } from '@polygrad/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import * as pg from '../../index.ts';
import { announce, clearPlans, setDynamicSizes, setEngine, stats, type Tensor, tensor } from '../../index.ts';
import { recordPlans } from '../../stored/recording.ts';
import { rows, valuesOf } from './fixtures/at-sizes.ts';

/** Plans that each of some sizes makes, on an engine that computes nothing. */
function plansOf(f: (n: number) => Tensor, sizes: readonly number[]): number[] {
  return sizes.map((n) => {
    const { plansMade } = stats();
    pg.scope(() => f(n)).dispose();
    return stats().plansMade - plansMade;
  });
}

/** Announces what `plansOf` does at a size. */
const announced = (f: (n: number) => Tensor, n: number): void => announce(() => pg.scope(() => f(n)));

const blank = (...shape: number[]): Tensor => tensor(new Float32Array(shape.reduce((a, b) => a * b, 1)), { shape });

describe('plans', () => {
  beforeEach(async () => {
    await setEngine(createNullEngine());
    setDynamicSizes('automatic');
  });

  const f = (n: number): Tensor => pg.sum(pg.mul(blank(n, 3), 2), 1);

  it('one for both', () => {
    const before = stats();
    announced(f, 96);
    expect(stats().plansMade - before.plansMade).toBe(0);
    expect(plansOf(f, [128, 96, 200])).toEqual([1, 0, 0]);
    const { families, binds } = stats();
    expect([families - before.families, binds - before.binds]).toEqual([1, 3]);
  });

  it('as without, for a size of another class, for few rows, and where the other size does not come', () => {
    for (const [other, sizes] of [
      [5, [128, 5]],
      [700, [128, 700]],
      [3, [6, 3]],
    ] as const) {
      clearPlans();
      announced(f, other);
      expect(plansOf(f, sizes), `${other}`).toEqual([1, 1]);
    }
    clearPlans();
    announced(f, 96);
    expect(plansOf(f, [96, 96, 128, 130])).toEqual([1, 0, 1, 0]);
  });

  it('as without, where much is computed or held', () => {
    const products = (n: number): Tensor => pg.matmul(blank(n, 1024), blank(1024, 1024));
    const bytes = (n: number): Tensor => pg.mul(blank(n, 8192), 2);
    for (const dear of [products, bytes]) {
      announced(dear, 96);
      expect(plansOf(dear, [128, 96, 97])).toEqual([1, 1, 0]);
    }
  });

  it("as without, with 'never'", () => {
    setDynamicSizes('never');
    announced(f, 96);
    expect(plansOf(f, [128, 96, 97])).toEqual([1, 1, 1]);
  });

  it('are not recorded where no plan depends on them', async () => {
    let calls = 0;
    const step = (): void => {
      calls++;
      pg.scope(() => f(96)).dispose();
    };
    announce(step);
    expect(calls).toBe(1);
    setDynamicSizes('never');
    announce(step);
    setDynamicSizes('automatic');
    const recording = recordPlans({ version: '1' });
    announce(step);
    recording.stop();
    const { caps } = createNullEngine();
    await setEngine(createNullEngine({ lowering: { ...caps.lowering, sizes: false } }));
    announce(step);
    expect(calls).toBe(1);
  });

  it('leaves tensors as they were', () => {
    const w = pg.keep(pg.ones([3]));
    pg.flush();
    const { numTensors } = pg.memory();
    const { node } = w as unknown as { node: object };
    announce(() => {
      w.assign(pg.add(w, pg.sum(f(96))));
    });
    expect([(w as unknown as { node: object }).node === node, pg.memory().numTensors]).toEqual([true, numTensors]);
    w.dispose();
  });

  it('refuses what is no synchronous function', () => {
    expect(() => announce(5 as never)).toThrow(pg.ArgumentError);
    expect(() => announce(async () => f(96))).toThrow(/announce ends before it settles/);
  });
});

it('values are those of plans of their own', async () => {
  await setEngine(createReferenceEngine());
  const f = (n: number): Tensor => pg.matmul(pg.permute(rows(n, 3), [1, 0]), pg.square(rows(n, 4)));
  setDynamicSizes('never');
  const alone = [await valuesOf(() => f(20)), await valuesOf(() => f(11))];
  setDynamicSizes('automatic');
  clearPlans();
  announced(f, 11);
  const { plansMade } = stats();
  expect([await valuesOf(() => f(20)), await valuesOf(() => f(11))]).toEqual(alone);
  expect(stats().plansMade - plansMade).toBe(1);
});
