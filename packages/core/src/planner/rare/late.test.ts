/** In pages forms of rare work come with the first plan that has use of them: who awaits it waits, who cannot gets a plan without them. */
import { describe, expect, it, vi } from 'vitest';
import type * as core from '../../index.ts';

let loads = 0;
let isReachable = true;

/** A program whose rare forms come late and count their loads, or cannot be loaded at first; or one that has them. */
async function program(rare: 'late' | 'unreachable' | 'here'): Promise<typeof core> {
  vi.resetModules();
  loads = 0;
  isReachable = rare !== 'unreachable';
  vi.doMock('#rare', () => import(rare === 'here' ? './here.ts' : './late.ts'));
  vi.doMock('./forms.ts', async (original) => {
    loads++;
    if (!isReachable) throw new Error('no network');
    return original();
  });
  const made = await import('../../index.ts');
  const { createCpuEngine } = await import('@polygrad/backend-cpu');
  await made.setEngine(createCpuEngine({ threads: 1 }));
  return made;
}

const rows = 512;
const columns = 160;
/** Integers, so that sums are exact in any order. */
const data = Float32Array.from({ length: rows * columns }, (_, i) => ((i * 37) % 19) - 9);
const sums = Array.from({ length: columns }, (_, c) =>
  Array.from({ length: rows }, (_, r) => data[r * columns + c]!).reduce((a, b) => a + b),
);

describe('forms of rare work that are loaded when first used', () => {
  it('are waited for by reads and by what is flushed, and hold up nothing else', async () => {
    const { flush, idle, sum, tensor } = await program('late');
    using x = tensor(data, { shape: [rows, columns] });
    using total = sum(x, { axis: 0 });
    flush();
    using other = tensor([1, 2]).add(1);
    expect(other.arraySync()).toEqual([2, 3]);
    await idle();
    expect(loads).toBe(1);
    expect(total.arraySync()).toEqual(sums);
    using again = sum(x.mul(2), { axis: 0 });
    expect(again.arraySync()).toEqual(sums.map((s) => 2 * s));
  });

  it('make the plans of programs that have them', async () => {
    const thirds = data.map((x) => x / 3);
    const added = async ({ sum, tensor }: typeof core): Promise<unknown> => {
      using x = tensor(thirds, { shape: [rows, columns] });
      using total = sum(x, { axis: 0 });
      return total.array();
    };
    expect(await added(await program('late'))).toEqual(await added(await program('here')));
  });

  it('are not asked for by small products, whose derivatives are sums of products without an axis to add along', async () => {
    const { einsum, jvp, tensor } = await program('late');
    const dtype = 'float64';
    using a = tensor(2, { dtype });
    using b = tensor([1, 2, 3], { dtype });
    const tangents: [core.Tensor, core.Tensor] = [tensor(0.5, { dtype }), tensor([1, 0, -1], { dtype })];
    const [value, change] = jvp((x: core.Tensor, y: core.Tensor) => einsum(',i->i', x, y), [a, b], tangents);
    expect(await value.array()).toEqual([2, 4, 6]);
    expect(await change.array()).toEqual([2.5, 1, -0.5]);
  });

  it('are done without by readers that cannot wait, that is for the first plans', async () => {
    const { argMax, conv2d, grad, sum, tensor, ones } = await program('late');
    using x = tensor(data, { shape: [rows, columns] });
    using total = sum(x, { axis: 0 });
    expect(total.arraySync()).toEqual(sums);
    // Large positions, and the gradient by the input of a convolution in steps.
    using long = tensor(Float32Array.from({ length: 300_000 }, (_, i) => (i === 270_001 ? 2 : (i % 7) / 7)));
    using place = argMax(long);
    expect(place.itemSync()).toBe(270_001);
    using image = ones([4, 16, 32, 32]);
    using kernel = ones([16, 16, 2, 2]);
    using slope = grad((t: core.Tensor) => sum(conv2d(t, kernel, { stride: 2 })))(image) as core.Tensor;
    expect(new Set(Array.from(slope.dataSync(), Number))).toEqual(new Set([16]));
    using later = sum(x.mul(2), { axis: 0 });
    expect(await later.array()).toEqual(sums.map((s) => 2 * s));
    expect(loads).toBe(1);
  });

  it('are done without by readers that cannot wait: long sums, products with a vector, starts within tensors', async () => {
    const { concat, grad, matmul, sum, tensor } = await program('late');
    const whole = (n: number): Float32Array => Float32Array.from({ length: n }, (_, i) => ((i * 29) % 7) - 3);
    const n = 20_000;
    using x = tensor(whole(n));
    using y = tensor(whole(n));
    const product = whole(n).reduce((a, b) => a + b * b, 0);
    using total = sum(x);
    expect(total.itemSync()).toBe(whole(n).reduce((a, b) => a + b));
    using dot = matmul(x, y);
    expect(dot.itemSync()).toBe(product);
    const [elements, factors] = [whole(130 * 140), whole(140)];
    using m = tensor(elements, { shape: [130, 140] });
    using v = tensor(factors);
    using mv = matmul(m, v);
    expect(Array.from(mv.dataSync(), Number)).toEqual(
      Array.from({ length: 130 }, (_, r) => factors.reduce((a, b, c) => a + b * elements[r * 140 + c]!, 0)),
    );
    using half = sum(tensor(whole(n).map(Math.abs), { dtype: 'float64' }));
    expect(half.itemSync()).toBe(whole(n).reduce((a, b) => a + Math.abs(b), 0));
    // Outer products: a sum of one product each.
    using column = tensor(whole(150), { shape: [150, 1] });
    using row = tensor(whole(120), { shape: [1, 120] });
    using outer = matmul(column, row);
    expect(outer.dataSync()[7 * 120 + 5]).toBe(whole(150)[7]! * whole(120)[5]!);
    using slope = grad((t: core.Tensor) => sum(matmul(t, v)))(m) as core.Tensor;
    expect(Array.from(slope.dataSync().subarray(140, 280), Number)).toEqual(Array.from(factors));
    using tail = concat([x.slice([{ start: 100 }]), y.slice([{ start: 3, stop: 50 }])]).mul(2);
    expect(Array.from(tail.dataSync().subarray(0, 3), Number)).toEqual([100, 101, 102].map((i) => 2 * whole(n)[i]!));
    using later = matmul(x, y.mul(2));
    expect(await later.item()).toBe(2 * product);
    expect(loads).toBe(1);
  });

  it('are done without by everybody while they cannot be loaded, and tried again by each new plan until they can', async () => {
    const thirds = data.map((x) => x / 3);
    const added = async ({ sum, tensor }: typeof core, factor: number): Promise<number> => {
      using x = tensor(thirds, { shape: [rows, columns] });
      using total = sum(x.mul(factor).tanh());
      return total.item();
    };
    const expected = await added(await program('here'), 1);
    const made = await program('unreachable');
    using x = made.tensor(data, { shape: [rows, columns] });
    using total = made.sum(x, { axis: 0 });
    made.flush();
    await made.idle();
    expect(await total.array()).toEqual(sums);
    expect(loads).toBeGreaterThan(0);
    // Nobody waits for what may fail again, so sums are taken in another order.
    const without = await added(made, 1);
    expect(without).not.toBe(expected);
    expect(without).toBeCloseTo(expected, 1);
    isReachable = true;
    await vi.waitFor(async () => {
      made.clearPlans();
      expect(await added(made, 1)).toBe(expected);
    });
    const before = loads;
    made.clearPlans();
    expect(await added(made, 1)).toBe(expected);
    expect(loads).toBe(before);
  });

  it('are waited for by plans for several sizes', async () => {
    const { setDynamicSizes, stats, sum, tensor } = await program('late');
    setDynamicSizes('always');
    for (const n of [9, 10, 11, 12]) {
      using x = tensor(data.subarray(0, 64 * n), { shape: [64, n] });
      using twice = x.mul(2);
      expect(Array.from(await twice.data(), Number)).toEqual(Array.from(data.subarray(0, 64 * n), (v) => 2 * v));
      using total = sum(x, { axis: 0 });
      expect(Array.from(await total.data(), Number)).toEqual(
        Array.from({ length: n }, (_, c) =>
          Array.from({ length: 64 }, (_, r) => data[r * n + c]!).reduce((a, b) => a + b),
        ),
      );
    }
    expect(stats().plansMade).toBeLessThan(8);
    expect(loads).toBe(1);
  });

  it('make products whose columns and strides are sizes, which readers that cannot wait get without', async () => {
    const rowsByRows = ({ matmul, tensor, transpose }: typeof core, n: number, from: Float32Array): core.Tensor => {
      using x = tensor(from.slice(0, n * 32), { shape: [n, 32] });
      using y = tensor(from.slice(100, 100 + (n + 3) * 32), { shape: [n + 3, 32] });
      return matmul(x, transpose(y));
    };
    const expected = (n: number): number[] =>
      Array.from({ length: n * (n + 3) }, (_, at) => {
        const [i, j] = [Math.floor(at / (n + 3)), at % (n + 3)];
        return Array.from({ length: 32 }, (_, k) => data[i * 32 + k]! * data[100 + j * 32 + k]!).reduce(
          (a, b) => a + b,
        );
      });
    const sizes = [30, 37, 44, 60];
    const thirds = data.map((x) => x / 3);
    const all = async (made: typeof core): Promise<number[][]> => {
      made.setDynamicSizes('always');
      const found: number[][] = [];
      for (const n of sizes) {
        using exact = rowsByRows(made, n, data);
        expect(Array.from(await exact.data(), Number)).toEqual(expected(n));
        using rounded = rowsByRows(made, n, thirds);
        found.push(Array.from(await rounded.data(), Number));
      }
      expect(made.stats().plansMade).toBeLessThan(sizes.length);
      return found;
    };
    expect(await all(await program('late'))).toEqual(await all(await program('here')));
    const late = await program('late');
    late.setDynamicSizes('always');
    for (const n of sizes) {
      using product = rowsByRows(late, n, data);
      expect(Array.from(product.dataSync(), Number)).toEqual(expected(n));
    }
    await vi.waitFor(() => expect(loads).toBe(1));
  });

  it('make products whose columns groups copy, and loops that a divisor does not divide', async () => {
    const product = ({ matmul, tensor }: typeof core, from: Float32Array): core.Tensor => {
      using x = tensor(from.slice(0, 96 * 64), { shape: [96, 64] });
      using y = tensor(from.slice(0, 64 * 512), { shape: [64, 512] });
      return matmul(x, y);
    };
    const exact = Array.from({ length: 96 * 512 }, (_, at) =>
      Array.from({ length: 64 }, (_, k) => data[Math.floor(at / 512) * 64 + k]! * data[k * 512 + (at % 512)]!).reduce(
        (a, b) => a + b,
      ),
    );
    const thirds = data.map((x) => x / 3);
    const all = async (made: typeof core): Promise<unknown> => {
      using whole = product(made, data);
      expect(Array.from(await whole.data(), Number)).toEqual(exact);
      using rounded = product(made, thirds);
      using diagonal = made.diag(made.tensor(data.slice(0, 150)), { offset: 3 });
      const places = Array.from(await diagonal.data(), Number);
      expect(places.flatMap((x, at) => (x === 0 ? [] : [[at, x]]))).toEqual(
        Array.from(data.slice(0, 150)).flatMap((x, i) => (x === 0 ? [] : [[i * 153 + i + 3, x]])),
      );
      return Array.from(await rounded.data(), Number);
    };
    expect(await all(await program('late'))).toEqual(await all(await program('here')));
    const late = await program('late');
    using sync = product(late, data);
    expect(Array.from(sync.dataSync(), Number)).toEqual(exact);
    using diagonal = late.diag(late.tensor(data.slice(0, 150)), { offset: 3 });
    expect(Number(diagonal.dataSync()[4 * 153 + 7])).toBe(data[4]);
    await vi.waitFor(() => expect(loads).toBe(1));
  });

  it('are not loaded for small work', async () => {
    const { matmul, sum, tensor } = await program('late');
    using weights = tensor([[1, 2, 3]]);
    using outputs = matmul(tensor([[1], [2]]), weights);
    using single = matmul(outputs, tensor([1, 0, -1]));
    expect(await single.array()).toEqual([-2, -4]);
    using x = tensor(data.subarray(0, 100 * columns), { shape: [100, columns] });
    using total = sum(x, { axis: 0 });
    expect((await total.data()).length).toBe(columns);
    expect(loads).toBe(0);
  });
});
