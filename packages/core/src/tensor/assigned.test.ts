/** Tensors assigned in a flush that fails keep the values they had, all of one step. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { OutOfMemoryError } from '../engine/errors.ts';
import { graph } from '../graph/state.ts';
import {
  flush,
  full,
  getEngine,
  memory,
  ones,
  onRollback,
  rand,
  scope,
  setEngine,
  type Tensor,
  tensor,
} from '../index.ts';
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

describe('assigned tensors', () => {
  const start = async (): Promise<{ w: Tensor; v: Tensor }> => {
    const found = { w: tensor([1, 2]), v: tensor([0, 0]) };
    flush();
    return found;
  };
  /** A step with a batch of that size: an intermediate that must be stored, as two kernels read it. */
  const step = (w: Tensor, v: Tensor, batch: number): void => {
    const x = full([batch, 1], 1)
      .add(rand([batch, 2]).mul(0))
      .contiguous();
    const g = x.mul(w).sum(0).add(x.sum()).mul(0).add(1);
    v.assign(v.mul(0.5).add(g));
    w.assign(w.sub(v));
    x.dispose();
    g.dispose();
  };

  it.each([true, false])('keep the values of the last good step, in a scope: %s', async (scoped) => {
    const { w, v } = await start();
    const seen: string[] = [];
    for (const batch of [4, 4_000, 4, 4_000, 4_000, 4]) {
      try {
        if (scoped) scope(() => step(w, v, batch));
        else {
          step(w, v, batch);
          flush();
        }
      } catch (error) {
        expect(error).toBeInstanceOf(OutOfMemoryError);
        expect((error as Error).message).toMatch(/assigned since the last flush have the values they had before$/);
        seen.push('full');
      }
      seen.push(`${await w.array()} ${await v.array()}`);
    }
    expect(seen).toEqual([
      '0,1 1,1',
      'full',
      '0,1 1,1',
      '-1.5,-0.5 1.5,1.5',
      'full',
      '-1.5,-0.5 1.5,1.5',
      'full',
      '-1.5,-0.5 1.5,1.5',
      '-3.25,-2.25 1.75,1.75',
    ]);
  });

  it('go back when they are read and cannot be computed, all of one step', async () => {
    const { w, v } = await start();
    step(w, v, 4_000);
    await expect(w.array()).rejects.toThrow(/values they had before/);
    expect([await w.array(), await v.array()]).toEqual([
      [1, 2],
      [0, 0],
    ]);
    step(w, v, 4);
    flush();
    expect(await w.array()).toEqual([0, 1]);
  });

  it('stay where only a reader of them fails', async () => {
    const { w } = await start();
    w.assign(w.add(1));
    const wide = w.expand([6_000, 2]).add(rand([6_000, 2]));
    await expect(wide.data()).rejects.toThrow(/out of memory/);
    expect(await w.array()).toEqual([2, 3]);
  });

  it('go back where nobody reads the old value, which is not overwritten', async () => {
    const { w } = await start();
    w.assign(
      rand([6_000, 2])
        .sum(0)
        .add(rand([6_000, 2]).contiguous().sum(0)),
    );
    const total = tensor([1, 1]).add(2);
    expect(() => flush()).toThrow(OutOfMemoryError);
    expect([await w.array(), await total.array()]).toEqual([
      [1, 2],
      [3, 3],
    ]);
  });

  it('go back to the first value of several since the last flush, with what is counted beside them', async () => {
    const { w } = await start();
    let steps = 0;
    const once = (): void => {
      w.assign(w.mul(2));
      steps++;
      onRollback(() => steps--);
    };
    scope(once);
    expect(() =>
      scope(() => {
        once();
        once();
        w.assign(w.add(rand([6_000, 2]).contiguous().sum(0)));
      }),
    ).toThrow(OutOfMemoryError);
    expect([steps, await w.array()]).toEqual([1, [2, 4]]);
    scope(once);
    expect([steps, await w.array()]).toEqual([2, [4, 8]]);
  });

  it('are updated in place as before, and hold nothing once they are disposed', async () => {
    const { w, v } = await start();
    const { bytes } = memory();
    for (let i = 0; i < 3; i++) scope(() => w.assign(w.add(v)));
    expect(memory().bytes).toBe(bytes);
    const next = w.mul(2);
    w.assign(next);
    for (const t of [next, w, v]) t.dispose();
    expect(memory(getEngine()).bytes).toBe(0);
  });

  it('stay leaves with a gradient where they became so in the same flush', async () => {
    const w = full([2], 3);
    w.assign(w.contiguous());
    w.requiresGrad = true;
    w.mul(rand([6_000, 2]))
      .contiguous()
      .sum(0);
    expect(() => flush()).toThrow(OutOfMemoryError);
    expect([w.requiresGrad, await w.array()]).toEqual([true, [3, 3]]);
    w.mul(w).sum().backward();
    expect(await w.grad?.array()).toEqual([6, 6]);
  });

  it('given data are not taken back by a later failure', async () => {
    const { w, v } = await start();
    w.assign(w.add(1));
    w.assign(tensor([7, 8]));
    v.assign(
      v.add(
        ones([6_000, 2])
          .add(rand([6_000, 2]))
          .contiguous()
          .sum(0),
      ),
    );
    expect(() => flush()).toThrow(OutOfMemoryError);
    expect([await w.array(), await v.array()]).toEqual([
      [7, 8],
      [0, 0],
    ]);
  });
});
