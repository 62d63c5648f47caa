/** Blocks of tiles: every result is kept by exactly one tile, and no tile reaches outside. */
import { describe, expect, it } from 'vitest';
import { type Block, cover, type CoverFacts } from './blocking.ts';
import { overlaps, type Segment, tileShape } from './tiles.ts';

const inPlace: CoverFacts = { padded: false, recut: true, inPlace: true, dots: true, sums: false, lanes: 4 };

/** Adds one to every position that the tiles of a segment keep, as gemm.ts writes them. */
function keptBy(s: Segment, extent: number): number[] {
  const times = new Array<number>(extent).fill(0);
  for (let tile = 0; tile < s.count; tile++) {
    const start = tile * s.width + s.start;
    const moved = overlaps(s) ? Math.min(start, s.last) : start;
    if (moved < 0 || moved + s.width > extent)
      throw new RangeError(`a tile from ${moved} to ${moved + s.width} of ${extent}`);
    for (let i = Math.max(s.from, start - moved); i < s.to; i++) times[moved + i] = (times[moved + i] ?? 0) + 1;
  }
  return times;
}

/** How often results are kept: once, or several numbers of times. */
function timesKept(blocks: readonly Block[], height: number, width: number): Set<number> {
  const times = new Int32Array(height * width);
  for (const { rows, columns } of blocks) {
    const across = keptBy(columns, width);
    keptBy(rows, height).forEach((n, i) => {
      for (let j = 0; j < width; j++) times[i * width + j]! += n * (across[j] ?? 0);
    });
  }
  return new Set(times);
}

describe('cover', () => {
  it('keeps every result once', () => {
    for (let height = 29; height <= 43; height++) {
      for (let width = 4; width <= 26; width++) {
        for (const dots of [true, false]) {
          const { whole, beside, last } = cover(height, width, tileShape(height, width, 4, { registers: 15 }), {
            ...inPlace,
            dots,
          });
          expect(timesKept([...whole, ...beside, ...last], height, width), `${height} x ${width}`).toEqual(
            new Set([1]),
          );
        }
      }
    }
  });

  it('takes the last one or two rows by themselves, and one column along the sum', () => {
    const of = (height: number, width: number, facts: Partial<CoverFacts> = {}) =>
      cover(height, width, tileShape(height, width, 4, { registers: 15 }), { ...inPlace, ...facts });
    const { whole, beside, last } = of(65, 65);
    expect([...whole, ...beside].map(({ rows, columns, sumLanes }) => [rows.count, columns.width, sumLanes])).toEqual([
      [16, 8, 1],
      [16, 1, 4],
    ]);
    expect(last.map(({ rows, columns }) => [rows.width, columns.width, columns.count])).toEqual([
      [1, 24, 2],
      [1, 20, 1],
    ]);
    expect(of(66, 64).last.map(({ rows, columns }) => [rows.width, columns.width])).toEqual([[2, 16]]);
    for (const [height, facts] of [
      [67, {}],
      [64, {}],
      [29, {}],
      [193, {}],
      [65, { inPlace: false }],
    ] as const)
      expect(of(height, 64, facts).last, `${height}`).toEqual([]);
    expect(of(65, 65, { dots: false }).beside).toEqual([]);
  });
});

it('tiles fill the registers of the target and leave one', () => {
  const shapes = (registers: number): string[] =>
    [1, 2, 3, 4].map((rows) => {
      const { rows: r, vectors } = tileShape(rows, 1000, 4, { registers });
      return `${r}x${vectors}`;
    });
  expect(shapes(15)).toEqual(['1x6', '2x4', '3x2', '4x2']);
  expect(shapes(31)).toEqual(['1x14', '2x9', '3x6', '4x5']);
});
