import { describe, expect, it } from 'vitest';
import { Series, thin } from './series.ts';

describe('thin', () => {
  it('leaves short curves alone', () => {
    expect(thin([3, 1, null], 4)).toEqual([0, 1, 2]);
    expect(thin([], 4)).toEqual([]);
  });

  it('keeps the ends, and the lowest and highest of every stretch, in order', () => {
    const y = Array.from({ length: 1000 }, (_, i) => Math.sin(i / 20));
    y[333] = 9;
    y[334] = -9;
    const kept = thin(y, 100);
    expect(kept.length).toBeLessThanOrEqual(100);
    expect(kept.length).toBeGreaterThan(60);
    expect([kept[0], kept.at(-1)]).toEqual([0, 999]);
    expect(kept).toContain(333);
    expect(kept).toContain(334);
    expect(kept).toEqual([...kept].sort((a, b) => a - b));
  });

  it('passes over what was not measured', () => {
    const y: (number | null)[] = Array.from({ length: 100 }, () => null);
    y[50] = 1;
    expect(thin(y, 10)).toEqual([0, 50, 99]);
  });
});

describe('Series', () => {
  it('stays within its limit however long it runs, and keeps single extremes', () => {
    const series = new Series(1, 50);
    for (let x = 0; x < 10_000; x++) {
      series.add(x, x === 1234 ? 100 : x === 7777 ? -100 : 0);
      expect(series.length).toBeLessThan(100);
    }
    const [xs, ys] = series.columns;
    expect([xs[0], xs.at(-1)]).toEqual([0, 9999]);
    expect(ys![xs.indexOf(1234)]).toBe(100);
    expect(ys![xs.indexOf(7777)]).toBe(-100);
    expect(ys!.length).toBe(xs.length);
  });

  it('keeps sparse curves beside dense ones', () => {
    const series = new Series(2, 40);
    for (let x = 0; x < 500; x++) series.add(x, x % 100 === 50 ? x : null, x);
    const [, sparse, dense] = series.columns;
    expect(sparse!.filter((v) => v !== null)).toEqual([50, 150, 250, 350, 450]);
    expect(dense!.at(-1)).toBe(499);
  });

  it('fills in at the same x, and starts anew where x goes back', () => {
    const series = new Series(2);
    series.add(1, 5, null);
    series.add(2, null, 3);
    series.add(2, 6, null);
    expect(series.columns).toEqual([
      [1, 2],
      [5, 6],
      [null, 3],
    ]);
    series.add(1, 7);
    expect(series.columns).toEqual([[1], [7], [null]]);
    series.clear();
    expect(series.length).toBe(0);
  });
});
