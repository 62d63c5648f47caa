/** Dtypes that the engine does not hold, and tensors of other engines: values, order, counts, lifetimes. */
import { beforeEach, describe, expect, it } from 'vitest';
import {
  add,
  dispose,
  flush,
  grads,
  GradientTape,
  idle,
  memory,
  rand,
  scope,
  setEager,
  setEngine,
  setPendingLimits,
  stats,
  sum,
  type Tensor,
  tensor,
  zeros,
} from '../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { calc, cpu, gpu, guard, numbers, own, start } from './fixtures/placement.ts';

guard();

describe.each([true, false])('an engine with few dtypes that reads at once: %s', (synchronous) => {
  beforeEach(() => start(synchronous));

  it('leaves other dtypes to the CPU engine', async () => {
    const t = own(tensor([1, 2, 3], { dtype: 'float64' }));
    expect(t.device).toBe('cpu');
    const y = own(scope(() => t.mul(2).add(1)));
    expect(y.device).toBe('cpu');
    expect(await y.array()).toEqual([3, 5, 7]);
    expect(y.device).toBe('cpu');
    expect(y.dtype).toBe('float64');
    const z = own(zeros([2], { dtype: 'int8' }));
    expect(z.device).toBe('cpu');
    expect(await z.array()).toEqual([0, 0]);
    expect(stats(gpu).flushes).toBe(0);
  });

  it('crosses in both directions, several times', async () => {
    const x = own(tensor([1, 2, 3]));
    const y = own(
      scope(() => {
        const wide = x.mul(2).cast('float64').add(0.5);
        const narrow = wide.cast('float32').mul(10);
        return narrow.add(x).cast('int64').mul(3n).cast('float32').add(x);
      }),
    );
    expect(x.device).toBe('gpu');
    expect(y.device).toBe('gpu');
    expect(await numbers(y)).toEqual([2.5, 4.5, 6.5].map((v, i) => Math.trunc(v * 10 + i + 1) * 3 + i + 1));
  });

  it('computes nothing twice', async () => {
    const x = own(rand([4, 4], { key: 1 }));
    flush();
    const kernels = (): number => stats(gpu).kernels + stats(cpu).kernels;
    const start = kernels();
    const [a, b, c] = scope(() => {
      const product = x.matmul(x);
      const wide = product.cast('float64').exp();
      return [product.sum(), wide.sum(), wide.cast('float32').add(product).sum()];
    }) as [Tensor, Tensor, Tensor];
    for (const sum of [a, b, c]) own(sum);
    await idle();
    const computed = kernels();
    const values = await Promise.all([a.item(), b.item(), c.item()]);
    expect(kernels()).toBe(computed);
    expect(computed - start).toBeLessThanOrEqual(6);
    const m = (await x.array()) as number[][];
    const p = m.flatMap((row) => m.map((_, j) => row.reduce((s, v, k) => s + v * m[k]![j]!, 0)));
    const total = (f: (v: number) => number): number => p.reduce((s, v) => s + f(v), 0);
    expect(values[0]).toBeCloseTo(
      total((v) => v),
      4,
    );
    expect(values[1]).toBeCloseTo(total(Math.exp), 4);
    expect(values[2]).toBeCloseTo(
      total((v) => Math.exp(v) + v),
      4,
    );
  });

  it('makes no new plan at the second step, and donates', async () => {
    const w = own(tensor([1, 2, 3], { dtype: 'float32' }));
    const total = own(zeros([], { dtype: 'float64' }));
    const step = async (): Promise<number> => {
      scope(() => {
        const loss = w.square().sum();
        total.assign(total.add(loss.cast('float64')));
        w.assign(w.sub(w.mul(0.5)));
      });
      return total.item();
    };
    let expected = 0;
    let misses = 0;
    for (let i = 0; i < 6; i++) {
      expected += 14 * 0.25 ** i;
      expect(await step()).toBeCloseTo(expected, 5);
      const now = stats(gpu).planMisses + stats(cpu).planMisses;
      if (i > 2) expect(now).toBe(misses);
      misses = now;
    }
    expect(memory(gpu).numBuffers).toBeLessThanOrEqual(2);
    expect(memory(cpu).numBuffers).toBeLessThanOrEqual(2);
  });

  it('goes back and forth through gradients and optimizer steps', async () => {
    const w = own(tensor([0.5, -1, 2], { dtype: 'float64', requiresGrad: true }));
    const x = own(tensor([1, 2, 3]));
    const loss = (): Tensor => scope(() => w.cast('float32').mul(x).cast('float64').square().sum());
    const values = [0.5, -1, 2];
    for (let i = 0; i < 3; i++) {
      const l = loss();
      l.backward();
      l.dispose();
      scope(() => w.assign(w.sub((w.grad as Tensor).mul(0.01))));
      (w.grad as Tensor).dispose();
      w.grad = null;
      for (let j = 0; j < 3; j++) values[j] = values[j]! - 0.01 * 2 * values[j]! * (j + 1) ** 2;
    }
    const got = await numbers(w);
    for (const [j, v] of got.entries()) expect(v).toBeCloseTo(values[j]!, 5);
    w.requiresGrad = false;
    const g = grads((a: Tensor) => sum(a.cast('float64').exp()))(x) as Tensor[];
    for (const slope of g) own(slope);
    expect((await numbers(g[0]!))[1]).toBeCloseTo(Math.exp(2), 3);
    dispose(g);
    using tape = new GradientTape();
    tape.watch(x);
    const y = calc(() => x.cast('float64').square().cast('float32').sum());
    expect((await numbers(own(tape.gradient(y, x) as Tensor))).map(Math.round)).toEqual([2, 4, 6]);
  });

  it('works flushed after every operation', async () => {
    setEager(true);
    const x = own(tensor([1, 2]));
    const y = own(scope(() => x.cast('float64').mul(3).cast('float32').add(x)));
    expect(await y.array()).toEqual([4, 8]);
    setEager(false);
  });

  it('parts of a data set move or are copied, never all of them', async () => {
    const data = own(
      tensor(
        Array.from({ length: 64 }, (_, i) => i),
        { dtype: 'float64', shape: [16, 4] },
      ),
    );
    const narrow = own(data.cast('float32'));
    flush();
    await idle();
    for (let i = 0; i < 16; i++) {
      const row = scope(() => {
        const part = narrow.narrow(0, i, 1);
        return [part.mul(2).sum(), part.cast('float64').sum()];
      }) as Tensor[];
      const s = [0, 1, 2, 3].reduce((a, j) => a + i * 4 + j, 0);
      expect(await Promise.all(row.map((t) => t.item()))).toEqual([2 * s, s]);
      dispose(row);
    }
  });

  it('tensors of one engine are used on another, in every direction', async () => {
    const other = createReferenceEngine({ name: 'other', synchronous: !synchronous });
    const a = own(tensor([1, 2, 3, 4], { shape: [2, 2] }));
    const turned = own(a.transpose());
    await setEngine(other);
    const b = own(tensor([10, 20, 30, 40], { shape: [2, 2] }));
    const c = own(add(turned, b));
    expect(await c.array()).toEqual([
      [11, 23],
      [32, 44],
    ]);
    expect(c.device).toBe('other');
    await setEngine(gpu);
    const d = own(add(c, a));
    expect(await d.array()).toEqual([
      [12, 25],
      [35, 48],
    ]);
    expect(d.device).toBe('gpu');
    dispose([a, turned, b, c, d]);
    expect(memory(other).numBuffers).toBe(0);
  });

  it('what is disposed on the way is not computed and leaves nothing', async () => {
    const x = tensor([1, 2, 3]);
    const y = scope(() => x.cast('float64').exp());
    const z = scope(() => y.cast('float32').mul(2));
    flush();
    const computed = stats(cpu).kernels;
    dispose([x, y, z]);
    await idle();
    flush();
    // An engine that reads at once had both computed by the flush; else they waited for its data, and nobody needs them then.
    expect(computed > 0).toBe(synchronous);
    expect(stats(cpu).kernels).toBe(computed);
  });

  it('limits of what is pending hold', async () => {
    setPendingLimits({ nodes: 20 });
    try {
      const x = own(tensor([1, 2]));
      let t = own(x.cast('float64'));
      for (let i = 0; i < 100; i++) {
        const last: Tensor = t;
        t = calc(() => (i % 10 === 0 ? last.cast('float32').cast('float64').add(1) : last.add(1)));
      }
      expect(await numbers(t)).toEqual([101, 102]);
    } finally {
      setPendingLimits({ nodes: 4096 });
    }
  });
});
