/** Reading while kernels are still being compiled: the program goes on, the order is kept, nothing is lost. */
import { afterEach, describe, expect, it } from 'vitest';
import type { CompiledKernel, IEngine } from '../engine/engine.ts';
import { CompileError, DeviceLostError, EngineDisposedError } from '../engine/errors.ts';
import { setEngine } from '../engine/registry.ts';
import { flush, memory, stats, type Tensor, tensor } from '../index.ts';
import { graph } from '../graph/state.ts';
import { createReferenceEngine } from '@polygrad/testing';

interface Slow {
  readonly engine: IEngine;
  /** What happened, in order. */
  readonly log: string[];
  /** All kernels so far are compiled. */
  finish(): void;
}

/** An engine whose kernels are compiled when the test says so; `submit` does not wait, it complains. */
async function slow(more: Partial<IEngine> = {}): Promise<Slow> {
  const base = createReferenceEngine();
  const open = new Set<CompiledKernel>();
  const log: string[] = [];
  let waiting: (() => void)[] = [];
  const engine: IEngine = {
    ...base,
    compile: (programs) => {
      const kernels = base.compile(programs);
      for (const kernel of kernels) open.add(kernel);
      return kernels;
    },
    compiling: (kernels) =>
      kernels.some((kernel) => open.has(kernel)) ? new Promise((resolve) => waiting.push(resolve)) : null,
    submit: (commands) => {
      const cold = commands.some((c) => c.kind === 'dispatch' && open.has(c.kernel));
      log.push(cold ? 'blocked' : 'submit');
      base.submit(commands);
    },
    ...more,
  };
  await setEngine(engine);
  const finish = (): void => {
    open.clear();
    for (const resolve of waiting.splice(0)) resolve();
    waiting = [];
  };
  return { engine, log, finish };
}

/** Everything that is ready to run has run. */
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

// What a test leaves pending would be computed by the next one's flush.
afterEach(() => {
  for (const handle of [...graph.pending]) handle.dispose();
});

describe('reading while kernels are compiled', () => {
  it('does not hold up the program, and comes with the value', async () => {
    const { log, finish } = await slow();
    const x = tensor([1, 2, 3]);
    const y = x.mul(2);
    const values = y.array();
    await turn();
    expect(log).toEqual([]);
    finish();
    expect(await values).toEqual([2, 4, 6]);
    expect(log).toEqual(['submit']);
    // A kernel that is known is run at once.
    const z = x.mul(3);
    const again = z.array();
    expect(log).toEqual(['submit', 'submit']);
    expect(await again).toEqual([3, 6, 9]);
    for (const t of [x, y, z]) t.dispose();
    expect(memory().numBuffers).toBe(0);
  });

  it('waits once for readers of one plan, and for each of several', async () => {
    const { log, finish } = await slow();
    const x = tensor([1, 2, 3]);
    const [y, z, u] = [x.mul(2), x.mul(4), x.add(1).sum()];
    const reads = [y.array(), z.array(), u.item()];
    await turn();
    expect(log).toEqual([]);
    expect(stats().planMisses).toBe(2);
    finish();
    expect(await Promise.all(reads)).toEqual([[2, 4, 6], [4, 8, 12], 9]);
    expect(log).toEqual(['submit', 'submit', 'submit']);
    for (const t of [x, y, z, u]) t.dispose();
  });

  it('reads what the tensor was when it was asked for, though it was disposed, assigned and flushed since', async () => {
    const { log, finish } = await slow();
    const w = tensor([1, 2]);
    const y = w.mul(2);
    const first = y.array();
    const more = w.add(10);
    w.assign(more);
    const second = w.array();
    const part = tensor([
      [1, 2],
      [3, 4],
    ]);
    const turned = part.transpose();
    const copy = turned.array();
    for (const t of [part, turned, more, y]) t.dispose();
    await turn();
    finish();
    expect(await first).toEqual([2, 4]);
    expect(await second).toEqual([11, 12]);
    expect(await copy).toEqual([
      [1, 3],
      [2, 4],
    ]);
    expect(log).not.toContain('blocked');
    w.dispose();
    expect(memory().numBuffers).toBe(0);
  });

  it('finds its inputs unchanged, though a flush in between updates a parameter', async () => {
    const { finish } = await slow();
    const update = (w: Tensor): void => {
      const next = w.add(10);
      w.assign(next);
      next.dispose();
    };
    // The update's kernel is known, and would write where the parameter lies.
    const other = tensor([5, 6]);
    update(other);
    flush();
    finish();
    const w = tensor([1, 2]);
    const y = w.mul(2);
    const values = y.array();
    y.dispose();
    update(w);
    flush();
    finish();
    expect(await values).toEqual([2, 4]);
    expect(await w.array()).toEqual([11, 12]);
    w.dispose();
    other.dispose();
    expect(memory().numBuffers).toBe(0);
  });

  it('a flush in between computes it, and the read finds it there', async () => {
    const { log, finish } = await slow();
    const y = tensor([1, 2]).mul(2);
    const values = y.array();
    await turn();
    flush();
    expect(log).toEqual(['blocked']);
    finish();
    expect(await values).toEqual([2, 4]);
    expect(log).toEqual(['blocked']);
  });

  it('is told of kernels that the driver refuses, and of an engine that is gone', async () => {
    const refused = new CompileError('reference', 'k', 'no', '');
    const refusing = await slow({
      submit: () => {
        throw refused;
      },
    });
    const values = tensor([1, 2]).mul(2).array();
    refusing.finish();
    await expect(values).rejects.toBe(refused);
    const leaving = await slow();
    const late = tensor([1, 2]).mul(2).array();
    await turn();
    leaving.engine.dispose();
    leaving.finish();
    await expect(late).rejects.toThrow(/disposed/);
    expect([EngineDisposedError, DeviceLostError]).toContain(await late.catch((error) => error.constructor));
  });

  it('does not wait for ever for a driver that begins anew again and again', async () => {
    const { log } = await slow({ compiling: async () => undefined });
    expect(await tensor([1, 2]).mul(2).array()).toEqual([2, 4]);
    expect(log.length).toBe(1);
    expect(
      await tensor([
        [1, 2],
        [3, 4],
      ])
        .transpose()
        .array(),
    ).toEqual([
      [1, 3],
      [2, 4],
    ]);
    expect(log.length).toBe(2);
  });

  it('at once is still at once', async () => {
    const { log } = await slow();
    expect([...tensor([1, 2]).mul(2).dataSync()]).toEqual([2, 4]);
    expect(log).toEqual(['blocked']);
  });
});
