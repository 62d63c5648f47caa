/**
 * Contractions for groups of threads against float64, on the interpreter, which finds races between threads, barriers that some
 * miss and accesses out of bounds: every kind of tile, every transpose, sizes around every limit, epilogues.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Program } from '../../ir/ir.ts';
import { findContraction } from '../contraction.ts';
import type { ContractionTemplate } from '../template.ts';
import { checkCase, makeCase, type Making, type Parts, processorCaps, threadCaps } from '../fixtures/cases.ts';
import { product, type Sizes, transposes } from '../fixtures/products.ts';
import { candidateTiles, defaultTile } from './choose.ts';
import { lowerSimt, problemFor, tileFits } from './gemm.ts';
import { nameOf, tileOf, type SimtTile } from './problem.ts';

/** A lowering that always takes this tile; null where it does not fit. */
function always(tile: SimtTile): ContractionTemplate {
  return (kernel, e, caps) => {
    const c = findContraction(kernel, e);
    if (c === null || !tileFits(tile, problemFor(c, tile), 'float32', caps)) return null;
    return lowerSimt(c, e, caps, tile);
  };
}

type Range = ReturnType<Making['range']>;

describe('tiles of groups of threads', () => {
  for (const name of [
    'group:4x4x1:2x1x4:8',
    'group:4x4x1:4x2x1:8',
    'group:8x2x1:2x2x1:4/3',
    'thread:8x2x1:4x1x4:1',
    'thread+:8x2x1:4x1x4:1',
    'thread:4x4x1:2x1x1:1/3',
    'thread:4x1x2:4x1x2:1',
    'dot:16x1x1:2x2x1:1',
    'dot:8x1x1:1x1x1:4',
    'dot:8x1x1:2x2x1:1/2',
  ]) {
    const tile = tileOf(name) as SimtTile;
    it(name, () => {
      expect(nameOf(tile)).toBe(name);
      let done = 0;
      for (const [batch, m, n, k] of [
        [1, 16, 16, 16],
        [1, 17, 23, 13],
        [3, 9, 5, 29],
        [1, 4, 8, 130],
        [2, 1, 9, 40],
        [1, 9, 1, 40],
        [3, 1, 1, 64],
      ] as const)
        for (const [transposeA, transposeB] of transposes) {
          const sizes = { m, n, k, batch, transposeA, transposeB };
          const { worst, lowered } = checkCase('float32', product(sizes), threadCaps, always(tile));
          expect(worst, JSON.stringify(sizes)).toBeLessThanOrEqual(1);
          if (lowered !== null) done++;
        }
      expect(done).toBeGreaterThan(8);
    });
  }

  it('names of tiles that are none', () => {
    for (const name of ['', 'group:4x4:2x1x4:8', 'tile:4x4x1:2x1x4:8', 'group:0x4x1:2x1x4:8', 'group:4x4x1:2x1x4:8/x'])
      expect(tileOf(name)).toBeNull();
  });
});

describe('the tile that is chosen', () => {
  for (const [device, caps] of [
    ['GPUs', threadCaps],
    ['processors that emulate one', processorCaps],
  ] as const) {
    it(`sizes around every limit, on ${device}`, () => {
      for (const [m, n, k] of [
        [1, 127, 64],
        [127, 1, 65],
        [3, 255, 17],
        [63, 64, 65],
        [65, 17, 63],
        [129, 5, 17],
        [3, 2, 1023],
        [10, 64, 129],
        // Sums in parts, by a group of threads that share them, by threads alone and by tiles.
        [2, 2, 16385],
        [4, 8, 8191],
        [4, 9, 4097],
        [1, 40, 4095],
        [5, 5, 2049],
      ] as const)
        for (const [transposeA, transposeB] of m * n * k > 100000 ? transposes.slice(1, 3) : transposes) {
          const { lowered, worst } = checkCase('float32', product({ m, n, k, transposeA, transposeB }), caps);
          expect(lowered, `${m} x ${n} x ${k}`).not.toBeNull();
          expect(worst, `${m} x ${n} x ${k}`).toBeLessThanOrEqual(1);
        }
    });

    it(`float64 and int32, on ${device}`, () => {
      expect(checkCase('float64', product({ m: 33, n: 18, k: 20 }), caps).worst).toBeLessThanOrEqual(1);
      const { kernel, sum, e } = makeCase('int32', product({ m: 33, n: 18, k: 20 }));
      expect(defaultTile(findContraction(kernel, e) as never, caps)).not.toBeNull();
      expect(sum.length).toBe(1);
    });

    it(`an epilogue with a bias, relu, a second output and a sum in place stays one kernel, on ${device}`, () => {
      const [m, n] = [37, 27];
      const build = product({ m, n, k: 33 }, (making, sum, i, j) => {
        const { e, at } = making;
        const [bias, y, z] = [making.param(n), making.param(m * n, 'readwrite'), making.param(m * n, 'write')];
        const pre = e.add(sum, e.load(bias, j));
        const index = at([i, n], [j, 1]);
        return [
          [y, index, e.add(e.load(y, index), e.max(pre, e.constant(making.dtype, 0)))],
          [z, at([j, m], [i, 1]), pre],
        ];
      });
      const { worst, lowered } = checkCase('float32', build, caps);
      expect(worst).toBeLessThanOrEqual(1);
      expect(lowered?.dispatches.filter((d) => !d.program.name.includes('_pad')).length).toBe(1);
    });
  }

  /** Rows of an image of `channels` through a window of three, padded before: `filters` results at every place. */
  const rowsOfWindows =
    (channels: number, width: number, filters: number) =>
    (making: Making): Parts => {
      const { e, at } = making;
      const [x, w] = [making.param(channels * (width + 2)), making.param(filters * channels * 3)];
      const y = making.param(filters * width, 'write');
      const [f, j, c, q] = [filters, width, channels, 3].map((extent) => making.range(extent)) as [
        Range,
        Range,
        Range,
        Range,
      ];
      return {
        a: e.load(w, at([f, channels * 3], [c, 3], [q, 1])),
        b: e.load(x, at([c, width + 2], [j, 1], [q, 1])),
        k: [c, q],
        loops: [f, j],
        stores: (sum) => [[y, at([f, width], [j, 1]), sum]],
      };
    };

  it('a window is written out, its steps one after another in the same registers', () => {
    const tile = tileOf('thread:7x2x1:4x1x4:1') as SimtTile;
    for (const [channels, width, filters] of [
      [5, 28, 8],
      [7, 29, 9],
    ] as const) {
      const build = rowsOfWindows(channels, width, filters);
      const { worst, lowered } = checkCase('float32', build, processorCaps, always(tile));
      expect(worst).toBeLessThanOrEqual(1);
      const program = lowered?.dispatches.at(-1)?.program as Program;
      expect(program.body.filter((n) => n.op === 'LOOP').length).toBe(1);
      const registers = program.body.reduce((n, x) => n + (x.op === 'REG' ? x.arg.length : 0), 0);
      expect(registers).toBeLessThanOrEqual(4);
    }
  });

  it('fewer threads where more would have nothing to do', () => {
    const { kernel, e } = makeCase('float32', rowsOfWindows(4, 28, 32));
    const tile = defaultTile(findContraction(kernel, e) as never, processorCaps) as SimtTile;
    expect(tile.threads.slice(0, 2)).toEqual([7, 8]);
  });

  const tileFor = (sizes: Sizes): string => {
    const { kernel, e } = makeCase('float32', product(sizes));
    return nameOf(defaultTile(findContraction(kernel, e) as never, threadCaps) as SimtTile);
  };

  it('large products go through group memory, thin ones do not', () => {
    expect(tileFor({ m: 1024, n: 1024, k: 1024 })).toBe('group:16x16x1:8x4x1:8');
    expect(tileFor({ m: 1023, n: 1023, k: 1023 })).toBe('group:16x16x1:8x4x1:8');
    expect(tileFor({ m: 256, n: 256, k: 256 })).toBe('group:8x8x1:4x4x1:16');
    expect(tileFor({ m: 64, n: 10, k: 4096 })).toMatch(/^group:.*\/\d+$/);
    expect(tileFor({ m: 1, n: 1024, k: 1024, transposeB: true })).toMatch(/^dot:/);
    expect(tileFor({ m: 1, n: 1024, k: 1024 })).toMatch(/^thread:64x1x1:1x1x1:1\/\d+$/);
    expect(tileFor({ m: 1024, n: 1, k: 1024 })).toMatch(/^dot:/);
  });

  it('all candidates agree', () => {
    for (const sizes of [
      { m: 40, n: 36, k: 48 },
      { m: 2, n: 50, k: 130, transposeB: true },
    ]) {
      const { kernel, e } = makeCase('float32', product(sizes));
      const tiles = candidateTiles(findContraction(kernel, e) as never, threadCaps);
      expect(tiles.length).toBeGreaterThan(3);
      for (const tile of tiles) {
        const { worst, lowered } = checkCase('float32', product(sizes), threadCaps, always(tile));
        expect(lowered, nameOf(tile)).not.toBeNull();
        expect(worst, nameOf(tile)).toBeLessThanOrEqual(1);
      }
    }
  });

  it('any shapes', () => {
    const extent = fc.oneof(fc.integer({ min: 1, max: 40 }), fc.constantFrom(63, 65));
    const shapes = fc.record({
      m: extent,
      n: extent,
      k: extent,
      batch: fc.integer({ min: 1, max: 3 }),
      transposeA: fc.boolean(),
      transposeB: fc.boolean(),
      processor: fc.boolean(),
    });
    fc.assert(
      fc.property(shapes, ({ processor, ...sizes }) => {
        const { worst } = checkCase('float32', product(sizes), processor ? processorCaps : threadCaps);
        expect(worst).toBeLessThanOrEqual(1);
      }),
      { numRuns: 12, seed: 7 },
    );
  });
});
