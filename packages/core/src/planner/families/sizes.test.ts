/** What of two flushes is a size: which of their numbers differ, and what attributes are at another one. */
import { createNullEngine } from '@polygrad/testing';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { setEngine } from '../../engine/registry.ts';
import { draws } from '../../fixtures/draws.ts';
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { uploadNode } from '../../runtime/upload.ts';
import { collected } from '../capture/fixtures/collected.ts';
import { matches, resized, type Sample, sampleOf, type Sizes, sizesOf } from './sizes.ts';

beforeAll(async () => {
  await setEngine(createNullEngine());
});

const leaf = (...shape: number[]): Node =>
  uploadNode(new Float32Array(shape.reduce((a, b) => a * b, 1)), shape, 'float32');

/** What a movement of is no leaf. */
const computed = (...shape: number[]): Node => p.neg(leaf(...shape));

const sample = (...outputs: Node[]): Sample => sampleOf(collected(outputs));

/** The sizes of two graphs. */
function found(before: Node, now: Node): Sizes | null {
  const first = sample(before);
  const cone = collected([now]);
  return sizesOf(first, sampleOf(cone), cone);
}

/** A sum over the size of a product with a constant. */
const mean = (n: number, inner = 3, by = 1 / n): Node => {
  const x = leaf(n, inner);
  const scale = p.constant(by, 'float32', [n, inner]);
  return p.reduce(p.mul(x, scale), 'sum', [0]);
};

const size = fc.integer({ min: 2, max: 1000 });

describe('sizesOf', () => {
  it('finds the size of two, and matches knows that of a third', () => {
    fc.assert(
      fc.property(size, size, size, fc.integer({ min: 1, max: 20 }), (a, b, c, inner) => {
        fc.pre(a !== b);
        const sizes = found(mean(a, inner), mean(b, inner));
        expect(sizes).not.toBeNull();
        expect(sizes!.n).toBe(b);
        expect(sizes!.bound.size).toBe(1);
        expect(matches(sizes!, collected([mean(b, inner)]))).toBe(b);
        expect(matches(sizes!, collected([mean(a, inner)]))).toBe(a);
        const third = matches(sizes!, collected([mean(c, inner)]));
        // The halves of the constant that were alike may differ now.
        expect([c, -1]).toContain(third);
        expect(matches(sizes!, collected([mean(b, inner + 1)]))).toBe(-1);
      }),
      { ...draws, numRuns: 100 },
    );
  });

  it('takes multiples of the size, and nothing that is none', () => {
    const flat = (n: number, length: number) => p.neg(p.reshape(computed(n, 6), [length]));
    const sizes = found(flat(4, 24), flat(7, 42))!;
    expect(sizes.n).toBe(7);
    expect(sizes.axes.map((axes) => axes?.join() ?? '')).toEqual(['1,0', '1,0', '6', '6']);
    const part = (n: number, length: number) => p.slice(computed(n, 6), [0, 0], [length, 6], [1, 1]);
    expect(found(p.neg(part(4, 4)), p.neg(part(7, 7)))).not.toBeNull();
    expect(found(p.neg(part(4, 3)), p.neg(part(7, 6)))).toBeNull();
    expect(found(p.neg(leaf(4, 5)), p.neg(leaf(7, 9)))).toBeNull();
    expect(found(p.neg(leaf(4)), p.neg(leaf(1)))).toBeNull();
  });

  it('takes no attribute but lengths for a size', () => {
    const along = (n: number, axis: number) => p.reduce(leaf(n, 3, 3, 3, 3), 'sum', [axis]);
    expect(found(along(2, 2), along(4, 4))).toBeNull();
    const from = (n: number, start: number) => p.slice(computed(2 * n, 3), [start, 0], [n, 3], [1, 1]);
    expect(found(p.neg(from(2, 2)), p.neg(from(4, 4)))).toBeNull();
    const wide = (n: number) => p.pad(leaf(n, 3), [n, 0], [0, 0], 0);
    expect(found(p.neg(wide(2)), p.neg(wide(4)))).toBeNull();
  });

  it('takes places that count from the end, and no others', () => {
    const part = (n: number, start: number, length = 2) =>
      p.neg(p.slice(computed(n, 3), [start, 0], [length, 3], [1, 1]));
    const sizes = found(part(5, 3), part(9, 7))!;
    expect([...sizes.ends.values()]).toEqual([[2, 0]]);
    expect(matches(sizes, collected([part(20, 18)]))).toBe(20);
    expect(matches(sizes, collected([part(20, 17)]))).toBe(-1);
    expect(found(part(5, 3), part(9, 6))).toBeNull();
    expect(found(part(5, 3, 2), part(9, 7, 1))).toBeNull();
    const put = (n: number, low: number) => p.neg(p.pad(leaf(2, 3), [low, 0], [n - 2 - low, 0], 0));
    // The other way round, what is left before the end differs.
    expect(found(p.mul(put(5, 1), leaf(5, 3)), p.mul(put(9, 1), leaf(9, 3)))).toBeNull();
    const late = found(p.mul(put(5, 2), leaf(5, 3)), p.mul(put(9, 6), leaf(9, 3)))!;
    expect([...late.ends.values()]).toEqual([[3, 0]]);
  });

  it('takes strides for sizes, but along axes of one element', () => {
    const inner = (n: number) => p.neg(leaf(3, n));
    expect([...found(inner(4), inner(6))!.strides]).toEqual([[0, [1, 0]]]);
    expect([...found(p.neg(leaf(1, 4)), p.neg(leaf(1, 6)))!.strides]).toEqual([]);
  });
});

describe('resized', () => {
  const lengths = fc.array(fc.record({ c: fc.integer({ min: 1, max: 9 }), sized: fc.boolean() }), { maxLength: 6 });

  it('has another size in place of the first, and all else as it was', () => {
    fc.assert(
      fc.property(lengths, size, size, size, (list, before, now, other) => {
        fc.pre(before !== now);
        const at = (n: number) => ({
          shape: list.map(({ c, sized }) => (sized ? c * n : c)),
          axis: 2,
          name: 'x',
          on: true,
        });
        expect(resized([at(before), at(now)], [before, now], other)).toEqual(at(other));
        expect(resized([at(now), at(now)], [before, now], other)).toEqual(at(now));
      }),
      { ...draws, numRuns: 200 },
    );
    expect(resized([null, null], [2, 3], 4)).toBeNull();
  });
});
