/** Values against finite differences, the same training on both devices, drawings, hostile sizes. */
import '@polygrad/backend-cpu';
import { memory, setEngine } from '@polygrad/core';
import { beforeAll, describe, expect, it } from 'vitest';
import { cpu, gpu, Layer, MLP, Neuron, sumOf, toDot, toSvg, Value } from './index.ts';

beforeAll(async () => {
  await setEngine('cpu');
});

describe('Value', () => {
  const functions: readonly (readonly [string, (a: Value, b: Value) => Value])[] = [
    ['add, sub, neg', (a, b) => a.add(b).sub(a.mul(3)).neg()],
    ['mul, div', (a, b) => a.mul(b).div(b.add(4))],
    ['pow', (a, b) => a.pow(3).add(b.pow(-2))],
    ['exp, log', (a, b) => a.exp().add(b.mul(b).log())],
    ['tanh, relu', (a, b) => a.tanh().mul(b).relu().add(a.relu())],
    [
      'used several times',
      (a, b) =>
        a
          .mul(a)
          .mul(a)
          .add(sumOf([a, b, a, b])),
    ],
  ];
  it.each(functions)('%s: gradients are slopes', (_, f) => {
    const at = [0.7, 1.3] as const;
    const [a, b] = [new Value(at[0]), new Value(at[1])];
    f(a, b).backward();
    const h = 1e-6;
    const slope = (i: number): number => {
      const moved = (by: number) =>
        f(new Value(at[0] + (i === 0 ? by : 0)), new Value(at[1] + (i === 1 ? by : 0))).data;
      return (moved(h) - moved(-h)) / (2 * h);
    };
    expect(a.grad).toBeCloseTo(slope(0), 6);
    expect(b.grad).toBeCloseTo(slope(1), 6);
  });

  it('a second backward starts anew, and long chains do not overflow the stack', () => {
    const a = new Value(1);
    let y: Value = a;
    for (let i = 0; i < 100_000; i++) y = y.add(1);
    y.backward();
    y.backward();
    expect([y.data, a.grad]).toEqual([100_001, 1]);
  });

  it('takes numbers only', () => {
    expect(() => new Value('3' as never)).toThrow('[Value] a Value holds a number: got string');
  });
});

describe('drawings', () => {
  const a = new Value(2);
  a.label = 'a"<';
  const y = a.mul(a).add(1);
  y.backward();
  it('DOT names every value once and every use as an edge', () => {
    const dot = toDot(y);
    expect(dot.match(/label=/g)).toHaveLength(4);
    expect(dot.match(/->/g)).toHaveLength(4);
    expect(dot).toContain('label="a\\"< | data 2 | grad 4"');
  });
  it('SVG has a box per value, a line per use, no overlap, and no text that ends it', () => {
    const svg = toSvg(y);
    const boxes = [...svg.matchAll(/<rect x="(\d+)" y="(\d+)"/g)].map(([, x, z]) => `${x} ${z}`);
    expect(new Set(boxes).size).toBe(4);
    expect(svg.match(/<path/g)).toHaveLength(4);
    expect(svg).toContain('a&#34;&#60; | data 2 | grad 4');
  });
});

// The two moons of Karpathy's demonstration, small.
const points = Array.from({ length: 24 }, (_, i) => {
  const t = (i / 24) * 2 * Math.PI;
  return i < 12 ? [Math.cos(t), Math.sin(t)] : [1 - Math.cos(t - Math.PI), 0.5 - Math.sin(t - Math.PI)];
});
const sides = points.map((_, i) => [i < 12 ? 1 : -1]);

describe('networks', () => {
  it.each(['tanh', 'relu'] as const)('train alike on Values and on tensors: %s', async (activation) => {
    const onCpu = MLP.random([2, 8, 8, 1], activation, 4);
    const onGpu = await onCpu.to(gpu);
    expect([onCpu.device.name, onGpu.device.name]).toEqual(['cpu', 'gpu']);
    const [x, y] = [cpu.from(points), cpu.from(sides)];
    const [xs, ys] = [gpu.from(points), gpu.from(sides)];
    const losses: number[] = [];
    let buffers = 0;
    for (let step = 0; step < 30; step++) {
      const loss = onCpu.step(x, y, 0.1)[0]![0]!.data;
      const other = onGpu.step(xs, ys, 0.1);
      expect((await gpu.read(other))[0]![0]).toBeCloseTo(loss, 4);
      other.dispose();
      losses.push(loss);
      if (step === 5) buffers = memory().numBuffers;
    }
    // The collector may free meanwhile what earlier tests left.
    expect(memory().numBuffers).toBeLessThanOrEqual(buffers);
    expect(losses.at(-1)!).toBeLessThan(0.5 * losses[0]!);
    const back = await onGpu.to(cpu);
    const [first, again] = await Promise.all([onCpu, back].map((net) => cpu.read(net.forward(x))));
    for (const [i, row] of again!.entries()) expect(row[0]).toBeCloseTo(first![i]![0]!, 3);
  });

  it('a neuron is a layer of one', async () => {
    const neuron = new Neuron(3, 'none', 7);
    const [w, b] = (await Promise.all(neuron.parameters.map((p) => cpu.read(p)))).map((rows) => rows.flat());
    const x = [1, -2, 0.5];
    const expected = x.reduce((total, v, i) => total + v * w![i]!, b![0]!);
    expect((await cpu.read(neuron.forward(cpu.from([x]))))[0]).toEqual([expected]);
    expect(Layer.random(2, 3, 'tanh', 1).parameters[0]).toHaveLength(2);
  });
});
