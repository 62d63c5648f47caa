/** Metrics against plain loops in float64, and against examples that scikit-learn publishes. */
import { memory, scope, setEngine, type Tensor, tensor } from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/testing';
import { beforeAll, describe, expect, it } from 'vitest';
import { NnError } from '../../errors.ts';
import { Linear } from '../../layers/linear.ts';
import { Sequential } from '../../module/sequential.ts';
import { SGD } from '../../optim/sgd.ts';
import { crossEntropy } from '../../index.ts';
import { evaluate } from '../evaluate.ts';
import { fit } from '../fit.ts';
import { accuracy } from '../meter.ts';
import { confusionMatrix, f1Score, meanIoU, precision, recall, topKAccuracy } from './classes.ts';
import { auc, perplexity } from './curves.ts';
import { meanAbsoluteError, meanSquaredError, r2Score } from './regression.ts';
import { type SummedMetric, Tally } from './summed.ts';

beforeAll(async () => {
  await setEngine(createReferenceEngine());
});

const ints = (values: readonly number[], shape = [values.length]): Tensor => tensor(values, { dtype: 'int32', shape });

/** Rows with a 1 at each class. */
const sure = (classes: readonly number[], count: number): Tensor =>
  tensor(classes.map((c) => Array.from({ length: count }, (_, i) => Number(i === c))));

async function measured<V>(metric: SummedMetric<V>, ...batches: readonly (readonly [Tensor, Tensor])[]): Promise<V> {
  const tally = new Tally(metric);
  for (const [x, y] of batches) tally.add(x, y);
  const value = await tally.read();
  tally.dispose();
  return value;
}

/** Numbers from 0 to 1, the same for every run. */
function draws(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

describe('classes', () => {
  it('as in the examples of scikit-learn', async () => {
    const pair = [sure([0, 2, 1, 0, 0, 1], 3), ints([0, 1, 2, 0, 1, 2])] as const;
    expect(await measured(precision({ classes: 3 }), pair)).toBeCloseTo(0.2222, 4);
    expect(await measured(precision({ classes: 3, average: 'micro' }), pair)).toBeCloseTo(0.3333, 4);
    expect(await measured(precision({ classes: 3, average: 'weighted' }), pair)).toBeCloseTo(0.2222, 4);
    expect(await measured(recall({ classes: 3 }), pair)).toBeCloseTo(0.3333, 4);
    expect(await measured(f1Score({ classes: 3 }), pair)).toBeCloseTo(0.2667, 4);
    expect(await measured(f1Score({ classes: 3, average: 'micro' }), pair)).toBeCloseTo(0.3333, 4);
    const three = [sure([0, 0, 2, 2, 0, 2], 3), ints([2, 0, 2, 2, 0, 1])] as const;
    expect(await measured(confusionMatrix({ classes: 3 }), three)).toEqual([
      [2, 0, 0],
      [0, 0, 1],
      [1, 0, 2],
    ]);
    const scores = tensor([
      [0.5, 0.2, 0.2],
      [0.3, 0.4, 0.2],
      [0.2, 0.4, 0.3],
      [0.7, 0.2, 0.1],
    ]); // prettier-ignore
    expect(await topKAccuracy(2)(scores, ints([0, 1, 2, 2])).array()).toEqual([1, 1, 1, 0]);
    expect(await topKAccuracy(1)(scores, ints([0, 1, 2, 2])).array()).toEqual([1, 1, 0, 0]);
  });

  it('counted over batches of any size as by a loop', async () => {
    const draw = draws(7);
    const classes = 4;
    const matrix = Array.from({ length: classes }, () => new Array<number>(classes).fill(0));
    const batches = [5, 1, 16, 9].map((rows) => {
      const scores = Array.from({ length: rows }, () => Array.from({ length: classes }, draw));
      const targets = Array.from({ length: rows }, () => Math.floor(draw() * (classes + 2)) - 1);
      scores.forEach((row, i) => {
        const target = targets[i]!;
        if (target >= 0 && target < classes && target !== 3) matrix[target]![row.indexOf(Math.max(...row))]!++;
      });
      return [tensor(scores), ints(targets)] as const;
    });
    const options = { classes, ignoreIndex: 3 };
    expect(await measured(confusionMatrix(options), ...batches)).toEqual(matrix);
    const columns = matrix.map((_, j) => matrix.reduce((n, row) => n + row[j]!, 0));
    const lines = matrix.map((row) => row.reduce((n, x) => n + x, 0));
    const mean = (of: (i: number) => number, among = [0, 1, 2, 3]): number =>
      among.reduce((n, i) => n + of(i), 0) / among.length;
    expect(await measured(precision(options), ...batches)).toBeCloseTo(
      mean((i) => (columns[i] ? matrix[i]![i]! / columns[i]! : 0)),
      12,
    );
    expect(await measured(recall({ ...options, zeroDivision: 1 }), ...batches)).toBeCloseTo(
      mean((i) => (lines[i] ? matrix[i]![i]! / lines[i]! : 1)),
      12,
    );
    const met = [0, 1, 2, 3].filter((i) => lines[i]! + columns[i]! > 0);
    expect(await measured(meanIoU(options), ...batches)).toBeCloseTo(
      mean((i) => matrix[i]![i]! / (lines[i]! + columns[i]! - matrix[i]![i]!), met),
      12,
    );
  });

  it('of images, with targets for every pixel', async () => {
    const scores = tensor([0.9, 0.1, 0.4, 0.8, 0.1, 0.9, 0.6, 0.2], { shape: [1, 2, 2, 2] });
    const targets = ints([0, 1, 1, 1], [1, 2, 2]);
    expect(await measured(confusionMatrix(), [scores, targets])).toEqual([
      [1, 0],
      [1, 2],
    ]);
    expect(await measured(meanIoU(), [scores, targets])).toBeCloseTo((1 / 2 + 2 / 3) / 2, 12);
  });

  it('of two classes by one score', async () => {
    const target = ints([1, 1, 0, 0, 1]);
    const logits = tensor([2, -1, 0.1, -3, 0.2]);
    for (const x of [logits, logits.reshape([5, 1])]) {
      expect(await measured(precision({ threshold: 0 }), [x, target])).toBeCloseTo(2 / 3, 12);
      expect(await measured(recall({ threshold: 0 }), [x, target])).toBeCloseTo(2 / 3, 12);
    }
    expect(await measured(recall({ threshold: 0, average: 'macro' }), [logits, target])).toBeCloseTo(7 / 12, 12);
  });

  it('NaN as the score of the target is in no top k', async () => {
    const scores = tensor([
      [Number.NaN, 1, 2],
      [1, Number.NaN, 0],
    ]); // prettier-ignore
    expect(await topKAccuracy(3)(scores, ints([0, 0])).array()).toEqual([0, 1]);
  });

  it('names what does not fit', () => {
    const add = (metric: SummedMetric<unknown>, x: Tensor, y: Tensor) => (): void => new Tally(metric).add(x, y);
    expect(add(precision({ classes: 3 }), sure([0, 1], 4), ints([0, 1]))).toThrow(/precision.*\[2,4\].*\[2\].*3/s);
    expect(add(meanIoU(), sure([0, 1], 2), ints([0, 1, 1]))).toThrow(NnError);
    expect(() => precision({ classes: 3, average: 'binary' })).toThrow(/bad average: binary of 3 classes/);
    expect(() => precision({ classes: 1 })).toThrow(/classes is 1/);
    expect(() => topKAccuracy(0)).toThrow(/k is 0/);
    expect(() => topKAccuracy(1)(sure([0, 1], 2), ints([0]))).toThrow(/\[2,2\].*\[1\]/);
  });
});

describe('area under the curve', () => {
  it('as in the example of scikit-learn, and as by all pairs', async () => {
    const example = [tensor([0.1, 0.4, 0.35, 0.8]), ints([0, 0, 1, 1])] as const;
    expect(await measured(auc(), example)).toBe(0.75);
    const draw = draws(3);
    const bins = 50;
    const rows = Array.from({ length: 90 }, () => ({ score: Math.fround(draw()), target: Number(draw() < 0.4) }));
    let ordered = 0;
    let pairs = 0;
    for (const a of rows) {
      for (const b of rows) {
        if (a.target !== 1 || b.target !== 0) continue;
        const [x, y] = [a, b].map(({ score }) => Math.floor(Math.fround(score * bins)));
        ordered += x! > y! ? 1 : x === y ? 0.5 : 0;
        pairs++;
      }
    }
    const part = (from: number, to: number): readonly [Tensor, Tensor] => [
      tensor(rows.slice(from, to).map(({ score }) => score)).reshape([to - from, 1]),
      ints(rows.slice(from, to).map(({ target }) => target)),
    ];
    expect(await measured(auc({ bins }), part(0, 20), part(20, 90))).toBeCloseTo(ordered / pairs, 12);
  });

  it('of logits; 1 at the end of the last bin; NaN where there is none', async () => {
    expect(await measured(auc({ logits: true }), [tensor([-3, 2, 40, -1]), ints([0, 1, 1, 0])])).toBe(1);
    expect(await measured(auc(), [tensor([1, 0, 1, 0]), ints([1, 0, 0, 1])])).toBe(0.5);
    for (const score of [1.5, -0.1, Number.NaN])
      await expect(measured(auc(), [tensor([0.5, score]), ints([0, 1])])).rejects.toThrow(
        '[auc] 1 of 2 scores are not from 0 to 1; pass { logits: true } for logits',
      );
    expect(await measured(auc(), [tensor([0.5, 0.2]), ints([1, 1])])).toBeNaN();
    const both = tensor([
      [2, -1],
      [1, 3],
      [-20, 20],
      [0, -1],
    ]);
    expect(await measured(auc({ logits: true }), [both, ints([0, 1, 1, 0])])).toBe(1);
    const shares = tensor([
      [0.9, 0.1],
      [0.6, 0.4],
      [0.65, 0.35],
      [0.2, 0.8],
    ]);
    expect(await measured(auc(), [shares, ints([0, 0, 1, 1])])).toBe(0.75);
    expect(() => new Tally(auc()).add(tensor([0.5]), ints([0, 1]))).toThrow(/\[1\].*\[2\]/);
  });
});

describe('perplexity', () => {
  it('is that of all targets, whatever their batches', async () => {
    const logits = [
      [1, 2, 0.5],
      [0.1, -1, 3],
      [0, 0, 0],
      [2, 2, 1],
    ];
    const targets = [1, 2, 0, -100];
    const losses = logits.map((row, i) => Math.log(row.reduce((n, x) => n + Math.exp(x), 0)) - row[targets[i]!]!);
    const all = (losses[0]! + losses[1]! + losses[2]!) / 3;
    const pair = (from: number, to: number): readonly [Tensor, Tensor] => [
      tensor(logits.slice(from, to)),
      ints(targets.slice(from, to)),
    ];
    const found = await measured(perplexity({ ignoreIndex: -100 }), pair(0, 1), pair(1, 4));
    expect(found / Math.exp(all)).toBeCloseTo(1, 6);
    expect(await measured(perplexity({ ignoreIndex: 2 }), [tensor([[1, 2, 3]]), ints([2])])).toBeNaN();
  });
});

describe('numbers', () => {
  it('errors of rows', async () => {
    const [x, y] = [
      tensor([
        [1, 2],
        [5, 5],
      ]),
      tensor([
        [2, 4],
        [5, 1],
      ]),
    ]; // prettier-ignore
    expect(await meanAbsoluteError(x, y).array()).toEqual([1.5, 2]);
    expect(await meanSquaredError(x, y).array()).toEqual([2.5, 8]);
    expect(() => meanAbsoluteError(x, tensor([1, 2]))).toThrow(/\[2,2\].*\[2\]/);
  });

  it('r2 as in the example of scikit-learn, in any batches', async () => {
    const [x, y] = [
      [2.5, 0, 2, 8],
      [3, -0.5, 2, 7],
    ]; // prettier-ignore
    for (const cuts of [
      [0, 4],
      [0, 1, 4],
      [0, 2, 3, 4],
    ]) {
      const batches = cuts.slice(1).map((to, i) => [x, y].map((of) => tensor(of!.slice(cuts[i], to))));
      expect(await measured(r2Score(), ...(batches as unknown as [Tensor, Tensor][]))).toBeCloseTo(
        0.9486081370449679,
        6,
      );
    }
  });

  it('r2 of targets whose mean is large against their spread', async () => {
    const draw = draws(5);
    const y = Array.from({ length: 60 }, () => Math.fround(1e4 + draw()));
    const x = y.map((value) => Math.fround(value + 0.2 * (draw() - 0.5)));
    const mean = y.reduce((n, v) => n + v, 0) / y.length;
    const want = 1 - x.reduce((n, v, i) => n + (v - y[i]!) ** 2, 0) / y.reduce((n, v) => n + (v - mean) ** 2, 0);
    const part = (from: number, to: number): readonly [Tensor, Tensor] => [
      tensor(x.slice(from, to)),
      tensor(y.slice(from, to)),
    ];
    expect(await measured(r2Score(), part(0, 32), part(32, 50), part(50, 60))).toBeCloseTo(want, 2);
  });

  it('r2 of equal targets', async () => {
    expect(await measured(r2Score(), [tensor([1, 1]), tensor([1, 1])])).toBeNaN();
    expect(await measured(r2Score(), [tensor([1, 2]), tensor([1, 1])])).toBe(Number.NEGATIVE_INFINITY);
  });
});

describe('in a training', () => {
  const host = (shape: number[], data: number[]) =>
    ({ dtype: 'float32', shape, data: new Float32Array(data) }) as const;
  const labels = (data: number[]) => ({ dtype: 'int32', shape: [data.length], data: new Int32Array(data) }) as const;
  const data = [
    { x: host([4, 1], [-2, 2, -1, 3]), y: labels([0, 1, 0, 0]) },
    { x: host([2, 1], [1, 3]), y: labels([1, 1]) },
  ];

  it('beside means over rows, by fit and by evaluate', async () => {
    const model = new Sequential(new Linear(1, 2));
    const optimizer = new SGD(model.parameters(), { lr: 0.5 });
    const metrics = { accuracy, f1: f1Score(), surprise: perplexity() };
    const { epochs } = await fit(model, data, { optimizer, loss: crossEntropy, epochs: 30, metrics, validation: data });
    const { loss, metrics: found } = await evaluate(model, data, { loss: crossEntropy, metrics });
    expect(found).toEqual(epochs.at(-1)!.validation!.metrics);
    expect(found.surprise! / Math.exp(loss)).toBeCloseTo(1, 5);
    // All rows are right but one of the two 3s, which is called class 1: precision 3/4, recall 1.
    expect(found).toMatchObject({ accuracy: expect.closeTo(5 / 6, 6), f1: expect.closeTo(6 / 7, 12) });
  });

  it('leaves no memory behind', async () => {
    const before = memory().bytes;
    const tally = new Tally(auc());
    scope(() => tally.add(tensor([0.5]), ints([1])));
    tally.reset();
    expect(tally.batches).toBe(0);
    await expect(tally.read()).rejects.toThrow(/nothing was added/);
    tally.dispose();
    expect(memory().bytes).toBe(before);
  });

  it('refuses what is no metric', async () => {
    const metrics = { wrong: {} as never };
    await expect(evaluate(new Linear(1, 2), data, { loss: crossEntropy, metrics })).rejects.toThrow(/metric 'wrong'/);
    expect(() => new Tally({} as never)).toThrow(/SummedMetric/);
  });
});
