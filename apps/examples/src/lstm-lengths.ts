/**
 * An LSTM on sequences of many lengths: were there more ones than zeros? Batches are of one length each, from 3 to 40. Lengths share plans, so that new ones
 * cost little.
 */
import { crossEntropy, noGrad, scope, seed, select, tensor, type Tensor } from '@polygrad/core';
import { accuracy, Adam, Linear, LSTM, Module } from '@polygrad/nn';
import { type Result, step, take, train } from './train.ts';

const batch = 32;

/** Numbers from 0 to 1, the same for the same place. */
const random = (...place: number[]): number => {
  const x = Math.sin(place.reduce((sum, p, i) => sum + p * (12.9898 + 65.233 * i), 0)) * 43758.5453;
  return x - Math.floor(x);
};

function batchOf(i: number): { x: Tensor; y: Tensor; length: number } {
  const length = 3 + 2 * Math.floor(random(i, 1) * 19);
  const rows = Array.from({ length: batch }, (_, row) =>
    Array.from({ length }, (_, t) => [random(i, row, t) < 0.5 ? 1 : 0]),
  );
  const y = rows.map((row) => Number(row.filter(([one]) => one === 1).length > length / 2));
  return { x: tensor(rows), y: tensor(y, { dtype: 'int32' }), length };
}

class Counter extends Module {
  readonly lstm: LSTM = new LSTM(1, 24);
  readonly head: Linear = new Linear(24, 2);

  forward(x: Tensor): Tensor {
    return this.head.forward(select(this.lstm.forward(x).output, 1, -1));
  }
}

export async function lstmLengths(steps = 400): Promise<Result> {
  seed(4);
  using model = new Counter();
  using optimizer = new Adam(model.parameters(), { lr: 5e-3 });
  const lengths = new Set<number>();
  const losses = await train(steps, (i) =>
    step(model, optimizer, () => {
      const { x, y, length } = batchOf(i);
      lengths.add(length);
      return crossEntropy(model.forward(x), y);
    }),
  );
  let right = 0;
  for (let i = 0; i < 10; i++) {
    const share = scope(() =>
      noGrad(() => {
        const { x, y } = batchOf(100_000 + i);
        return accuracy(model.forward(x), y).mean();
      }),
    );
    right += (await take(share)) / 10;
  }
  return { losses, note: `${lengths.size} lengths; right about new sequences: ${(100 * right).toFixed(1)} %` };
}
