import { describe, expect, it } from 'vitest';
import { shuffledIndices, RandomStream, threefry2x32 } from './random.ts';

describe('threefry2x32', () => {
  // Known-answer vectors of the authors' Random123 library, file kat_vectors, "threefry2x32 20".
  const vectors: [number, number, number, number, number, number][] = [
    [0, 0, 0, 0, 0x6b200159, 0x99ba4efe],
    [0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x1cb996fc, 0xbb002be7],
    [0x13198a2e, 0x03707344, 0x243f6a88, 0x85a308d3, 0xc4923a9c, 0x483df7a0],
  ];
  for (const [k0, k1, c0, c1, x0, x1] of vectors) {
    it(`gives the published words for key ${k0.toString(16)} ${k1.toString(16)}`, () => {
      const out = new Uint32Array(2);
      threefry2x32(k0, k1, c0, c1, out);
      expect([...out]).toEqual([x0, x1]);
    });
  }
});

describe('shuffledIndices', () => {
  it('holds every number once', () => {
    const order = shuffledIndices(1000, 7, 2);
    expect([...order].sort((a, b) => a - b)).toEqual(Array.from({ length: 1000 }, (_, index) => index));
  });

  it('is the same for the same seed and stream, and another for others', () => {
    const order = [...shuffledIndices(50, 1, 2)];
    expect([...shuffledIndices(50, 1, 2)]).toEqual(order);
    expect([...shuffledIndices(50, 1, 3)]).not.toEqual(order);
    expect([...shuffledIndices(50, 2, 2)]).not.toEqual(order);
    expect([...shuffledIndices(50, 1 + 2 ** 32, 2)]).not.toEqual(order);
  });

  it('stays as it is from release to release', () => {
    expect([...shuffledIndices(8, 42)]).toMatchInlineSnapshot(`
      [
        7,
        1,
        4,
        3,
        6,
        2,
        5,
        0,
      ]
    `);
  });

  it('puts every item in every place about equally often', () => {
    const size = 5;
    const runs = 20_000;
    const counts = Array.from({ length: size }, () => new Array<number>(size).fill(0));
    for (let seed = 0; seed < runs; seed++) {
      shuffledIndices(size, seed).forEach((item, place) => {
        counts[place]![item]!++;
      });
    }
    // Chi-squared with 16 degrees of freedom: 39.3 is the 0.999 quantile.
    const expected = runs / size;
    const chi = counts.flat().reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
    expect(chi).toBeLessThan(39.3);
  });

  it('handles nothing and one', () => {
    expect(shuffledIndices(0, 1).length).toBe(0);
    expect([...shuffledIndices(1, 1)]).toEqual([0]);
  });
});

describe('RandomStream', () => {
  it('draws below a bound that does not divide 2^32', () => {
    const random = new RandomStream(3);
    const counts = [0, 0, 0];
    for (let draw = 0; draw < 30_000; draw++) counts[random.below(3)]!++;
    for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(350);
  });

  it('refuses sizes that are no sizes, or that nobody can wait for', () => {
    for (const size of [2 ** 31, 2 ** 53, 1e308, -1, 1.5, Number.NaN])
      expect(() => shuffledIndices(size, 1)).toThrow(
        /^\[shuffledIndices\] size is .* must be an integer from 0 to 134217728$/,
      );
    for (const bound of [2 ** 33, 0, Number.NaN])
      expect(() => new RandomStream(1).below(bound)).toThrow(/^\[RandomStream\] bound is /);
  });
});
