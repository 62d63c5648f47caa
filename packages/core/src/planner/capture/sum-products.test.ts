/** Sums of products with a common result become one product where that moves less, and stay where it would be computed twice. */
import { beforeEach, describe, expect, it } from 'vitest';
import { add, matmul, scope, setEngine, stats, tensor, type Tensor, transpose } from '../../index.ts';
import { createNullEngine, createReferenceEngine } from '@polygrad/testing';

const values = (n: number, seed: number): Float32Array =>
  Float32Array.from({ length: n }, (_, i) => (((i * 37 + seed * 11) % 19) - 9) / 8);
const matrix = (rows: number, columns: number, seed: number): Tensor =>
  tensor(values(rows * columns, seed), { shape: [rows, columns] });

/** Products of [64, depth] and [depth, 48] with different depths, summed. */
const depths = [3, 2, 5, 4, 2, 3, 6, 2, 2];
const pairs = (): [Tensor, Tensor][] => depths.map((depth, i) => [matrix(64, depth, i), matrix(depth, 48, i + 20)]);

function expected(): Float64Array {
  const sum = new Float64Array(64 * 48);
  for (const [t, depth] of depths.entries()) {
    const [a, b] = [values(64 * depth, t), values(depth * 48, t + 20)];
    for (let i = 0; i < 64; i++)
      for (let j = 0; j < 48; j++)
        for (let k = 0; k < depth; k++) sum[i * 48 + j]! += a[i * depth + k]! * b[k * 48 + j]!;
  }
  return sum;
}

describe('values', () => {
  beforeEach(async () => {
    await setEngine(createReferenceEngine());
  });

  it('are those of the products one by one', async () => {
    const got = await pairs()
      .map(([a, b]) => matmul(a, b))
      .reduce((sum, one) => add(sum, one))
      .data();
    for (const [i, value] of expected().entries()) expect(Number(got[i])).toBeCloseTo(value, 4);
  });

  it('are those of turned products', async () => {
    const got = await pairs()
      .map(([a, b]) => transpose(matmul(a, b)))
      .reduce((sum, one) => add(sum, one))
      .data();
    for (const [i, value] of expected().entries())
      expect(Number(got[(i % 48) * 64 + Math.floor(i / 48)])).toBeCloseTo(value, 4);
  });
});

describe('kernels', () => {
  /** Kernels of a sum of products, whose products are kept or not. */
  async function kernels(count: number, depth: number, kept: boolean): Promise<number> {
    const engine = createNullEngine();
    await setEngine(engine);
    const factors = Array.from({ length: count }, (_, i) => [matrix(64, depth, i), matrix(depth, 48, i)] as const);
    const before = stats(engine).kernels;
    // Tensors that a scope does not return have no other users.
    const results = scope(() => {
      const products = factors.map(([a, b]) => matmul(a, b));
      const total = products.reduce((sum, one) => add(sum, one));
      return kept ? [total, ...products] : [total];
    });
    for (const result of results) result.dispose();
    return stats(engine).kernels - before;
  }

  it('are one for the product and those that put factors side by side, seven to a kernel', async () => {
    expect(await kernels(28, 4, false)).toBeLessThanOrEqual(28 / 7 + 28 / 7 + 3);
  });

  it('are one for each product where somebody else needs it, or where the factors are large against the result', async () => {
    expect(await kernels(8, 4, true)).toBeGreaterThanOrEqual(8);
    expect(await kernels(8, 512, false)).toBeGreaterThanOrEqual(8);
  });
});

describe('along a length that is a size', () => {
  /** The sum of products of [n, 64] turned and [n, 48]. */
  const summed = (n: number): Tensor =>
    scope(() =>
      [0, 1, 2, 3, 4]
        .map((i) => matmul(transpose(matrix(n, 64, i)), matrix(n, 48, i + 20)))
        .reduce((sum, one) => add(sum, one)),
    );

  it('values are those of the products one by one', async () => {
    await setEngine(createReferenceEngine());
    for (const n of [9, 10, 11, 8, 30]) {
      const result = summed(n);
      const got = await result.data();
      const want = new Float64Array(64 * 48);
      for (let t = 0; t < 5; t++) {
        const [a, b] = [values(n * 64, t), values(n * 48, t + 20)];
        for (let k = 0; k < n; k++)
          for (let i = 0; i < 64; i++)
            for (let j = 0; j < 48; j++) want[i * 48 + j]! += a[k * 64 + i]! * b[k * 48 + j]!;
      }
      for (const [i, value] of want.entries()) expect(Number(got[i])).toBeCloseTo(value, 3);
      result.dispose();
    }
    expect(stats()).toMatchObject({ families: 1, binds: 4 });
  });

  it('kernels are the product and those that put factors side by side', async () => {
    const engine = createReferenceEngine();
    await setEngine(engine);
    const kernels = async (n: number): Promise<number> => {
      const before = stats(engine).kernels;
      const result = summed(n);
      await result.data();
      result.dispose();
      return stats(engine).kernels - before;
    };
    expect(await kernels(9)).toBeLessThanOrEqual(3);
    expect(await kernels(10)).toBeLessThanOrEqual(3);
    expect(stats(engine)).toMatchObject({ families: 1, binds: 1 });
  });
});
