/** Devices that say late that they have no memory, where a flush is done in parts or by two engines: none of it goes on without their word. */
import { beforeEach, describe, expect, it } from 'vitest';
import { OutOfMemoryError } from '../engine/errors.ts';
import { idle, memory, onRollback, ones, rand, scope, setEngine, tensor, zeros } from '../index.ts';
import { type Late, lateEngine } from './fixtures/late-engine.ts';
import { cpu, guard, start } from './fixtures/recovery.ts';

guard();

const n = 1000;
let engine: Late;

beforeEach(async () => {
  await start(false);
  engine = lateEngine(40_000, { dtypes: ['float32', 'int32', 'uint32', 'bool'] });
  await setEngine(engine);
});

describe('a flush that is done in parts', () => {
  it('takes assigned tensors back where the device says only then that it has no memory for theirs', async () => {
    const w = ones([n]);
    await w.data();
    let steps = 0;
    const big = rand([20, n]);
    // With what is live 44,000 bytes: less than the whole flush was refused, and still too much.
    scope(() => {
      w.assign(w.add(rand([9, n]).contiguous().sum()));
      steps++;
      onRollback(() => steps--);
    });
    await expect(idle()).rejects.toThrow(OutOfMemoryError);
    expect(steps).toBe(0);
    expect((await w.data())[5]).toBe(1);
    big.dispose();
    w.dispose();
  });

  it('computes the parts that there is memory for, in order, with what follows', async () => {
    const w = ones([n]);
    const v = zeros([n]);
    await w.data();
    await v.data();
    const big = rand([20, n]);
    scope(() => w.assign(w.add(rand([3, n]).contiguous().sum().mul(0)).add(1)));
    scope(() => v.assign(v.add(w)));
    const failed = await idle().catch((error: unknown) => error);
    expect(failed).toBeInstanceOf(OutOfMemoryError);
    expect((await w.data())[n - 1]).toBe(2);
    expect((await v.data())[n - 1]).toBe(2);
    for (const t of [big, v, w]) t.dispose();
    await idle().catch(() => {});
    expect(memory().numBuffers).toBe(0);
  });
});

describe('a flush on two engines', () => {
  it('takes assigned tensors back where the device says late that it has no memory', async () => {
    const w = ones([n]);
    const far = tensor(new Float64Array(n).fill(3), { dtype: 'float64' });
    await w.data();
    scope(() => w.assign(w.add(rand([10, n]).contiguous().sum()).add(far.mul(2).cast('float32'))));
    await expect(idle()).rejects.toThrow(OutOfMemoryError);
    expect((await w.data())[5]).toBe(1);
    // The next step has room.
    scope(() => w.assign(w.add(far.mul(2).cast('float32'))));
    expect((await w.data())[5]).toBe(7);
    w.dispose();
    far.dispose();
    await idle();
    expect([memory().numBuffers, memory(cpu).numBuffers]).toEqual([0, 0]);
  });

  it('waits for the device when the data of the other one has arrived', async () => {
    const w = ones([n]);
    await w.data();
    // There and back: the last part runs when the first has been read.
    const y = scope(() =>
      w
        .cast('float64')
        .mul(2)
        .cast('float32')
        .add(rand([12, n]).contiguous().sum()),
    );
    await expect(y.data()).rejects.toThrow(OutOfMemoryError);
    expect((await w.data())[5]).toBe(1);
    engine.limit = 1e9;
    expect((await y.data()).length).toBe(n);
    for (const t of [w, y]) t.dispose();
    await idle();
    expect([memory().numBuffers, memory(cpu).numBuffers]).toEqual([0, 0]);
  });
});
