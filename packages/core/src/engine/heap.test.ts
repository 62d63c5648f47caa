/** The allocator against a simple list of the blocks it handed out. */
import { OutOfMemoryError } from '@polygrad/core/engine';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Block, Heap } from './heap.ts';

const pages = (n: number): number => n * 65536;

describe('heap', () => {
  it('hands out aligned blocks that never overlap, and merges everything back', () => {
    const action = fc.oneof(
      fc.record({ alloc: fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 200_000 })) }),
      fc.record({ free: fc.nat(1000) }),
    );
    fc.assert(
      fc.property(fc.array(action, { maxLength: 200 }), (actions) => {
        const memory = new WebAssembly.Memory({ initial: 2 });
        const heap = new Heap(memory, 100, pages(1000));
        const live: Block[] = [];
        for (const a of actions) {
          if ('alloc' in a) {
            const block = heap.alloc(a.alloc);
            expect(block.address % 64).toBe(0);
            expect(block.address).toBeGreaterThanOrEqual(100);
            expect(block.size).toBeGreaterThanOrEqual(a.alloc);
            expect(block.address + block.size).toBeLessThanOrEqual(memory.buffer.byteLength);
            for (const other of live) {
              expect(block.address + block.size <= other.address || other.address + other.size <= block.address).toBe(
                true,
              );
            }
            live.push(block);
          } else if (live.length > 0) heap.free(live.splice(a.free % live.length, 1)[0]!);
          expect(heap.count).toBe(live.length);
          expect(heap.live).toBe(live.reduce((sum, b) => sum + b.size, 0));
        }
        for (const b of live) heap.free(b);
        expect(heap.live).toBe(0);
        // One block again: all of the memory can be had at once, without growing.
        const before = memory.buffer.byteLength;
        heap.alloc(before - 128);
        expect(memory.buffer.byteLength).toBe(before);
      }),
      { numRuns: 200, seed: 1 },
    );
  });

  it('reuses the same block for the same size', () => {
    const heap = new Heap(new WebAssembly.Memory({ initial: 1 }), 0, pages(100));
    const a = heap.alloc(100_000);
    const b = heap.alloc(100_000);
    heap.free(a);
    expect(heap.alloc(100_000).address).toBe(a.address);
    heap.free(b);
    expect(() => heap.free(b)).toThrow(/free already/);
  });

  it('starts large blocks that follow each other at different places of a page', () => {
    for (const bytes of [257 * 257 * 4, 512 * 512 * 4, pages(3)]) {
      const heap = new Heap(new WebAssembly.Memory({ initial: 1 }), 0, pages(1000));
      const starts = Array.from({ length: 8 }, () => heap.alloc(bytes).address % 1024);
      expect(new Set(starts.map((at) => Math.floor(at / 128))).size).toBe(8);
    }
  });

  it('says what was asked and what is live when memory ends', () => {
    const heap = new Heap(new WebAssembly.Memory({ initial: 1, maximum: 20 }), 0, pages(20));
    heap.alloc(pages(10));
    expect(() => heap.alloc(pages(11))).toThrow(OutOfMemoryError);
    try {
      heap.alloc(pages(11));
    } catch (error) {
      expect(error).toMatchObject({ requested: pages(11), live: heap.live, limit: pages(20) });
    }
    expect(heap.live - pages(10)).toBeLessThan(1024);
    heap.alloc(pages(20) - heap.live);
    expect(() => heap.alloc(1)).toThrow(OutOfMemoryError);
  });
});
