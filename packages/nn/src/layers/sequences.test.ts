/** Layers over sequences: values and gradients as PyTorch has them, with its names of parameters; states, masks, dropout, errors. */
import { concat, memory, scope, seed, setEngine, stats, type Tensor, tensor, zeros } from '@polygrad/core';
import { createNullEngine, createReferenceEngine } from '@polygrad/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import type { AnyModule } from '../module/module.ts';
import { Adam } from '../optim/adam.ts';
import { lossAndGrad } from '../train/loss-and-grad.ts';
import { MultiHeadAttention, TransformerBlock } from './attention.ts';
import { type Expected, expected } from './fixtures/pytorch.ts';
import { GRU, LSTM, type LSTMResult, RNN } from './recurrent.ts';

const dtype = 'float64';
beforeEach(async () => {
  await setEngine(createReferenceEngine());
});

/** Values by the formula of fixtures/pytorch.ts. */
function values(k: number, shape: readonly number[], requiresGrad: boolean = false): Tensor {
  const size = shape.reduce((product, n) => product * n, 1);
  const data = Float64Array.from({ length: size }, (_, j) => (((37 * j + 11 * k) % 19) - 9) / 20);
  return tensor(data, { shape, dtype, requiresGrad });
}

async function close(found: Tensor, wanted: readonly number[] | undefined): Promise<void> {
  const data = Array.from((await found.data()) as Float64Array);
  expect(data.length).toBe(wanted?.length);
  for (const [i, value] of data.entries()) expect(Math.abs(value - (wanted?.[i] ?? Number.NaN))).toBeLessThan(1e-6);
}

/** Gives the parameters their values, runs the layer, and compares everything. */
async function check(
  name: string,
  layer: AnyModule,
  x: Tensor,
  run: () => readonly [output: Tensor, ...ends: Tensor[]],
): Promise<void> {
  const wanted = expected[name] as Expected;
  expect(layer.namedParameters().map(([label]) => label)).toEqual(wanted.names);
  for (const [i, parameter] of layer.parameters().entries()) parameter.assign(values(i + 1, parameter.shape));
  const [output, ...ends] = run();
  let loss = output.mul(values(50, output.shape)).sum();
  for (const [i, end] of ends.entries()) loss = loss.add(end.mul(values(60 + i, end.shape)).sum());
  loss.backward();
  const sums = layer
    .parameters()
    .map((parameter) => (parameter.grad as Tensor).mul(values(70, parameter.shape)).sum().reshape([1]));
  // Read at once: one plan.
  const found = [output, ...ends, x.grad as Tensor, ...sums].map((t) => t.flatten());
  await close(concat(found), [...wanted.output, ...(wanted.ends ?? []).flat(), ...wanted.dx, ...wanted.sums]);
}

describe('as in PyTorch', () => {
  const sequence = (): Tensor => values(0, [2, 3, 2], true);
  const wide = (): Tensor => values(0, [2, 3, 4], true);

  it('LSTM, two layers in both directions', async () => {
    const [layer, x] = [new LSTM(2, 2, { numLayers: 2, bidirectional: true, dtype }), sequence()];
    await check('LSTM', layer, x, () => {
      const { output, hidden, cell } = layer.forward(x);
      return [output, hidden, cell];
    });
  });

  it('LSTM from a state, without biases', async () => {
    const [layer, x] = [new LSTM(2, 2, { bias: false, dtype }), sequence()];
    await check('LSTM from a state', layer, x, () => {
      const state = { hidden: values(80, [1, 2, 2]), cell: values(81, [1, 2, 2]) };
      const { output, hidden, cell } = layer.forward(x, state);
      return [output, hidden, cell];
    });
  });

  it('GRU in both directions', async () => {
    const [layer, x] = [new GRU(2, 2, { bidirectional: true, dtype }), sequence()];
    await check('GRU', layer, x, () => {
      const { output, hidden } = layer.forward(x);
      return [output, hidden];
    });
  });

  it('GRU from a state, without biases', async () => {
    const [layer, x] = [new GRU(2, 2, { bias: false, dtype }), sequence()];
    await check('GRU from a state', layer, x, () => {
      const { output, hidden } = layer.forward(x, { hidden: values(80, [1, 2, 2]) });
      return [output, hidden];
    });
  });

  const long = (): Tensor => values(0, [2, 6, 2], true);

  it('LSTM and GRU of six steps, in loops', async () => {
    const [lstm, x] = [new LSTM(2, 2, { numLayers: 2, bidirectional: true, dtype }), long()];
    await check('LSTM of six steps', lstm, x, () => {
      const { output, hidden, cell } = lstm.forward(x);
      return [output, hidden, cell];
    });
    const [gru, y] = [new GRU(2, 2, { bidirectional: true, dtype }), long()];
    await check('GRU of six steps', gru, y, () => {
      const { output, hidden } = gru.forward(y);
      return [output, hidden];
    });
  });

  it('RNN, two layers in both directions; from a state, with relu and without biases', async () => {
    const [both, x] = [new RNN(2, 2, { numLayers: 2, bidirectional: true, dtype }), long()];
    await check('RNN', both, x, () => {
      const { output, hidden } = both.forward(x);
      return [output, hidden];
    });
    const [layer, y] = [new RNN(2, 2, { nonlinearity: 'relu', bias: false, dtype }), long()];
    await check('RNN from a state', layer, y, () => {
      const { output, hidden } = layer.forward(y, { hidden: values(80, [1, 2, 2]) });
      return [output, hidden];
    });
  });

  it('LSTM and GRU of padded sequences, as packed ones', async () => {
    const [lstm, x] = [new LSTM(2, 2, { numLayers: 2, bidirectional: true, dtype }), long()];
    await check('LSTM of padded sequences', lstm, x, () => {
      const { output, hidden, cell } = lstm.forward(x, undefined, { lengths: [2, 6] });
      return [output, hidden, cell];
    });
    const [gru, y] = [new GRU(2, 2, { bidirectional: true, dtype }), long()];
    await check('GRU of padded sequences', gru, y, () => {
      const lengths = tensor([6, 5], { dtype: 'int32' });
      const { output, hidden } = gru.forward(y, { hidden: values(80, [2, 2, 2]) }, { lengths });
      return [output, hidden];
    });
  });

  it('MultiHeadAttention of a sequence to itself, to another, and to two others', async () => {
    const [key, value] = [values(5, [2, 2, 4]), values(6, [2, 2, 4])];
    const calls: Readonly<Record<string, (layer: MultiHeadAttention, x: Tensor) => Tensor>> = {
      self: (layer, x) => layer.forward(x),
      cross: (layer, x) => layer.forward(x, key),
      three: (layer, x) => layer.forward(x, key, value),
    };
    for (const [name, call] of Object.entries(calls)) {
      const [layer, x] = [new MultiHeadAttention(4, 2, { bias: name !== 'three', dtype }), wide()];
      await check(name, layer, x, () => [call(layer, x)]);
    }
  });

  it('TransformerBlock that normalises before, causal; and after', async () => {
    const options = { dimFeedforward: 6, dtype } as const;
    const pre = new TransformerBlock(4, 2, { ...options, causal: true });
    const post = new TransformerBlock(4, 2, { ...options, activation: 'relu', normFirst: false });
    for (const [name, layer] of [['pre', pre] as const, ['post', post] as const]) {
      const x = wide();
      await check(name, layer, x, () => [layer.forward(x)]);
    }
  });
});

describe('recurrent layers', () => {
  it('go on where they stopped', async () => {
    seed(5);
    const [layer, x] = [new LSTM(3, 4, { numLayers: 2, dtype }), values(3, [2, 3, 3])];
    const parts: Tensor[] = [];
    let state: LSTMResult | undefined;
    for (let t = 0; t < 3; t++) parts.push((state = layer.forward(x.narrow(1, t, 1), state)).output);
    await close(concat(parts, 1), Array.from((await layer.forward(x).output.data()) as Float64Array));
  });

  it('say which shape is wrong', () => {
    const layer = new LSTM(3, 4, { numLayers: 2 });
    expect(() => layer.forward(zeros([5, 3]))).toThrow('[LSTM] x has shape [5, 3]; it must be [N, steps, 3]');
    expect(() => layer.forward(zeros([2, 0, 3]))).toThrow('at least one step');
    const state = zeros([2, 4]);
    expect(() => layer.forward(zeros([2, 5, 3]), { hidden: state, cell: state })).toThrow(
      'a state has shape [2, 4]; it must be [2, 2, 4]',
    );
    expect(() => new GRU(3, 4, { numLayers: 0 })).toThrow('[GRU] numLayers is 0');
    expect(() => new GRU(3, 4, { dropout: 1 })).toThrow('[GRU] dropout is 1');
    expect(() => new RNN(3, 4, { nonlinearity: 'sin' as 'tanh' })).toThrow("[RNN] bad nonlinearity: 'sin'");
  });

  it('say which lengths are wrong', () => {
    const [layer, x] = [new RNN(3, 4), zeros([2, 5, 3])];
    const run = (lengths: readonly number[] | Tensor) => () => layer.forward(x, undefined, { lengths });
    expect(run([1, 6])).toThrow('[RNN] lengths[1] is 6; it must be an integer from 0 to 5');
    expect(run([1, 2, 3])).toThrow('lengths are a list of 3; they must be int32 [2]: one for each sequence');
    expect(run(zeros([2]))).toThrow('lengths are float32 [2]; they must be int32 [2]');
  });

  it('drop between layers, in training only', async () => {
    seed(1);
    const [layer, x] = [new GRU(2, 8, { numLayers: 2, dropout: 0.5 }), zeros([1, 3, 2])];
    const [a, b] = [await layer.forward(x).output.data(), await layer.forward(x).output.data()];
    expect(a).not.toEqual(b);
    layer.eval();
    expect(await layer.forward(x).output.data()).toEqual(await layer.forward(x).output.data());
  });

  it('train over long sequences with as many kernels a step, one plan and flat memory', async () => {
    await setEngine(createNullEngine());
    const kernels = (steps: number): number => {
      using layer = new LSTM(4, 8);
      using optimizer = new Adam(layer.parameters());
      const train = (): void =>
        scope(() => {
          const x = zeros([3, steps, 4]).add(1);
          optimizer.step(lossAndGrad(layer, () => layer.forward(x).output.square().mean()).grads);
        });
      train();
      train();
      const [before, held] = [stats(), memory()];
      train();
      expect(stats().planMisses).toBe(before.planMisses);
      expect(memory()).toMatchObject({ numTensors: held.numTensors, numBuffers: held.numBuffers, bytes: held.bytes });
      return stats().kernels - before.kernels;
    };
    expect((kernels(24) - kernels(12)) / 12).toBeLessThan(10);
  });

  it('give short sequences, which are no loops, what long ones get', async () => {
    const [layer, x] = [new LSTM(3, 4, { bidirectional: true, dtype }), values(3, [2, 6, 3])];
    const short = layer.forward(x.narrow(1, 0, 3), undefined, { lengths: [3, 1] });
    const padded = layer.forward(x, undefined, { lengths: [3, 1] });
    await close(short.output, Array.from((await padded.output.narrow(1, 0, 3).data()) as Float64Array));
    await close(short.cell, Array.from((await padded.cell.data()) as Float64Array));
  });

  it('take a new length without a new plan of a step', async () => {
    await setEngine(createNullEngine());
    const layer = new GRU(3, 4);
    const plans = (steps: number): number => {
      const { planMisses } = stats();
      scope(
        () =>
          void lossAndGrad(layer, () =>
            layer
              .forward(zeros([2, steps, 3]))
              .output.square()
              .mean(),
          ).value,
      );
      return stats().planMisses - planMisses;
    };
    // What is made of the bodies of both loops is known from the second length on.
    expect([plans(6), plans(6)]).toEqual([expect.any(Number), 0]);
    expect(plans(7)).toBeLessThan(plans(5) + 2);
  });
});

describe('attention layers', () => {
  it('see only what mask and order allow', async () => {
    const layer = new MultiHeadAttention(4, 2, { dtype });
    const [x, other] = [values(1, [1, 3, 4]), values(1, [1, 3, 4])];
    const mask = tensor([true, true, false]);
    const changed = other.add(tensor([[[0], [0], [1]]], { dtype }));
    await close(
      layer.forward(x, changed, changed, { mask }),
      Array.from((await layer.forward(x, other, other, { mask }).data()) as Float64Array),
    );
    const causal = new TransformerBlock(4, 2, { causal: true, dtype });
    await close(
      causal.forward(changed).narrow(1, 0, 2),
      Array.from((await causal.forward(x).narrow(1, 0, 2).data()) as Float64Array),
    );
  });

  it('say what does not fit', () => {
    expect(() => new MultiHeadAttention(6, 4)).toThrow('4 heads do not divide a width of 6');
    expect(() => new MultiHeadAttention(6, 3).forward(zeros([2, 6]))).toThrow('query has shape [2, 6]');
    expect(() => new MultiHeadAttention(6, 3).forward(zeros([2, 5, 6]), zeros([2, 5, 4]))).toThrow(
      'key has shape [2, 5, 4]; it must be [N, length, 6]',
    );
    expect(() => new TransformerBlock(6, 3, { activation: 'tanh' as 'relu' })).toThrow("bad activation: 'tanh'");
    expect(() => new TransformerBlock(6, 3, { dropout: 1 })).toThrow('dropout is 1');
  });
});
