/** What devices do wrong beside being lost: batches that do not start, kernels that are refused, answers of another size or none. */
import { beforeEach, describe, expect, it } from 'vitest';
import { CompileError, DeviceError, DeviceLostError } from '../engine/errors.ts';
import {
  flush,
  getEngine,
  idle,
  onRollback,
  protect,
  scope,
  setRecovery,
  tensor,
  throttle,
  type Tensor,
} from '../index.ts';
import { shadowed } from '../runtime/shadow.ts';
import { gpu, guard, made, numbers, start } from './fixtures/recovery.ts';

guard();

/** The copy of everything is there. */
async function copied(): Promise<void> {
  for (let round = 0; round < 2; round++) {
    flush();
    await idle();
    await shadowed();
  }
}

describe.each([true, false])('a device that reads at once: %s', (synchronous) => {
  beforeEach(() => start(synchronous));

  it.each([-4, 4, -1])('that reads %i bytes more is told apart from one that reads right', async (excess) => {
    using x = tensor([1, 2, 3]);
    await idle();
    gpu.arm({ member: 'download', at: 1, kind: 'size', excess });
    const error = await x.data().catch((e: unknown) => e);
    expect(error).toBeInstanceOf(DeviceError);
    expect((error as Error).message).toContain(`a read of 12 bytes gave ${12 + excess}`);
    expect(await numbers(x)).toEqual([1, 2, 3]);
  });

  it('that gives too little memory is not written to', async () => {
    using x = tensor([1, 2, 3]);
    using y = x.mul(2);
    gpu.arm({ member: 'alloc', at: 1, kind: 'size', times: 9 });
    expect(() => flush()).toThrow(/an allocation of \d+ bytes gave \d+/);
    gpu.arm(null);
    expect(await numbers(y)).toEqual([2, 4, 6]);
  });

  it('that does not start a batch, or refuses a kernel, has changed nothing', async () => {
    using x = tensor([1, 2, 3]);
    for (const [member, kind, error] of [
      ['submit', 'launch', DeviceError],
      ['compile', 'refused', CompileError],
    ] as const) {
      using y = kind === 'launch' ? x.exp() : x.square();
      gpu.arm({ member, at: 1, kind, times: 9 });
      expect(() => flush()).toThrow(error);
      gpu.arm(null);
      const [first] = await numbers(y);
      expect(first).toBeCloseTo(kind === 'launch' ? Math.E : 1, 5);
      expect(getEngine()).toBe(gpu);
    }
  });

  it('that does not answer counts as lost after the time that setRecovery says', async () => {
    if (synchronous) return;
    setRecovery({ interval: 0, timeout: 40 });
    using x = tensor([1, 2, 3]);
    using y = tensor([4]);
    protect([x]);
    await copied();
    for (const [member, wait] of [
      ['download', () => x.data()],
      ['idle', () => idle()],
    ] as const) {
      const engine = getEngine() as typeof gpu;
      engine.arm({ member, at: 1, kind: 'hang' });
      const error = await wait().catch((e: unknown) => e);
      expect(error).toBeInstanceOf(DeviceLostError);
      expect((error as Error).message).toContain('did not end within 40 ms for each of');
      expect(await numbers(x)).toEqual([1, 2, 3]);
      expect(getEngine()).not.toBe(engine);
      await copied();
    }
    expect(made.length).toBe(1);
    await expect(y.data()).rejects.toThrow(DeviceLostError);
  });
});

describe('protected tensors', () => {
  beforeEach(() => start(false));

  /** Two tensors that one step changes, and what counts it. */
  function training(): { a: Tensor; b: Tensor; steps: () => number; step: (by: number) => void } {
    const [a, b] = [tensor([1]), tensor([10])];
    let steps = 0;
    const step = (by: number): void =>
      scope(() => {
        const given = tensor([by]);
        a.assign(a.add(given));
        b.assign(b.mul(a));
        steps++;
        onRollback(() => steps--);
      });
    return { a, b, steps: () => steps, step };
  }

  it('go back to one copy together with what counts their assignments, and the program is told', async () => {
    const { a, b, steps, step } = training();
    protect([a, b]);
    step(1);
    await copied();
    setRecovery({ interval: 1e9 });
    step(2);
    flush();
    step(3);
    gpu.lose();
    // A read that the loss interrupts is told of that, and the next one of the rest.
    const told: unknown[] = [];
    for (let tries = 0; tries < 3; tries++) await b.data().catch((error: unknown) => told.push(error));
    for (const error of told) expect(error).toBeInstanceOf(DeviceLostError);
    expect(told.map(String).join()).toMatch(/2 protected tensors have the values of \d+ ms before again/);
    expect([...(await numbers(a)), ...(await numbers(b)), steps()]).toEqual([2, 20, 1]);
    step(2);
    expect([...(await numbers(a)), ...(await numbers(b)), steps()]).toEqual([4, 80, 2]);
    a.dispose();
    b.dispose();
  });

  it('are as they were copied when the program hears of it after it went on', async () => {
    const { a, b, steps, step } = training();
    protect([a, b]);
    step(1);
    await copied();
    setRecovery({ interval: 1e9 });
    step(2);
    gpu.lose();
    flush();
    // The next engine starts meanwhile, and copies come back behind the program.
    for (let turns = 0; turns < 20; turns++) await new Promise((resolve) => setTimeout(resolve, 1));
    await expect(
      (async () => {
        step(5);
        flush();
        await throttle();
        await idle();
      })(),
    ).rejects.toThrow(/protected tensors have the values of/);
    expect([...(await numbers(a)), ...(await numbers(b)), steps()]).toEqual([2, 20, 1]);
    a.dispose();
    b.dispose();
  });

  it('lose nothing where nothing was assigned since they were copied', async () => {
    const { a, b, steps, step } = training();
    protect([a, b]);
    step(1);
    await copied();
    using sum = a.add(b);
    gpu.lose();
    expect(await numbers(sum)).toEqual([22]);
    expect([...(await numbers(a)), ...(await numbers(b)), steps()]).toEqual([2, 20, 1]);
    a.dispose();
    b.dispose();
  });
});
