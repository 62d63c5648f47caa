/** Values of whole models, fused, against their definition in float64. */
import * as p from '../../graph/primitives.ts';
import { beforeEach, describe, expect, it } from 'vitest';
import type { EngineCaps, IEngine } from '../../engine/engine.ts';
import { getEngine, setEngine } from '../../engine/registry.ts';
import { type Node, release, retain } from '../../graph/node.ts';
import { trackHandle } from '../../graph/recorder.ts';
import { scatterAddPrimitive } from '../../primitives/indexing.ts';
import { sizeOf } from '@polygrad/compiler/shape/view';
import { type Values, valuesOf } from '../../graph/fixtures/graph-values.ts';
import { createReferenceEngine } from '@polygrad/testing';
import { flushNodes } from '../../runtime/fixtures/flush-nodes.ts';
import { readNode } from '../../runtime/reading.ts';
import { flush, stats } from '../../runtime/runtime.ts';
import { uploadNode } from '../../runtime/upload.ts';
import { adam, type AdamState, cnnLoss, gradients, layerNorm, softmax } from '../../runtime/fixtures/models.ts';

const leaves = new Map<Node, Values>();
let seed = 1;

function random(): number {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
  return seed / 2 ** 32 - 0.5;
}

function leaf(
  shape: readonly number[],
  of: (i: number) => number = random,
  dtype: 'float32' | 'int32' = 'float32',
): Node {
  const values = Float64Array.from({ length: sizeOf(shape) }, (_, i) => of(i));
  const data = dtype === 'float32' ? Float32Array.from(values) : Int32Array.from(values);
  const node = uploadNode(data, shape, dtype);
  retain(node);
  leaves.set(node, Float64Array.from(data));
  return node;
}

function limited(engine: IEngine, caps: Partial<EngineCaps>): IEngine {
  return { ...engine, caps: { ...engine.caps, ...caps } };
}

const engines: readonly [string, () => IEngine][] = [
  ['reference', () => createReferenceEngine({ nativeFunctions: true })],
  ['reference with groups', () => createReferenceEngine({ nativeFunctions: true, simt: true })],
  [
    'reference with 8 bindings and no arenas',
    () => limited(createReferenceEngine({ nativeFunctions: true }), { maxBindings: 8, arena: false, bindAlign: 256 }),
  ],
];

async function check(outputs: readonly Node[], tolerance = 1e-5): Promise<void> {
  const want = valuesOf(outputs, leaves);
  const before = stats().bytes;
  for (const node of outputs) retain(node);
  flushNodes(outputs);
  for (const [i, node] of outputs.entries()) {
    const got = (await readNode(node)) as Float32Array;
    const expected = want[i] as Values;
    const scale = expected.reduce((m, v) => Math.max(m, Math.abs(v)), 1e-3);
    let worst = 0;
    for (let j = 0; j < expected.length; j++)
      worst = Math.max(worst, Math.abs((got[j] as number) - (expected[j] as number)));
    expect(worst / scale, `output ${i}: ${node.op} [${node.shape}]`).toBeLessThan(tolerance);
  }
  for (const node of outputs) release(node);
  expect(stats().bytes).toBe(before);
}

describe.each(engines)('%s', (_, make) => {
  beforeEach(async () => {
    leaves.clear();
    seed = 1;
    await setEngine(make());
  });

  it('trains a CNN for one step', async () => {
    // Groups of threads are slow to interpret.
    const small = getEngine().caps.simt;
    const [c1, c2, size] = small ? [2, 3, 4] : [8, 16, 8];
    const flat = c2 * (size / 4) ** 2;
    const shapes = [[c1, 1, 3, 3], [c1], [c2, c1, 3, 3], [c2], [flat, 10], [10]];
    const state = shapes.map(
      (shape): AdamState => ({ value: leaf(shape), m: leaf(shape), v: leaf(shape, () => random() + 0.6) }),
    );
    const x = leaf([2, 1, size, size]);
    const labels = leaf([2], (i) => (i * 3) % 10, 'int32');
    const step = (): { loss: Node; grads: Node[]; next: Node[] } => {
      const params = state.map((s) => s.value);
      const loss = cnnLoss(x, labels, params);
      const grads = gradients(loss, params);
      const numbers = [p.scalar(0.01, 'float32'), p.scalar(0.1, 'float32'), p.scalar(0.001, 'float32')] as const;
      const next = state.map((s, i) => adam(s, grads[i] as Node, ...numbers));
      return { loss, grads, next: next.flatMap(({ value, m, v }) => [value, m, v]) };
    };
    const first = step();
    await check([first.loss, ...first.grads], 3e-5);
    await check(step().next, 3e-5);
  });

  it('trains over its own memory', async () => {
    const shapes = [[4, 1, 3, 3], [4], [6, 4, 3, 3], [6], [6, 10], [10]];
    let state = shapes.map(
      (shape): AdamState => ({ value: leaf(shape), m: leaf(shape), v: leaf(shape, () => random() + 0.6) }),
    );
    const x = leaf([2, 1, 4, 4]);
    const labels = leaf([2], (i) => i * 3, 'int32');
    for (let t = 1; t <= 3; t++) {
      const params = state.map((s) => s.value);
      const loss = cnnLoss(x, labels, params);
      const grads = gradients(loss, params);
      const numbers = [
        p.scalar(0.01, 'float32'),
        p.scalar(1 - 0.9 ** t, 'float32'),
        p.scalar(1 - 0.999 ** t, 'float32'),
      ] as const;
      const next = state.map((s, i) => adam(s, grads[i] as Node, ...numbers));
      const outputs = next.flatMap(({ value, m, v }) => [value, m, v]);
      const want = valuesOf(outputs, leaves);
      for (const node of outputs) {
        retain(node);
        trackHandle({
          node,
          disposed: false,
          watched: { live: { tensors: 1 }, node },
          kept: false,
          stamp: 0,
          dispose: () => undefined,
        });
      }
      for (const node of state.flatMap(({ value, m, v }) => [value, m, v])) {
        release(node);
        leaves.delete(node);
      }
      const before = stats().bytes;
      flush();
      expect(stats().bytes).toBe(before);
      for (const [i, node] of outputs.entries()) {
        const got = (await readNode(node)) as Float32Array;
        for (const [j, expected] of (want[i] as Values).entries()) expect(got[j]).toBeCloseTo(expected, 4);
        leaves.set(node, Float64Array.from(got));
      }
      state = next;
    }
    expect(stats()).toMatchObject({ planMisses: 1, planHits: 2 });
  });

  it('normalises rows, and differentiates that', async () => {
    const x = leaf([6, 40]);
    const [gain, bias] = [leaf([40]), leaf([40])];
    const y = softmax(layerNorm(x, gain, bias));
    const weights = leaf([6, 40]);
    const total = p.reduce(p.mul(y, weights), 'sum', [0, 1]);
    await check([y, total, ...gradients(total, [x, gain, bias])], 3e-5);
  });

  it('reduces much to little in two steps', async () => {
    const x = leaf([2, 9000]);
    await check([
      p.reduce(x, 'sum', [0, 1]),
      p.reduce(x, 'max', [1]),
      p.reduce(p.mul(x, x), 'sum', [1]),
      p.reduce(p.reshape(x, [18000]), 'min', [0]),
    ]);
    const images = leaf([16, 2, 24, 25]);
    await check([p.reduce(images, 'sum', [0, 2, 3]), p.reduce(images, 'sum', [0, 1, 2, 3])]);
    const tall = leaf([9001, 2]);
    const sum = p.reduce(tall, 'sum', [0]);
    await check([sum, p.sub(tall, p.div(sum, p.constant(9001, 'float32')))]);
  });

  it('joins many parts', async () => {
    const parts = Array.from({ length: 20 }, (_, i) =>
      i % 3 === 0 ? p.mul(leaf([3, 2]), leaf([2])) : leaf([3, 1 + (i % 4)]),
    );
    const whole = p.concat(parts, 1);
    await check([whole, p.reduce(p.concat(parts, 1), 'sum', [0])]);
  });

  it('scatters large updates in order', async () => {
    if (getEngine().caps.simt) return;
    const base = leaf([2, 50, 70]);
    const which = leaf([620], (i) => (i * i) % 50, 'int32');
    const updates = leaf([2, 620, 70]);
    const { makeNode } = await import('../../graph/primitives.ts');
    await check([makeNode(scatterAddPrimitive, [base, which, updates], { axis: 1 })]);
  });
});
