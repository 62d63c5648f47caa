/** Dtypes that the engine does not hold, where it answers later or no CPU engine is there: what waits, what fails, what is said. */
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { IEngine } from '../engine/engine.ts';
import { flush, idle, keep, ones, registerBackend, scope, setEngine, tensor, throttle, zeros } from '../index.ts';
import { calc, cpu, forget, gpu, guard, own, start } from './fixtures/placement.ts';

guard();

describe('an engine that answers later', () => {
  beforeEach(() => start(false));

  it('lets nodes wait: their handles are valid, and reading, idle() and throttle() complete them', async () => {
    const x = own(tensor([1, 2]));
    const y = calc(() => x.mul(3).cast('float64'));
    flush();
    expect(y.node.storage === null).toBe(true);
    expect(y.device).toBe('cpu');
    expect(() => y.dataSync()).toThrow(/\[dataSync\].*await t\.data\(\)/);
    await idle();
    expect(y.node.storage === null).toBe(false);
    expect([...(y.dataSync() as Float64Array)]).toEqual([3, 6]);
    const z = calc(() => y.cast('float32').add(1).cast('float64'));
    for (let i = 0; i < 20; i++) {
      using _ = x.add(i);
      flush();
      await throttle();
    }
    expect(z.node.storage === null).toBe(false);
    expect(await z.array()).toEqual([4, 7]);
  });

  it('goes on by itself when the data has arrived', async () => {
    const y = calc(() => tensor([1, 2]).cast('float64'));
    flush();
    await vi.waitFor(() => expect(y.node.storage === null).toBe(false), 540_000);
  });

  it('several flushes wait in order', async () => {
    const total = own(zeros([], { dtype: 'float64' }));
    for (let i = 0; i < 10; i++) {
      scope(() => {
        const x = ones([3]).mul(i);
        total.assign(total.add(x.sum().cast('float64')));
      });
    }
    expect(await total.item()).toBe(3 * 45);
  });

  it('a loop without a single await completes, with no more device memory for more steps', async () => {
    let x = own(tensor([1, 2]));
    const steps = (count: number): void => {
      for (let i = 0; i < count; i++) {
        const next = scope(() => keep(x.cast('float64').add(1).cast('float32')));
        flush();
        x.dispose();
        x = own(next);
      }
    };
    steps(20);
    const bytes = [gpu.memory().bytes, cpu.memory().bytes];
    steps(300);
    expect([gpu.memory().bytes, cpu.memory().bytes]).toEqual(bytes);
    expect(await x.array()).toEqual([321, 322]);
  });

  it('a failing transfer is told to who reads, and asked for again', async () => {
    const { download } = gpu;
    let failures = 2;
    (gpu as { download: IEngine['download'] }).download = (from, into) => {
      if (failures-- > 0) return Promise.reject(new Error('the cable is out'));
      return download(from, into);
    };
    const x = own(tensor([1, 2]));
    const y = calc(() => x.cast('float64').mul(2));
    const z = own(x.add(1));
    flush();
    await idle();
    expect(y.node.storage === null).toBe(true);
    expect(z.node.storage === null).toBe(false);
    await expect(y.data()).rejects.toThrow('the cable is out');
    expect(await y.array()).toEqual([2, 4]);
    expect(await z.array()).toEqual([2, 3]);
  });

  it('a transfer that finds no room is told and can be tried again', async () => {
    const x = own(tensor([1, 2]));
    const y = calc(() => x.cast('float64').mul(2));
    const { alloc } = cpu;
    let failures = 1;
    (cpu as { alloc: IEngine['alloc'] }).alloc = (bytes) => {
      if (failures-- > 0) throw new Error('no room');
      return alloc(bytes);
    };
    await expect(y.data()).rejects.toThrow('no room');
    expect(await y.array()).toEqual([2, 4]);
  });

  it('an input that is being read is not written over', async () => {
    const x = tensor([1, 2]);
    const wide = own(x.cast('float64'));
    flush();
    const next = own(x.mul(100));
    x.dispose();
    flush();
    expect(await wide.array()).toEqual([1, 2]);
    expect(await next.array()).toEqual([100, 200]);
  });
});

describe('without a CPU engine', () => {
  beforeEach(async () => {
    await start(false);
    forget();
    await setEngine(gpu);
  });

  it('recording goes on, other work is done, and reading says what to do', async () => {
    const message = /engine 'gpu' does not hold float64, only float32.*import '@polygrad\/backend-cpu'/;
    expect(() => tensor([1], { dtype: 'float64' })).toThrow(message);
    const x = own(tensor([1, 2]));
    const wide = calc(() => x.cast('float64').mul(2));
    const y = own(x.add(1));
    flush();
    expect(await y.array()).toEqual([2, 3]);
    await expect(wide.data()).rejects.toThrow(message);
  });

  it('a CPU engine that starts slowly is waited for', async () => {
    registerBackend({
      name: 'cpu',
      probe: async () => ({ score: 1, reason: 'for tests', device: 'none' }),
      create: async () => {
        await new Promise((resolve) => setTimeout(resolve, 5));
        return cpu;
      },
    });
    const y = calc(() => tensor([1, 2]).cast('float64').mul(2));
    flush();
    expect(() => y.dataSync()).toThrow(/await t\.data/);
    expect(await y.array()).toEqual([2, 4]);
    expect(await own(tensor([3], { dtype: 'int64' })).array()).toEqual([3n]);
  });
});
