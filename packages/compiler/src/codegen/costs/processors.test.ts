/** Tiles by formula: they fit the registers, and suit what sizes leave over. */
import { describe, expect, it } from 'vitest';
import { processorCosts, tileFormula } from './processors.ts';

const machines = [
  [32, 12],
  [16, 12],
] as const;

describe.each(machines)('%i registers', (registers, sums) => {
  const { along, slower, tile } = tileFormula({ registers, sums });

  it('results, columns, a row and one more fit', () => {
    for (let rows = 1; rows <= 40; rows++) {
      for (let vectors = 1; vectors <= 20; vectors++) {
        const [r, v] = tile(rows, vectors);
        expect(r * v + v + 2).toBeLessThanOrEqual(registers);
        expect(r).toBeLessThanOrEqual(rows);
        expect(v).toBeLessThanOrEqual(vectors);
      }
    }
  });

  it('large products have sums enough, and lose little', () => {
    for (const [rows, vectors] of [
      [256, 16],
      [1000, 63],
      [2048, 128],
    ] as const) {
      const chosen = tile(rows, vectors);
      expect(chosen[0] * chosen[1]).toBeGreaterThanOrEqual(sums);
      expect(slower(rows, vectors, chosen)).toBeLessThan(1.2);
    }
  });

  it('where rows end at a size, a tile suits the least and the greatest number of them', () => {
    for (const [least, most] of [
      [32, 131],
      [64, 257],
      [7, 7],
    ] as const) {
      const vectors = 8;
      const lost = (t: readonly [number, number]): number => slower(least, vectors, t) * slower(most, vectors, t);
      const chosen = tile(least, vectors, vectors, most);
      expect(chosen[0]).toBeLessThanOrEqual(least);
      for (let height = 1; height <= least; height++)
        for (let width = 1; width <= vectors && height * width + width + 2 <= registers; width++)
          expect(lost(chosen)).toBeLessThanOrEqual(lost([height, width]) * (1 + 1e-12));
    }
  });

  it('where few rows are a size too, a tile suits all of them', () => {
    for (const [least, most] of [
      [8, 521],
      [8, 37],
      [5, 13],
    ] as const) {
      const vectors = 8;
      const lost = (t: readonly [number, number]): number => {
        let all = 0;
        for (let rows = least; rows <= most; rows++) all += Math.log(slower(rows, vectors, t)) / rows;
        return all / Math.log(most / least);
      };
      const chosen = tile(least, vectors, vectors, most);
      expect(chosen[0]).toBeLessThanOrEqual(least);
      for (let height = 4; height <= least; height++)
        for (let width = 1; width <= vectors && height * width + width + 2 <= registers; width++)
          expect(lost(chosen)).toBeLessThan(lost([height, width]) + 0.04);
    }
  });

  it('sums along vectors have the positions of a window side by side, and fit where they have several widths', () => {
    const far = { apart: 64, crowded: false };
    const window = { apart: 1 / 16, crowded: false };
    for (const extent of [32, 28, 29]) {
      const [[r, v]] = along(extent, 16, 64, 64, { row: far, column: far });
      const [[near, v2]] = along(extent, 16, 3, 64, { row: window, column: far });
      const parts = extent === 32 ? 1 : extent === 28 ? 3 : 4;
      for (const [rows, vectors] of [
        [r, v],
        [near, v2],
      ] as const)
        expect(rows * vectors * parts + vectors + 2).toBeLessThanOrEqual(registers);
      // With 16 registers three positions leave too few sums.
      if (parts > 1 || registers < 32) continue;
      const distant = slower(64, 64, [r, v], { row: far, column: far });
      expect(slower(3, 64, [near, v2], { row: window, column: far })).toBeLessThan(distant);
    }
  });

  it('reads fewer lines of one cache set side by side than that has', () => {
    const crowded = { apart: 64, crowded: true };
    const window = { apart: 1 / 16, crowded: false };
    for (const rows of [3, 64]) {
      const [[, v]] = along(32, 16, rows, 64, { row: window, column: crowded });
      expect(v).toBeLessThan(8);
    }
    const [[r]] = along(32, 16, 64, 1, { row: crowded, column: window });
    expect(r).toBeLessThan(8);
  });

  it('no tile is better than that of one result', () => {
    expect(slower(1, 1, tile(1, 1))).toBeGreaterThan(sums);
  });
});

it('lines that share sets of the second-level cache stay as far as these have ways', () => {
  const { stayingLines } = processorCosts({
    registers: 32,
    sums: 12,
    flopsPerNs: 224,
    cacheBytes: 2 ** 20,
    cacheWays: 16,
  });
  expect([64, 2048, 4096, 8192, 4000].map((bytes) => stayingLines!(bytes))).toEqual([16384, 512, 256, 128, 16384]);
});
