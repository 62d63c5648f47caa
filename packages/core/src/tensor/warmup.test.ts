import { afterEach, describe, expect, it } from 'vitest';
import type { IEngine, Command } from '../engine/engine.ts';
import { setEngine } from '../engine/registry.ts';
import {
  isRehearsing,
  keep,
  memory,
  randn,
  ones,
  scope,
  seed,
  stats,
  type Tensor,
  tensor,
  warmup,
  zeros,
} from '../index.ts';
import { createReferenceEngine } from '@polygrad/testing';

/** The interpreter, with every batch of commands recorded. */
async function watched(): Promise<{ engine: IEngine; batches: (readonly Command[])[]; ready: number }> {
  const engine = createReferenceEngine();
  const seen = { engine, batches: [] as (readonly Command[])[], ready: 0 };
  const { submit } = engine;
  engine.submit = (commands) => {
    seen.batches.push(commands);
    submit(commands);
  };
  engine.ready = async () => {
    seen.ready++;
  };
  await setEngine(engine);
  return seen;
}

afterEach(() => {
  expect(isRehearsing()).toBe(false);
});

describe('warmup', () => {
  it('makes the plan of a step, donations included, and runs nothing', async () => {
    const seen = await watched();
    const { engine, batches } = seen;
    const w = keep(ones([8]));
    const m = keep(zeros([8]));
    const x = keep(tensor([1, 2, 3, 4, 5, 6, 7, 8], { dtype: 'float32' }));
    const step = (): Tensor =>
      scope(() => {
        const error = w.sub(x);
        m.assign(m.mul(0.9).add(error));
        w.assign(w.sub(m.mul(0.1)));
        return error.mul(error).sum();
      });
    await w.data();
    await m.data();
    const before = { submitted: batches.length, memory: memory(), stats: stats() };
    await warmup(step);
    expect(batches.length).toBe(before.submitted);
    expect(seen.ready).toBe(1);
    expect(memory().numTensors).toBe(before.memory.numTensors);
    expect(memory().numBuffers).toBe(before.memory.numBuffers);
    expect(await w.array()).toEqual([1, 1, 1, 1, 1, 1, 1, 1]);
    expect(await m.array()).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
    const { planMisses } = stats();
    const loss = step();
    expect(stats().planMisses).toBe(planMisses);
    expect(await loss.item()).toBe(140);
    expect((await w.data())[7]).toBeCloseTo(1.7);
    // As without a warmup.
    const again = step();
    expect(stats().planMisses).toBe(planMisses);
    expect(await again.item()).toBeCloseTo(140 * 0.81);
    engine.dispose();
  });

  it('leaves the generator, counters of optimizers and kept tensors right', async () => {
    const { engine } = await watched();
    seed(7);
    const expected = [...(await randn([3]).data())];
    seed(7);
    let kept: Tensor | undefined;
    let steps = 0;
    await warmup(() => {
      kept = keep(randn([3]).add(1));
      if (!isRehearsing()) steps++;
    });
    expect(steps).toBe(0);
    expect([...(await randn([3]).data())]).toEqual(expected);
    expect(Number((await kept!.data())[0]) - 1).toBeCloseTo(Number(expected[0]));
    engine.dispose();
  });

  it('is over after an error, with assignments taken back', async () => {
    const { engine } = await watched();
    const w = keep(ones([2]));
    await expect(
      warmup(() => {
        w.assign(w.add(1));
        throw new Error('in the step');
      }),
    ).rejects.toThrow('in the step');
    expect(await w.array()).toEqual([1, 1]);
    await expect(warmup(async () => {})).rejects.toThrow(/promise/);
    await expect(
      warmup(() => void warmup(() => {}).catch((e: Error) => expect(e.message).toMatch(/already/))),
    ).resolves.toBeUndefined();
    w.assign(w.add(1));
    expect(await w.array()).toEqual([2, 2]);
    engine.dispose();
  });
});
