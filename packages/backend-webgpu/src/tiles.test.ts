/**
 * Kernels for groups of threads as hardware gets them, also where the adapter is software and would be given others: tiles in group
 * memory with barriers, sums shared by threads, transposes, scans, sorts, scatters. Against plain loops in float64.
 */
import { conv2d, setEngine, tensor } from '@polygrad/core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { WebGpuEngine } from './gpu-engine.ts';
import { testEngine } from './fixtures/device.ts';

const engine = (await testEngine()) as WebGpuEngine;
afterAll(() => engine?.dispose());

/** Small whole numbers, so that sums are exact. */
const numbers = (length: number, seed: number): Float32Array =>
  Float32Array.from({ length }, (_, i) => ((Math.imul(i + seed, 0x2c1b3c6d) >>> 20) % 9) - 4);

describe.skipIf(engine === null)('kernels for groups of threads', () => {
  beforeAll(async () => {
    Object.defineProperty(engine, 'caps', { value: { ...engine.caps, sharedIsMemory: false } });
    await setEngine(engine);
  });

  for (const [m, n, k, turned] of [
    [33, 18, 24, true],
    [1, 70, 128, true],
    [1, 200, 130, false],
  ] as const) {
    it(`a product of ${m} x ${k} and ${turned ? 'transposed ' : ''}${k} x ${n} with bias and relu`, async () => {
      const [a, b, bias] = [numbers(m * k, 1), numbers(k * n, 2), numbers(n, 3)];
      const want = Array.from({ length: m * n }, (_, at) => {
        const [i, j] = [Math.floor(at / n), at % n];
        let sum = bias[j]!;
        for (let s = 0; s < k; s++) sum += a[i * k + s]! * b[turned ? j * k + s : s * n + j]!;
        return Math.max(0, sum);
      });
      const right = turned ? tensor(b, { shape: [n, k] }).transpose() : tensor(b, { shape: [k, n] });
      const got = await tensor(a, { shape: [m, k] })
        .matmul(right)
        .add(tensor(bias))
        .relu()
        .data();
      expect([...got]).toEqual(want);
    });
  }

  it('a convolution with padding', async () => {
    const [x, w] = [numbers(3 * 9 * 10, 4), numbers(5 * 3 * 9, 5)];
    const want = Array.from({ length: 5 * 90 }, (_, at) => {
      const [o, y, z] = [Math.floor(at / 90), Math.floor(at / 10) % 9, at % 10];
      let sum = 0;
      for (let c = 0; c < 3; c++)
        for (let i = 0; i < 3; i++)
          for (let j = 0; j < 3; j++) {
            const [r, s] = [y + i - 1, z + j - 1];
            if (r < 0 || r >= 9 || s < 0 || s >= 10) continue;
            sum += x[c * 90 + r * 10 + s]! * w[o * 27 + c * 9 + i * 3 + j]!;
          }
      return sum;
    });
    const got = await conv2d(tensor(x, { shape: [1, 3, 9, 10] }), tensor(w, { shape: [5, 3, 3, 3] }), {
      padding: 1,
    }).data();
    expect([...got]).toEqual(want);
  });

  it('a transpose, a running sum, a sort and a scatter', async () => {
    const x = numbers(70 * 64, 6);
    const turned = await tensor(x, { shape: [64, 70] })
      .transpose()
      .mul(2)
      .data();
    expect([...turned]).toEqual(Array.from(x, (_, at) => 2 * x[(at % 64) * 70 + Math.floor(at / 64)]!));
    const short = x.slice(0, 300);
    let sum = 0;
    expect([...(await tensor(x).cumSum(0).data())]).toEqual(Array.from(x, (v) => (sum += v)));
    expect([...(await tensor(short).sort().data())]).toEqual([...short].sort((p, q) => p - q));
    const index = Int32Array.from(short, (v, i) => (i * 7 + v + 4) % 50);
    const want = new Float32Array(50);
    short.forEach((v, i) => {
      want[index[i]!] = want[index[i]!]! + v;
    });
    const got = await tensor(new Float32Array(50)).scatterAdd(tensor(index), tensor(short)).data();
    expect([...got]).toEqual([...want]);
  });
});
