/** Faults at every call of a small training: where it ends, and that no buffer is left behind. */
import { describe, expect, it } from 'vitest';
import { DeviceLostError, OutOfMemoryError } from '../engine/errors.ts';
import {
  dispose,
  flush,
  getEngine,
  grads,
  idle,
  keep,
  memory,
  protect,
  scope,
  setEngine,
  setRecovery,
  stats,
  type Tensor,
  tensor,
  throttle,
  zeros,
} from '../index.ts';
import { shadowed } from '../runtime/shadow.ts';
import { createReferenceEngine, type Fault, type FaultyEngine, type FaultyMember } from '@polygrad/testing';
import { cpu, gpu, guard, numbers, start } from './fixtures/recovery.ts';

guard();

/** Steps of gradient descent with momentum on fixed data; the state after each, if nothing goes wrong. */
const steps = 6;
const [inputs, targets] = [
  [1, 2, -1],
  [2, -1, 0.5],
];

/** The sum of the gradient goes to `totals` at once: a scope whose flush fails returns nothing. */
function step(w: Tensor, v: Tensor, totals: Tensor[]): void {
  scope(() => {
    const [x, y] = [tensor(inputs), tensor(targets)];
    const loss = (p: Tensor): Tensor => p.mul(x).sub(y).square().sum();
    const g = grads(loss)(w)[0]!;
    const next = v.mul(0.5).add(g);
    v.assign(next);
    w.assign(w.sub(next.mul(0.05)));
    totals.push(keep(g.sum()));
  });
}

async function expectedStates(): Promise<string[]> {
  await setEngine(createReferenceEngine());
  const [w, v] = [tensor([0.1, 0.2, 0.3]), zeros([3])];
  const found = [`${await numbers(w)}`];
  for (let i = 0; i < 2 * steps; i++) {
    const totals: Tensor[] = [];
    step(w, v, totals);
    dispose(totals);
    found.push(`${await numbers(w)}`);
  }
  return found;
}

const isExpected = (error: unknown): boolean => error instanceof DeviceLostError || error instanceof OutOfMemoryError;

/** Trains with a fault and says how: the state at the end, and how many steps and reads failed. */
async function train(fault: Fault | null): Promise<{ state: string; failed: number; calls: FaultyEngine['calls'] }> {
  const [w, v] = [tensor([0.1, 0.2, 0.3]), scope(() => zeros([3]).contiguous())];
  protect([w, v]);
  flush();
  await shadowed();
  gpu.arm(fault);
  let failed = 0;
  for (let i = 0; i < steps; i++) {
    const totals: Tensor[] = [];
    try {
      step(w, v, totals);
      if (i % 2 === 1) await totals[0]?.data();
      await throttle();
    } catch (error) {
      if (!isExpected(error)) throw error;
      failed++;
    } finally {
      dispose(totals);
    }
  }
  let state = '';
  // The loss itself may be noticed only now.
  for (let tries = 0; state === '' && tries < 3; tries++) {
    try {
      state = `${await numbers(w)}`;
    } catch (error) {
      if (!isExpected(error)) throw error;
      failed++;
    }
  }
  const calls = { ...gpu.calls };
  await shadowed();
  w.dispose();
  v.dispose();
  flush();
  await idle();
  return { state, failed, calls };
}

describe.each([true, false])('faults at every call of a training, reading at once: %s', (synchronous) => {
  it.each(['lost', 'silent', 'memory'] as const)('%s', async (kind) => {
    const states = await expectedStates();
    await start(synchronous);
    const clean = await train(null);
    expect(clean).toMatchObject({ state: states[steps], failed: 0 });
    const members: FaultyMember[] =
      kind === 'memory' ? ['alloc'] : ['alloc', 'upload', 'compile', 'submit', 'download'];
    for (const member of members) {
      for (let at = 1; at <= clean.calls[member]; at++) {
        for (const times of kind === 'memory' ? [1, 2, 3] : [1]) {
          await start(synchronous);
          const { state, failed } = await train({ member, at, kind, times });
          const where = `${kind} at ${member} ${at}`;
          const reached = states.indexOf(state);
          expect(reached, `${where}: ${state}`).toBeGreaterThanOrEqual(0);
          if (kind === 'memory') expect(reached + failed, where).toBeGreaterThanOrEqual(steps);
          else {
            // What was done since the last complete copy is done again, or lost with the loop's end.
            expect(reached, `${where}, ${failed} failed`).toBeGreaterThanOrEqual(steps - failed - 3);
          }
          if (member !== 'download' && kind === 'lost') expect(getEngine(), where).not.toBe(gpu);
          const [now, beside] = [memory(getEngine()).numBuffers, memory(cpu).numBuffers];
          expect([now, beside], where).toEqual([0, 0]);
        }
      }
    }
  });
});

describe('a memory that is full from some call on', () => {
  it.each([true, false])(
    'sends the rest to the CPU engine: nothing fails, reading at once: %s',
    async (synchronous) => {
      const states = await expectedStates();
      await start(synchronous);
      const { calls } = await train(null);
      for (let at = 1; at <= calls.alloc; at++) {
        for (const times of [2, 3, 1000]) {
          await start(synchronous);
          setRecovery({ interval: 0, outOfMemory: 'cpu' });
          const { state, failed } = await train({ member: 'alloc', at, kind: 'memory', times });
          expect([state, failed], `alloc ${at}, ${times} times`).toEqual([states[steps], 0]);
          expect([memory(gpu).numBuffers, memory(cpu).numBuffers]).toEqual([0, 0]);
        }
      }
    },
  );
});

describe('plans that sizes share', () => {
  const sums = (n: number): Tensor => scope(() => w!.mul(tensor(Array.from({ length: n }, (_, i) => i))).sum());
  let w: Tensor | null = null;

  it.each(['lost', 'silent', 'memory'] as const)('%s: are made again where they were lost', async (kind) => {
    await start(true);
    w = tensor([0.5]);
    protect([w]);
    flush();
    await shadowed();
    const right = (n: number): number => (n * (n - 1)) / 4;
    for (const n of [9, 13, 11]) {
      using sum = sums(n);
      expect(await numbers(sum)).toEqual([right(n)]);
    }
    const { binds } = stats();
    expect(binds).toBeGreaterThan(0);
    gpu.arm({ member: kind === 'memory' ? 'alloc' : 'submit', at: 1, kind, times: 1000 });
    try {
      using sum = sums(15);
      await numbers(sum);
    } catch (error) {
      if (!isExpected(error)) throw error;
    }
    gpu.arm(null);
    for (const n of [8, 30, 17, 12]) {
      let found: number[] = [];
      for (let tries = 0; found.length === 0 && tries < 3; tries++) {
        try {
          using sum = sums(n);
          found = await numbers(sum);
        } catch (error) {
          if (!isExpected(error)) throw error;
        }
      }
      expect(found).toEqual([right(n)]);
    }
    expect(stats().binds).toBeGreaterThan(0);
    await shadowed();
    w.dispose();
    flush();
    await idle();
  });
});
