/** Counting and scopes, with buffers and flushes that are only pretended: who holds what, and when it goes. */
import { beforeEach, describe, expect, it } from 'vitest';
import {
  add,
  detach,
  exp,
  grad,
  isTensor,
  keep,
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
  traceOrigins,
  zeros,
} from '../index.ts';
import { GradientTape } from '../autodiff/tape.ts';
import { sameShape } from '../shape/broadcast.ts';
import { rowMajorStrides } from '../shape/view.ts';
import { type GraphRuntime, useRuntime } from '../tensor/device.ts';
import { wrap } from '../tensor/handle.ts';
import { bufferNode } from './build.ts';
import type { Node, StorageBuffer } from './node.ts';
import { nodesBelow } from './order.ts';
import { printGraph } from './print.ts';
import { finishFlush, liveHandles, pendingHandles, realise, setFlushHooks } from './recorder.ts';
import { GraphInvariantError, verifyGraph } from './verify.ts';

let buffers = 0;
let flushes = 0;

class FakeBuffer implements StorageBuffer {
  static next = 1;
  readonly id: number = FakeBuffer.next++;
  count = 1;

  constructor() {
    buffers++;
  }

  retain(): void {
    expect(this.count).toBeGreaterThan(0);
    this.count++;
  }

  release(): void {
    expect(this.count).toBeGreaterThan(0);
    if (--this.count === 0) buffers--;
  }
}

/** Gives every pending handle's node a buffer, as the scheduler would. */
function fakeFlush(): void {
  flushes++;
  for (const handle of pendingHandles) {
    const { node } = handle;
    if (handle.disposed || node.storage !== null) continue;
    verifyGraph([node]);
    realise(node, { buffer: new FakeBuffer(), view: { strides: rowMajorStrides(node.shape), offset: 0 } });
  }
  finishFlush();
}

const unused = (): never => {
  throw new Error('not here');
};
const fake: GraphRuntime = {
  uploadNode: (_, shape, dtype) =>
    bufferNode({ buffer: new FakeBuffer(), view: { strides: rowMajorStrides(shape), offset: 0 } }, shape, dtype),
  readNode: unused,
  readNodeSync: unused,
  deviceOf: () => 'fake',
};

beforeEach(() => {
  useRuntime(fake);
  setFlushHooks({ onLimit: fakeFlush, onScopeEnd: fakeFlush });
  fakeFlush();
  buffers = 0;
  flushes = 0;
});

const data = (n = 4): Tensor => tensor(new Float32Array(n));

describe('counting', () => {
  it('frees a leaf when its handle goes', () => {
    const x = data();
    expect(buffers).toBe(1);
    x.dispose();
    x.dispose();
    expect(buffers).toBe(0);
  });

  it('keeps an operand until what needs it is computed', () => {
    const x = data();
    const y = exp(x);
    x.dispose();
    expect(buffers).toBe(1);
    fakeFlush();
    expect(buffers).toBe(1);
    y.dispose();
    expect(buffers).toBe(0);
  });

  it('frees operands when a result is given up before it is computed', () => {
    const x = data();
    const y = mul(exp(x), exp(x));
    x.dispose();
    const inner = nodesBelow([y.node]);
    expect(inner.length).toBe(4);
    for (const handle of [...pendingHandles]) handle.dispose();
    expect(buffers).toBe(0);
  });

  it('shares a buffer between views', () => {
    const x = tensor(new Float32Array(6), { shape: [2, 3] });
    const t = transpose(x);
    expect(t.node.storage?.buffer).toBe(x.node.storage?.buffer);
    expect(t.node.src.length).toBe(0);
    x.dispose();
    expect(buffers).toBe(1);
    const r = reshape(t, [6]);
    expect(r.node.storage).toBeNull();
    t.dispose();
    expect(buffers).toBe(1);
    r.dispose();
    expect(buffers).toBe(0);
  });

  it('assign lets the old value go and keeps the new one', () => {
    const w = data();
    const next = add(w, 1);
    w.assign(next);
    next.dispose();
    expect(buffers).toBe(1);
    fakeFlush();
    expect(buffers).toBe(1);
    w.dispose();
    expect(buffers).toBe(0);
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
    expect(buffers).toBe(0);
  });
});

describe('scopes', () => {
  it('disposes what is not returned, kept or nested in the result', () => {
    const before = liveHandles();
    let saved: Tensor | undefined;
    const result = scope(() => {
      const a = data();
      saved = keep(data());
      return { list: [exp(a)], map: new Map([['x', data()]]), text: 'a' };
    });
    expect(flushes).toBe(1);
    expect(liveHandles() - before).toBe(3);
    expect(buffers).toBe(3);
    result.list[0]?.dispose();
    result.map.get('x')?.dispose();
    saved?.dispose();
    expect(buffers).toBe(0);
  });

  it('inner results belong to the outer scope', () => {
    scope(() => {
      const inner = scope(() => exp(data()));
      expect(inner.disposed).toBe(false);
      return 1;
    });
    expect(buffers).toBe(0);
    expect(flushes).toBe(0);
  });

  it('releases everything when the function throws', () => {
    expect(() =>
      scope(() => {
        softmax(data());
        throw new Error('on purpose');
      }),
    ).toThrow('on purpose');
    expect(buffers).toBe(0);
  });

  it('refuses asynchronous functions', () => {
    expect(() => scope(async () => data())).toThrow(/\[scope\].*promise/);
    expect(() => noGrad(async () => 1)).toThrow(/\[noGrad\].*promise/);
    expect(buffers).toBe(0);
  });

  it('composites leave nothing behind but their result', () => {
    const x = data();
    const before = liveHandles();
    const pending = pendingHandles.length;
    const y = softmax(x);
    expect(liveHandles() - before).toBe(1);
    expect(pendingHandles.length - pending).toBe(1);
    y.dispose();
    x.dispose();
    expect(buffers).toBe(0);
  });

  it('composites that throw leave nothing behind', () => {
    const before = liveHandles();
    const x = tensor([[1, 2]]);
    expect(() => softmax(x, 5)).toThrow(/\[softmax\] axis out of range: 5/);
    x.dispose();
    expect(liveHandles()).toBe(before);
  });

  it('says where a disposed tensor was made', () => {
    const y = scope(() => {
      softmax(data());
      return [data()];
    });
    const gone = y[0] as Tensor;
    gone.dispose();
    expect(() => add(gone, 1)).toThrow(/\[add\] tensor used after it was disposed: float32 \[4\] made by tensor/);
    traceOrigins(true);
    const traced = ones([1]);
    traceOrigins(false);
    traced.dispose();
    expect(() => exp(traced)).toThrow(/lifetimes\.test/);
  });

  it('works with using', () => {
    const x = data();
    x[Symbol.dispose]();
    expect(x.disposed).toBe(true);
    expect(isTensor(x)).toBe(true);
    expect(buffers).toBe(0);
  });
});

describe('flushes', () => {
  it('start at the limit of nodes, between operations only', () => {
    setPendingLimits({ nodes: 10 });
    try {
      const x = data();
      for (let i = 0; i < 4; i++) softmax(x);
      expect(flushes).toBeGreaterThan(0);
      expect(flushes).toBeLessThan(4);
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
      expect(flushes).toBe(1);
    } finally {
      setPendingLimits({ bytes: 512 * 2 ** 20 });
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
    expect(flushes).toBe(0);
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
    expect(buffers).toBe(3);
    loss.dispose();
    expect(buffers).toBe(1);
    w.dispose();
    expect(buffers).toBe(0);
  });

  it('are released by backward, and gradients stay', () => {
    const w = tensor([1, 2], { requiresGrad: true });
    const loss = scope(() => sum(exp(w)));
    loss.backward();
    fakeFlush();
    expect(loss.node.src.length).toBe(0);
    expect(w.grad?.shape).toEqual([2]);
    expect(buffers).toBe(3);
    loss.dispose();
    w.dispose();
    expect(buffers).toBe(0);
  });

  it('of constant branches survive a flush that does not compute them', () => {
    const w = tensor([1, 2], { requiresGrad: true });
    const k = data(2);
    const loss = scope(() => sum(mul(w, exp(k))));
    k.dispose();
    fakeFlush();
    expect(buffers).toBe(3);
    verifyGraph([loss]);
    loss.dispose();
    expect(buffers).toBe(1);
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
    expect(buffers).toBe(2);
    expect(z.node.src.length).toBe(1);
    tape.dispose();
    expect(z.node.src.length).toBe(0);
    x.dispose();
    z.dispose();
    expect(buffers).toBe(0);
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
      expect(next.requiresGrad).toBe(false);
      total.dispose();
      loss.dispose();
      total = next;
      fakeFlush();
    }
    // w, its gradient, the sum.
    expect(buffers).toBe(3);
    total.dispose();
    w.dispose();
    expect(buffers).toBe(0);
  });
});

describe('verifier and printer', () => {
  it('prints one line per node', () => {
    const x = data(2);
    const text = printGraph([x.mul(3).add(x)]).replaceAll(/buffer \d+/g, 'buffer N');
    expect(text.split('\n').map((line) => line.replace(/\s+#.*/, ''))).toEqual([
      '%0 = buffer : float32 [2]',
      '%1 = scalar {value=3} : float32 []',
      '%2 = mul %0 %1 : float32 [2]',
      '%3 = add %2 %0 : float32 [2]',
    ]);
    expect(text).toContain('buffer N');
  });

  it('finds nodes that do not fit their rule', () => {
    const y = exp(data(2));
    verifyGraph([y]);
    const broken = { ...y.node, shape: [3] } as Node;
    expect(sameShape(broken.shape, [3])).toBe(true);
    expect(() => verifyGraph([broken])).toThrow(GraphInvariantError);
    const lost = { ...y.node, src: [] } as Node;
    expect(() => verifyGraph([lost])).toThrow(/lost its sources/);
    expect(() => verifyGraph([wrap(lost)])).toThrow(GraphInvariantError);
  });
});
