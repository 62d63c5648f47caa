/** Flushes and reads that fail: what else is pending is computed, what failed is told once. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { OutOfMemoryError } from '../engine/errors.ts';
import { graph } from '../graph/state.ts';
import { flush, memory, pad, rand, scope, setEngine, sin, tensor, tile } from '../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { limited } from './fixtures/limited.ts';

let engine: ReturnType<typeof limited>;

beforeEach(async () => {
  engine = limited(20_000);
  await setEngine(engine);
});

afterEach(async () => {
  engine.limit = 1e9;
  for (const handle of [...graph.pending]) handle.dispose();
  await setEngine(createReferenceEngine());
});

const add = async (): Promise<unknown> => scope(() => tensor([1]).add(1)).array();

describe('a flush that fails', () => {
  it('leaves no tensor behind where too much is pending and the operation throws', async () => {
    const x = tensor([1, 2]);
    const { numTensors } = memory();
    // More than 512 MiB: it is computed as soon as it is recorded.
    expect(() => tile(x, [2 ** 28])).toThrow(OutOfMemoryError);
    // Made of several operations, with flushes held back until the last.
    expect(() => pad(x, [[0, 2 ** 28]])).toThrow(OutOfMemoryError);
    expect(memory().numTensors).toBe(numTensors);
    expect(await add()).toEqual([2]);
    x.dispose();
  });

  it('fails once: later work is done, and whoever reads is told again', async () => {
    const big = rand([6_000]);
    expect(() => flush()).toThrow(OutOfMemoryError);
    expect(await add()).toEqual([2]);
    flush();
    await expect(big.data()).rejects.toThrow(OutOfMemoryError);
    expect(await add()).toEqual([2]);
    engine.limit = 1e9;
    expect((await big.data()).length).toBe(6_000);
  });

  it('computes all that does not share work with what failed, on both sides of it', async () => {
    const before = tensor([1, 2]).mul(3);
    const big = rand([6_000]);
    const sum = big.sum();
    const after = tensor([1, 2]).mul(5);
    expect(() => flush()).toThrow(OutOfMemoryError);
    expect(graph.pending).toEqual([]);
    const { bytes } = memory();
    expect(await before.array()).toEqual([3, 6]);
    expect(await after.array()).toEqual([5, 10]);
    expect(memory().bytes).toBe(bytes);
    // What needs no room of its own is there for those who ask.
    expect(Number.isFinite(await sum.item())).toBe(true);
  });

  it('is of a read: what was read and what belongs to it does not come back', async () => {
    await expect(rand([6_000]).add(1).data()).rejects.toThrow(OutOfMemoryError);
    expect(await add()).toEqual([2]);
    const other = tensor([4]).mul(2);
    await expect(rand([6_000]).data()).rejects.toThrow(OutOfMemoryError);
    flush();
    expect(await other.array()).toEqual([8]);
  });

  it('is at the call that records too much; wrong arguments are told as such after it', async () => {
    expect(() => rand([2 ** 28])).toThrow(OutOfMemoryError);
    expect(() => tensor([1]).add('x' as unknown as number)).toThrow(/add/);
    expect(await add()).toEqual([2]);
  });

  it('at the end of a scope leaves nothing of it behind, but what was there before', async () => {
    const source = tensor([1]);
    const outside = source.add(1);
    const { numTensors, numBuffers } = memory();
    const results: unknown[] = [];
    expect(() =>
      scope(() => {
        const x = tensor(new Float32Array(100));
        const result = [
          outside,
          x,
          x
            .expand([60, 100])
            .add(rand([60, 100]))
            .contiguous(),
        ];
        results.push(result);
        return result;
      }),
    ).toThrow(OutOfMemoryError);
    expect(memory().numTensors).toBe(numTensors);
    expect(await outside.array()).toEqual([2]);
    expect(memory().numBuffers).toBe(numBuffers + 1);
    // Held until here: what it holds would be given back whenever it is collected.
    source.dispose();
  });

  it('for a kernel that cannot be compiled leaves others alone', async () => {
    const a = tensor([1, 2]);
    flush();
    engine.refuse = 'sin';
    const wrong = sin(a);
    const right = a.add(1);
    expect(() => flush()).toThrow('no sin');
    expect(await right.array()).toEqual([2, 3]);
    expect(await add()).toEqual([2]);
    await expect(wrong.data()).rejects.toThrow('no sin');
    expect(await add()).toEqual([2]);
    engine.refuse = '';
    expect((await wrong.data())[0]).toBeCloseTo(Math.sin(1));
  });

  it('for a value of a disposed engine leaves others alone', async () => {
    const old = createReferenceEngine({ name: 'old' });
    await setEngine(old);
    const there = tensor([3]).mul(2);
    flush();
    old.dispose();
    await setEngine(engine);
    const next = there.add(1);
    const other = tensor([1]).mul(7);
    expect(() => flush()).toThrow(/disposed/);
    expect(await other.array()).toEqual([7]);
    expect(await add()).toEqual([2]);
    await expect(next.data()).rejects.toThrow(/disposed/);
    expect(await add()).toEqual([2]);
  });
});
