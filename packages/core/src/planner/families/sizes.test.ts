/** What of two flushes is a size: which of their numbers differ, and what attributes are at another one. */
import { createNullEngine } from '@polygrad/testing';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { setEngine } from '../../engine/registry.ts';
import { draws } from '@polygrad/compiler/fixtures/draws';
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { uploadNode } from '../../runtime/upload.ts';
import { collected } from '../capture/fixtures/collected.ts';
import { attrAt, matches, numbersAt, type Sample, sampleOf, type Sizes, sizesOf, valuesOf } from './sizes.ts';

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
  const captured = collected([now]);
  return sizesOf(first, sampleOf(captured), captured);
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
        expect(sizes!.n).toEqual([b]);
        expect(sizes!.bound.size).toBe(1);
        expect(matches(sizes!, collected([mean(b, inner)]))).toEqual([b]);
        expect(matches(sizes!, collected([mean(a, inner)]))).toEqual([a]);
        const third = matches(sizes!, collected([mean(c, inner)]));
        // The halves of the constant that were alike may differ now.
        expect(third === null || third[0] === c).toBe(true);
        expect(matches(sizes!, collected([mean(b, inner + 1)]))).toBeNull();
      }),
      { ...draws, numRuns: 100 },
    );
  });

  it('takes multiples of the size, and nothing that is none', () => {
    const flat = (n: number, length: number) => p.neg(p.reshape(computed(n, 6), [length]));
    const sizes = found(flat(4, 24), flat(7, 42))!;
    expect(sizes.n).toEqual([7]);
    expect(sizes.axes.map((axes) => axes?.map((m) => m?.factor ?? 0).join() ?? '')).toEqual(['1,0', '1,0', '6', '6']);
    const part = (n: number, length: number) => p.slice(computed(n, 6), [0, 0], [length, 6], [1, 1]);
    expect(found(p.neg(part(4, 4)), p.neg(part(7, 7)))).not.toBeNull();
    expect(found(p.neg(part(4, 3)), p.neg(part(7, 6)))!.n).toEqual([6, 7]);
    expect(found(p.neg(leaf(4, 5)), p.neg(leaf(7, 9)))!.n).toEqual([7, 9]);
    expect(found(p.neg(leaf(4)), p.neg(leaf(1)))).toBeNull();
  });

  it('takes no attribute but lengths for a size', () => {
    const along = (n: number, axis: number) => p.reduce(leaf(n, 3, 3, 3, 3), 'sum', [axis]);
    expect(found(along(2, 2), along(4, 4))).toBeNull();
    const turned = (n: number, step: number) => p.slice(leaf(n, 9), [0, 0], [n, 3], [1, step]);
    expect(found(p.neg(turned(2, 1)), p.neg(turned(4, 2)))).toBeNull();
  });

  it('takes places at multiples of sizes', () => {
    const from = (n: number, start: number) => p.slice(computed(2 * n, 3), [start, 0], [n, 3], [1, 1]);
    const sizes = found(p.neg(from(2, 2)), p.neg(from(4, 4)))!;
    expect([...sizes.begins.values()]).toEqual([[{ factor: 1, term: 0 }, null]]);
    expect(matches(sizes, collected([p.neg(from(9, 9))]))).toEqual([9]);
    expect(matches(sizes, collected([p.neg(from(9, 8))]))).toBeNull();
    expect(found(p.neg(from(2, 1)), p.neg(from(4, 3)))).toBeNull();
    const wide = (n: number) => p.neg(p.pad(leaf(n, 3), [n, 0], [0, 0], 0));
    expect([...found(wide(2), wide(4))!.begins.values()]).toEqual([[{ factor: 1, term: 0 }, null]]);
  });

  it('takes sums of sizes, and of a size and a number', () => {
    const joined = (n: number, k: number) => p.neg(p.concat([computed(n, 3), computed(k, 3)], 0));
    const more = found(joined(4, 2), joined(9, 2))!;
    expect([more.n, more.sums]).toEqual([
      [9, 11],
      [null, { of: [0], more: 2 }],
    ]);
    expect(matches(more, collected([joined(6, 2)]))).toEqual([6, 8]);
    expect(matches(more, collected([joined(6, 3)]))).toBeNull();
    const both = found(joined(4, 7), joined(9, 5))!;
    expect([both.n, both.sums]).toEqual([
      [9, 5, 14],
      [null, null, { of: [0, 1], more: 0 }],
    ]);
    expect(matches(both, collected([joined(2, 3)]))).toEqual([2, 3, 5]);
    // As much more in both: taken for one size and a number until a third shows that they are two.
    const alike = found(joined(4, 7), joined(5, 8))!;
    expect(alike.sums).toEqual([null, { of: [0], more: 3 }, { of: [0, 0], more: 3 }]);
    expect(matches(alike, collected([joined(4, 6)]))).toBeNull();
  });

  it('has what is padded behind follow from both shapes', () => {
    const first = (n: number) => p.neg(p.pad(computed(2, 3), [1, 0], [n - 3, 0], 0));
    const sizes = found(p.add(first(5), leaf(5, 3)), p.add(first(9), leaf(9, 3)))!;
    expect(matches(sizes, collected([p.add(first(4), leaf(4, 3))]))).toEqual([4]);
    const at = sizes.sample.attrs.findIndex((attr) => attr !== null && 'high' in (attr as object));
    const shapeOf = (n: number) => (i: number) => numbersAt(sizes.sample.shapes[i]!, sizes.axes[i]!, [n]);
    const attr = attrAt(sizes, at, { op: 'pad', src: [{ index: at - 1 } as Node] }, shapeOf(20), [20]);
    expect(attr).toMatchObject({ low: [1, 0], high: [17, 0] });
  });

  it('takes places that count from the end, and no others', () => {
    const part = (n: number, start: number, length = 2) =>
      p.neg(p.slice(computed(n, 3), [start, 0], [length, 3], [1, 1]));
    const sizes = found(part(5, 3), part(9, 7))!;
    expect([...sizes.begins.values()]).toEqual([[{ left: 2 }, null]]);
    expect(matches(sizes, collected([part(20, 18)]))).toEqual([20]);
    expect(matches(sizes, collected([part(20, 17)]))).toBeNull();
    expect(found(part(5, 3), part(9, 6))).toBeNull();
    expect(found(part(5, 3, 2), part(9, 7, 1))).toBeNull();
    const put = (n: number, low: number) => p.neg(p.pad(leaf(2, 3), [low, 0], [n - 2 - low, 0], 0));
    // The other way round it begins at a fixed place.
    expect([...found(p.mul(put(5, 1), leaf(5, 3)), p.mul(put(9, 1), leaf(9, 3)))!.begins.values()]).toEqual([]);
    expect(found(p.mul(put(5, 1), leaf(5, 3)), p.mul(put(9, 4), leaf(9, 3)))).toBeNull();
    const late = found(p.mul(put(5, 2), leaf(5, 3)), p.mul(put(9, 6), leaf(9, 3)))!;
    expect([...late.begins.values()]).toEqual([[{ left: 3 }, null]]);
  });

  it('takes strides for sizes, but along axes of one element', () => {
    const inner = (n: number) => p.neg(leaf(3, n));
    expect([...found(inner(4), inner(6))!.strides]).toEqual([[0, [{ factor: 1, term: 0 }, null]]]);
    expect([...found(p.neg(leaf(1, 4)), p.neg(leaf(1, 6)))!.strides]).toEqual([]);
  });
});

/** Two sizes on their own, and what is made of both: joined axes, places from an end, numbers. */
const two = (b: number, l: number): Node => {
  const x = p.mul(leaf(b, l, 3), p.constant(1 / (b * l), 'float32', [b, l, 3]));
  const flat = p.reshape(x, [b * l, 3]);
  const last = p.slice(p.neg(x), [0, l - 1, 0], [b, 1, 3], [1, 1, 1]);
  return p.add(p.reduce(flat, 'sum', [0]), p.reduce(p.add(last, leaf(b, 1, 1)), 'sum', [0, 1]));
};

describe('two sizes', () => {
  it('are found, and matched on their own', () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(size, { minLength: 3, maxLength: 3 }),
        fc.array(size, { minLength: 3, maxLength: 3 }),
        (b, l) => {
          const factor = l[1]! / b[1]!;
          fc.pre(l[0] !== l[1] && !(l[0] === b[0]! * factor && Number.isInteger(factor)));
          fc.pre(!(b[1]! / l[1]! === b[0]! / l[0]! && Number.isInteger(b[1]! / l[1]!)));
          const sizes = found(two(b[0]!, l[0]!), two(b[1]!, l[1]!));
          // The length of one may be a product that happens to fit.
          fc.pre(sizes !== null && sizes.n.length === 2);
          const is = sizes!.n[0] === b[1] ? [0, 1] : [1, 0];
          const named = (x: number, y: number): number[] => is.map((k) => [x, y][k]!);
          expect(matches(sizes!, collected([two(b[1]!, l[1]!)]))).toEqual(named(b[1]!, l[1]!));
          const third = matches(sizes!, collected([two(b[2]!, l[2]!)]));
          if (third !== null) expect(third).toEqual(named(b[2]!, l[2]!));
          expect(matches(sizes!, collected([two(b[2]!, l[2]! + 1)]))).not.toEqual(named(b[2]!, l[2]!));
        },
      ),
      { ...draws, numRuns: 100 },
    );
  });

  it('are told from multiples, and from products', () => {
    const sizes = found(two(4, 6), two(10, 7))!;
    expect(sizes.n).toEqual([10, 7]);
    expect(
      sizes.axes
        .map((axes) => axes?.map((m) => m && [m.factor, ...sizes.terms[m.term]!].join('.')).join(' '))
        .slice(0, 4),
    ).toEqual(['1.0 1.1 ', '1.0 1.1 ', '1.0 1.1 ', '1.0.1 ']);
    const four = (a: number, b: number, c: number, d: number): Node => p.neg(leaf(a, b, c, d));
    expect(found(four(4, 5, 6, 7), four(5, 7, 11, 13))).toBeNull();
    expect(found(four(4, 5, 6, 1), four(5, 7, 11, 1))!.n).toEqual([5, 7, 11]);
    expect(found(p.neg(leaf(4, 3)), p.neg(leaf(9, 1)))).toBeNull();
  });
});

describe('attrAt', () => {
  it('gives attributes as they are at other sizes', () => {
    const pairs = fc.tuple(fc.integer({ min: 2, max: 60 }), fc.integer({ min: 2, max: 60 }));
    fc.assert(
      fc.property(pairs, pairs, pairs, (was, is, at) => {
        const sizes = found(two(...was), two(...is));
        fc.pre(sizes !== null && sizes.n.length === 2);
        const captured = collected([two(...at)]);
        const n = matches(sizes!, captured);
        fc.pre(n !== null);
        const third = sampleOf(captured);
        const values = valuesOf(sizes!.terms, n!);
        third.shapes.forEach((shape, i) => {
          const { op, src } = captured.nodes[i]!;
          expect(numbersAt(sizes!.sample.shapes[i]!, sizes!.axes[i]!, values)).toEqual(shape);
          if (op === 'constant') return;
          expect(attrAt(sizes!, i, { op, src }, (k) => third.shapes[k]!, values)).toEqual(third.attrs[i]);
        });
      }),
      { ...draws, numRuns: 100 },
    );
  });
});
