import { compile, crossEntropy, memory, mseLoss, ones, seed, setEngine, type Tensor, tensor } from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import { NnError } from '../errors.ts';
import { ReLU } from '../layers/activation.ts';
import { Dropout } from '../layers/dropout.ts';
import { Linear } from '../layers/linear.ts';
import { BatchNorm1d } from '../layers/norm.ts';
import { Module } from '../module/module.ts';
import { parameter } from '../module/parameter.ts';
import { Sequential } from '../module/sequential.ts';
import { hostState, snapshot, type StateDict } from '../module/state.ts';
import { LBFGS } from '../optim/lbfgs.ts';
import { Adam } from '../optim/adam.ts';
import { SGD } from '../optim/sgd.ts';
import type { TrainBatch } from './batch.ts';
import { type Callback, type EpochReport, earlyStopping, type StepReport } from './callback.ts';
import { evaluate } from './evaluate.ts';
import { fit } from './fit.ts';
import { accuracy } from './meter.ts';
import { epochLine } from './progress.ts';
import { lossAndGrad } from './loss-and-grad.ts';
import { rateMonitor } from './rate-monitor.ts';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

/** Rows of y = 2 a - 3 b + 1, in batches of four and a last one of two. */
const LINE: TrainBatch[] = [
  [0, 4],
  [4, 8],
  [8, 10],
].map(([from, to]) => {
  const rows = Array.from({ length: to! - from! }, (_, index) => [
    Math.sin(from! + index),
    Math.cos(3 * (from! + index)),
  ]);
  const targets = rows.map(([a, b]) => 2 * a! - 3 * b! + 1);
  return {
    x: { dtype: 'float32', shape: [rows.length, 2], data: new Float32Array(rows.flat()) },
    y: { dtype: 'float32', shape: [rows.length, 1], data: new Float32Array(targets) },
  } as const;
});

/** The first half of a batch's rows. */
const half = ({ x, y }: TrainBatch): TrainBatch => {
  const rows = (x as { shape: readonly number[] }).shape[0]! / 2;
  const part = (array: unknown): TrainBatch['x'] => {
    const { shape, data } = array as { shape: readonly number[]; data: Float32Array };
    return { dtype: 'float32', shape: [rows, shape[1]!], data: data.slice(0, rows * shape[1]!) };
  };
  return { x: part(x), y: part(y) };
};

/** The exclusive or, which no linear model knows. */
const XOR: TrainBatch[] = [
  {
    x: { dtype: 'float32', shape: [4, 2], data: new Float32Array([0, 0, 0, 1, 1, 0, 1, 1]) },
    y: { dtype: 'int32', shape: [4], data: new Int32Array([0, 1, 1, 0]) },
  },
];

describe('fit', () => {
  it('finds a line', async () => {
    seed(1);
    using model = new Linear(2, 1);
    using optimizer = new SGD(model.parameters(), { lr: 0.1, momentum: 0.9 });
    const { epochs } = await fit(model, LINE, { optimizer, loss: mseLoss, epochs: 60 });
    expect(epochs.at(-1)!.loss).toBeLessThan(1e-6);
    expect(epochs.length).toBe(60);
    const { weight, bias } = await hostState(model.stateDict());
    const found = [...(weight!.data as Float32Array), ...(bias!.data as Float32Array)];
    for (const [index, value] of [2, -3, 1].entries()) expect(found[index]).toBeCloseTo(value, 2);
  });

  it('learns what needs a hidden layer, and measures it', async () => {
    seed(3);
    using model = new Sequential(new Linear(2, 8), new ReLU(), new Linear(8, 2));
    using optimizer = new Adam(model.parameters(), { lr: 0.05 });
    const { epochs } = await fit(model, XOR, {
      optimizer,
      loss: crossEntropy,
      epochs: 60,
      metrics: { accuracy },
      validation: XOR,
    });
    expect(epochs.at(-1)!.validation).toEqual({ loss: expect.closeTo(0, 1), metrics: { accuracy: 1 } });
  });

  it('gives the same bits for the same seed', async () => {
    const run = async (): Promise<unknown> => {
      seed(5);
      using model = new Sequential(new Linear(2, 4), new Dropout(0.25), new ReLU(), new Linear(4, 1));
      using optimizer = new Adam(model.parameters(), { lr: 0.01 });
      const { epochs } = await fit(model, LINE, { optimizer, loss: mseLoss, epochs: 3 });
      return [epochs.map(({ loss }) => loss), await hostState(model.stateDict())];
    };
    expect(await run()).toEqual(await run());
  });

  it('weighs batches by their rows', async () => {
    using model = new Linear(2, 1);
    using optimizer = new SGD(model.parameters(), { lr: 0 });
    const { epochs } = await fit(model, LINE, { optimizer, loss: mseLoss, epochs: 1, readEvery: 1 });
    const { weight, bias } = await hostState(model.stateDict());
    let total = 0;
    for (const { x, y } of LINE as { x: { data: Float32Array }; y: { data: Float32Array } }[]) {
      y.data.forEach((target, row) => {
        const [a, b] = [x.data[2 * row]!, x.data[2 * row + 1]!];
        const output = a * Number(weight!.data[0]) + b * Number(weight!.data[1]) + Number(bias!.data[0]);
        total += (output - target) ** 2;
      });
    }
    expect(epochs[0]!.loss).toBeCloseTo(total / 10, 5);
  });

  it('tells callbacks what happens, in order, and lets them stop', async () => {
    const events: string[] = [];
    const seen: StepReport[] = [];
    const watcher: Callback = {
      onTrainBegin: () => void events.push('begin'),
      onEpochBegin: async (epoch) => void events.push(`epoch ${epoch}`),
      onStep: (report) => {
        events.push(`step ${report.step}/${report.steps}`);
        seen.push(report);
      },
      onEpochEnd: (report, control) => {
        events.push(`end ${report.epoch} of ${control.epochs}`);
        if (report.epoch === 1) control.stop();
      },
      onTrainEnd: () => void events.push('done'),
    };
    using model = new Linear(2, 1);
    using optimizer = new SGD(model.parameters(), { lr: 0.01 });
    const history = await fit(model, LINE, { optimizer, loss: mseLoss, epochs: 9, callbacks: [watcher], readEvery: 2 });
    const steps = ['step 1/3', 'step 2/3', 'step 3/3'];
    expect(events).toEqual(['begin', 'epoch 0', ...steps, 'end 0 of 9', 'epoch 1', ...steps, 'end 1 of 9', 'done']);
    expect(history.stopped).toBe(true);
    expect(history.epochs.length).toBe(2);
    expect(seen.slice(0, 3).map(({ loss }) => typeof loss)).toEqual(['object', 'number', 'number']);
  });

  it('ends at the step whose learning rate is no number, with the weights before it', async () => {
    using model = new Linear(2, 1);
    const kept: unknown[] = [];
    const lr = (step: number): number => (step < 4 ? 0.01 : Number.NaN);
    using optimizer = new Adam(model.parameters(), { lr });
    const callbacks = [{ onStep: async () => void kept.push(await hostState(model.stateDict())) }];
    const training = fit(model, LINE, { optimizer, loss: mseLoss, epochs: 9, callbacks });
    await expect(training).rejects.toThrow('[step] bad learningRate(4) for step 5: NaN');
    expect(optimizer.steps).toBe(4);
    expect(kept.length).toBe(4);
    expect(await hostState(model.stateDict())).toEqual(kept[3]);
  });

  it('stops early when nothing improves', async () => {
    using model = new Linear(2, 1);
    using optimizer = new SGD(model.parameters(), { lr: 0 });
    expect(() => earlyStopping({ watch: 'loss' as never })).toThrow(
      /bad watch: 'loss'; must be a function of the report/,
    );
    const callbacks = [earlyStopping({ patience: 2 })];
    const history = await fit(model, LINE, { optimizer, loss: mseLoss, epochs: 50, validation: LINE, callbacks });
    expect(history.epochs.length).toBe(3);
    // A number that grows and grows is better every time, or never.
    const grown = async (best: 'min' | 'max'): Promise<number> => {
      const stopping = earlyStopping({ watch: ({ epoch }) => epoch, best, patience: 2 });
      return (await fit(model, LINE, { optimizer, loss: mseLoss, epochs: 6, callbacks: [stopping] })).epochs.length;
    };
    expect([await grown('max'), await grown('min')]).toEqual([6, 3]);
  });

  it('ends with the parameters and buffers of the best epoch if asked', async () => {
    for (const good of [10, 7]) {
      using model = new Sequential(new Linear(2, 3), new BatchNorm1d(3), new Linear(3, 1));
      using optimizer = new SGD(model.parameters(), { lr: 0.1 });
      const states: unknown[] = [];
      const record: Callback = {
        onEpochEnd: async () => void states.push(await hostState(model.stateDict())),
      };
      const watch = ({ epoch }: EpochReport): number => [5, 1, 2, 3, 4][epoch]!;
      const callbacks = [earlyStopping({ watch, patience: 3, restoreBest: true }), record];
      let calls = 0;
      const loss = (x: Tensor, y: Tensor): Tensor => mseLoss(x, y).mul(++calls > good ? Number.NaN : 1);
      const training = fit(model, LINE.slice(0, 2), { optimizer, loss, epochs: 9, callbacks });
      if (good === 10) expect((await training).epochs.length).toBe(5);
      else await expect(training).rejects.toThrow('the loss became NaN (epoch 4');
      expect(await hostState(model.stateDict())).toEqual(states[1]);
      expect(states.at(-1)).not.toEqual(states[1]);
    }
  });

  it('learns the same by compiled steps where each epoch leaves a snapshot', async () => {
    const train = async (taking: boolean): Promise<unknown[]> => {
      seed(3);
      using model = new Linear(2, 1);
      using optimizer = new SGD(model.parameters(), { lr: 0.05 });
      const [states, snapshots]: [unknown[], StateDict[]] = [[], []];
      const onEpochEnd = async (): Promise<void> => {
        states.push(await hostState(model.stateDict()));
        if (taking) snapshots.push(snapshot(model.stateDict()));
      };
      await fit(model, LINE, { optimizer, loss: mseLoss, epochs: 12, compile, callbacks: [{ onEpochEnd }] });
      for (const [i, kept] of snapshots.entries()) expect(await hostState(kept)).toEqual(states[i]);
      return states;
    };
    expect(await train(true)).toEqual(await train(false));
  });

  it('asks a source for the pass by its number', async () => {
    const asked: number[] = [];
    const source = {
      length: 1,
      epoch: (number: number) => {
        asked.push(number);
        return XOR;
      },
      [Symbol.iterator]: () => XOR[Symbol.iterator](),
    };
    using model = new Linear(2, 2);
    using optimizer = new SGD(model.parameters(), { lr: 0 });
    await fit(model, source, { optimizer, loss: crossEntropy, epochs: 2, firstEpoch: 5 });
    expect(asked).toEqual([5, 6]);
  });

  it('clips gradients if asked', async () => {
    using model = new Linear(2, 1);
    const before = await hostState(model.stateDict());
    using optimizer = new SGD(model.parameters(), { lr: 1 });
    await fit(model, LINE.slice(0, 1), { optimizer, loss: mseLoss, epochs: 1, clipNorm: 1e-3 });
    const after = await hostState(model.stateDict());
    const moved = Object.keys(before).flatMap((name) =>
      Array.from(after[name]!.data as Float32Array, (value, index) => value - Number(before[name]!.data[index])),
    );
    expect(Math.hypot(...moved)).toBeCloseTo(1e-3, 5);
  });

  it('refuses a loss that is not finite, empty data and bad options', async () => {
    using model = new Linear(2, 1);
    using optimizer = new SGD(model.parameters(), { lr: 1e30 });
    const options = { optimizer, loss: mseLoss, epochs: 3 };
    await expect(fit(model, LINE, options)).rejects.toThrow(/the loss became (NaN|Infinity) \(epoch 1/);
    await expect(fit(model, [], options)).rejects.toThrow(/there are no batches/);
    const wrong = { step: () => 0 } as never;
    await expect(fit(model, LINE, { ...options, optimizer: wrong })).rejects.toThrow(/bad optimizer.*must be an Opt/);
    await expect(fit(model, LINE, { ...options, epochs: -1 })).rejects.toThrow(NnError);
    await expect(fit(model, LINE, { ...options, metrics: { loss: accuracy } })).rejects.toThrow(/the name 'loss'/);
    const uneven = [{ x: LINE[0]!.x, y: LINE[2]!.y }];
    await expect(fit(model, uneven, options)).rejects.toThrow(/x \(4, 2\) and y \(2, 1\)/);
  });

  it('takes optimizers that ask for losses themselves', async () => {
    seed(1);
    using model = new Linear(2, 1);
    const optimizer = new LBFGS(model.parameters(), { maxIter: 4, lineSearchFn: 'strongWolfe' });
    const rows = {
      x: tensor([
        [0, 1],
        [1, 0],
        [1, 1],
        [2, 1],
      ]),
      y: tensor([[-2], [3], [0], [2]]),
    }; // prettier-ignore
    const before = await mseLoss(model.forward(rows.x), rows.y).item();
    const held = memory().numTensors;
    const rates = rateMonitor(optimizer);
    const metrics = { far: (p: Tensor, t: Tensor) => p.sub(t).abs() };
    const { epochs } = await fit(model, [rows, rows], {
      optimizer,
      loss: mseLoss,
      epochs: 4,
      metrics,
      callbacks: [rates],
    });
    // The loss of an epoch is that before the iterations of its steps.
    expect(epochs[0]!.loss).toBeGreaterThan(before / 2);
    expect(epochs.at(-1)!.loss).toBeLessThan(1e-9);
    expect(epochs.map(({ steps }) => steps)).toEqual([2, 2, 2, 2]);
    expect(rates.points.map(({ rates: [rate] }) => rate)).toEqual(new Array(8).fill(1));
    expect([epochs.at(-1)!.metrics.far! < 1e-4, rows.x.disposed]).toEqual([true, false]);
    const [w, b] = [await model.weight.array(), await model.bias!.array()] as [number[][], number[]];
    for (const [found, wanted] of [
      [w[0]![0]!, 2],
      [w[0]![1]!, -3],
      [b[0]!, 1],
    ] as const)
      expect(found).toBeCloseTo(wanted, 4); // prettier-ignore
    optimizer.dispose();
    expect(memory().numTensors).toBeLessThanOrEqual(held);
    const options = { optimizer, loss: mseLoss, epochs: 1 };
    await expect(fit(model, LINE, { ...options, clipNorm: 1 })).rejects.toThrow(
      /clipNorm is given.*leave clipNorm out/,
    );
    await expect(fit(model, LINE, { ...options, precision: 'float16' })).rejects.toThrow(/precision is given/);
  });

  it('lets timers have their turn', async () => {
    using model = new Linear(2, 1);
    using optimizer = new SGD(model.parameters(), { lr: 0.01 });
    const controller = new AbortController();
    setTimeout(() => controller.abort(new Error('time is up')), 100);
    const endless = {
      *[Symbol.iterator]() {
        while (true) yield LINE[0]!;
      },
    };
    const options = { optimizer, loss: mseLoss, epochs: 1, signal: controller.signal };
    await expect(fit(model, endless, options)).rejects.toThrow('time is up');
  });

  it('ends when its signal says so', async () => {
    using model = new Linear(2, 1);
    using optimizer = new SGD(model.parameters(), { lr: 0.01 });
    const controller = new AbortController();
    const callbacks: Callback[] = [
      { onStep: ({ step }) => (step === 2 ? controller.abort(new Error('enough')) : undefined) },
    ];
    const options = { optimizer, loss: mseLoss, epochs: 3, callbacks, signal: controller.signal };
    await expect(fit(model, LINE, options)).rejects.toThrow('enough');
  });

  it('holds memory flat', async () => {
    using model = new Sequential(new Linear(2, 4), new ReLU(), new Linear(4, 1));
    using optimizer = new Adam(model.parameters());
    const options = { optimizer, loss: mseLoss, epochs: 2 };
    await fit(model, LINE, options);
    const held = (): readonly number[] => {
      const { numTensors, numBuffers, bytes } = memory();
      return [numTensors, numBuffers, bytes];
    };
    // What tests before this one left may be collected at any time, so less may be held than before, but never more.
    let before = held();
    for (let round = 0; round < 3; round++) {
      await fit(model, LINE, { ...options, epochs: 5 });
      const after = held();
      for (const [i, now] of after.entries()) expect(now).toBeLessThanOrEqual(before[i]!);
      before = after;
    }
  });
});

describe('evaluate', () => {
  it('uses evaluation mode and puts modes back', async () => {
    const modes: boolean[] = [];
    class Spy extends Module {
      forward(x: Tensor): Tensor {
        modes.push(this.training);
        return x;
      }
    }
    using model = new Sequential(new Spy(), new Linear(2, 2));
    const { rows } = await evaluate(model, XOR, { loss: crossEntropy });
    expect([rows, modes, model.training]).toEqual([4, [false], true]);
  });

  it('leaves running statistics alone', async () => {
    using model = new Sequential(new BatchNorm1d(2), (x) => x);
    const before = await hostState(model.stateDict());
    await evaluate(model, [{ x: XOR[0]!.x, y: XOR[0]!.x }], { loss: mseLoss });
    expect(await hostState(model.stateDict())).toEqual(before);
  });
});

describe('lossAndGrad', () => {
  it('differentiates by the parameters, and by nothing that is frozen', async () => {
    class Product extends Module<[], Tensor> {
      readonly a: Tensor = parameter(tensor([2, 3]));
      readonly b: Tensor = parameter(tensor([5, 7]));
      forward(): Tensor {
        return this.a.mul(this.b).sum();
      }
    }
    using model = new Product();
    model.b.requiresGrad = false;
    const { value, grads, aux } = lossAndGrad(model, (): [Tensor, Tensor] => [model.forward(), model.a.add(1)]);
    expect(await value.item()).toBe(31);
    expect(value.requiresGrad).toBe(false);
    expect(grads[1]).toBeNull();
    expect([...(await grads[0]!.data())]).toEqual([5, 7]);
    expect([...(await aux.data())]).toEqual([3, 4]);
    expect(model.a.requiresGrad).toBe(true);
    model.freeze();
    expect(() => lossAndGrad(model, () => model.forward())).toThrow(/no parameters that learn/);
    for (const made of [value, aux, grads[0]]) made?.dispose();
  });

  it('says of a loss that is several numbers what it needs', async () => {
    using model = new Linear(2, 1);
    using optimizer = new SGD(model.parameters());
    const [x, y] = [ones([3, 2]), ones([3, 1])];
    const said = /^\[lossAndGrad\] the loss is Tensor float32 \[3, 1\], not one number; use mean\(\) or sum\(\)$/;
    expect(() => lossAndGrad(model, () => model.forward(x))).toThrow(said);
    await expect(fit(model, [{ x, y }], { optimizer, loss: (p, t) => p.sub(t), epochs: 1 })).rejects.toThrow(said);
    for (const t of [x, y]) t.dispose();
  });

  it('leaves the parameters as they were when the loss throws', async () => {
    using model = new Linear(2, 1);
    const before = model.parameters().map(({ node }) => node);
    expect(() =>
      lossAndGrad(model, () => {
        throw new Error('no loss');
      }),
    ).toThrow('no loss');
    expect(model.parameters().map(({ node }) => node)).toEqual(before);
  });
});

it('tells which steps made plans', async () => {
  await setEngine(createReferenceEngine());
  using model = new Linear(2, 1);
  using optimizer = new SGD(model.parameters(), { lr: 0.01 });
  const plans: [number, number][] = [];
  const onStep = ({ epoch, newPlans }: StepReport): void => void plans.push([epoch, newPlans]);
  const data = {
    epoch: (n: number) => (n === 2 ? [...LINE, ...LINE.map(half)] : LINE),
    [Symbol.iterator]: () => LINE[Symbol.iterator](),
  };
  const { epochs } = await fit(model, data, { optimizer, loss: mseLoss, epochs: 4, callbacks: [{ onStep }] });
  const first = plans.filter(([epoch]) => epoch === 0).map(([, made]) => made);
  expect(first[0]).toBeGreaterThan(0);
  expect(plans.filter(([epoch]) => epoch === 1 || epoch === 3).every(([, made]) => made === 0)).toBe(true);
  expect(epochs.map(({ planned }) => planned! > 0)).toEqual([true, false, true, false]);
  expect(epochLine(epochs[2]!, 4)).toMatch(/ s {2}new plans in [12] of 6 steps$/);
  expect(epochLine(epochs[3]!, 4)).toMatch(/ s$/);
});

it('epochLine says what there is', () => {
  const report: EpochReport = {
    epoch: 1,
    loss: 0.25,
    metrics: { accuracy: 0.5 },
    validation: { loss: 0.75, metrics: { accuracy: 0.125 } },
    seconds: 1.26,
    steps: 10,
  };
  expect(epochLine(report, 3)).toBe(
    'epoch 2/3  loss 0.2500  accuracy 0.5000  validation loss 0.7500  validation accuracy 0.1250  1.3 s',
  );
});
