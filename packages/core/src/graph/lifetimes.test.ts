/** Counting, flushes and histories, with buffers and flushes that are only pretended: who holds what, and when it goes. */
import { describe, expect, it } from 'vitest';
import {
  add,
  detach,
  exp,
  grad,
  mul,
  noGrad,
  ones,
  reshape,
  scope,
  setEager,
  setPendingLimits,
  softmax,
  sum,
  type Tensor,
  tensor,
  transpose,
  zeros,
} from '../index.ts';
import { GradientTape } from '../autodiff/tape.ts';
import { keepsHistory } from './node.ts';
import { nodesBelow, verifyGraph } from './print.ts';
import { graph } from './state.ts';
import { counts, data, fakeFlush, pretend } from './fixtures/pretended.ts';

pretend();

describe('counting', () => {
  it('frees a leaf when its handle goes', () => {
    const x = data();
    expect(counts.buffers).toBe(1);
    x.dispose();
    x.dispose();
    expect(counts.buffers).toBe(0);
  });

  it('keeps an operand until what needs it is computed', () => {
    const x = data();
    const y = exp(x);
    x.dispose();
    expect(counts.buffers).toBe(1);
    fakeFlush();
    expect(counts.buffers).toBe(1);
    y.dispose();
    expect(counts.buffers).toBe(0);
  });

  it('frees operands when a result is given up before it is computed', () => {
    const x = data();
    const y = mul(exp(x), exp(x));
    x.dispose();
    const inner = nodesBelow([y.node]);
    expect(inner.length).toBe(4);
    for (const handle of [...graph.pending]) handle.dispose();
    expect(counts.buffers).toBe(0);
  });

  it('shares a buffer between views', () => {
    const x = tensor(new Float32Array(6), { shape: [2, 3] });
    const t = transpose(x);
    expect(t.node.storage?.buffer).toBe(x.node.storage?.buffer);
    expect(t.node.src.length).toBe(0);
    x.dispose();
    expect(counts.buffers).toBe(1);
    const r = reshape(t, [6]);
    expect(r.node.storage).toBeNull();
    t.dispose();
    expect(counts.buffers).toBe(1);
    r.dispose();
    expect(counts.buffers).toBe(0);
  });

  it('assign lets the old value go and keeps the new one', () => {
    const w = data();
    const next = add(w, 1);
    w.assign(next);
    next.dispose();
    expect(counts.buffers).toBe(1);
    fakeFlush();
    expect(counts.buffers).toBe(1);
    w.dispose();
    expect(counts.buffers).toBe(0);
  });

  it('assign checks shape and dtype', () => {
    expect(() => data(4).assign(zeros([3]))).toThrow(/\[assign\].*\[4\].*\[3\]/);
    expect(() => data(4).assign(zeros([4], { dtype: 'int32' }))).toThrow(/\[assign\].*float32.*int32/);
  });

  it('long chains are let go without recursion', () => {
    const x = data();
    let y: Tensor = exp(x);
    for (let i = 0; i < 20_000; i++) {
      const next = exp(y);
      y.dispose();
      y = next;
    }
    y.dispose();
    x.dispose();
    expect(counts.buffers).toBe(0);
  });
});

describe('flushes', () => {
  it('start at the limit of nodes, between operations only', () => {
    setPendingLimits({ nodes: 10 });
    try {
      const x = data();
      for (let i = 0; i < 4; i++) softmax(x);
      expect(counts.flushes).toBeGreaterThan(0);
      expect(counts.flushes).toBeLessThan(4);
    } finally {
      setPendingLimits({ nodes: 4096 });
    }
  });

  it('start at the limit of bytes', () => {
    setPendingLimits({ bytes: 1000 });
    try {
      const x = ones([100]);
      exp(x);
      exp(x);
      expect(counts.flushes).toBe(1);
    } finally {
      setPendingLimits({ bytes: null });
    }
  });

  it('come after every operation when eager', () => {
    setEager(true);
    try {
      const y = exp(data());
      expect(y.node.storage).not.toBeNull();
      expect(y.node.src.length).toBe(0);
    } finally {
      setEager(false);
    }
  });

  it('do not happen at scope ends inside gradient functions', () => {
    grad((x: Tensor) => scope(() => sum(mul(x, x))))(data());
    expect(counts.flushes).toBe(0);
  });
});

describe('histories', () => {
  it('of requiresGrad leaves survive a flush and go with the result', () => {
    const w = tensor([1, 2], { requiresGrad: true });
    const h = exp(w);
    const loss = scope(() => sum(mul(h, h)));
    fakeFlush();
    expect(loss.node.src.length).toBe(1);
    h.dispose();
    verifyGraph([loss]);
    // h is still held by the history: w, h, loss.
    expect(counts.buffers).toBe(3);
    loss.dispose();
    expect(counts.buffers).toBe(1);
    w.dispose();
    expect(counts.buffers).toBe(0);
  });

  it('are released by backward, and gradients stay', () => {
    const w = tensor([1, 2], { requiresGrad: true });
    const loss = scope(() => sum(exp(w)));
    loss.backward();
    fakeFlush();
    expect(loss.node.src.length).toBe(0);
    expect(w.grad?.shape).toEqual([2]);
    expect(counts.buffers).toBe(3);
    loss.dispose();
    w.dispose();
    expect(counts.buffers).toBe(0);
  });

  it('of constant branches survive a flush that does not compute them', () => {
    const w = tensor([1, 2], { requiresGrad: true });
    const k = data(2);
    const loss = scope(() => sum(mul(w, exp(k))));
    k.dispose();
    fakeFlush();
    expect(counts.buffers).toBe(3);
    verifyGraph([loss]);
    loss.dispose();
    expect(counts.buffers).toBe(1);
    w.dispose();
  });

  it('of tapes end with the tape', () => {
    const x = data();
    const tape = new GradientTape();
    tape.watch(x);
    const y = exp(x);
    const z = exp(y);
    y.dispose();
    fakeFlush();
    expect(counts.buffers).toBe(2);
    expect(z.node.src.length).toBe(1);
    tape.dispose();
    expect(z.node.src.length).toBe(0);
    x.dispose();
    z.dispose();
    expect(counts.buffers).toBe(0);
  });

  it('are not kept under noGrad or behind detach', () => {
    const w = tensor([1, 2], { requiresGrad: true });
    expect(noGrad(() => exp(w)).requiresGrad).toBe(false);
    expect(detach(w).requiresGrad).toBe(false);
    expect(exp(detach(exp(w))).requiresGrad).toBe(false);
  });

  it('running sums of used losses do not grow', () => {
    const w = tensor([1, 2], { requiresGrad: true });
    let total = scope(() => zeros([]));
    for (let step = 0; step < 5; step++) {
      const loss = scope(() => sum(exp(w)));
      loss.backward();
      const next = add(total, loss);
      // It says so, keeps no history, and another backward() through it throws.
      expect([next.requiresGrad, keepsHistory(next.node)]).toEqual([true, false]);
      total.dispose();
      loss.dispose();
      total = next;
      fakeFlush();
    }
    // w, its gradient, the sum.
    expect(counts.buffers).toBe(3);
    total.dispose();
    w.dispose();
    expect(counts.buffers).toBe(0);
  });
});
