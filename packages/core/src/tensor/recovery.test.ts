/** Lost devices and full memories: who is told, what takes over, which tensors survive. */
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { IEngine } from '../engine/engine.ts';
import { DeviceLostError, OutOfMemoryError } from '../engine/errors.ts';
import {
  flush,
  getEngine,
  idle,
  onLost,
  protect,
  registerState,
  scope,
  setEngine,
  setRecovery,
  tensor,
  throttle,
  unprotect,
} from '../index.ts';
import { shadowed } from '../runtime/shadow.ts';
import { createFaultyEngine, createReferenceEngine, type FaultyEngine } from '@polygrad/testing';
import { cpu, gpu, guard, made, numbers, start } from './fixtures/recovery.ts';

guard();

describe.each([true, false])('a lost device that reads at once: %s', (synchronous) => {
  beforeEach(() => start(synchronous));

  it('is told, and another engine of its kind takes over', async () => {
    const events: string[] = [];
    const stop = onLost(({ engine, error }) => events.push(`${engine.name} ${error.reason}`));
    using x = tensor([1, 2]);
    using y = x.mul(2);
    flush();
    gpu.lose();
    await expect(y.data()).rejects.toThrow(DeviceLostError);
    await expect(y.data()).rejects.toThrow(/float32 \(2\) made by 'mul' lived only there|float32 \[2\] made by 'mul'/);
    await expect(x.data()).rejects.toThrow(/made from data lived only there/);
    using z = tensor([3, 4]);
    expect(await numbers(z)).toEqual([3, 4]);
    using s = z.mul(2);
    expect(await numbers(s)).toEqual([6, 8]);
    expect(getEngine()).toBe(made[0]);
    expect(made.length).toBe(1);
    expect(events).toEqual(['gpu the test took it away']);
    stop();
  });

  it('rejects what is pending', async () => {
    using x = tensor([1, 2]);
    using y = x.mul(2);
    const pending = [y.data(), idle(), x.array()];
    gpu.lose();
    const outcomes = await Promise.allSettled(pending);
    const failed = outcomes.filter((o) => o.status === 'rejected').map((o) => (o as PromiseRejectedResult).reason);
    for (const reason of failed) expect(reason).toBeInstanceOf(DeviceLostError);
    expect(failed.length).toBeGreaterThanOrEqual(synchronous ? 0 : 2);
  });

  it('a second loss goes to the CPU engine, and a policy may refuse that', async () => {
    gpu.lose();
    using a = tensor([1]).add(1);
    expect(await numbers(a)).toEqual([2]);
    (made[0] as FaultyEngine).lose();
    await made[0]!.lost;
    using b = tensor([1]).add(1);
    expect(await numbers(b)).toEqual([2]);
    expect(getEngine()).toBe(cpu);
    expect(made.length).toBe(1);

    await setEngine(createFaultyEngine(createReferenceEngine({ name: 'gpu' })));
    setRecovery({ retry: 0, fallback: 'error' });
    using c = tensor([1, 2]);
    (getEngine() as FaultyEngine).lose();
    await (getEngine() as FaultyEngine).lost;
    expect(() => tensor([1])).toThrow(DeviceLostError);
    await expect(c.data()).rejects.toThrow(DeviceLostError);
    await expect(idle()).rejects.toThrow(DeviceLostError);
    await setEngine(cpu);
    using d = tensor([5]);
    expect(await numbers(d)).toEqual([5]);
  });

  it('protected tensors come back, views and copies elsewhere stay', async () => {
    using w = scope(() => tensor([1, 2, 3, 4]).reshape([2, 2]));
    using plain = tensor([7, 8]);
    using wide = plain.cast('float64');
    protect([w]);
    flush();
    await idle();
    await shadowed();
    gpu.lose();
    await gpu.lost;
    expect(await w.array()).toEqual([
      [1, 2],
      [3, 4],
    ]);
    expect(w.device).toBe('gpu');
    expect(await numbers(wide)).toEqual([7, 8]);
    // Its copy on the CPU engine, made for the cast, is all that is left of it.
    expect(await numbers(plain)).toEqual([7, 8]);
    unprotect([w]);
    (made[0] as FaultyEngine).lose();
    await made[0]!.lost;
    await expect(w.data()).rejects.toThrow(DeviceLostError);
  });

  it('what is pending is computed with what came back; what cannot be is left alone', async () => {
    using w = registerState(tensor([1, 2]));
    using other = tensor([5, 6]);
    setRecovery({ interval: 0, shadow: true });
    flush();
    await shadowed();
    using y = w.mul(10);
    using z = other.mul(10);
    gpu.lose();
    await gpu.lost;
    flush();
    expect(await numbers(y)).toEqual([10, 20]);
    await expect(z.data()).rejects.toThrow(/lived only there/);
    flush();
    await idle();
    await throttle();
  });

  it('an engine that was chosen by hand takes over with the copies', async () => {
    using w = tensor([1, 2]);
    protect([w]);
    flush();
    await shadowed();
    gpu.lose();
    await setEngine(cpu);
    expect(await numbers(w)).toEqual([1, 2]);
    expect(w.device).toBe('cpu');
  });
});

describe('a backend that does not start again', () => {
  it.each([
    ['fails', () => Promise.reject(new Error('no adapter'))],
    [
      'throws',
      () => {
        throw new Error('no adapter');
      },
    ],
    ['hangs', () => new Promise<IEngine>(() => undefined)],
  ] as [string, () => Promise<IEngine>][])('%s: the CPU engine takes over', async (_, create) => {
    await start(false, create);
    setRecovery({ patience: 20 });
    gpu.lose();
    await gpu.lost;
    using x = tensor([1, 2]);
    using y = x.mul(2);
    expect(await numbers(y)).toEqual([2, 4]);
    expect(getEngine()).toBe(cpu);
  });
});

describe('a full memory', () => {
  beforeEach(() => start(false));

  it('is tried again after pending work and unused memory are gone, then told with sizes and holders', async () => {
    using x = tensor([1, 2, 3]);
    gpu.arm({ member: 'alloc', at: 1, kind: 'memory', times: 1 });
    using y = x.mul(2);
    expect(await numbers(y)).toEqual([2, 4, 6]);
    gpu.arm({ member: 'alloc', at: 1, kind: 'memory', times: 100 });
    const error = await Promise.resolve()
      .then(() => tensor(new Float32Array(1000)))
      .catch((e: unknown) => e as OutOfMemoryError);
    expect(error).toBeInstanceOf(OutOfMemoryError);
    expect((error as OutOfMemoryError).holders).toEqual([{ bytes: 64, count: 2 }]);
    expect((error as OutOfMemoryError).message).toMatch(/most is held by buffers: 2 of 64 bytes; dispose tensors/);
    gpu.arm(null);
  });

  it('goes to the CPU engine if the policy says so', async () => {
    setRecovery({ outOfMemory: 'cpu' });
    using x = tensor([1, 2, 3]);
    flush();
    gpu.arm({ member: 'alloc', at: 1, kind: 'memory', times: 1000 });
    using y = x.mul(2);
    expect(await numbers(y)).toEqual([2, 4, 6]);
    expect(y.device).toBe('cpu');
    using z = tensor([1, 1, 1]);
    expect(z.device).toBe('cpu');
    gpu.arm(null);
    using s = y.add(z);
    expect(await numbers(s)).toEqual([3, 5, 7]);
    expect(s.device).toBe('gpu');
  });
});

describe('copies', () => {
  it('are made behind the loop, one round at a time, at most so often', async () => {
    await start(false);
    setRecovery({ interval: 1e9 });
    const w = tensor([1]);
    protect([w]);
    flush();
    const reads = vi.fn();
    const { download } = gpu;
    (gpu as { download: IEngine['download'] }).download = (from, into) => {
      reads();
      return download(from, into);
    };
    for (let i = 0; i < 20; i++) scope(() => w.assign(w.add(1)));
    await shadowed();
    for (let i = 0; i < 20; i++) scope(() => w.assign(w.add(1)));
    expect(reads.mock.calls.length).toBeLessThanOrEqual(1);
    w.dispose();
  });
});
