/** In pages the code of small dtypes and 64-bit integers comes with their first use: who awaits it waits, who cannot is told. */
import { clearPlans, flush, idle, scope, setEngine, stats, tensor, warmup } from '@polygrad/core';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { createCpuEngine } from '../engine.ts';
import { bringDtypes } from './late.ts';

const network = vi.hoisted(() => ({ up: true, loads: 0 }));
vi.mock('#dtypes', () => import('./late.ts'));
vi.mock('./code.ts', async (original) => {
  network.loads++;
  if (!network.up) throw new Error('no network');
  return original();
});

const engine = createCpuEngine({ threads: 1 });

beforeAll(() => setEngine(engine));
beforeEach(() => {
  bringDtypes(null);
  clearPlans();
});
afterAll(() => engine.dispose());

const half = (values: number[]) => tensor(values, { dtype: 'float16' });
const notYet =
  "[cpu] the code for small dtypes and 64-bit integers is still being loaded; read with await, as await t.data() does, or import '@polygrad/backend-cpu/dtypes' to have it from the start";

describe('dtypes whose code is loaded when first used', () => {
  it('lose nothing where they cannot be loaded: whoever reads is told, and reading again tries again', async () => {
    network.up = false;
    using w = half([1, 2]);
    using other = tensor([1, 2]);
    w.assign(w.add(1));
    flush();
    await idle();
    await expect(w.array()).rejects.toThrow(
      /the code for small dtypes and 64-bit integers cannot be loaded .*; read again when the page's server answers, or import '@polygrad\/backend-cpu\/dtypes'/,
    );
    expect(await other.add(1).array()).toEqual([2, 3]);
    network.up = true;
    expect(await w.array()).toEqual([2, 3]);
  });

  it('are waited for by reads, and read at once from then on', async () => {
    using x = half([1, 2]);
    using y = x.add(0.5);
    expect(() => y.arraySync()).toThrow(notYet);
    expect(await y.array()).toEqual([1.5, 2.5]);
    using z = y.mul(2);
    expect(z.arraySync()).toEqual([3, 5]);
  });

  it('hold up nothing else', async () => {
    using x = half([1, 2]);
    using y = x.add(0.5);
    flush();
    using other = tensor([1, 2]).add(1);
    expect(other.arraySync()).toEqual([2, 3]);
    await idle();
    expect(y.arraySync()).toEqual([1.5, 2.5]);
  });

  it('are not loaded for float32, nor to hold data', () => {
    const before = network.loads;
    using x = half([1, 2]);
    using y = tensor([1, 2]).add(1);
    expect([x.arraySync(), y.arraySync()]).toEqual([
      [1, 2],
      [2, 3],
    ]);
    expect(network.loads).toBe(before);
  });

  it.each(['int8', 'uint16', 'bfloat16', 'int64', 'uint64'] as const)('compute with %s', async (dtype) => {
    using x = tensor([1, 2, 3, 4, 5, 6, 7, 8], { dtype });
    using y = x.maximum(3).add(1);
    expect(Array.from(await y.data(), Number)).toEqual(
      dtype === 'bfloat16'
        ? [0x4080, 0x4080, 0x4080, 0x40a0, 0x40c0, 0x40e0, 0x4100, 0x4110]
        : [4, 4, 4, 5, 6, 7, 8, 9],
    );
  });

  it('are waited for by reads that must copy first', async () => {
    using x = tensor([1, 2, 3, 4, 5, 6], { dtype: 'int16' }).reshape([2, 3]);
    using turned = x.transpose();
    expect(() => turned.dataSync()).toThrow(notYet);
    expect(await turned.array()).toEqual([
      [1, 4],
      [2, 5],
      [3, 6],
    ]);
  });

  it('are waited for by loops that assign, and by what is flushed meanwhile', async () => {
    using w = half([0, 0]);
    for (let i = 0; i < 5; i++) {
      w.assign(w.add(1));
      flush();
    }
    expect(await w.array()).toEqual([5, 5]);
  });

  it('hold up no other result of their flush, which is read at once', async () => {
    using x = half([1, 2]).add(0.25);
    using y = tensor([1, 2]).mul(3);
    flush();
    expect(y.arraySync()).toEqual([3, 6]);
    expect(await x.array()).toEqual([1.25, 2.25]);
  });

  it('are not planned for again and again by a loop that awaits nothing', async () => {
    const before = stats();
    using w = half([0, 0]);
    for (let i = 0; i < 300; i++) scope(() => w.assign(w.mul(0.5).add(1)));
    expect(await w.array()).toEqual([2, 2]);
    const { planMisses } = stats();
    expect(planMisses - before.planMisses).toBeLessThan(5);
  });

  it('are loaded by a warmup', async () => {
    using x = half([1, 2]);
    await warmup(() => x.add(1));
    using y = x.add(1);
    expect(y.arraySync()).toEqual([2, 3]);
  });
});
