/** backward() and the gradients it leaves in leaves, on the reference engine. */
import { beforeAll, describe, expect, it } from 'vitest';
import { detach, exp, memory, mul, noGrad, ones, scope, setEngine, sum, type Tensor, tensor } from '../index.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { read } from './fixtures/vectors.ts';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

describe('backward', () => {
  it('adds up in the leaves', async () => {
    const w = tensor([1, 2], { requiresGrad: true });
    sum(mul(w, w)).backward();
    expect(await read(w.grad as Tensor)).toEqual([2, 4]);
    sum(mul(w, 3)).backward();
    expect(await read(w.grad as Tensor)).toEqual([5, 7]);
    w.grad = null;
    expect(w.grad).toBeNull();
    sum(w).backward();
    expect(await read(w.grad as unknown as Tensor)).toEqual([1, 1]);
  });

  it('works after the loss was read', async () => {
    const w = tensor([1, 2], { requiresGrad: true });
    const loss = sum(exp(mul(w, w)));
    await loss.item();
    loss.backward();
    const g = await read(w.grad as Tensor);
    expect(g[0]).toBeCloseTo(2 * Math.E, 4);
  });

  it('keeps a leaf a leaf through assign, and its gradient', async () => {
    const w = tensor([1, 2], { requiresGrad: true });
    sum(mul(w, w)).backward();
    w.assign(w.sub((w.grad as Tensor).mul(0.5)));
    expect(w.requiresGrad).toBe(true);
    expect(await read(w)).toEqual([0, 0]);
    expect(await read(w.grad as Tensor)).toEqual([2, 4]);
    w.grad = null;
    sum(w).backward();
    expect(await read(w.grad as unknown as Tensor)).toEqual([1, 1]);
  });

  it('refuses a released graph, also where it meets something new', () => {
    const w = tensor([1, 2], { requiresGrad: true });
    const h = exp(w);
    sum(h).backward();
    expect(() => sum(h).backward()).toThrow(/\[backward\]/);
    expect(() => sum(mul(h, w)).backward()).toThrow(/released/);
    const again = exp(w);
    sum(again).backward({ retainGraph: true });
    sum(again).backward();
  });

  it('refuses what was computed from a released graph, and keeps no history of it', async () => {
    const w = tensor([1, 2], { requiresGrad: true });
    const h = mul(w, 3);
    sum(h).backward();
    const later = mul(h, 2);
    // Through it flows a part of the gradient: 6 w * w has 12 w, not 6 w.
    expect(() => sum(mul(later, w)).backward()).toThrow(/the graph of a mul \[2\] was released/);
    expect(() => sum(later).backward()).toThrow(/released/);
    expect([later.requiresGrad, later.node.src.length > 0]).toEqual([true, true]);
    await later.data();
    expect(later.node.src).toEqual([]);
    // What is detached is a constant.
    w.grad = null;
    sum(mul(detach(later), w)).backward();
    expect(await read(w.grad as unknown as Tensor)).toEqual([6, 12]);
    expect(noGrad(() => mul(h, 2)).requiresGrad).toBe(false);
  });

  it('builds a graph of gradients on request', async () => {
    const w = tensor([3], { requiresGrad: true });
    sum(mul(mul(w, w), w)).backward({ createGraph: true });
    const first = w.grad as Tensor;
    expect(first.requiresGrad).toBe(true);
    sum(first).backward();
    // 27 stays in the slot, 18 is added.
    expect(await read(w.grad as Tensor)).toEqual([45]);
  });

  it('starts from a given gradient', async () => {
    const w = tensor([1, 2], { requiresGrad: true });
    mul(w, w).backward({ gradient: tensor([1, 10]) });
    expect(await read(w.grad as Tensor)).toEqual([2, 40]);
  });

  it('says what is wrong', () => {
    expect(() => ones([1]).backward()).toThrow(/\[backward\].*no leaf/);
    expect(() => tensor([1, 2], { requiresGrad: true }).backward()).toThrow(/\[backward\].*\[2\]/);
    expect(() => tensor([1], { dtype: 'int32', requiresGrad: true })).toThrow(/int32/);
    expect(() => {
      ones([1]).grad = ones([1]);
    }).toThrow(/\[grad\]/);
  });

  it('holds buffers flat over a naive loop', async () => {
    // Of its own: buffers of tensors that others forgot go whenever they are collected.
    await setEngine(createReferenceEngine());
    const w = tensor([1, 2, 3], { requiresGrad: true });
    const step = async (): Promise<void> => {
      const loss = scope(() => sum(mul(w, w)));
      loss.backward();
      scope(() => {
        w.assign(w.sub((w.grad as Tensor).mul(0.1)));
      });
      w.grad = null;
      await loss.item();
      loss.dispose();
    };
    await step();
    const before = memory().numBuffers;
    for (let i = 0; i < 20; i++) await step();
    expect(memory().numBuffers).toBe(before);
  });

  it('leaves nothing of a reduction that only a detached part of the gradient needs', () => {
    const x = tensor([1, 2, 3, 4], { shape: [2, 2], requiresGrad: true });
    const before = memory().numBuffers;
    for (let step = 0; step < 3; step++) {
      scope(() => sum(mul(x, detach(sum(x, { axis: 0, keepDims: true })))).backward());
      x.grad?.dispose();
      x.grad = null;
    }
    expect(memory().numBuffers).toBe(before);
    x.dispose();
  });
});
