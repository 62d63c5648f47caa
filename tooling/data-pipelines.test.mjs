/** Data sets in trainings: what `fit` takes, from files to a model, cut off and gone on with. */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { getRandomState, keep, mseLoss, seed, setEngine, setRandomState, tensor } from '@polygrad/core';
import { CharTokenizer, Dataset, fitFeatures, parseCsv, tokenWindows } from '@polygrad/data';
import { checkpoints } from '@polygrad/data/node';
import {
  Adam,
  crossEntropy,
  Dropout,
  Embedding,
  evaluate,
  fit as fitModel,
  hostState,
  Linear,
  Module,
  ReLU,
  Sequential,
} from '@polygrad/nn';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';

let folder;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'polygrad-pipelines-'));
  await setEngine(await createCpuEngine({ threads: 1 }));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Houses whose price is 100 for each room, 50 more in Oslo. */
const csv = `rooms,city,price\n${Array.from({ length: 40 }, (_, i) => `${i % 7},${i % 3 ? 'Rome' : 'Oslo'},${(i % 7) + (i % 3 ? 0 : 0.5)}`).join('\n')}\n`;

function parts() {
  const model = new Sequential(new Linear(3, 8), new ReLU(), new Dropout(0.1), new Linear(8, 1));
  const optimizer = new Adam(model.parameters(), { lr: 0.02 });
  return { model, optimizer, random: { getRandomState, setRandomState } };
}

/** The same batches each time it is called: shuffled, filtered, from rows. */
function batchesOf(frame, features) {
  return Dataset.from(features.encode(frame))
    .shuffle({ seed: 4 })
    .map(async (row, _, epoch) => ({ ...row, epoch }), { concurrency: 3 })
    .filter(({ epoch }, index) => (index + epoch) % 10 !== 0)
    .shuffle({ seed: 5, buffer: 8 })
    .batch(8)
    .prefetch(2);
}

it('a table trains a model, and goes on bit for bit where it was cut off', async () => {
  const [train, test] = parseCsv(csv).split([0.8, 0.2], { seed: 1 });
  const features = fitFeatures(train, { target: 'price' });
  const run = (all, options) =>
    fitModel(all.model, batchesOf(train, features), { optimizer: all.optimizer, loss: mseLoss, ...options });
  seed(1);
  const whole = parts();
  const { epochs } = await run(whole, { epochs: 60 });
  expect(epochs[0].loss).toBeGreaterThan(3);
  const held = await evaluate(whole.model, Dataset.from(features.encode(test)).batch(8), { loss: mseLoss });
  expect(held.loss).toBeLessThan(0.5);

  seed(1);
  const cut = parts();
  const files = checkpoints(join(folder, 'cut'), { ...cut, config: { features } });
  await run(cut, { epochs: 25, callbacks: [files] });
  seed(99);
  const again = parts();
  const firstEpoch = await checkpoints(join(folder, 'cut'), again).resume();
  expect(firstEpoch).toBe(25);
  const rest = await run(again, { epochs: 35, firstEpoch });
  expect(rest.epochs.map(({ loss }) => loss)).toEqual(epochs.slice(25).map(({ loss }) => loss));
  expect(await hostState(again.model.stateDict())).toEqual(await hostState(whole.model.stateDict()));
});

it('folds validate every row once', async () => {
  const frame = parseCsv(csv);
  const features = fitFeatures(frame, { target: 'price' });
  let rows = 0;
  for (const { train, validation } of Dataset.from(features.encode(frame)).folds(4, { seed: 2 })) {
    const { model, optimizer } = parts();
    await fitModel(model, train.shuffle({ seed: 1 }).batch(8), { optimizer, loss: mseLoss, epochs: 1 });
    rows += (await evaluate(model, validation.batch(8), { loss: mseLoss })).rows;
  }
  expect(rows).toBe(40);
});

it('windows of a text train a model of its letters', async () => {
  class Letters extends Module {
    table = new Embedding(8, 8);
    forward(ids) {
      return this.table.forward(ids).reshape([-1, 8]);
    }
  }
  const text = 'abcdefgh'.repeat(12);
  const tokenizer = CharTokenizer.fit(text);
  const data = tokenWindows(tokenizer.encode(text), { length: 6, stride: 5 }).shuffle({ seed: 1 }).batch(4);
  seed(3);
  const model = new Letters();
  const optimizer = new Adam(model.parameters(), { lr: 0.2 });
  // Targets are one letter behind each: [rows, 6] as [rows * 6].
  const loss = (logits, y) => crossEntropy(logits, y.flatten());
  const { epochs } = await fitModel(model, data, { optimizer, loss, epochs: 10 });
  expect(epochs.at(-1).loss).toBeLessThan(0.1);
  const ids = keep(tensor(tokenizer.encode('abc')));
  const next = await model.forward(ids).argMax({ axis: 1 }).data();
  expect(tokenizer.decode([...next])).toBe('bcd');
});
