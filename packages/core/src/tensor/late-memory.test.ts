/** Devices that say late that they have no memory: flushes wait for their word, and what fails has changed nothing. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { OutOfMemoryError } from '../engine/errors.ts';
import { graph, usualLimits } from '../graph/state.ts';
import {
  flush,
  getEngine,
  idle,
  memory,
  onRollback,
  ones,
  profile,
  rand,
  scope,
  setEngine,
  setPendingLimits,
  stats,
  type Tensor,
  tensor,
  zeros,
} from '../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { type Late, lateEngine } from './fixtures/late-engine.ts';

let engine: Late;

beforeEach(async () => {
  engine = lateEngine(40_000);
  await setEngine(engine);
});

afterEach(async () => {
  engine.limit = 1e9;
  for (const handle of [...graph.pending]) handle.dispose();
  await idle().catch(() => {});
  await setEngine(createReferenceEngine());
});

const n = 1000;

describe('a flush that needs new memory', () => {
  it('waits for the device, in order, and is one submission', async () => {
    const w = zeros([n]);
    const x = tensor(new Float32Array(n).fill(2));
    await idle();
    const { submits } = engine;
    for (let i = 0; i < 5; i++) scope(() => w.assign(w.add(x)));
    expect(engine.submits).toBe(submits);
    await idle();
    expect(engine.submits).toBe(submits + 5);
    expect((await w.data())[n - 1]).toBe(10);
    // The same plans as where memory is there: nothing is planned anew.
    const { planMisses } = stats();
    scope(() => w.assign(w.add(x)));
    await idle();
    expect(stats().planMisses).toBe(planMisses);
  });

  it('is waited for by readers', async () => {
    const w = rand([n]).add(1);
    flush();
    const y = w.mul(0).add(3);
    expect((await y.data())[7]).toBe(3);
    expect(engine.submits).toBeGreaterThan(0);
  });

  it('is done without the word of the device where a program never waits for it', async () => {
    const w = zeros([n]);
    for (let i = 0; i < 40; i++) scope(() => w.assign(w.add(1)));
    expect(engine.submits).toBeGreaterThan(20);
    expect((await w.data())[0]).toBe(40);
  });

  it('is in a profile', async () => {
    const { kernels } = await profile(() => scope(() => rand([n]).add(1)));
    expect(kernels.length).toBeGreaterThan(0);
  });
});

describe('memory that is not there, as the device says late', () => {
  const big = (): Tensor => rand([20, n]);

  it('leaves assigned tensors as they were, and says so at the next flush', async () => {
    const w = ones([n]);
    await w.data();
    let steps = 0;
    scope(() => {
      const x = big();
      w.assign(w.add(x.sum()));
      steps++;
      onRollback(() => steps--);
      return x;
    });
    expect(steps).toBe(1);
    await expect(idle()).rejects.toThrow(/assigned since the last flush have the values they had before/);
    expect(steps).toBe(0);
    expect((await w.data())[5]).toBe(1);
    flush();
  });

  it('takes back the steps after it too, which were computed from it', async () => {
    const w = ones([n]);
    const other = zeros([2]);
    await w.data();
    await other.data();
    const undone: number[] = [];
    const kept = scope(() => {
      const x = big();
      w.assign(w.add(x.sum()));
      onRollback(() => undone.push(1));
      return x;
    });
    scope(() => {
      w.assign(w.mul(2));
      other.assign(other.add(1));
      onRollback(() => undone.push(2));
    });
    scope(() => {
      w.assign(w.mul(3));
      onRollback(() => undone.push(3));
    });
    await expect(kept.data()).rejects.toThrow(OutOfMemoryError);
    expect(undone).toEqual([3, 2, 1]);
    expect((await w.data())[5]).toBe(1);
    expect(await other.array()).toEqual([0, 0]);
    // And a step that needs less is done.
    scope(() => w.assign(w.add(1)));
    expect((await w.data())[5]).toBe(2);
    kept.dispose();
  });

  it('keeps what was computed before it', async () => {
    const w = ones([n]);
    await w.data();
    scope(() => w.assign(w.add(1)));
    const kept = scope(() => {
      const x = big();
      w.assign(w.add(x.sum()));
      return x;
    });
    scope(() => w.assign(w.mul(3)));
    await expect(idle()).rejects.toThrow(OutOfMemoryError);
    expect((await w.data())[5]).toBe(2);
    kept.dispose();
  });

  it('is found in what was kept for reuse', async () => {
    const kept = rand([6, n]);
    await kept.data();
    kept.dispose();
    const { bytes } = memory();
    // 24,000 bytes are kept, 28,000 are asked for.
    const next = rand([7, n]);
    expect((await next.data()).length).toBe(7 * n);
    next.dispose();
    expect(memory().bytes).toBe(bytes);
  });

  it('of data of the program fails what is computed from it, not what is assigned', async () => {
    const w = ones([n]);
    await w.data();
    const x = tensor(new Float32Array(11 * n));
    scope(() => w.assign(w.add(x.sum())));
    await expect(idle()).rejects.toThrow(OutOfMemoryError);
    expect((await w.data())[5]).toBe(1);
    x.dispose();
  });

  it('leaves other work of the same flush alone', async () => {
    const right = tensor([1, 2]).add(1);
    const wrong = big();
    flush();
    await expect(idle()).rejects.toThrow(OutOfMemoryError);
    expect(await right.array()).toEqual([2, 3]);
    await expect(wrong.data()).rejects.toThrow(OutOfMemoryError);
    engine.limit = 1e9;
    expect((await wrong.data()).length).toBe(20 * n);
    expect(getEngine()).toBe(engine);
  });

  it('is no matter for tensors that were disposed or named anew meanwhile', async () => {
    const [w, v] = [ones([n]), ones([2])];
    await w.data();
    await v.data();
    const kept = scope(() => {
      const x = big();
      w.assign(w.add(x.sum()));
      v.assign(v.add(x.sum()));
      return x;
    });
    w.dispose();
    v.assign(tensor([7, 8]));
    await expect(idle()).rejects.toThrow(OutOfMemoryError);
    expect(await v.array()).toEqual([7, 8]);
    kept.dispose();
    v.dispose();
    setPendingLimits(usualLimits);
  });
});
