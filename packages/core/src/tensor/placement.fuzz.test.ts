/** Random programs over several dtypes and engines, flushed, awaited and disposed at random, against one engine that holds everything. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { IEngine } from '../engine/engine.ts';
import { type DType, flush, idle, memory, registerBackend, scope, setEngine, type Tensor, tensor } from '../index.ts';
import { createReferenceEngine } from '@polygrad/testing';

const few: readonly DType[] = ['float32', 'int32', 'uint32', 'bool'];
const key = Symbol.for('polygrad.registry');
const globals = globalThis as { [key]?: unknown };
let before: unknown;
beforeEach(() => {
  before = globals[key];
});
afterEach(() => {
  globals[key] = before;
});

/** mulberry32. */
function random(seed: number): (n: number) => number {
  let a = seed;
  return (n) => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % n;
  };
}

const dtypes: readonly DType[] = ['float32', 'float64', 'int32', 'int64', 'float32'];

/** Whole numbers stay small, so that every dtype holds them and the order of sums does not matter. */
function small(t: Tensor): Tensor {
  return t.remainder(17);
}

/** Runs a program and returns all values it reads. `switchTo`: engines to change to now and then. */
async function run(seed: number, switchTo: readonly IEngine[]): Promise<string[]> {
  const next = random(seed);
  const live: Tensor[] = [];
  const pick = (): Tensor => live[next(live.length)]!;
  const seen: string[] = [];
  for (let i = 0; i < 3; i++) live.push(tensor([1 + i, 2, 3, 4, 5, 6 + i], { shape: [2, 3], dtype: dtypes[i]! }));
  for (let at = 0; at < 60; at++) {
    const dtype = dtypes[next(dtypes.length)]!;
    const [a, b] = [pick(), pick()];
    const choice = next(14);
    if (choice < 9) {
      const made = scope(() => {
        const [x, y] = [a.cast(dtype), b.cast(dtype)];
        if (choice < 3) return small(x.add(y));
        if (choice < 5) return small(x.mul(y));
        if (choice < 6) return small(x.sum({ axis: 0, keepDims: true }).add(y));
        if (choice < 7) return small(x.transpose().matmul(y).narrow(0, 1, 2));
        if (choice < 8) return x.flip([1]).narrow(1, 0, 3);
        return x.greater(y).cast(dtype);
      });
      live.push(made);
    } else if (choice === 9) live.push(tensor([next(9), 1, 2, 3, 4, 5], { shape: [2, 3], dtype }));
    else if (choice === 10) flush();
    else if (choice === 11) await Promise.resolve();
    else if (choice === 12) {
      const wide = scope(() => a.cast('float64').mul(1));
      seen.push(`${await wide.array()}`);
      wide.dispose();
    } else if (switchTo.length > 0) await setEngine(switchTo[next(switchTo.length)]!);
    else next(1);
    while (live.length > 8) live.splice(next(live.length), 1)[0]!.dispose();
  }
  const values = await Promise.all(live.map((t) => t.array()));
  seen.push(...values.map((v) => `${v}`));
  for (const t of live) t.dispose();
  return seen;
}

describe('programs over several engines', () => {
  // The first ones found something once.
  it.each([2, 12, 28, 30, 102, 1, 3, 4, 5, 6, 7, 8])('agree with one engine: seed %i', async (seed) => {
    globals[key] = undefined;
    await setEngine(createReferenceEngine());
    // As many engines, so that both runs draw the same numbers.
    const plain = createReferenceEngine();
    const expected = await run(seed, [plain, plain]);

    globals[key] = undefined;
    const cpu = createReferenceEngine({ name: 'cpu' });
    registerBackend({
      name: 'cpu',
      probe: async () => ({ score: 1, reason: 'for tests', device: 'none' }),
      create: () => cpu,
    });
    const later = createReferenceEngine({ name: 'later', dtypes: few, synchronous: false });
    const other = createReferenceEngine({
      name: 'other',
      dtypes: ['float32', 'float64', 'bool'],
      synchronous: seed % 2 === 0,
    });
    await setEngine(later);
    expect(await run(seed, [later, other])).toEqual(expected);
    flush();
    await idle();
    expect([later, other, cpu].map((engine) => memory(engine).numBuffers)).toEqual([0, 0, 0]);
  });
});
