/** Runtimes that tests make: what one of them records, plans and runs, another does not see. */
import { afterEach, describe, expect, it } from 'vitest';
import {
  add,
  flush,
  getEngine,
  idle,
  memory,
  noGrad,
  onLost,
  protect,
  rand,
  scope,
  seed,
  setEager,
  setEngine,
  setRecovery,
  stats,
  GradientTape,
  tensor,
} from '../index.ts';
import { verifyGraph } from '../graph/print.ts';
import { createFaultyEngine, createReferenceEngine } from '@polygrad/testing';
import { createRuntime, type Runtime, useRuntime } from './runtime.ts';

const first = useRuntime(createRuntime());
afterEach(() => void useRuntime(first));

/** Runs a function in a runtime; afterwards the one before is in use again. */
function within<T>(runtime: Runtime, body: () => T): T {
  const before = useRuntime(runtime);
  try {
    return body();
  } finally {
    useRuntime(before);
  }
}

async function fresh(): Promise<Runtime> {
  const runtime = createRuntime();
  useRuntime(runtime);
  await setEngine(createReferenceEngine());
  return runtime;
}

describe('two runtimes', () => {
  it('have their own pending nodes', async () => {
    const b = await fresh();
    const a = await fresh();
    const x = tensor([1, 2]);
    const y = x.add(1);
    expect(a.graph.pending.length).toBe(2);
    within(b, () => {
      expect(b.graph.pending).toEqual([]);
      expect(memory().numTensors).toBe(0);
      const z = tensor([3]).mul(2);
      flush();
      expect(z.node.storage).not.toBeNull();
      expect(b.graph.pending).toEqual([]);
    });
    expect(y.node.storage).toBeNull();
    expect(a.graph.pending.length).toBe(2);
    expect(memory().numTensors).toBe(2);
    verifyGraph([y]);
    expect(await y.array()).toEqual([2, 3]);
  });

  it('have their own scopes, names of operations and tapes', async () => {
    const b = await fresh();
    await fresh();
    const w = tensor([2], { requiresGrad: true });
    let kept = tensor([0]);
    const tape = new GradientTape();
    scope(() => {
      const inner = w.mul(3);
      noGrad(() => {
        within(b, () => {
          // No scope and no tape is open here, and gradients are recorded.
          kept = tensor([1], { requiresGrad: true }).mul(2);
          expect(kept.requiresGrad).toBe(true);
          expect([b.graph.depth, b.graph.taken]).toEqual([0, 0]);
          expect(() => add(tensor([1, 2]), tensor([1, 2, 3]))).toThrow('[add]');
        });
        expect(w.mul(3).requiresGrad).toBe(false);
      });
      expect(inner.disposed).toBe(false);
    });
    expect(kept.disposed).toBe(false);
    expect(b.graph.pending.length).toBeGreaterThan(0);
    tape.dispose();
    within(b, () => flush());
    expect(within(b, () => kept.dataSync())).toEqual(Float32Array.of(2));
  });

  it('have their own engine, plans and counts, also where the engine is the same', async () => {
    const b = await fresh();
    const a = await fresh();
    const engine = getEngine();
    within(b, () => expect(getEngine()).not.toBe(engine));
    const run = (): void => {
      const y = tensor([1, 2]).add(1);
      flush();
      y.dispose();
    };
    run();
    run();
    expect(stats()).toMatchObject({ planHits: 1, planMisses: 1, plans: 1 });
    useRuntime(b);
    await setEngine(engine);
    expect(stats()).toMatchObject({ flushes: 0, planHits: 0, planMisses: 0, plans: 0 });
    run();
    expect(stats()).toMatchObject({ planHits: 0, planMisses: 1, plans: 1 });
    useRuntime(a);
    run();
    expect(stats()).toMatchObject({ planHits: 2, planMisses: 1, plans: 1 });
  });

  it('have their own settings and their own generator', async () => {
    const b = await fresh();
    await fresh();
    seed(1);
    const one = rand([2]).dataSync();
    seed(1);
    setEager(true);
    setRecovery({ fallback: 'error' });
    within(b, () => {
      expect(setRecovery().fallback).toBe('cpu');
      const y = rand([2]).add(1);
      expect(y.node.storage).toBeNull();
      flush();
    });
    expect(setRecovery().fallback).toBe('error');
    expect(rand([2]).dataSync()).toEqual(one);
  });

  it('hear of the losses of their own engines', async () => {
    const b = await fresh();
    const lost: string[] = [];
    onLost(() => lost.push('b'));
    const a = createRuntime();
    useRuntime(a);
    const engine = createFaultyEngine(createReferenceEngine());
    await setEngine(engine);
    onLost(() => lost.push('a'));
    const x = tensor([1]);
    protect([x]);
    flush();
    useRuntime(b);
    engine.lose();
    await engine.lost;
    await Promise.resolve();
    expect(lost).toEqual(['a']);
    expect([a.engines.losses, b.engines.losses]).toEqual([1, 0]);
  });

  it('do not take turns while something is under way', async () => {
    await fresh();
    const a = createRuntime();
    useRuntime(a);
    let answer = (): void => {};
    const engine = createReferenceEngine({ synchronous: false });
    const unsure = new Promise<void>((resolve) => {
      answer = resolve;
    });
    let asked = true;
    await setEngine({ ...engine, confirming: () => (asked ? unsure : null) });
    const y = tensor([1]).add(1);
    flush();
    expect(() => useRuntime(first)).toThrow('not finished; await idle()');
    asked = false;
    answer();
    await idle();
    expect(await y.array()).toEqual([2]);
  });
});
