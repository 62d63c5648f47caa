/**
 * Updates in place beside each other, as optimizers make them: what one store of a kernel overwrites, another of its stores reads. On groups of
 * threads as on single ones, all reads come first.
 */
import { describe, expect, it } from 'vitest';
import { add, flush, mean, mul, scope, setEngine, sub, sum, type Tensor, tensor } from '../index.ts';
import { createReferenceEngine } from '@polygrad/testing';

const wave = (n: number, step: number): Float32Array => Float32Array.from({ length: n }, (_, i) => Math.sin(step * i));

describe.each([false, true])('groups of threads: %s', (simt) => {
  /** Three steps of `momentum = 0.9 momentum + g; value = value - 0.1 momentum` in place, and the same in plain numbers. */
  async function steps(shape: readonly number[], gradient: () => Tensor, plain: readonly number[]): Promise<void> {
    const fresh = (): Tensor => tensor(new Float32Array(plain.length).fill(1), { shape });
    const [momentum, value] = [fresh(), fresh()];
    flush();
    const [m, v] = [plain.map(() => 1), plain.map(() => 1)];
    for (let step = 0; step < 3; step++) {
      scope(() => {
        const next = add(mul(momentum, 0.9), gradient());
        const moved = sub(value, mul(next, 0.1));
        momentum.assign(next);
        value.assign(moved);
      });
      for (const [i, g] of plain.entries()) {
        m[i] = 0.9 * (m[i] as number) + g;
        v[i] = (v[i] as number) - 0.1 * (m[i] as number);
      }
    }
    const found = [...(await momentum.data()), ...(await value.data())] as number[];
    for (const [i, expected] of [...m, ...v].entries()) expect(found[i]).toBeCloseTo(expected, 3);
    momentum.dispose();
    value.dispose();
  }

  it('the sum that a group shares is added by one thread, once', async () => {
    await setEngine(createReferenceEngine({ simt }));
    const data = wave(4 * 8 * 300, 0.7);
    using x = tensor(data, { shape: [4, 8, 300] });
    const plain = Array.from({ length: 8 }, (_, c) => {
      let total = 0;
      for (let i = 0; i < 4 * 300; i++) total += data[Math.floor(i / 300) * 2400 + c * 300 + (i % 300)] as number;
      return total;
    });
    await steps([8], () => sum(x, { axis: [0, 2] }), plain);
  });

  it('rows whose reduction a group shares are written back by all its threads, once', async () => {
    await setEngine(createReferenceEngine({ simt }));
    const data = wave(5 * 700, 0.3);
    using x = tensor(data, { shape: [5, 700] });
    const plain = Array.from(data, (value, i) => {
      const row = data.subarray(Math.floor(i / 700) * 700, Math.floor(i / 700) * 700 + 700);
      return value - row.reduce((total, one) => total + one, 0) / 700;
    });
    await steps([5, 700], () => sub(x, mean(x, { axis: 1, keepDims: true })), plain);
  });
});
