/** How many kernels things take: the promises of the planner, pinned on an engine without a device. */
import * as p from '../../graph/primitives.ts';
import { beforeEach, describe, expect, it } from 'vitest';
import { poolOf } from '../../engine/pool.ts';
import { setEngine } from '../../engine/registry.ts';
import { type Handle, type Node, release, retain, type TrackedHandle } from '../../graph/node.ts';
import { tanhPrimitive } from '../../primitives/elementary.ts';
import { trackHandle } from '../../graph/recorder.ts';
import type { DType } from '@polygrad/compiler/shape/dtype';
import { hostArray } from '@polygrad/compiler/shape/host';
import { sizeOf } from '@polygrad/compiler/shape/view';
import { createNullEngine, type NullEngine } from '@polygrad/testing';
import { flush, stats } from '../../runtime/runtime.ts';
import { uploadNode } from '../../runtime/upload.ts';
import {
  adam,
  type AdamState,
  cnnLoss,
  cnnShapes,
  conv,
  crossEntropy,
  gradients,
  layerNorm,
  matmul,
  maxPool,
  relu,
  softmax,
} from '../../runtime/fixtures/models.ts';

let engine: NullEngine;

beforeEach(async () => {
  engine = createNullEngine();
  await setEngine(engine);
});

function leaf(shape: readonly number[], dtype: DType = 'float32'): Node {
  const node = uploadNode(hostArray(dtype, sizeOf(shape)), shape, dtype);
  retain(node);
  return node;
}

/** A tensor as far as the planner sees it. */
function hold(node: Node): Handle & { dispose(): void } {
  retain(node);
  const handle: TrackedHandle = {
    node,
    disposed: false,
    watched: { node },
    kept: false,
    stamp: 0,
    dispose() {
      if (handle.disposed) return;
      (handle as { disposed: boolean }).disposed = true;
      release(node);
    },
  };
  trackHandle(handle);
  return handle;
}

/** Names of the kernels that the nodes take together. */
function kernels(...nodes: Node[]): readonly string[] {
  for (const node of nodes) hold(node);
  engine.reset();
  flush();
  return engine.counts().kernels;
}

describe('one kernel', () => {
  it('for an elementwise chain with broadcasts and bound numbers', () => {
    const x = leaf([64, 100]);
    const y = leaf([100]);
    expect(kernels(p.unary(tanhPrimitive, p.add(p.mul(x, p.scalar(2, 'float32')), y)))).toHaveLength(1);
  });

  it('for softmax, of any size', () => {
    expect(kernels(softmax(leaf([64, 10])))).toHaveLength(1);
    expect(kernels(softmax(leaf([2048, 1000])))).toHaveLength(1);
    expect(kernels(softmax(leaf([4, 8, 128, 128])))).toHaveLength(1);
  });

  it('for layer norm', () => {
    expect(kernels(layerNorm(leaf([512, 256]), leaf([256]), leaf([256])))).toHaveLength(1);
    expect(kernels(layerNorm(leaf([4, 128, 768]), leaf([768]), leaf([768])))).toHaveLength(1);
  });

  it('for log-softmax and its loss on a small batch', () => {
    expect(kernels(crossEntropy(leaf([64, 10]), leaf([64], 'int32')))).toHaveLength(1);
  });

  it('and no more for matmul with bias and ReLU, of any rank', () => {
    const a = leaf([128, 784]);
    const b = leaf([784, 128]);
    const plain = kernels(matmul(a, b)).length;
    expect(kernels(relu(p.add(matmul(a, b), leaf([128]))))).toHaveLength(plain);
    const dot = matmul(leaf([12, 64]), leaf([64, 32]));
    const bare = kernels(dot).length;
    const again = matmul(leaf([12, 64]), leaf([64, 32]));
    expect(kernels(relu(p.add(p.reshape(again, [3, 4, 32]), leaf([32]))))).toHaveLength(bare);
  });

  it('and no more for convolution with bias and ReLU', () => {
    const x = leaf([8, 3, 16, 16]);
    const w = leaf([4, 3, 3, 3]);
    const plain = kernels(conv(x, w, 1)).length;
    expect(kernels(relu(p.add(conv(x, w, 1), leaf([4, 1, 1]))))).toHaveLength(plain);
  });

  it('for several outputs over the same elements', () => {
    const x = leaf([100, 100]);
    const y = p.unary('exp', x);
    expect(kernels(y, p.mul(y, y), p.add(x, y))).toHaveLength(1);
  });

  it('for reductions of a matrix along one axis, but not along both, which read memory in two orders', () => {
    const [x, y] = [leaf([600, 600]), leaf([600])];
    const rows = (by: Node): Node => p.reduce(p.mul(x, by), 'sum', [1]);
    expect(kernels(rows(y), p.reduce(x, 'max', [1]))).toHaveLength(1);
    expect(kernels(p.reduce(x, 'max', [0]), p.argReduce(x, 'max', [0]))).toHaveLength(1);
    expect(kernels(rows(y), p.reduce(p.mul(x, p.reshape(y, [600, 1])), 'sum', [0]))).toHaveLength(2);
  });

  it('for a maximum and its position', () => {
    const x = leaf([8, 4, 12, 12]);
    const pooled = maxPool(x);
    const source = pooled.src[0] as Node;
    expect(kernels(pooled, p.argReduce(source, 'max', [4, 5]))).toHaveLength(1);
  });
});

describe('few kernels', () => {
  it('for many tensors joined to one', () => {
    expect(
      kernels(
        p.concat(
          Array.from({ length: 100 }, () => leaf([1, 64])),
          0,
        ),
      ).length,
    ).toBeLessThanOrEqual(2);
  });

  it('for a chain of many reductions, not one that takes for ever', () => {
    let y = leaf([64, 32]);
    for (let i = 0; i < 60; i++) y = p.sub(y, p.reshape(p.reduce(y, 'sum', [1]), [64, 1]));
    expect(kernels(y).length).toBeLessThanOrEqual(10);
  });
});

describe('no kernel', () => {
  it('for views of what is in memory', () => {
    const x = leaf([6, 4]);
    const sum = p.add(x, x);
    expect(kernels(sum, p.permute(sum, [1, 0]), p.reshape(sum, [24]))).toHaveLength(1);
  });

  it('for what nobody holds', () => {
    const x = leaf([6, 4]);
    const handle = hold(p.add(x, x));
    handle.dispose();
    expect(kernels(p.mul(x, x))).toHaveLength(1);
  });
});

describe('Adam', () => {
  it('takes a handful of kernels for many parameters, and writes over the old ones', () => {
    const shapes = Array.from({ length: 30 }, (_, i) => [10 + i, 7]);
    const states = shapes.map((shape): AdamState => ({ value: leaf(shape), m: leaf(shape), v: leaf(shape) }));
    const grads = shapes.map((shape) => leaf(shape));
    const numbers = [p.scalar(0.001, 'float32'), p.scalar(0.1, 'float32'), p.scalar(0.001, 'float32')] as const;
    const next = states.map((state, i) => adam(state, grads[i] as Node, ...numbers));
    const before = stats().bytes;
    for (const node of next.flatMap(({ value, m, v }) => [value, m, v])) hold(node);
    for (const { value, m, v } of states) for (const node of [value, m, v]) release(node);
    engine.reset();
    flush();
    expect(engine.counts().dispatches).toBeLessThanOrEqual(3);
    expect(stats().bytes).toBe(before);
  });
});

describe('a CNN training step', () => {
  const batch = 64;

  function step(state: AdamState[], x: Node, labels: Node, t: number): { next: AdamState[]; loss: Node } {
    const params = state.map((s) => s.value);
    const loss = cnnLoss(x, labels, params);
    const grads = gradients(loss, params);
    const numbers = [
      p.scalar(0.001, 'float32'),
      p.scalar(1 - 0.9 ** t, 'float32'),
      p.scalar(1 - 0.999 ** t, 'float32'),
    ] as const;
    return { next: state.map((s, i) => adam(s, grads[i] as Node, ...numbers)), loss };
  }

  it('takes few kernels, makes one plan, and holds its memory', () => {
    let state = cnnShapes.map((shape): AdamState => ({ value: leaf(shape), m: leaf(shape), v: leaf(shape) }));
    const x = leaf([batch, 1, 28, 28]);
    const labels = leaf([batch], 'int32');
    const bytes: number[] = [];
    for (let t = 1; t <= 4; t++) {
      const { next, loss } = step(state, x, labels, t);
      const handles = next.flatMap(({ value, m, v }) => [value, m, v].map(hold));
      const lossHandle = hold(loss);
      for (const { value, m, v } of state) for (const node of [value, m, v]) release(node);
      engine.reset();
      flush();
      lossHandle.dispose();
      state = next;
      bytes.push(stats().bytes);
      expect(handles.length).toBe(18);
    }
    expect(stats()).toMatchObject({ planMisses: 1, planHits: 3 });
    expect(new Set(bytes).size).toBe(1);
    // Templates add kernels that pack operands; their names say so.
    const own = engine.counts().kernels.filter((name) => !/_(pack|pad|combine|zero)$/.test(name));
    expect(own.length).toBeLessThanOrEqual(16);
    expect(poolOf(engine).memory().peakBytes).toBeLessThan(9e6);
    expect(engine.counts().submits).toBe(1);
  });
});
