import { describe, expect, it } from 'vitest';
import { hints, BufferPool, classBytes, sizeClass } from './pool.ts';
import type { EngineBuffer, IEngine } from './engine.ts';

function fakeEngine(limit = Number.POSITIVE_INFINITY): { engine: IEngine; held: Set<EngineBuffer> } {
  const held = new Set<EngineBuffer>();
  let total = 0;
  const engine = {
    caps: {},
    alloc(bytes: number): EngineBuffer {
      if (total + bytes > limit) throw new Error('out of memory');
      const buffer = { bytes };
      total += bytes;
      held.add(buffer);
      return buffer;
    },
    free(buffer: EngineBuffer): void {
      if (!held.delete(buffer)) throw new Error('freed twice');
      total -= buffer.bytes;
    },
  };
  return { engine: engine as unknown as IEngine, held };
}

describe('size classes', () => {
  it('hold the request and waste at most an eighth', () => {
    for (let bytes = 0; bytes < 5000; bytes++) check(bytes);
    for (let k = 13; k < 40; k++) for (const d of [-1, 0, 1, 2 ** (k - 4)]) check(2 ** k + d);
    function check(bytes: number): void {
      const got = classBytes(sizeClass(bytes));
      expect(got).toBeGreaterThanOrEqual(bytes);
      if (bytes > 64) expect(got - bytes).toBeLessThanOrEqual(bytes / 8);
      expect(sizeClass(got)).toBe(sizeClass(bytes));
    }
  });
});

describe('BufferPool', () => {
  it('counts and reuses', () => {
    const { engine, held } = fakeEngine();
    const pool = new BufferPool(engine);
    const a = pool.alloc(1000);
    a.retain();
    a.release();
    expect(pool.memory()).toEqual({ numBuffers: 1, bytes: 1000, peakBytes: 1000, pooledBytes: 0 });
    a.release();
    expect(pool.memory()).toEqual({ numBuffers: 0, bytes: 0, peakBytes: 1000, pooledBytes: 1024 });
    const b = pool.alloc(990);
    expect(b.memory).toBe(a.memory);
    expect(held.size).toBe(1);
    expect(() => a.release()).toThrow(/twice/);
    expect(() => a.retain()).toThrow(/after/);
  });

  it('gives large kept blocks back before it asks an engine that joins them for another size', () => {
    const mib = 1 << 20;
    const bytesHeld = (mergesFreed: boolean): number => {
      const { engine, held } = fakeEngine();
      Object.assign(engine, { caps: { mergesFreed } });
      const pool = new BufferPool(engine);
      const small = pool.alloc(1000);
      small.release();
      for (let size = 4; size <= 32; size += 4) pool.alloc(size * mib).release();
      // What a step has side by side stays, and so do small blocks.
      for (let step = 0; step < 3; step++) {
        const both = [pool.alloc(8 * mib), pool.alloc(24 * mib)];
        for (const b of both) b.release();
        if (step > 0) expect(both.map((b) => held.has(b.memory))).toEqual([true, true]);
      }
      expect(pool.alloc(1000).memory).toBe(small.memory);
      const bytes = [...held].reduce((sum, b) => sum + b.bytes, 0);
      expect(pool.memory().pooledBytes).toBe(bytes - classBytes(sizeClass(1000)));
      return bytes;
    };
    expect(bytesHeld(true)).toBeLessThanOrEqual(1.125 * 32 * mib + 1024);
    expect(bytesHeld(false)).toBe((4 + 8 + 12 + 16 + 20 + 24 + 28 + 32) * mib + 1024);
  });

  it('keeps only up to the limit and trims', () => {
    const { engine, held } = fakeEngine();
    const pool = new BufferPool(engine);
    pool.pooledLimit = 4096;
    const many = Array.from({ length: 6 }, () => pool.alloc(1024));
    for (const b of many) b.release();
    expect(held.size).toBe(4);
    pool.trim(0);
    expect(held.size).toBe(0);
    expect(pool.memory().pooledBytes).toBe(0);
  });

  it('gives back what many flushes had no use for', () => {
    const { engine } = fakeEngine();
    const pool = new BufferPool(engine);
    const size = 1 << 24;
    const burst = Array.from({ length: 64 }, () => pool.alloc(size));
    for (const b of burst) b.release();
    expect(pool.memory().pooledBytes).toBe(64 * size);
    for (let i = 0; i < 256; i++) {
      const buffers = [pool.alloc(size), pool.alloc(size)];
      for (const b of buffers) b.release();
      pool.age();
    }
    expect(pool.memory().pooledBytes).toBeGreaterThanOrEqual(2 * size);
    expect(pool.memory().pooledBytes).toBeLessThanOrEqual(7 * size);
  });

  it('tells the collector when ever more is held', () => {
    const { engine } = fakeEngine();
    const pool = new BufferPool(engine);
    const before = hints;
    const held = Array.from({ length: 40 }, () => {
      const buffer = pool.alloc(1 << 24);
      pool.age();
      return buffer;
    });
    expect(hints - before).toBe(4);
    for (const buffer of held) buffer.release();
    for (let i = 0; i < 100; i++) {
      const buffer = pool.alloc(1 << 24);
      pool.age();
      buffer.release();
    }
    expect(hints - before).toBe(4);
  });

  it('gives kept memory back and tries again when the engine has no more', () => {
    const { engine } = fakeEngine(8192);
    const pool = new BufferPool(engine);
    const a = pool.alloc(4096);
    const b = pool.alloc(2048);
    a.release();
    expect(pool.alloc(6144).bytes).toBe(6144);
    expect(() => pool.alloc(6144)).toThrow(/out of memory/);
    b.release();
  });
});
