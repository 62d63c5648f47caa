import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { IntWriter, PlanCache, textOf } from './cache.ts';

function key(...values: number[]): IntWriter {
  const writer = new IntWriter();
  writer.reserve(values.length);
  for (const v of values) writer.push(v);
  return writer;
}

/** The same with a hash that is given. */
function hashed(hash: number, { data, length }: IntWriter): Pick<IntWriter, 'data' | 'length' | 'hash'> {
  return { data, length, hash };
}

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

describe('PlanCache', () => {
  it('compares keys, not only hashes', () => {
    const cache = new PlanCache<string>(10, () => undefined);
    cache.add(hashed(1, key(1, 2, 3)), 'a');
    cache.add(hashed(1, key(1, 2, 4)), 'b');
    expect(cache.find(hashed(1, key(1, 2, 3)))).toBe('a');
    expect(cache.find(hashed(1, key(1, 2, 4)))).toBe('b');
    expect(cache.find(hashed(1, key(1, 2)))).toBeUndefined();
    expect(cache.find(hashed(2, key(1, 2, 3)))).toBeUndefined();
  });

  it('asks for no hash of the key that was found last', () => {
    const cache = new PlanCache<string>(10, () => undefined);
    cache.add(key(1, 2, 3), 'a');
    cache.add(key(1, 2, 4), 'b');
    let asked = 0;
    const counted = (...values: number[]): Parameters<typeof cache.find>[0] => {
      const { data, length, hash } = key(...values);
      return {
        data,
        length,
        get hash() {
          asked++;
          return hash;
        },
      };
    };
    for (const [value, ints, times] of [
      ['a', [1, 2, 3], 1],
      ['a', [1, 2, 3], 1],
      ['b', [1, 2, 4], 2],
      ['b', [1, 2, 4], 2],
      [undefined, [1, 2], 3],
      ['b', [1, 2, 4], 3],
    ] as const) {
      expect(cache.find(counted(...ints))).toBe(value);
      expect(asked).toBe(times);
    }
  });

  it('keeps its own copy of the key', () => {
    const cache = new PlanCache<string>(10, () => undefined);
    const reused = key(7, 8);
    cache.add(reused, 'a');
    reused.data[0] = 9;
    expect(cache.find(reused)).toBeUndefined();
    expect(cache.find(key(7, 8))).toBe('a');
  });

  it('forgets what was not used for longest', () => {
    const dropped: number[] = [];
    const cache = new PlanCache<number>(16, (value) => dropped.push(value));
    for (let i = 0; i < 16; i++) cache.add(key(i), i);
    cache.find(key(0));
    for (let i = 16; i < 20; i++) cache.add(key(i), i);
    expect(dropped).toEqual([1, 2, 3, 4]);
    expect(cache.find(key(0))).toBe(0);
    expect(cache.size).toBe(16);
    cache.clear();
    expect(dropped).toHaveLength(20);
  });

  it('forgets while there is too much of what plans hold, but never the last one', () => {
    const dropped: number[] = [];
    const cache = new PlanCache<number>(100, (value) => dropped.push(value));
    for (let i = 0; i < 24; i++) cache.add(key(i), i);
    cache.trim(() => false);
    expect(cache.size).toBe(24);
    cache.trim(() => cache.size > 20);
    expect(dropped).toEqual([0, 1, 2, 3, 4]);
    cache.trim(() => true);
    expect(cache.size).toBe(1);
    expect(cache.find(key(23))).toBe(23);
  });
});

describe('textOf', () => {
  it('tells integers apart, in texts of several pieces too', () => {
    const ints = Array.from({ length: 10_000 }, (_, i) => (i * 2_654_435_761) | 0);
    const text = textOf(key(...ints));
    expect(text.length).toBe(20_000);
    for (const at of [0, 2047, 2048, 9999]) {
      expect(textOf(key(...ints.with(at, ints[at]! ^ 1)))).not.toBe(text);
      expect(textOf(key(...ints.with(at, ints[at]! ^ 0x10000)))).not.toBe(text);
    }
    expect(textOf(key(...ints))).toBe(text);
    expect(textOf(key())).toBe('');
  });

  it('takes the memory of its letters', () => {
    const ints = key(...Array.from({ length: 10_000 }, (_, i) => i * 65_537));
    collect();
    const before = process.memoryUsage().heapUsed;
    const texts = Array.from({ length: 100 }, () => textOf(ints));
    collect();
    const used = process.memoryUsage().heapUsed - before;
    expect(texts.length).toBe(100);
    // 40 kB each; as trees of strings of two letters they took 600.
    expect(used / 100).toBeLessThan(100_000);
  });
});
