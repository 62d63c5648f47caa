/**
 * Signatures that programs rely on, call by call as the documentation has them. Arguments and results are typed here, so that the type checker
 * compares them. They are looked at when they run. Names alone are in tooling/public-names.test.mjs.
 */
import * as pg from '@polygrad/core';
import type { IEngine, Tensor } from '@polygrad/core';
import { defineKernel } from '@polygrad/core/custom';
import * as nn from '@polygrad/nn';
import { createCpuEngine } from '@polygrad/backend-cpu';
import { createCudaEngine } from '@polygrad/backend-cuda';
import { createNativeEngine } from '@polygrad/backend-native';
import { beforeAll, describe, expect, it } from 'vitest';

beforeAll(() => pg.setEngine('cpu'));

/** Fails to compile unless both types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(is: Same<A, B>): void => expect(is).toBe(true);

const shapes = (results: Readonly<Record<string, Tensor>>): Record<string, string> =>
  Object.fromEntries(Object.entries(results).map(([name, t]) => [name, `${t.dtype} ${t.shape.join(',')}`]));

describe('tensors', () => {
  it('are made with options, and have types by their dtype', () => {
    const made = {
      nested: pg.tensor(
        [
          [1, 2],
          [3, 4],
        ],
        { dtype: 'float64', requiresGrad: true },
      ), // prettier-ignore
      number: pg.tensor(3),
      typed: pg.tensor(new Int32Array([1, 2, 3, 4]), { shape: [2, 2] }),
      large: pg.tensor([1n, 2n], { dtype: 'int64' }),
      zeros: pg.zeros([2, 3], { dtype: 'bool' }),
      full: pg.full([2], 7),
      arange: pg.arange(4),
      linspace: pg.linspace(0, 1, 5),
      eye: pg.eye(2),
      oneHot: pg.oneHot(pg.tensor([0, 2], { dtype: 'int32' }), 3),
      like: pg.fullLike(pg.ones([2]), 3),
      rand: pg.rand([2], { key: 1 }),
      randint: pg.randint(0, 9, [2]),
      bernoulli: pg.bernoulli(0.5, [2]),
      permutation: pg.permutation(4),
    };
    expect(shapes(made)).toEqual({
      ...{ nested: 'float64 2,2', number: 'float32 ', typed: 'int32 2,2', large: 'int64 2', zeros: 'bool 2,3' },
      ...{ full: 'float32 2', arange: 'float32 4', linspace: 'float32 5', eye: 'float32 2,2', oneHot: 'float32 2,3' },
      ...{ like: 'float32 2', rand: 'float32 2', randint: 'int32 2', bernoulli: 'float32 2', permutation: 'int32 4' },
    });
    same<typeof made.large, Tensor<'int64'>>(true);
    same<ReturnType<Tensor<'int64'>['data']>, Promise<BigInt64Array>>(true);
    same<ReturnType<Tensor<'float32'>['item']>, Promise<number>>(true);
    expect([
      made.nested.ndim,
      made.nested.size,
      made.nested.device,
      made.nested.requiresGrad,
      made.nested.grad,
    ]).toEqual([2, 4, 'cpu', true, null]);
  });

  it('are read at once or later, kept, disposed, and counted', async () => {
    const t = pg.tensor([1, 2]);
    const data: Float32Array | unknown = await t.data();
    expect([data, t.dataSync(), await t.array(), t.arraySync()]).toEqual([
      new Float32Array([1, 2]),
      new Float32Array([1, 2]),
      [1, 2],
      [1, 2],
    ]);
    expect([await t.sum().item(), t.sum().itemSync(), String(t)]).toEqual([3, 3, 'Tensor float32 [2]']);
    const kept = pg.scope((): Tensor => pg.keep(pg.exp(t)));
    const counts: { numTensors: number; numBuffers: number; bytes: number; peakBytes: number; pooledBytes: number } =
      pg.memory();
    expect(counts.numTensors).toBeGreaterThan(0);
    {
      using inner = pg.ones([1]);
      expect(inner.disposed).toBe(false);
    }
    kept.dispose();
    expect(kept.disposed).toBe(true);
  });
});

describe('operations', () => {
  const x = (): Tensor => pg.arange(6).reshape([2, 3]);

  it('take options behind their operands', () => {
    const [a, kernel, image] = [x(), pg.ones([4, 3, 3, 3]), pg.ones([1, 3, 8, 8])];
    expect(
      shapes({
        sum: pg.sum(a, { axis: 1, keepDims: true }),
        sums: a.mean([0, 1]),
        gelu: pg.gelu(a, { approximate: 'tanh' }),
        gemm: pg.gemm(a, a, { alpha: 2, beta: 1, c: pg.ones([2, 2]), transA: false, transB: true }),
        einsum: pg.einsum('ij,kj->ik', a, a),
        conv: pg.conv2d(image, kernel, { stride: 2, padding: 1, dilation: 1, groups: 1, layout: 'nchw' }),
        pad: pg.pad(
          a,
          [
            [1, 1],
            [0, 0],
          ],
          { mode: 'reflect' },
        ), // prettier-ignore
        resized: pg.interpolate(image, { size: [4, 4], mode: 'bilinear', alignCorners: true }),
        slice: a.slice([{ start: 0, stop: 2, step: 1 }, -1]),
      }),
    ).toEqual({
      ...{ sum: 'float32 2,1', sums: 'float32 ', gelu: 'float32 2,3', gemm: 'float32 2,2', einsum: 'float32 2,2' },
      ...{ conv: 'float32 1,4,4,4', pad: 'float32 4,3', resized: 'float32 1,3,4,4', slice: 'float32 2' },
    });
    const [values, indices]: readonly Tensor[] = pg.topK(a, 2);
    expect(shapes({ values: values!, indices: indices! })).toEqual({ values: 'float32 2,2', indices: 'int32 2,2' });
    const [pooled, places] = pg.maxPool2d(image, 2, { returnIndices: true }) as readonly [Tensor, Tensor];
    expect([pooled.shape, places.shape]).toEqual([
      [1, 3, 4, 4],
      [1, 3, 4, 4],
    ]); // prettier-ignore
  });

  it('whose sizes depend on data are asynchronous', async () => {
    const found: Promise<Tensor> = pg.nonZero(x());
    const masked: Promise<Tensor> = pg.maskedSelect(x(), x().greater(2));
    const single = pg.unique(x());
    expect([(await found).shape, (await masked).shape, single instanceof Promise]).toEqual([[5, 2], [3], true]);
  });
});

it('gradients', async () => {
  const square = (t: Tensor): Tensor => t.mul(t).sum();
  const t = pg.tensor([1, 2]);
  const slope: Tensor = pg.grad(square)(t);
  const [value, own]: [Tensor, Tensor] = pg.valueAndGrad(square)(t);
  const tree = pg.grad((p: { w: Tensor; rest: [Tensor] }) => p.w.mul(p.rest[0]).sum())({ w: t, rest: [t] });
  const [out, [back]] = pg.vjp((v: Tensor) => v.mul(2), [t], t);
  const [, forward] = pg.jvp((v: Tensor) => v.mul(2), [t], [t]);
  const [product] = pg.hvp(square, [t], [t]);
  const all = { slope, value, own, w: tree.w, rest: tree.rest[0], out, back, forward, product };
  expect(shapes({ ...all, jacobian: pg.jacobian(square)(t), hessian: pg.hessian(square)(t) })).toEqual({
    ...{ slope: 'float32 2', value: 'float32 ', own: 'float32 2', w: 'float32 2', rest: 'float32 2' },
    ...{ out: 'float32 2', back: 'float32 2', forward: 'float32 2', product: 'float32 2' },
    ...{ jacobian: 'float32 2', hessian: 'float32 2,2' },
  });
  const tape = new pg.GradientTape({ persistent: true });
  tape.watch(t);
  const [first] = tape.gradient(square(t), [t], { createGraph: false }) as readonly (Tensor | null)[];
  expect(await first!.array()).toEqual([2, 4]);
  const leaf = pg.tensor([3], { requiresGrad: true });
  square(leaf).backward();
  expect(await leaf.grad!.array()).toEqual([6]);
  const straight = pg.customGradient(
    (v: Tensor) => v.round(),
    (g: Tensor) => g,
  );
  expect(straight(t).shape).toEqual([2]);
  expect(pg.checkpoint(square, t).shape).toEqual([]);
  expect(pg.noGrad(() => square(leaf)).requiresGrad).toBe(false);
  await pg.gradCheck(square, [pg.tensor([1], { dtype: 'float64' })]);
});

it('engines, loops, compiled steps, kernels', async () => {
  const engine: IEngine = pg.getEngine();
  expect([engine.name, pg.listBackends().includes('cpu')]).toEqual(['cpu', true]);
  same<Parameters<typeof createCudaEngine>, [options?: Parameters<typeof createCudaEngine>[0]]>(true);
  const makers = [createCpuEngine, createNativeEngine, createCudaEngine];
  expect(makers.map((make) => typeof make)).toEqual(['function', 'function', 'function']);
  const options: Parameters<typeof createNativeEngine>[0] = { threads: 1, vectorBytes: 32 };
  const card: Parameters<typeof createCudaEngine>[0] = { device: 0 };
  expect([options.threads, card.device]).toEqual([1, 0]);
  for (const policy of ['automatic', 'forceGpu', 'forceCpu', 'minimizeTransfers', 'costBased'] as const)
    expect(new pg.ExecutionContext({ policy, thresholds: { product: 1 } }).policy).toBe(policy);
  const step = pg.compile((t: Tensor) => t.add(1));
  expect(step(pg.ones([2])).shape).toEqual([2]);
  step.dispose();
  const [last, all] = pg.scan((c: Tensor, v: Tensor) => [c.add(v), c], pg.zeros([]), pg.ones([3]));
  expect([last.shape, all.shape]).toEqual([[], [3]]);
  const ended: Promise<Tensor> = pg.whileLoop(
    (t: Tensor) => t.less(3),
    (t: Tensor) => t.add(1),
    pg.zeros([]),
  );
  expect(await (await ended).item()).toBe(3);
  for (const mode of ['always', 'never', 'automatic'] as const) pg.setDynamicSizes(mode);
  const report = await pg.profile(() => pg.ones([2]).add(1));
  expect(Array.isArray(report.kernels)).toBe(true);
  const counts: { plansMade: number; binds: number } = pg.stats();
  expect(counts.plansMade).toBeGreaterThan(0);
  const twice = defineKernel({
    name: 'twice',
    form: 'elementwise',
    inputs: { x: 'float32' },
    outputs: { y: 'x' },
    body: (_, { x }) => x.mul(2),
  });
  expect(await twice({ x: pg.ones([2]) }).y.array()).toEqual([2, 2]);
  const error: pg.PolygradError = new pg.ShapeError('add', 'text', []);
  expect([error.code, error.op]).toEqual(['SHAPE', 'add']);
});

it('networks', async () => {
  const model = new nn.Sequential(new nn.Linear(2, 4), new nn.ReLU(), new nn.Linear(4, 2));
  const parameters: readonly Tensor[] = model.parameters();
  const state: nn.StateDict = model.stateDict();
  model.loadStateDict(state);
  expect([parameters.length, Object.keys(state), model.train(), model.eval()]).toEqual([
    4,
    ['0.weight', '0.bias', '2.weight', '2.bias'],
    model,
    model,
  ]);
  const optimizers: readonly nn.Optimizer[] = [
    new nn.SGD(parameters, { lr: 0.1, momentum: 0.9, nesterov: true, weightDecay: 0.1 }),
    ...[nn.Adam, nn.AdamW, nn.RMSProp, nn.Adagrad, nn.Adadelta, nn.Lion].map((Kind) => new Kind(parameters)),
  ];
  expect(optimizers.map(({ steps }) => steps)).toEqual(new Array(7).fill(0));
  const data = [{ x: pg.ones([3, 2]), y: pg.tensor([0, 1, 0], { dtype: 'int32' }) }];
  const history: nn.History = await nn.fit(model, data, {
    optimizer: optimizers[1]!,
    loss: nn.crossEntropy,
    epochs: 1,
    callbacks: [{ onEpochEnd: ({ loss }) => void loss }],
  });
  expect([history.epochs.length, history.stopped]).toEqual([1, false]);
  const scaled: Tensor = nn.autocast('bfloat16', () => model.forward(pg.ones([1, 2])));
  const scaler = new nn.GradScaler();
  expect([scaled.dtype, typeof scaler.step]).toEqual(['bfloat16', 'function']);
  const cache = new nn.KVCache({ capacity: 8 });
  expect(cache.length).toBe(0);
  expect(nn.replicate(model, [pg.getEngine()]).engines.length).toBe(1);
  same<ReturnType<typeof nn.saveModel>, Promise<void>>(true);
});
