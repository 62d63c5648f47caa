/** Thresholds: where curves cross, and what text is taken for thresholds. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ArgumentError } from '@polygrad/compiler/shape/errors';
import { kernelCost, operationFamilies } from './costs.ts';
import { AdaptiveThresholds, crossoverOf, type MeasuredCosts } from './thresholds.ts';

/** Times at rising sizes, which rise too. */
const curves = fc
  .uniqueArray(fc.integer({ min: 1, max: 1000 }), { minLength: 1, maxLength: 6 })
  .chain((sizes) =>
    fc.tuple(
      fc.constant(sizes.toSorted((a, b) => a - b)),
      fc.array(fc.integer({ min: 1, max: 100 }), { minLength: sizes.length, maxLength: sizes.length }),
    ),
  )
  .map(([sizes, times]) => sizes.map((size, i): [number, number] => [size, times.toSorted((a, b) => a - b)[i]!]));

const line = (base: number, each: number): [number, number][] => [100, 1000, 10_000].map((n) => [n, base + each * n]);
const costsOf = (base: number, each: number): MeasuredCosts['cpu'] => ({
  families: Object.fromEntries(
    operationFamilies.map((f) => [f, line(base, each)]),
  ) as unknown as MeasuredCosts['cpu']['families'],
  fused: 0,
  upload: { latency: 0, perByte: 0 },
  download: { latency: 0, perByte: 0 },
});

describe('the crossover', () => {
  it('is where two lines meet', () => {
    expect(crossoverOf(line(0, 2), line(600, 1))).toBeCloseTo(600, 9);
    expect(crossoverOf(line(0, 1), line(600, 1))).toBe(Number.POSITIVE_INFINITY);
    expect(crossoverOf(line(9, 1), line(0, 1))).toBe(100);
    expect(crossoverOf([], [])).toBe(Number.POSITIVE_INFINITY);
  });

  it('has no size before it at which the device is faster, and one just behind it at which it is', () => {
    fc.assert(
      fc.property(curves, curves, (cpu, device) => {
        const gain = (size: number): number => kernelCost(cpu, size) - kernelCost(device, size);
        const sizes = [...cpu, ...device].map(([size]) => size);
        const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
        const found = crossoverOf(cpu, device);
        const end = Math.min(found, most);
        for (let i = 0; i < 200 && end > least; i++) expect(gain(least + ((end - least) * i) / 200)).toBeLessThan(1e-9);
        if (found === Number.POSITIVE_INFINITY) {
          expect(gain(most)).toBeLessThanOrEqual(0);
          return;
        }
        expect(found).toBeGreaterThanOrEqual(least);
        if (found > least) expect(Math.abs(gain(found))).toBeLessThan(1e-6);
        expect(gain(Math.min(found + 1e-3, most))).toBeGreaterThan(-1e-6);
      }),
      { numRuns: 300 },
    );
  });
});

describe('AdaptiveThresholds', () => {
  const measured = (): AdaptiveThresholds =>
    new AdaptiveThresholds(
      { sort: 0, scan: Number.POSITIVE_INFINITY },
      { cpu: costsOf(0, 2), device: costsOf(600, 1) },
    );

  it('are the crossover and 10 %, unless they are given', () => {
    const thresholds = measured();
    expect(thresholds.get('elementwise')).toBeCloseTo(660, 9);
    expect([thresholds.get('sort'), thresholds.get('scan')]).toEqual([0, Number.POSITIVE_INFINITY]);
  });

  it.each([
    ['measured', measured],
    ['assumed', () => new AdaptiveThresholds({ product: 12.5 })],
  ])('come back from text: %s', (_, make) => {
    const thresholds = make();
    const read = AdaptiveThresholds.parse(thresholds.stringify())!;
    for (const family of operationFamilies) expect(read.get(family)).toBe(thresholds.get(family));
    expect(read.costs).toEqual(thresholds.costs);
    expect(read.measured).toBe(thresholds.measured);
  });

  it('are not made of text that is damaged, of another form, or of something else', () => {
    const text = measured().stringify();
    for (let end = 0; end < text.length; end += 7) expect(AdaptiveThresholds.parse(text.slice(0, end))).toBeNull();
    /** The text with another value at a place; undefined: with nothing there. */
    const spoiled = (place: string, value: unknown): string => {
      const read: unknown = JSON.parse(text);
      const names = place.split('.');
      const last = names.pop()!;
      let at = read as Record<string, unknown>;
      for (const name of names) at = at[name] as Record<string, unknown>;
      at[last] = value;
      return JSON.stringify(read);
    };
    for (const [place, value] of [
      ['form', 2],
      ['form', undefined],
      ['costs', undefined],
      ['costs.device', undefined],
      ['costs.cpu.families.sort', []],
      [
        'costs.cpu.families.sort',
        [
          [5, 1],
          [5, 2],
        ],
      ],
      ['costs.cpu.families.sort', [[1, -1]]],
      ['costs.cpu.families.sort', [[1, 'never']]],
      ['costs.cpu.families.product', undefined],
      ['costs.device.upload', { latency: 1 }],
      ['costs.device.fused', null],
      ['sizes.sort', -1],
      ['sizes.sort', '5'],
      ['sizes.nothing', 5],
      ['sizes', 'never'],
      ['sizes', null],
    ] as const)
      expect([place, value, AdaptiveThresholds.parse(spoiled(place, value))]).toEqual([place, value, null]);
    for (const other of [
      '',
      'null',
      '[]',
      '1',
      '"never"',
      '['.repeat(200_000),
      '{"form":1}',
      '{"__proto__":{"form":1,"costs":null}}',
    ])
      expect(AdaptiveThresholds.parse(other)).toBeNull();
    for (const other of [
      null,
      undefined,
      5,
      {},
      Symbol('x'),
      {
        toString: () => {
          throw new Error('no');
        },
      },
    ])
      expect(AdaptiveThresholds.parse(other as unknown as string)).toBeNull();
  });

  it('refuse families and sizes that are none', () => {
    const thresholds = measured();
    for (const size of [-1, Number.NaN, '5', null, 5n])
      expect(() => thresholds.set('sort', size as number)).toThrow(ArgumentError);
    expect(() => thresholds.set('sorts' as 'sort', 5)).toThrow(/no family 'sorts'; one of .*sort/);
    expect(() => thresholds.get('toString' as 'sort')).toThrow(ArgumentError);
    expect(thresholds.get('sort')).toBe(0);
    let told = 0;
    const end = thresholds.listen(() => told++);
    thresholds.set('sort', 7);
    end();
    thresholds.set('sort', 8);
    expect([thresholds.get('sort'), told]).toEqual([8, 1]);
  });
});
