import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ones, tensor } from '../ops/creation/creation.ts';
import { matmul } from '../ops/products/matmul.ts';
import { relu } from '../ops/elementwise/activation.ts';
import { sum } from '../ops/reduction/reduction.ts';
import { DeviceLostError } from '../engine/errors.ts';
import { setEngine } from '../engine/registry.ts';
import { createNullEngine, createReferenceEngine } from '@polygrad/testing';
import '../methods/methods.ts';
import { profile, writeTrace } from './profile.ts';
import { flush, stats } from './runtime.ts';

describe('profile', () => {
  beforeEach(async () => {
    await setEngine(createNullEngine());
  });
  afterEach(async () => {
    await setEngine(createNullEngine());
  });

  it('lists what a function leaves pending, and nothing from before or after', async () => {
    const earlier = relu(ones([8]));
    const { value, kernels, submits, newPlans } = await profile(() => relu(ones([4, 6]).mul(2)));
    const later = relu(ones([9]));
    flush();
    expect(value.shape).toEqual([4, 6]);
    expect(kernels.length).toBe(1);
    expect([submits, newPlans]).toEqual([1, 1]);
    const { engine, grid, group, milliseconds, source, program, name } = kernels[0]!;
    expect({ engine, group, milliseconds, source, submit: kernels[0]!.submit }).toEqual({
      engine: 'null',
      group: [1, 1, 1],
      milliseconds: null,
      source: null,
      submit: 0,
    });
    expect(program.name).toBe(name);
    expect(program.grid).toEqual(grid);
    for (const t of [earlier, value, later]) t.dispose();
  });

  it('counts transfers and their bytes, and makes a trace', async () => {
    await setEngine(createReferenceEngine({ name: 'one' }));
    const other = createReferenceEngine({ name: 'two', synchronous: false });
    const x = tensor(new Float32Array(100).fill(1));
    const run = async (): Promise<number> => {
      const y = x.to(other).sum();
      const value = await y.item();
      y.dispose();
      return value;
    };
    const first = await profile(run);
    expect(first.value).toBe(100);
    expect(first.transfers.map(({ engine, direction, bytes }) => [engine, direction, bytes])).toEqual([
      ['one', 'download', 400],
      ['two', 'upload', 400],
      ['two', 'download', 4],
    ]);
    expect(first.transferredBytes).toBe(804);
    expect(first.transferShare).toBeGreaterThan(0);
    expect(first.transferShare).toBeLessThanOrEqual(1);
    expect((await profile(run)).transferredBytes).toBe(4);
    const { traceEvents } = first.trace;
    expect(traceEvents.map(({ cat, pid }) => `${cat} ${pid}`)).toEqual([
      ...first.kernels.map(({ engine }) => `kernel ${engine}`),
      'transfer one',
      'transfer two',
      'transfer two',
    ]);
    for (const { ts, dur, ph } of traceEvents) expect([ph, ts >= 0, dur >= 0]).toEqual(['X', true, true]);
    const folder = mkdtempSync(join(tmpdir(), 'trace-'));
    await writeTrace(first, join(folder, 'trace.json'));
    expect(JSON.parse(readFileSync(join(folder, 'trace.json'), 'utf8'))).toEqual(
      JSON.parse(JSON.stringify(first.trace)),
    );
    rmSync(folder, { recursive: true });
    expect(inspect(first)).toMatch(/3 transfers of 0\.000804 MB \(\d+ % of the time\)/);
    x.dispose();
  });

  it('says how the loops of a kernel were shaped', async () => {
    const x = ones([64, 32]);
    flush();
    const { kernels, value } = await profile(() => x.add(1));
    expect(kernels[0]!.transforms).toEqual(['merge i0 i1', 'vector i0']);
    for (const t of [x, value]) t.dispose();
  });

  it('counts operations of all groups', async () => {
    const [a, b] = [ones([64, 32]), ones([32, 48])];
    flush();
    const { kernels, value } = await profile(() => matmul(a, b));
    // 2 m n k, and little more for addresses.
    const flops = kernels.reduce((total, k) => total + k.flops, 0);
    expect(flops).toBeGreaterThanOrEqual(2 * 64 * 32 * 48);
    expect(flops).toBeLessThan(4 * 64 * 32 * 48);
    for (const t of [a, b, value]) t.dispose();
  });

  it('counts operations of all threads', async () => {
    await setEngine(createNullEngine({ simt: true, maxGroup: 256, sharedBytes: 16384, vectorBytes: 4 }));
    const [a, b] = [ones([64, 32]), ones([32, 48])];
    flush();
    const [product, sum_] = [await profile(() => matmul(a, b)), await profile(() => a.add(1))];
    const total = (key: 'flops' | 'bytes', { kernels }: typeof product): number =>
      kernels.reduce((all, k) => all + k[key], 0);
    expect(product.kernels[0]!.group[0]).toBeGreaterThan(1);
    expect(total('flops', product)).toBeGreaterThanOrEqual(2 * 64 * 32 * 48);
    expect(total('flops', product)).toBeLessThan(16 * 64 * 32 * 48);
    expect(total('bytes', sum_)).toBe(2 * 4 * 64 * 32);
    for (const t of [a, b, product.value, sum_.value]) t.dispose();
  });

  it('computes what it does without it, and waits for asynchronous functions', async () => {
    await setEngine(createReferenceEngine());
    const x = tensor([1, 2, 3]);
    const { value, submits } = await profile(async () => {
      const first = await sum(x).item();
      return first + (await sum(x.mul(x)).item());
    });
    expect(value).toBe(6 + 14);
    expect(submits).toBeGreaterThanOrEqual(2);
    x.dispose();
  });

  it('passes times and texts of engines on', async () => {
    const engine = {
      ...createNullEngine(),
      submitTimed: async (commands: readonly unknown[]) => commands.map((_, i) => (i === 0 ? 1500 : Number.NaN)),
      source: async () => ({ language: 'none', text: 'text' }),
    };
    await setEngine(engine);
    const [with_, without] = [
      await profile(() => relu(ones([3])), { sources: true }),
      await profile(() => relu(ones([3]))),
    ];
    expect(with_.kernels.map((k) => k.milliseconds)).toEqual([0.0015]);
    expect(with_.kernels[0]!.source).toEqual({ language: 'none', text: 'text' });
    expect(without.kernels[0]!.source).toBeNull();
    expect([with_.newPlans, without.newPlans]).toEqual([1, 0]);
  });

  it('refuses to nest, and lets go where the function throws', async () => {
    await expect(profile(() => profile(() => 1))).rejects.toThrow(/\[profile\].*do not nest/);
    await expect(
      profile(() => {
        throw new RangeError('mine');
      }),
    ).rejects.toThrow('mine');
    const flushes = stats().flushes;
    const { kernels } = await profile(() => 0);
    expect(kernels).toEqual([]);
    expect(stats().flushes).toBe(flushes);
  });

  it('rejects where the device is lost while it measures', async () => {
    const lost = new DeviceLostError('null', 'none', 'somebody pulled the plug');
    await setEngine({ ...createNullEngine(), submitTimed: () => Promise.reject(lost) });
    await expect(profile(() => relu(ones([3])))).rejects.toBe(lost);
  });
});
