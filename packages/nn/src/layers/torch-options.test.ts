/**
 * Options of layers beside what PyTorch's values show (torch-layers.test.ts): states saved and restored, compiled steps, evaluation, frozen layers,
 * tables that are changed while gradients are taken, and errors.
 */
import {
  compile,
  grad,
  GradientTape,
  memory,
  noGrad,
  ones,
  permute,
  setEngine,
  square,
  sum,
  type Tensor,
  tensor,
  vmap,
  zeros,
} from '@polygrad/core/functions';
import { createCpuEngine } from '@polygrad/backend-cpu';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  Adam,
  BatchNorm1d,
  BatchNorm2d,
  Conv2d,
  ConvTranspose2d,
  Embedding,
  EmbeddingBag,
  fit,
  functionalCall,
  hostState,
  InstanceNorm1d,
  KVCache,
  Linear,
  lossAndGrad,
  MultiHeadAttention,
  RMSNorm,
  Sequential,
  SGD,
  type StateArray,
} from '../index.ts';

beforeEach(async () => {
  await setEngine(await createCpuEngine({ threads: 1 }));
});

const numbers = async (t: Tensor | null): Promise<number[]> => Array.from((await t!.data()) as Float32Array);
const int = (...data: number[]): Tensor => tensor(data, { dtype: 'int32' });

/** Means and unbiased variances of the columns of batches, the mean of all of them. */
function meansOf(batches: readonly (readonly (readonly number[])[])[]): { mean: number[]; variance: number[] } {
  const columns = batches[0]![0]!.map((_, c) => c);
  const average = (of: (batch: readonly (readonly number[])[], c: number) => number): number[] =>
    columns.map((c) => batches.reduce((total, batch) => total + of(batch, c), 0) / batches.length);
  const mean = (batch: readonly (readonly number[])[], c: number): number =>
    batch.reduce((total, row) => total + row[c]!, 0) / batch.length;
  const variance = (batch: readonly (readonly number[])[], c: number): number =>
    batch.reduce((total, row) => total + (row[c]! - mean(batch, c)) ** 2, 0) / (batch.length - 1);
  return { mean: average(mean), variance: average(variance) };
}

function expectClose(found: readonly number[], wanted: readonly number[]): void {
  expect(found.length).toBe(wanted.length);
  for (const [i, value] of wanted.entries())
    expect(Math.abs(found[i]! - value)).toBeLessThan(1e-5 * Math.max(1, Math.abs(value)));
}

const batches = Array.from({ length: 6 }, (_, b) =>
  Array.from({ length: 5 }, (_, r) => [Math.sin(7 * b + 3 * r), Math.cos(5 * b + r) * (b + 1)]),
);

describe('running statistics of all batches', () => {
  it('are their mean in compiled steps, and evaluation uses them', async () => {
    using layer = new BatchNorm1d(2, { momentum: null });
    let runs = 0;
    const step = compile((x: Tensor) => {
      runs++;
      return noGrad(() => layer.forward(x));
    });
    for (const batch of batches) step(tensor(batch)).dispose();
    expect(runs).toBeLessThan(batches.length);
    const { mean, variance } = meansOf(batches);
    expectClose(await numbers(layer.running_mean), mean);
    expectClose(await numbers(layer.running_var), variance);
    expect(await layer.num_batches_tracked!.item()).toBe(batches.length);
    layer.eval();
    const rows = [[0.5, -1]];
    const wanted = rows[0]!.map((value, c) => (value - mean[c]!) / Math.sqrt(variance[c]! + 1e-5));
    expectClose(await numbers(layer.forward(tensor(rows))), wanted);
    expect(await layer.num_batches_tracked!.item()).toBe(batches.length);
  });

  it('are the same after fit, and frozen layers go on with them as in PyTorch', async () => {
    const norm = new BatchNorm1d(2, { momentum: null });
    using model = new Sequential(norm, new Linear(2, 1));
    norm.freeze();
    const optimizer = new SGD(model.parameters(), { lr: 0.01 });
    const data = batches.map((batch) => ({ x: tensor(batch), y: zeros([5, 1]) }));
    const loss = (p: Tensor, y: Tensor): Tensor => sum(square(p.sub(y)));
    await fit(model, data, { optimizer, loss, epochs: 2 });
    const { mean, variance } = meansOf([...batches, ...batches]);
    expectClose(await numbers(norm.running_mean), mean);
    expectClose(await numbers(norm.running_var), variance);
    expect(await numbers(norm.weight)).toEqual([1, 1]);
    expect(await norm.num_batches_tracked!.item()).toBe(12);
  });

  it('are saved and restored, also from the 64-bit counts of PyTorch', async () => {
    using layer = new BatchNorm2d(2, { momentum: null });
    layer.forward(ones([2, 2, 1, 1])).dispose();
    const saved = await hostState(layer.stateDict());
    expect(Object.keys(saved)).toEqual(['weight', 'bias', 'running_mean', 'running_var', 'num_batches_tracked']);
    using other = new BatchNorm2d(2, { momentum: null });
    other.loadStateDict(saved);
    expect(await other.num_batches_tracked!.item()).toBe(1);
    const count: StateArray = { dtype: 'int64', shape: [], data: BigInt64Array.of(41n) };
    other.loadStateDict({ ...saved, num_batches_tracked: count });
    expect(await other.num_batches_tracked!.item()).toBe(41);
    other.loadStateDict({ ...layer.stateDict(), num_batches_tracked: tensor(7n, { dtype: 'int64' }) });
    expect(await other.num_batches_tracked!.item()).toBe(7);
    // With a momentum nothing depends on the count.
    using plain = new BatchNorm2d(2);
    expect(plain.loadStateDict(saved)).toEqual({ missing: [], unexpected: [] });
    expect(Object.keys(plain.stateDict())).toEqual(['weight', 'bias', 'running_mean', 'running_var']);
    expect(() => other.loadStateDict(plain.stateDict())).toThrow(/lacks 'num_batches_tracked'/);
  });

  it('are not there without trackRunningStats, where evaluation takes those of the batch', async () => {
    using layer = new BatchNorm1d(2, { trackRunningStats: false });
    expect(Object.keys(layer.stateDict())).toEqual(['weight', 'bias']);
    const trained = await numbers(layer.forward(tensor(batches[1]!)));
    layer.eval();
    expect(await numbers(layer.forward(tensor(batches[1]!)))).toEqual(trained);
  });

  it('of InstanceNorm load what PyTorch saves', () => {
    using layer = new InstanceNorm1d(2, { trackRunningStats: true });
    const [mean, variance] = [ones([2]), ones([2])];
    const state = { running_mean: mean, running_var: variance, num_batches_tracked: tensor(0n, { dtype: 'int64' }) };
    expect(layer.loadStateDict(state)).toEqual({ missing: [], unexpected: [] });
    expect(() => layer.forward(zeros([1, 2]))).toThrow(/must have 3 axes/);
  });
});

describe('tables of limited rows', () => {
  it('change under lossAndGrad, backward, tapes and compiled steps alike', async () => {
    const long = [3, 4, 0.3, 0.4, 6, 8];
    const short = [0.6, 0.8, 0.3, 0.4, 6, 8];
    const ways: Record<string, (table: Embedding) => Tensor> = {
      lossAndGrad: (table) => {
        const { grads, value } = lossAndGrad(table, () => sum(square(table.forward(int(0, 1)))));
        value.dispose();
        return grads[0]!;
      },
      backward: (table) => {
        sum(square(table.forward(int(0, 1)))).backward();
        return table.weight.grad!;
      },
      tape: (table) => {
        const tape = new GradientTape();
        return tape.gradient(sum(square(table.forward(int(0, 1)))), table.weight)!;
      },
      compiled: (table) => {
        const step = compile((rows: Tensor) => {
          const { grads, value } = lossAndGrad(table, () => sum(square(table.forward(rows))));
          value.dispose();
          return grads[0]!;
        });
        for (let i = 0; i < 3; i++) step(int(0, 1)).dispose();
        return step(int(0, 1));
      },
    };
    for (const way of Object.values(ways)) {
      using table = new Embedding(3, 2, { maxNorm: 1 });
      table.weight.assign(tensor(long, { shape: [3, 2] }));
      const gradient = await numbers(way(table));
      expectClose(gradient, [1.2, 1.6, 0.6, 0.8, 0, 0]);
      expectClose(await numbers(table.weight), short);
    }
  });

  it('train: the optimizer steps from the shortened rows', async () => {
    using table = new Embedding(2, 2, { maxNorm: 1 });
    table.weight.assign(
      tensor([
        [3, 4],
        [30, 40],
      ]),
    );
    const optimizer = new SGD(table.parameters(), { lr: 0.5 });
    const { grads, value } = lossAndGrad(table, () => sum(table.forward(int(0))));
    optimizer.step(grads);
    value.dispose();
    expectClose(await numbers(table.weight), [0.1, 0.3, 30, 40]);
  });

  it('are shortened row by row where a loss looks into one twice, and nothing is left behind', async () => {
    using table = new Embedding(3, 2, { maxNorm: 1 });
    table.weight.assign(tensor([3, 4, 6, 8, 30, 40], { shape: [3, 2] }));
    await numbers(table.weight);
    const before = memory().numTensors;
    const loss = (): Tensor => sum(table.forward(int(0))).add(sum(table.forward(int(-2))));
    const { value, grads } = lossAndGrad(table, loss);
    value.dispose();
    for (const gradient of grads) gradient!.dispose();
    expectClose(await numbers(table.weight), [0.6, 0.8, 0.6, 0.8, 30, 40]);
    expect(memory().numTensors).toBe(before);
    expect(() => lossAndGrad(table, () => table.forward(int(2)))).toThrow(/number|scalar|element/);
    expectClose(await numbers(table.weight), [0.6, 0.8, 0.6, 0.8, 30, 40]);
  });
});

describe('tables whose gradients are divided by counts', () => {
  it('are differentiated twice, and around vmap', async () => {
    using table = new Embedding(3, 1, { scaleGradByFreq: true });
    const words = tensor([2, 0, 2, 2], { dtype: 'int32', shape: [2, 2] });
    const loss = (weight: Tensor): Tensor =>
      functionalCall(table, { weight }, () => sum(square(square(table.forward(words)))));
    // Of w⁴ for each word by its row, summed and divided by n, how often the row is looked up: 4 w³. By w, divided again: 12 w² / n.
    const weight = tensor([1, 2, 3], { shape: [3, 1] });
    expect(await numbers(grad(loss)(weight))).toEqual([4, 0, 108]);
    const twice = grad((w: Tensor) => sum(grad(loss)(w)))(weight);
    expectClose(await numbers(twice), [12, 0, 36]);
    // Counts are those of an example: row 2 is looked up once in the first and twice in the second.
    const each = (w: Tensor): Tensor =>
      functionalCall(table, { weight: w }, () => sum(vmap((row: Tensor) => sum(square(table.forward(row))))(words)));
    expect(await numbers(grad(each)(weight))).toEqual([2, 0, 12]);
  });
});

describe('errors', () => {
  it('name the option and the value', () => {
    using unknown = new Conv2d(1, 1, 3, { paddingMode: 'reflection' as 'reflect' });
    expect(() => unknown.forward(zeros([1, 1, 4, 4]))).toThrow(
      /\[conv2d\] bad paddingMode: 'reflection'; must be 'zeros', 'reflect', 'replicate' or 'circular'/,
    );
    expect(() => new ConvTranspose2d(1, 1, 3, { paddingMode: 'reflect' } as object)).toThrow(/paddingMode/);
    using wide = new Conv2d(1, 1, 3, { padding: 5, paddingMode: 'reflect' });
    expect(() => wide.forward(zeros([1, 1, 4, 4]))).toThrow(/width too large for mode 'reflect'/);
    using odd = new Conv2d(1, 1, 3, { padding: 'sane' as 'same', paddingMode: 'reflect' });
    expect(() => odd.forward(zeros([1, 1, 4, 4]))).toThrow(/padding/);
    expect(() => new BatchNorm1d(2, { momentum: Number.NaN })).toThrow(/momentum is NaN/);
    expect(() => new Embedding(2, 2, { maxNorm: -1 })).toThrow(/maxNorm is -1/);
    expect(() => new Embedding(2, 2, { normType: 0 })).toThrow(/bad normType: 0/);
    expect(() => new EmbeddingBag(2, 2, { mode: 'max', scaleGradByFreq: true })).toThrow(/mode 'max'/);
    using layer = new MultiHeadAttention(4, 2, { causal: true, addZeroAttn: true });
    const x = zeros([1, 2, 4]);
    expect(() => layer.forward(x, x, x, { cache: new KVCache() })).toThrow(/addBiasKv and addZeroAttn/);
  });
});

it('channels last are padded along their own axes', async () => {
  using first = new Conv2d(2, 3, 3, { padding: [1, 2], paddingMode: 'circular' });
  using last = new Conv2d(2, 3, 3, { padding: [1, 2], paddingMode: 'circular', layout: 'nhwc' });
  last.loadStateDict(first.stateDict());
  const x = tensor(
    Float32Array.from({ length: 40 }, (_, i) => Math.sin(i)),
    { shape: [1, 2, 4, 5] },
  );
  const y = await numbers(permute(first.forward(x), [0, 2, 3, 1]));
  expectClose(await numbers(last.forward(permute(x, [0, 2, 3, 1]))), y);
});

it('RMSNorm adds the epsilon of the dtype, as PyTorch 2.4', async () => {
  const tiny = [1e-4, -2e-4];
  const wanted = (eps: number): number[] => tiny.map((x) => x / Math.sqrt((1e-8 + 4e-8) / 2 + eps));
  using layer = new RMSNorm(2);
  expectClose(await numbers(layer.forward(tensor([tiny]))), wanted(2 ** -23));
  using given = new RMSNorm(2, { eps: 1e-5 });
  expectClose(await numbers(given.forward(tensor([tiny]))), wanted(1e-5));
  using double = new RMSNorm(2, { dtype: 'float64' });
  const exact = tensor(Float64Array.from(tiny), { shape: [1, 2] });
  expectClose(await numbers(double.forward(exact)), wanted(2 ** -52));
});

it('25 steps of Adam keep what the layers learn and count', async () => {
  const norm = new BatchNorm1d(3, { momentum: null });
  using model = new Sequential(new Linear(2, 3), norm, new Linear(3, 1));
  const optimizer = new Adam(model.parameters(), { lr: 0.05 });
  const x = tensor(batches[2]!);
  let [first, last] = [0, 0];
  for (let step = 0; step < 25; step++) {
    const { value, grads } = lossAndGrad(model, () => sum(square(model.forward(x).sub(1))));
    optimizer.step(grads);
    last = await value.item();
    if (step === 0) first = last;
    value.dispose();
  }
  expect(last).toBeLessThan(first / 2);
  expect(await norm.num_batches_tracked!.item()).toBe(25);
});
