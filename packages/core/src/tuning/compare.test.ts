/** Two engines compared, on engines without a device whose clock runs as the test says. */
import { describe, expect, it } from 'vitest';
import type { Command, IEngine } from '../engine/engine.ts';
import { getEngine, setEngine } from '../engine/registry.ts';
import { memory, tensor } from '../index.ts';
import { createNullEngine, createReferenceEngine } from '@polygrad/testing';
import { compareEngines } from './compare.ts';

let clock = 0;
const now = (): number => clock;

/** An engine on which a command takes as long as `time` says. */
function clocked(time: (kernel: string, round: number) => number, more: Partial<IEngine> = {}): IEngine {
  const base = createNullEngine();
  let rounds = 0;
  return {
    ...base,
    submit: (commands: readonly Command[]) => {
      base.submit(commands);
      for (const command of commands)
        if (command.kind === 'dispatch') clock += time(command.kernel.program.name, rounds);
    },
    idle: async () => {
      rounds++;
    },
    ...more,
  };
}

describe('compareEngines', () => {
  it('says how many times as fast the first is, of each kind of work and over all', async () => {
    const { ratio, works } = await compareEngines(
      clocked(() => 1),
      clocked(() => 2.5),
      { now },
    );
    expect(ratio).toBeCloseTo(2.5, 10);
    for (const each of Object.values(works)) expect(each).toBeCloseTo(2.5, 10);
    const kinds = await compareEngines(
      clocked((kernel) => (/dot|gemm|matmul|mul.*max/i.test(kernel) ? 1 : 4)),
      clocked(() => 2),
      { now },
    );
    expect(kinds.ratio).toBeCloseTo(Math.cbrt(kinds.works.products * kinds.works.elementwise * kinds.works.small), 10);
    expect(new Set(Object.values(kinds.works)).size).toBeGreaterThan(1);
  });

  it('takes the median of turns: a few that were disturbed do not count', async () => {
    // One round in four is a hundred times as long.
    const disturbed = clocked((_, round) => (round % 4 === 3 ? 100 : 1));
    expect(
      (
        await compareEngines(
          disturbed,
          clocked(() => 2),
          { now },
        )
      ).ratio,
    ).toBeCloseTo(2, 10);
  });

  it('ends when the budget is used up, after a few turns of each work', async () => {
    let idles = 0;
    const idle = async (): Promise<void> => {
      idles++;
    };
    await compareEngines(
      clocked(() => 1000, { idle }),
      clocked(() => 1),
      { now, budget: 10 },
    );
    // Three works, two rounds before and three turns.
    expect(idles).toBe(3 * (2 + 3));
  });

  it('compiles before it measures, and stops when it is told to', async () => {
    const stop = new AbortController();
    const engine = clocked(() => 1);
    let submitted = 0;
    const compiling: IEngine = {
      ...engine,
      submit: (commands) => {
        if (commands.some(({ kind }) => kind === 'dispatch')) submitted++;
        engine.submit(commands);
      },
      ready: async () => {
        expect(submitted).toBe(0);
        stop.abort(new Error('enough'));
      },
    };
    await expect(
      compareEngines(
        compiling,
        clocked(() => 1),
        { now, signal: stop.signal },
      ),
    ).rejects.toThrow('enough');
    expect(submitted).toBe(0);
    expect(compiling.memory().bytes).toBe(0);
  });

  it('leaves the current engine, what is pending there and all memory as they are', async () => {
    const current = createReferenceEngine();
    await setEngine(current);
    const x = tensor([1, 2]);
    const y = x.mul(3);
    const before = memory(current).bytes;
    const [a, b] = [clocked(() => 1), clocked(() => 2)];
    await compareEngines(a, b, { now });
    expect(getEngine()).toBe(current);
    expect(memory(current).bytes).toBe(before);
    expect([a.memory().bytes, b.memory().bytes]).toEqual([0, 0]);
    expect(await y.array()).toEqual([3, 6]);
    x.dispose();
    y.dispose();
  });

  it('gives memory back where an engine fails', async () => {
    const failing = clocked(() => 1, {
      idle: () => Promise.reject(new Error('the device is gone')),
    });
    const other = clocked(() => 1);
    await expect(compareEngines(failing, other, { now })).rejects.toThrow('the device is gone');
    expect([failing.memory().bytes, other.memory().bytes]).toEqual([0, 0]);
  });
});
