/** What a compiled function does where something it relies on goes away: tensors, plans, memory, engines. */
import { createFaultyEngine, createReferenceEngine } from '@polygrad/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  compile,
  type Compiled,
  DisposedError,
  getEngine,
  hostEffect,
  idle,
  ones,
  scope,
  seed,
  setEngine,
  setLogger,
  stats,
  type Tensor,
  tensor,
} from '../index.ts';
import { poolOf } from '../engine/pool.ts';
import { batch, numbers } from './fixtures/programs.ts';

beforeEach(async () => {
  await setEngine(createReferenceEngine());
  setLogger(null);
  seed(0);
});

describe('what goes away', () => {
  it('tensors from outside: the error of the function', () => {
    const w = ones([2]);
    const step = compile((x: Tensor) => x.mul(w));
    for (let i = 0; i < 4; i++) step(ones([2]));
    w.dispose();
    expect(() => step(ones([2]))).toThrow(DisposedError);
    expect(() => step(ones([2]))).toThrow(/\[mul\] tensor used after it was disposed/);
    step.dispose();
  });

  it('plans, and the engine', async () => {
    const w = batch(1);
    const step = compile((x: Tensor) => w.assign(w.add(x)));
    let x = ones([4]);
    let expected = await numbers(w);
    const check = async (): Promise<void> => {
      expected = expected.map((n) => Math.fround(n + 1));
      expect(await numbers(step(x))).toEqual(expected);
    };
    for (let i = 0; i < 4; i++) await check();
    const { clearPlans } = await import('../index.ts');
    clearPlans();
    for (let i = 0; i < 4; i++) await check();
    const first = getEngine();
    await setEngine(createReferenceEngine());
    for (let i = 0; i < 6; i++) {
      await check();
      await idle();
      if (i === 1) x = tensor([1, 1, 1, 1]);
    }
    expect(stats().replays).toBeGreaterThan(0);
    await setEngine(first);
    for (let i = 0; i < 3; i++) await check();
    step.dispose();
    expect(stats(first).recordings).toBe(0);
  });

  it('memory and devices: nothing is half done', async () => {
    const run = async (compiled: boolean, member: 'alloc' | 'submit'): Promise<unknown> => {
      const engine = createFaultyEngine(createReferenceEngine());
      await setEngine(engine);
      const w = batch(1);
      let steps = 0;
      const f = (x: Tensor): Tensor => {
        hostEffect(
          () => void steps++,
          () => void steps--,
        );
        const y = x.exp().sum().mul(x);
        w.assign(w.add(y).mul(0.5));
        return w.mul(y).cumSum(0);
      };
      const step = compiled ? compile(f) : (x: Tensor) => scope(() => f(x));
      const found: unknown[] = [];
      for (let i = 0; i < 8; i++) {
        const x = batch(2);
        poolOf(engine).trim(0);
        if (i === 5) engine.arm({ member, at: 1, kind: 'memory', times: 1000 });
        try {
          found.push(await numbers(step(x)));
        } catch (error) {
          found.push((error as Error).message.slice(0, 60));
        }
        engine.arm(null);
        found.push(steps, await numbers(w));
      }
      if (compiled) {
        expect(stats().replays).toBeGreaterThan(1);
        (step as Compiled<[Tensor], unknown>).dispose();
      }
      return found;
    };
    for (const member of ['alloc', 'submit'] as const) {
      const plain = await run(false, member);
      expect(String(plain)).toMatch(/out of memory/);
      expect(await run(true, member)).toEqual(plain);
    }
  });

  it('functions that are forgotten', () => {
    const { recordings } = stats();
    compile((x: Tensor) => x.mul(2))(ones([2]));
    expect(stats().recordings).toBe(recordings + 1);
  });
});
