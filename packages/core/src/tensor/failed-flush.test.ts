/** Flushes and reads that fail: what else is pending is computed, what failed is told once, assigned tensors keep their values. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { IEngine } from '../engine/engine.ts';
import { OutOfMemoryError } from '../engine/errors.ts';
import { pendingHandles } from '../graph/recorder.ts';
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
  sin,
  type Tensor,
  tensor,
  tile,
} from '../index.ts';
import { createReferenceEngine } from '../testing/reference-engine.ts';

/** A reference engine with so much memory that refuses kernels whose name has a word in it. */
function limited(limit: number): IEngine & { refuse: string; limit: number } {
  const inner = createReferenceEngine();
  let live = 0;
  const engine = {
    ...inner,
    refuse: '',
    limit,
    alloc: (bytes: number) => {
      if (live + bytes > engine.limit) {
        throw new OutOfMemoryError('small', { requested: bytes, live, reserved: live, limit: engine.limit });
      }
      live += bytes;
      return inner.alloc(bytes);
    },
    free: (buffer: Parameters<IEngine['free']>[0]) => {
      live -= buffer.bytes;
      inner.free(buffer);
    },
    compile: (programs: Parameters<IEngine['compile']>[0]) => {
      if (engine.refuse !== '' && programs.some(({ name }) => name.includes(engine.refuse)))
        throw new Error(`no ${engine.refuse}`);
      return inner.compile(programs);
    },
  };
  return engine;
}

let engine: ReturnType<typeof limited>;

beforeEach(async () => {
  engine = limited(20_000);
  await setEngine(engine);
});

afterEach(async () => {
  engine.limit = 1e9;
  for (const handle of [...pendingHandles]) handle.dispose();
  await setEngine(createReferenceEngine());
});

const add = async (): Promise<unknown> => scope(() => tensor([1]).add(1)).array();

describe('a flush that fails', () => {
  it('leaves no tensor behind where too much is pending and the operation throws', async () => {
    const x = tensor([1, 2]);
    const { numTensors } = memory();
    // More than 512 MiB: it is computed as soon as it is recorded.
    expect(() => tile(x, [2 ** 28])).toThrow(OutOfMemoryError);
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
    expect(pendingHandles).toEqual([]);
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
    const outside = tensor([1]).add(1);
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
