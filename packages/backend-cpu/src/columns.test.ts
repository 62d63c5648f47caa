/** Sums of columns beyond the caches, in one step and in two: right, the same on one thread and two, and as many kernels as planned. */
import { flush, scope, setEngine, stats, sum, tensor, transpose } from '@polygrad/core';
import { afterAll, describe, expect, it } from 'vitest';
import { type CpuEngine, createCpuEngine } from './engine.ts';

const engines: CpuEngine[] = [1, 2].map((threads) => createCpuEngine({ threads }));
afterAll(() => {
  for (const engine of engines) engine.dispose();
});

/** Eighths below 4: sums of a million of them are exact in float32. */
function eighths(length: number): Float32Array {
  return Float32Array.from({ length }, (_, i) => ((i * 2654435761) % 32) / 8 - 2);
}

const cases = [
  { what: 'tall', shape: [20011, 96], axis: 0, kernels: 2 },
  { what: 'square', shape: [1500, 1100], axis: 0, kernels: 2 },
  { what: 'middle', shape: [40, 300, 130], axis: 1, kernels: 1 },
  { what: 'wide', shape: [33, 70000], axis: 0, kernels: 1 },
];

describe('sums of columns', () => {
  it.each(cases)('$what $shape', async ({ shape, axis, kernels }) => {
    const data = eighths(shape.reduce((a, b) => a * b));
    const inner = shape.slice(axis + 1).reduce((a, b) => a * b, 1);
    const rows = shape[axis]!;
    const want = new Float64Array(data.length / rows);
    data.forEach((x, i) => {
      const at = Math.floor(i / (inner * rows)) * inner + (i % inner);
      want[at] = want[at]! + x;
    });
    for (const engine of engines) {
      await setEngine(engine);
      const x = tensor(data, { shape });
      const before = stats().kernels;
      const y = sum(x, { axis });
      flush();
      expect(stats().kernels - before).toBe(kernels);
      const got = y.dataSync();
      expect(got.findIndex((v, i) => v !== want[i])).toBe(-1);
      x.dispose();
      y.dispose();
    }
  });

  it('of a transposed matrix are sums of rows: one step', async () => {
    await setEngine(engines[0]!);
    const [rows, columns] = [1100, 1500];
    const data = eighths(rows * columns);
    const x = tensor(data, { shape: [rows, columns] });
    const before = stats().kernels;
    const y = scope(() => sum(transpose(x), { axis: 0 }));
    flush();
    expect(stats().kernels - before).toBe(1);
    const want = Array.from({ length: rows }, (_, r) =>
      data.subarray(r * columns, (r + 1) * columns).reduce((a, b) => a + b),
    );
    expect([...y.dataSync()]).toEqual(want);
    x.dispose();
    y.dispose();
  });
});
