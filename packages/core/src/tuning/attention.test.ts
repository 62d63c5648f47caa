/** Tiles of attention that are measured: asked for by class, chosen by the clock, kept with the others; every one of them right. */
import { createNullEngine, createReferenceEngine } from '@polygrad/testing';
import { afterEach, describe, expect, it } from 'vitest';
import type { Command, IEngine } from '../engine/engine.ts';
import { setEngine } from '../engine/registry.ts';
import { flush, grads, scaledDotProductAttention, sum, type Tensor, tensor } from '../index.ts';
import { choicesOf } from './choices.ts';
import { clearPlans } from '../runtime/runtime.ts';
import { memoryStore } from './store.ts';
import { tune } from './tune.ts';

const limits = { simt: true, maxGroup: 256, sharedBytes: 48 * 1024, nativeOps: new Set(['MULADD'] as const) };

afterEach(async () => {
  await setEngine('cpu').catch(() => {});
});

/** Queries, keys and values of heads, deterministic. */
function operands(heads: number, rows: number, columns: number, width: number): [Tensor, Tensor, Tensor] {
  const filled = (count: number, seed: number): Tensor =>
    tensor(
      Float32Array.from({ length: heads * count * width }, (_, i) => Math.sin(i * 1.3 + seed)),
      { shape: [heads, count, width] },
    );
  return [filled(rows, 1), filled(columns, 2), filled(columns, 3)];
}

const gradientsOf = (...xs: [Tensor, Tensor, Tensor]): readonly Tensor[] =>
  grads((q: Tensor, k: Tensor, v: Tensor) => sum(scaledDotProductAttention(q, k, v, { form: 'kernel', causal: true })))(
    ...xs,
  );

/** An engine without a device, whose dispatches of groups of so many threads take one millisecond, and others three. */
function clocked(fast: number): { readonly engine: IEngine; now(): number; groups(): readonly number[] } {
  const base = createNullEngine(limits);
  let [clock, seen]: [number, number[]] = [0, []];
  const submit = (commands: readonly Command[]): void => {
    base.submit(commands);
    for (const command of commands) {
      if (command.kind !== 'dispatch') continue;
      const { group, name } = command.kernel.program;
      clock += group[0] === fast ? 1 : 3;
      if (name.startsWith('attention')) seen.push(group[0]);
    }
  };
  const groups = (): readonly number[] => {
    const now = seen;
    seen = [];
    return now;
  };
  return { engine: { ...base, submit }, now: () => clock, groups };
}

describe('tiles of attention', () => {
  it('are asked for when it runs, measured, and used from then on', async () => {
    const { engine, now, groups } = clocked(64);
    await setEngine(engine);
    const xs = operands(16, 256, 256, 64);
    const run = (): readonly number[] => {
      groups();
      gradientsOf(...xs);
      flush();
      return groups();
    };
    expect(run()).toEqual([128, 128, 128]);
    const store = memoryStore();
    const results = await tune(engine, { now, store, budget: 1000 });
    const own = results.filter(({ key }) => key.startsWith('attention'));
    expect(own.map(({ key }) => key)).toEqual([
      'attention forward float32 16x256x256 64x64 rows causal',
      'attention queries float32 16x256x256 64x64 rows causal',
      'attention keys float32 16x256x256 64x64 rows causal',
    ]);
    for (const { tile, measured } of own) {
      expect(tile).toMatch(/^rows:8x8:/);
      expect(measured.length).toBeGreaterThan(3);
      expect(measured.filter(({ standard }) => standard).length).toBe(1);
    }
    expect(run()).toEqual([64, 64, 64]);
    // Another engine of the same device takes them from the store, and measures nothing.
    const again = clocked(64);
    expect(await tune(again.engine, { now: again.now, store })).toEqual([]);
    expect(choicesOf(again.engine).find(own[0]!.key)).toBe(own[0]!.tile);
  });

  it('stay as guessed where nothing is clearly faster, and where a name is of none that fits', async () => {
    const { engine, now, groups } = clocked(7);
    await setEngine(engine);
    const run = (): readonly number[] => {
      groups();
      gradientsOf(...operands(16, 256, 256, 64));
      flush();
      return groups();
    };
    const before = run();
    const results = (await tune(engine, { now, budget: 1000 })).filter(({ key }) => key.startsWith('attention'));
    expect(results.length).toBe(3);
    for (const { tile, measured } of results) expect(measured.find((m) => m.standard)?.tile).toBe(tile);
    expect(run()).toEqual(before);
    for (const { key } of results) choicesOf(engine).set(key, 'rows:64x64:9x9');
    clearPlans(engine);
    expect(run()).toEqual(before);
  });

  it('all give the same, within what the contract allows', async () => {
    const xs = operands(2, 37, 37, 12);
    const exact = createReferenceEngine();
    await setEngine(exact);
    const read = async (): Promise<number[][]> =>
      Promise.all(gradientsOf(...operands(2, 37, 37, 12)).map(async (g) => [...(await g.data())].map(Number)));
    const expected = await read();
    for (const x of xs) x.dispose();
    const names = new Set<string>();
    const first = createReferenceEngine(limits);
    await setEngine(first);
    await read();
    for (const [key, seen] of choicesOf(first).wanted())
      if (key.startsWith('attention') && 'ways' in seen) for (const [name] of seen.ways) names.add(name);
    expect(names.size).toBeGreaterThan(4);
    for (const name of names) {
      const engine = createReferenceEngine(limits);
      await setEngine(engine);
      for (const key of choicesOf(first).wanted().keys())
        if (key.startsWith('attention')) choicesOf(engine).set(key, name);
      const found = await read();
      for (const [i, list] of found.entries())
        for (const [j, x] of list.entries())
          expect(Math.abs(x - expected[i]![j]!), `${name}, element ${j} of gradient ${i}`).toBeLessThan(2e-5);
    }
  });
});
