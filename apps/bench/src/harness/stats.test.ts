import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { geometricMean, median, quantileSorted, scatter, speedRatio, summarize } from './stats.ts';

const numbers = fc.array(fc.double({ min: 1e-3, max: 1e9, noNaN: true }), { minLength: 1, maxLength: 50 });

describe('statistics', () => {
  it('interpolates quantiles as R (type 7) and NumPy do', () => {
    const sorted = [1, 2, 4, 8];
    expect(quantileSorted(sorted, 0)).toBe(1);
    expect(quantileSorted(sorted, 0.25)).toBe(1.75);
    expect(quantileSorted(sorted, 0.5)).toBe(3);
    expect(quantileSorted(sorted, 0.75)).toBe(5);
    expect(quantileSorted(sorted, 1)).toBe(8);
    expect(quantileSorted([], 0.5)).toBeNaN();
  });

  it('summarises in any order, without touching its argument', () => {
    const values = [9, 1, 5, 3, 7];
    expect(summarize(values)).toEqual({ median: 5, best: 1, q1: 3, q3: 7, count: 5 });
    expect(values).toEqual([9, 1, 5, 3, 7]);
  });

  it('orders best, quartiles and median', () => {
    fc.assert(
      fc.property(numbers, (values) => {
        const { best, q1, median: middle, q3 } = summarize(values);
        expect(best).toBe(Math.min(...values));
        expect(best).toBeLessThanOrEqual(q1);
        expect(q1).toBeLessThanOrEqual(middle);
        expect(middle).toBeLessThanOrEqual(q3);
        expect(q3).toBeLessThanOrEqual(Math.max(...values));
      }),
      { seed: 1 },
    );
  });

  it('says within which part of the median half of the values lie', () => {
    expect(scatter([100, 104, 300])).toBeCloseTo(4 / 104);
    expect(scatter([1, 2, 4, 8])).toBe(1.5 / 3);
    expect([scatter([]), scatter([5])]).toEqual([0, 0]);
  });

  it('compares rounds in pairs: a machine that slows down does not change the ratio', () => {
    const ours = [[10, 11, 12], [20, 22, 24], [100]];
    const theirs = ours.map((round) => round.map((ns) => 2 * ns));
    expect(speedRatio(ours, theirs)).toEqual({ median: 2, best: 2 });
    // Somebody who took part in the first, fast round only.
    expect(speedRatio(ours, [[22]])).toEqual({ median: 2, best: 2.2 });
    expect(speedRatio(ours, []).median).toBeNaN();
  });

  it('averages ratios geometrically', () => {
    expect(geometricMean([2, 0.5])).toBeCloseTo(1, 12);
    expect(geometricMean([])).toBeNaN();
    expect(median([3, 1, 2])).toBe(2);
  });
});
