import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Lifetime, placeInArena, placeInBlocks } from './arena.ts';
import { draws } from '@polygrad/compiler/fixtures/draws';

const lifetimes = fc.array(
  fc
    .record({ bytes: fc.integer({ min: 1, max: 5000 }), from: fc.nat(20), length: fc.nat(6) })
    .map(({ bytes, from, length }) => ({ bytes, first: from, last: from + length })),
  { maxLength: 40 },
);

function together(a: Lifetime, b: Lifetime): boolean {
  return a.first <= b.last && b.first <= a.last;
}

/** Most bytes alive at one time: no arena can be smaller. */
function atOnce(items: readonly Lifetime[]): number {
  return Math.max(
    0,
    ...items.map((x) =>
      items.filter((y) => y.first <= x.first && y.last >= x.first).reduce((sum, y) => sum + y.bytes, 0),
    ),
  );
}

describe('placements', () => {
  it('in an arena are aligned, inside it, and apart while they live together', () => {
    fc.assert(
      fc.property(lifetimes, (items) => {
        const { blocks, places } = placeInArena(items, 64);
        const [size = 0] = blocks;
        items.forEach((a, i) => {
          const at = (places[i] as { offset: number }).offset;
          expect(at % 64).toBe(0);
          expect(at + a.bytes).toBeLessThanOrEqual(size);
          items.forEach((b, j) => {
            const other = (places[j] as { offset: number }).offset;
            if (i < j && together(a, b)) expect(at + a.bytes <= other || other + b.bytes <= at).toBe(true);
          });
        });
        expect(size).toBeGreaterThanOrEqual(atOnce(items));
        // Greedy by size stays near the least possible.
        expect(size).toBeLessThanOrEqual(2 * atOnce(items) + 64 * items.length);
      }),
      { numRuns: 200, ...draws },
    );
  });

  it('in blocks fit them and do not share one at a time', () => {
    fc.assert(
      fc.property(lifetimes, (items) => {
        const { blocks, places } = placeInBlocks(items);
        items.forEach((a, i) => {
          const { block } = places[i] as { block: number };
          expect(blocks[block]).toBeGreaterThanOrEqual(a.bytes);
          items.forEach((b, j) => {
            if (i < j && together(a, b)) expect((places[j] as { block: number }).block).not.toBe(block);
          });
        });
      }),
      { numRuns: 100, ...draws },
    );
  });
});
