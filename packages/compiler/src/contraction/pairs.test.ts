/** Sums over pairs that are no products, by tiles: distances, and windows over padding. */
import { describe, expect, it } from 'vitest';
import type { Exprs } from '../ir/expr.ts';
import type { KNode } from '../ir/ir.ts';
import { checkCase, machineCapsOf, type Making, type Parts } from './fixtures/cases.ts';
import { base, convolution } from './fixtures/convolutions.ts';
import { product } from './fixtures/products.ts';
import { processorPairs } from './transposed-results.ts';

type Of = (e: Exprs, a: KNode, b: KNode) => KNode;

const squares: Of = (e, a, b) => {
  const d = e.sub(a, b);
  return e.mul(d, d);
};
const magnitudes: Of = (e, a, b) => e.unary('ABS', e.sub(a, b));

const pairs =
  (build: (m: Making) => Parts, of: Of): ((m: Making) => Parts) =>
  (m) => ({ ...build(m), of });

describe('sums over pairs', () => {
  for (const [name, of] of [
    ['squares', squares],
    ['magnitudes', magnitudes],
  ] as const) {
    it.each([
      [16, 16, 16, 1],
      [17, 23, 13, 2],
      [4, 38, 50, 1],
      [9, 20, 100, 1],
      [40, 50, 3, 1],
    ])(`${name} of differences: %d x %d, sums of %d, %d times`, (m, n, k, batch) => {
      for (const bytes of [16, 32, 64] as const) {
        const build = pairs(product({ m, n, k, batch, transposeB: true }), of);
        const { lowered, worst } = checkCase('float32', build, machineCapsOf(bytes), processorPairs);
        expect(lowered).not.toBeNull();
        expect(worst).toBeLessThanOrEqual(1);
        // Differences of whole vectors.
        const bodies = lowered!.dispatches.flatMap(({ program }) => program.body);
        expect(bodies.some((x) => x.op === 'SUB' && x.lanes > 1)).toBe(true);
      }
    });
  }

  it('adds what padding makes', () => {
    // Products of the second are left out where a convolution has them with padding.
    for (const g of [base, { ...base, images: 16, inputs: 40, outputs: 32, size: [4, 5] }] as const) {
      const { lowered, worst } = checkCase(
        'float32',
        pairs(convolution(g, 'forward'), squares),
        machineCapsOf(64),
        processorPairs,
      );
      expect(lowered).not.toBeNull();
      expect(worst).toBeLessThanOrEqual(1);
    }
  });

  it('are left to plain nests where tiles do not pay, or their registers do not suffice', () => {
    const lowers = (build: (m: Making) => Parts): boolean =>
      checkCase('float32', build, machineCapsOf(64), processorPairs).lowered !== null;
    const large = product({ m: 32, n: 32, k: 32, transposeB: true });
    expect(lowers(pairs(large, squares))).toBe(true);
    expect(lowers(pairs(large, (e, a, b) => e.unary('EXP', e.sub(a, b))))).toBe(false);
    expect(lowers(pairs(product({ m: 2, n: 32, k: 32, transposeB: true }), squares))).toBe(false);
    expect(lowers(pairs(product({ m: 4, n: 4, k: 4, transposeB: true }), squares))).toBe(false);
    // A third factor.
    const weighted = (m: Making): Parts => {
      const parts = large(m);
      const w = m.e.load(m.param(32), parts.k[0]!);
      return { ...parts, of: (e, a, b) => e.mul(w, squares(e, a, b)) };
    };
    expect(lowers(weighted)).toBe(false);
  });
});
