/** Plans for classes of sizes from the first flush of a form on: what is guessed to be a size, and what a wrong guess costs. */
import { createReferenceEngine } from '@polygrad/testing';
import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { draws } from '@polygrad/compiler/fixtures/draws';
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import * as pg from '../../index.ts';
import { clearPlans, setDynamicSizes, setEngine, stats } from '../../index.ts';
import { uploadNode } from '../../runtime/upload.ts';
import { collected } from '../capture/fixtures/collected.ts';
import { guesses, severalOf } from './always.ts';
import { matches, sampleOf, type Sizes } from './sizes.ts';
import { numbers, rows, valuesOf } from './fixtures/at-sizes.ts';

beforeEach(async () => {
  await setEngine(createReferenceEngine());
  setDynamicSizes('always');
  clearPlans();
});

const leaf = (...shape: number[]): Node =>
  uploadNode(new Float32Array(shape.reduce((a, b) => a * b, 1)), shape, 'float32');

/** What may be the size of a graph, by the extent. */
function guessed(node: Node, hash = 0): Map<number, Sizes> {
  const captured = collected([node]);
  return new Map(guesses(captured, sampleOf(captured), hash));
}

const factorsOf = (sizes: Sizes | undefined): string[] | undefined =>
  sizes?.axes.map((axes) => axes?.map((m) => m?.factor ?? 0).join() ?? 'fixed');

const size = fc.integer({ min: 2, max: 300 });

describe('guesses', () => {
  it('knows the same graph at another size', () => {
    const graphs: ((n: number) => Node)[] = [
      (n) => p.reduce(p.mul(leaf(n, 3), p.constant(1 / n, 'float32', [n, 3])), 'sum', [0]),
      (n) => p.neg(p.reshape(p.neg(leaf(5, n, 7)), [5, 7 * n])),
      (n) => p.add(p.expand(leaf(1, 3), [n, 3]), leaf(n, 3)),
      (n) => p.slice(p.neg(leaf(n, 5)), [0, 1], [n, 3], [1, 1]),
      (n) => p.neg(p.permute(p.neg(leaf(3, n)), [1, 0])),
      (n) => p.add(p.cast(p.iota(n), 'float32'), leaf(n)),
      (n) => p.add(leaf(n), p.constant(n, 'float32', [n])),
      // As the gradient of what is chosen from rows of 3.
      (n) => p.mul(p.reshape(p.constant(0.5, 'float32', [3 * n]), [n, 3]), leaf(n, 3)),
    ];
    for (const graph of graphs)
      fc.assert(
        fc.property(size, size, (n, other) => {
          fc.pre(![3, 5, 7].includes(n) && ![3, 5, 7].includes(other));
          const sizes = guessed(graph(n)).get(n);
          expect(sizes).toBeDefined();
          expect(matches(sizes!, collected([graph(n)]))).toEqual([n]);
          expect(matches(sizes!, collected([graph(other)]))).toEqual([other]);
        }),
        { ...draws, numRuns: 20 },
      );
  });

  it('takes every extent of a beginning in turn', () => {
    const graph = (): Node => p.neg(p.add(leaf(4, 6), leaf(6)));
    expect([...guessed(graph(), 0).keys()]).toEqual([4, 6]);
    expect([...guessed(graph(), 1).keys()]).toEqual([6, 4]);
    expect(factorsOf(guessed(graph()).get(6))).toEqual(['0,1', '1', '0,1', '0,1']);
    expect([...guessed(p.neg(leaf(1, 1))).keys()]).toEqual([]);
    expect([...guessed(p.neg(leaf(3, 0))).keys()]).toEqual([]);
    // What has no elements has no groups of axes.
    const nothing = p.reshape(p.neg(p.expand(leaf(1, 0), [3, 0])), [0, 3]);
    expect([...guessed(p.concat([nothing, p.neg(leaf(4, 3))], 0)).keys()]).toEqual([4]);
  });

  it('leaves out extents of what is written over, as parameters are, where there are others', () => {
    const captured = collected([p.neg(p.add(leaf(4, 6), leaf(6)))]);
    const extents = (): number[] => [...guesses(captured, sampleOf(captured), 0)].map(([n]) => n);
    expect(extents()).toEqual([4, 6]);
    const { leaves, donatable } = captured;
    const [whole, row] = [...leaves.data.subarray(0, leaves.length)].sort(
      (a, b) => captured.nodes[b]!.shape.length - captured.nodes[a]!.shape.length,
    );
    donatable.push(row!);
    expect(extents()).toEqual([4]);
    donatable.push(whole!);
    expect(extents()).toEqual([4, 6]);
  });

  it('takes two that change on their own, joined and apart', () => {
    const several = (node: Node): Sizes | null => {
      const captured = collected([node]);
      const now = sampleOf(captured);
      return severalOf([...guessed(node).keys()], captured, now);
    };
    const graph = (n: number, m: number): Node => {
      const x = p.mul(leaf(n, m), p.constant(1 / (n * m), 'float32', [n, m]));
      return p.add(p.reduce(p.reshape(x, [n * m]), 'sum', [0]), p.reduce(x, 'sum', [0, 1]));
    };
    const sizes = several(graph(5, 14))!;
    expect([...sizes.n].sort((a, b) => a - b)).toEqual([5, 14]);
    expect(matches(sizes, collected([graph(7, 9)]))).toEqual(sizes.n[0] === 5 ? [7, 9] : [9, 7]);
    // One of two that are joined is none.
    expect(several(p.concat([p.neg(leaf(4)), p.neg(leaf(6))], 0))).toBeNull();
  });

  it('takes nothing that the rules of shapes do not allow', () => {
    // A sum follows from either part; where it is added to something else, the other has to be as long.
    expect([...guessed(p.concat([leaf(4, 3), leaf(2, 3)], 0)).keys()]).toEqual([2, 3, 4]);
    expect([...guessed(p.add(p.reduce(leaf(2, 4), 'sum', [0]), p.concat([leaf(2), leaf(2)], 0))).keys()]).toEqual([]);
    // Two axes of the size become one.
    expect([...guessed(p.neg(p.reshape(p.neg(leaf(4, 4)), [16]))).keys()]).toEqual([]);
    expect(factorsOf(guessed(p.neg(p.reshape(p.neg(leaf(2, 2)), [4]))).get(4))).toBeUndefined();
  });
});

describe('the first flush of a form', () => {
  it('is bound to a plan for a class, and so are others of it', async () => {
    const f = (n: number) => pg.mul(rows(n), 2);
    expect(await valuesOf(() => f(9))).toEqual(numbers(9).map((x) => 2 * x));
    expect(stats()).toMatchObject({ families: 1 });
    const { plansMade, binds } = stats();
    for (const n of [8, 15, 11]) expect(await valuesOf(() => f(n))).toEqual(numbers(n).map((x) => 2 * x));
    expect(stats()).toMatchObject({ families: 1, plansMade, binds: binds + 3 });
    await valuesOf(() => f(7));
    expect(stats()).toMatchObject({ families: 2, plansMade: plansMade + 1, binds: binds + 4 });
  });

  it('guesses anew, from what was met, where another size shows that the guess was wrong', async () => {
    // 4 is the size of the rows and, to begin with, of the columns.
    const f = (n: number) => pg.sum(pg.mul(rows(n, 4), 3), 0);
    for (const n of [4, 5, 6, 7, 4]) {
      const expected = [0, 1, 2, 3].map((j) => {
        const all = numbers(4 * n);
        return Array.from({ length: n }, (_, i) => 3 * all[4 * i + j]!).reduce((a, b) => a + b, 0);
      });
      expect(await valuesOf(() => f(n))).toEqual(expected);
    }
    const { binds } = stats();
    await valuesOf(() => f(7));
    expect(stats()).toMatchObject({ families: 1, binds });
  });

  it('has a plan of its own where nothing of it can be a size', async () => {
    const { binds } = stats();
    expect(await valuesOf(() => pg.flip(rows(5), 0))).toEqual(numbers(5).toReversed());
    expect(await valuesOf(() => pg.cumSum(rows(3), 0))).toEqual(
      [-5, -3, 6].map((_, i) =>
        numbers(3)
          .slice(0, i + 1)
          .reduce((a, b) => a + b),
      ),
    );
    expect(stats()).toMatchObject({ families: 0, binds });
  });

  it('leaves no kernels behind', async () => {
    const before = pg.memory().numBuffers;
    for (const n of [4, 5, 9, 17]) await valuesOf(() => pg.softmax(pg.matmul(rows(n, 4), rows(4, 4)), 1));
    expect(stats().families).toBeGreaterThan(0);
    clearPlans();
    expect(stats()).toMatchObject({ families: 0, plans: 0 });
    expect(pg.memory().numBuffers).toBe(before);
  });
});

describe.each(['automatic', 'always'] as const)('a capacity, %s', (mode) => {
  it('divides no factor of the size', async () => {
    // 17 is the next prime from 15 on, and 17 times it would be its square.
    const forms = [17, 34, 5].map((inner) => (n: number) => pg.add(pg.reshape(rows(n, inner), [n * inner]), 1));
    forms.push((n) => pg.takeAlongAxis(rows(n, 17), pg.zeros([n, 2], { dtype: 'int32' }), 1));
    for (const form of forms) {
      const sizes = [8, 15, 5, 9];
      setDynamicSizes('never');
      const alone: number[][] = [];
      for (const n of sizes) alone.push(await valuesOf(() => form(n)));
      setDynamicSizes(mode);
      clearPlans();
      for (const [i, n] of sizes.entries()) expect(await valuesOf(() => form(n))).toEqual(alone[i]);
    }
  });
});
