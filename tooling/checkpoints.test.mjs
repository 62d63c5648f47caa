/** Trainings that are cut off and go on from a checkpoint, with the packages that users install for it. */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { getRandomState, rand, seed, setEngine, setRandomState, tensor } from '@polygrad/core';
import {
  batches,
  Dataset,
  decodeCheckpoint,
  decodeSafetensors,
  encodeCheckpoint,
  memoryDataset,
  restoreCheckpoint,
} from '@polygrad/data';
import { checkpoints, csvLog, jsonLinesLog, loadModel, saveModel, writeWhole } from '@polygrad/data/node';
import {
  Adam,
  BatchNorm2d,
  crossEntropy,
  Conv2d,
  Dropout,
  fit as fitModel,
  Flatten,
  GradScaler,
  hostState,
  Linear,
  mixup,
  randomCrop,
  ReLU,
  Sequential,
} from '@polygrad/nn';
import * as nn from '@polygrad/nn';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

let folder;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'polygrad-checkpoints-'));
  await setEngine(await createCpuEngine({ threads: 1 }));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const random = { getRandomState, setRandomState };

function made() {
  const model = new Sequential(
    ...[new Conv2d(1, 2, 3), new BatchNorm2d(2), new ReLU(), new Flatten(), new Dropout(0.3), new Linear(2 * 4 * 4, 3)],
  );
  return { model, optimizer: new Adam(model.parameters(), { lr: 0.01 }), random };
}

const rows = 20;
const images = Float32Array.from({ length: rows * 36 }, (_, i) => Math.sin(i * 1.7));
const labels = Int32Array.from({ length: rows }, (_, i) => i % 3);
const set = memoryDataset({
  x: { array: { dtype: 'float32', shape: [rows, 1, 6, 6], data: images } },
  y: { array: { dtype: 'int32', shape: [rows], data: labels } },
});
const data = () => batches(set, { batchSize: 8, shuffle: true, seed: 3 });
const train = (parts, options) =>
  fitModel(parts.model, data(), { optimizer: parts.optimizer, loss: crossEntropy, ...options });
const valuesOf = async ({ model, optimizer }) => [await hostState(model.stateDict()), await optimizer.state()];

describe('a training that is cut off', () => {
  it('goes on bit for bit in another process, which has only the file', async () => {
    seed(5);
    const whole = made();
    const { epochs } = await train(whole, { epochs: 4 });
    const next = await rand([3]).array();

    seed(5);
    const path = join(folder, 'cut');
    const first = made();
    await train(first, { epochs: 2, callbacks: [checkpoints(path, first)] });

    seed(99);
    const second = made();
    const files = checkpoints(path, second);
    const firstEpoch = await files.resume();
    expect(firstEpoch).toBe(2);
    const rest = await train(second, { epochs: 2, firstEpoch, callbacks: [files] });
    expect(await valuesOf(second)).toEqual(await valuesOf(whole));
    expect(rest.epochs.map(({ loss }) => loss)).toEqual(epochs.slice(2).map(({ loss }) => loss));
    expect(await rand([3]).array()).toEqual(next);
    expect((await readdir(path)).sort()).toEqual(['best.safetensors', 'last.safetensors']);
  });

  it('goes on bit for bit from the middle of an epoch, with augmentation and batches made ahead', async () => {
    const rows = Array.from({ length: 22 }, (_, i) => ({
      x: { dtype: 'float32', shape: [1, 6, 6], data: images.slice(i * 30, i * 30 + 36) },
      y: i % 3,
    }));
    const ahead = () =>
      Dataset.from(rows)
        .shuffle({ seed: 4 })
        .map(async (row) => row, { concurrency: 3 })
        .batch(4, { dtypes: { y: 'int32' } })
        .prefetch(3);
    const augmented = (parts, options) =>
      fitModel(parts.model, ahead(), {
        optimizer: parts.optimizer,
        loss: crossEntropy,
        transforms: [randomCrop({ padding: 1 }), mixup({ classes: 3 })],
        ...options,
      });
    seed(5);
    const whole = made();
    await augmented(whole, { epochs: 3 });

    seed(5);
    const path = join(folder, 'middle');
    const first = made();
    const stop = new AbortController();
    const crash = { onStep: ({ epoch, step }) => epoch === 1 && step === 5 && stop.abort(new Error('crash')) };
    const callbacks = [checkpoints(path, { ...first, everySteps: 2 }), crash];
    await expect(augmented(first, { epochs: 3, callbacks, signal: stop.signal })).rejects.toThrow('crash');

    seed(99);
    const second = made();
    const files = checkpoints(path, second);
    const firstEpoch = await files.resume();
    expect([firstEpoch, files.firstStep]).toEqual([1, 4]);
    const seen = [];
    const { epochs } = await augmented(second, {
      epochs: 2,
      firstEpoch,
      firstStep: files.firstStep,
      callbacks: [{ onStep: ({ epoch, step }) => void seen.push([epoch, step]) }],
    });
    expect(seen.slice(0, 3)).toEqual([
      [1, 5],
      [1, 6],
      [2, 1],
    ]);
    expect(epochs.map(({ steps }) => steps)).toEqual([2, 6]);
    expect(await valuesOf(second)).toEqual(await valuesOf(whole));

    // An epoch of which nothing is left has its validation and its end; one that never was so long is a mistake.
    const none = await train(made(), { epochs: 1, firstStep: 3 });
    expect(none.epochs[0]).toMatchObject({ steps: 0, loss: Number.NaN });
    await expect(train(made(), { epochs: 1, firstStep: 4 })).rejects.toThrow(
      'firstStep is 4 and epoch 0 has 3 batches',
    );
  });

  it('takes a second optimizer and a mean of weights along', async () => {
    const parts = () => {
      const { model } = made();
      const [first, ...rest] = model.parameters();
      const [optimizer, sgd] = [new Adam(rest), new nn.SGD([first], { lr: 0.1, momentum: 0.9 })];
      return { model, optimizer, random, others: { sgd, average: new nn.WeightAverage(model, { decay: 0.5 }) } };
    };
    const [x, y] = [tensor(images, { shape: [rows, 1, 6, 6] }), tensor(labels)];
    const step = ({ model, optimizer, others: { sgd, average } }, from, to) => {
      for (let i = from; i < to; i++) {
        const { grads, value } = nn.lossAndGrad(model, () => crossEntropy(model.forward(x), y));
        value.dispose();
        sgd.step(grads.slice(0, 1));
        optimizer.step(grads.slice(1));
        average.update();
      }
    };
    const all = async ({ others: { sgd, average }, ...rest }) => [
      ...(await valuesOf(rest)),
      await sgd.state(),
      await average.state(),
    ];
    seed(1);
    const whole = parts();
    step(whole, 0, 6);
    seed(1);
    const first = parts();
    step(first, 0, 3);
    const path = join(folder, 'others.safetensors');
    await nn.saveModel(path, { ...first, random: true });
    seed(99);
    const second = parts();
    await nn.loadModel(path, { ...second, random: true });
    step(second, 3, 6);
    expect(await all(second)).toEqual(await all(whole));
    expect(second.others.average.updates).toBe(6);
    const { others, model } = await loadModel(path);
    expect(Object.keys(others)).toEqual(['sgd', 'average']);
    expect([...model.keys()].some((name) => name.includes('/'))).toBe(false);
    const before = await all(second);
    await expect(loadModel(path, { ...second, others: { lion: second.others.sgd } })).rejects.toThrow(
      /no state of the lion/,
    );
    await expect(loadModel(path, { ...second, others: { average: second.others.sgd } })).rejects.toThrow(/has no/);
    expect(await all(second)).toEqual(before);
    for (const bad of [{ optimizer: first.optimizer }, { 'a/b': first.optimizer }, { a: {} }, 3])
      await expect(encodeCheckpoint({ ...first, others: bad })).rejects.toThrow(/\[checkpoint\] (bad|others)/);
  });

  it('is restored as a whole or not at all', async () => {
    const parts = { ...made(), scaler: new GradScaler() };
    await train(parts, { epochs: 1 });
    const all = async () => [...(await valuesOf(parts)), await parts.scaler.state(), getRandomState()];
    const file = decodeCheckpoint(await encodeCheckpoint(parts));
    await train(parts, { epochs: 1, firstEpoch: 1 });
    const before = await all();
    const { optimizer, model, scaler } = file;
    const one = optimizer.slots.keys().next().value;
    const cut = [...model].map(([name, array]) => [
      name,
      name === '5.bias' ? { ...array, data: array.data.slice(1) } : array,
    ]);
    const damaged = {
      optimizer: { ...optimizer, slots: new Map([...optimizer.slots].filter(([name]) => name !== one)) },
      scaler: { ...scaler, scale: -1 },
      random: { key: [1], calls: 0 },
      model: new Map(cut),
    };
    for (const [name, value] of Object.entries(damaged)) {
      expect(() => restoreCheckpoint({ ...file, [name]: value }, parts), name).toThrow();
      expect(await all(), name).toEqual(before);
    }
    restoreCheckpoint(file, parts);
    expect(await all()).not.toEqual(before);
  });

  it('in mixed precision goes on bit for bit too, after steps that were left out', async () => {
    const mixed = () => ({ ...made(), scaler: new GradScaler({ initScale: 2 ** 19, growthInterval: 4 }) });
    const half = (parts, options) => train(parts, { precision: 'float16', scaler: parts.scaler, ...options });
    const all = async (parts) => [...(await valuesOf(parts)), await parts.scaler.state()];
    seed(7);
    const whole = mixed();
    await half(whole, { epochs: 5 });

    seed(7);
    const path = join(folder, 'mixed');
    const first = mixed();
    await half(first, { epochs: 3, callbacks: [checkpoints(path, first)] });
    const { skipped } = await first.scaler.state();
    expect(skipped).toBeGreaterThan(0);
    expect(skipped).toBeLessThan(9);
    expect((await first.optimizer.state()).skipped).toBe(skipped);

    seed(99);
    const second = mixed();
    const files = checkpoints(path, second);
    await half(second, { epochs: 2, firstEpoch: await files.resume() });
    expect(await all(second)).toEqual(await all(whole));
  });

  it('has the random generator, or is told to leave it out', async () => {
    const { model, optimizer } = made();
    expect(() => checkpoints(folder, { model, optimizer })).toThrow(
      /^\[checkpoints\] no random generator, .*\(dropout, augmentation\); add random: .* or random: false$/,
    );
    const path = join(folder, 'without-random');
    await train(
      { model, optimizer },
      { epochs: 1, callbacks: [checkpoints(path, { model, optimizer, random: false })] },
    );
    seed(3);
    const again = { ...made(), random: false };
    const before = getRandomState();
    expect(await checkpoints(path, again).resume()).toBe(1);
    expect(getRandomState()).toEqual(before);
    await expect(checkpoints(path, made()).resume()).rejects.toThrow('holds no state of the random generator; save it');
  });

  it('keeps the best and brings it back', async () => {
    seed(6);
    const parts = made();
    const values = [3, 1, Number.NaN, 2];
    const files = checkpoints(join(folder, 'best'), { ...parts, watch: ({ epoch }) => values[epoch], every: 2 });
    const seen = [];
    const spy = { onEpochEnd: async () => seen.push(await valuesOf(parts)) };
    await train(parts, { epochs: 4, callbacks: [files, spy] });
    expect(files.best).toEqual({ epoch: 1, value: 1 });
    await files.restoreBest();
    expect(await valuesOf(parts)).toEqual(seen[1]);
    const again = checkpoints(join(folder, 'best'), parts);
    expect(await again.resume()).toBe(4);
    expect(again.best).toEqual({ epoch: 1, value: 1 });
    values.splice(0, 4, Number.NaN, 2, 5, Number.NaN);
    const late = checkpoints(join(folder, 'late'), { ...parts, watch: ({ epoch }) => values[epoch], best: 'max' });
    await train(parts, { epochs: 4, callbacks: [late] });
    expect(late.best).toEqual({ epoch: 2, value: 5 });
    values.splice(0, 4, 3, 1, Number.NaN, 2);
    const greatest = checkpoints(join(folder, 'most'), { ...parts, watch: ({ epoch }) => values[epoch], best: 'max' });
    await train(parts, { epochs: 4, callbacks: [greatest] });
    expect(greatest.best).toEqual({ epoch: 0, value: 3 });
  });

  it('starts anew where there is no file, and says what is wrong with one that is damaged', async () => {
    const parts = made();
    expect(await checkpoints(join(folder, 'none'), parts).resume()).toBe(0);
    const path = join(folder, 'damaged');
    await saveModel(join(path, 'last.safetensors'), parts);
    const bytes = await readFile(join(path, 'last.safetensors'));
    const before = await valuesOf(parts);
    for (const part of [bytes.subarray(0, bytes.length - 5), bytes.subarray(0, 7), Buffer.from('no')]) {
      await writeFile(join(path, 'last.safetensors'), part);
      await expect(checkpoints(path, parts).resume()).rejects.toThrow(/last\.safetensors.*(truncated|damaged)/);
    }
    expect(await valuesOf(parts)).toEqual(before);
  });
});

describe('files of models', () => {
  it('are read by others as the weights, and carry the configuration', async () => {
    const parts = made();
    const path = join(folder, 'a', 'b', 'model.safetensors');
    await saveModel(path, parts, { config: { layers: [2, 3] }, metadata: { author: 'someone' } });
    const { tensors, metadata } = decodeSafetensors(await readFile(path));
    expect([...tensors.keys()].filter((name) => !name.startsWith('optimizer/')).sort()).toEqual(
      Object.keys(parts.model.stateDict()).sort(),
    );
    expect(metadata).toMatchObject({ format: 'pt', author: 'someone' });
    const { config, epoch, metadata: rest } = await loadModel(path);
    expect({ config, epoch, rest }).toEqual({
      config: { layers: [2, 3] },
      epoch: null,
      rest: { format: 'pt', author: 'someone' },
    });
    const other = made();
    const whole = 'parts are a Sequential: give an object with the model, as { model }';
    await expect(loadModel(path, other.model)).rejects.toThrow(`[loadModel] ${whole}`);
    await expect(saveModel(path, other.model)).rejects.toThrow(`[saveModel] ${whole}`);
    await expect(encodeCheckpoint(other.model)).rejects.toThrow(`[checkpoint] ${whole}`);
    await loadModel(path, { model: other.model });
    expect(await hostState(other.model.stateDict())).toEqual(await hostState(parts.model.stateDict()));
  });

  it('are written and read by functions of nn too, with optimizer and random generator, and the training goes on bit for bit', async () => {
    seed(11);
    const [parts, path] = [made(), join(folder, 'nn', 'model.safetensors')];
    await train(parts, { epochs: 2 });
    await nn.saveModel(path, { ...parts, random: true }, { config: { layers: [2, 3] }, epoch: 2 });
    await train(parts, { epochs: 2, firstEpoch: 2 });
    const drawn = [...(await rand([3]).data())];
    seed(99);
    const other = made();
    const { epoch, config } = await nn.loadModel(path, { ...other, random: true });
    expect({ epoch, config }).toEqual({ epoch: 2, config: { layers: [2, 3] } });
    await train(other, { epochs: 2, firstEpoch: 2 });
    expect(await valuesOf(other)).toEqual(await valuesOf(parts));
    expect([...(await rand([3]).data())]).toEqual(drawn);

    await nn.saveModel(path, parts.model);
    expect((await loadModel(path)).optimizer).toBe(null);
    const before = await readFile(path);
    await nn.loadModel(path, other.model);
    expect(await hostState(other.model.stateDict())).toEqual(await hostState(parts.model.stateDict()));
    await expect(nn.saveModel('/dev/full/x', parts.model)).rejects.toThrow(/cannot write/);
    await expect(nn.saveModel(path, { model: {} })).rejects.toThrow(
      /\[saveModel\] bad model: an object; must be a Module/,
    );
    await expect(nn.saveModel(path, parts.model, { rate: 1 })).rejects.toThrow(/rate/);
    await expect(nn.loadModel('', parts.model)).rejects.toThrow(/\[loadModel\] bad path: ''/);
    await expect(nn.loadModel(path, { ...parts, random: true })).rejects.toThrow(/no state of the optimizer/);
    expect(await readFile(path)).toEqual(before);
  });

  it('are refused where there is no Node, by what to do', async () => {
    const { process } = globalThis;
    globalThis.process = undefined;
    const saved = nn.saveModel('x', new Linear(1, 1)).catch((error) => error);
    globalThis.process = process;
    expect((await saved).message).toMatch(/\[saveModel\] there are no files here.*encodeCheckpoint/);
  });

  it('refuse what is not there, or not a part', async () => {
    const { model, optimizer } = made();
    const path = join(folder, 'model-only.safetensors');
    await saveModel(path, { model });
    await expect(loadModel(path, { model, optimizer })).rejects.toThrow(/no state of the optimizer/);
    await expect(loadModel(path, { model, random })).rejects.toThrow(/no state of the random/);
    await expect(loadModel(path, { model, scaler: new GradScaler() })).rejects.toThrow(/no state of the scaler/);
    await expect(loadModel(path, { model: new Linear(1, 2) })).rejects.toThrow(/lacks/);
    await expect(encodeCheckpoint({ model: {} })).rejects.toThrow(/bad model.*stateDict loadStateDict/);
    await expect(encodeCheckpoint({ model }, { config: { rate: Number.NaN } })).rejects.toThrow(/rate is NaN/);
    await expect(encodeCheckpoint({ model }, { config: { f: () => 1 } })).rejects.toThrow(/f is a function/);
    await expect(encodeCheckpoint({ model }, { epoch: -1 })).rejects.toThrow(/bad epoch: -1/);
    await expect(encodeCheckpoint({ model }, { metadata: { polygrad: 'x' } })).rejects.toThrow(/rename/);
    expect(() => checkpoints(folder, { model, every: 0 })).toThrow(/bad every: 0/);
    expect(() => checkpoints(folder, { model, everySteps: 1.5 })).toThrow(/bad everySteps: 1.5/);
    expect(() => checkpoints(folder, { model, best: 'most' })).toThrow(/'min' or 'max'/);
    const later = await encodeCheckpoint({ model });
    const text = Buffer.from(later).toString('latin1').replace('\\"version\\":1', '\\"version\\":2');
    expect(() => decodeCheckpoint(Buffer.from(text, 'latin1'))).toThrow(/version 2.*reads version 1/);
  });

  it('are there as a whole or as they were', async () => {
    const path = join(folder, 'kept.txt');
    await writeWhole(path, 'first');
    await writeWhole(path, 'second');
    expect(await readFile(path, 'utf8')).toBe('second');
    await expect(writeWhole(join(path, 'below'), 'x')).rejects.toThrow(/cannot write .*kept\.txt.below/);
    await expect(writeWhole('/dev/full/x', 'x')).rejects.toThrow(/cannot write/);
    await expect(writeWhole('/proc/none/x', 'x')).rejects.toThrow(/its folder is not there/);
    expect((await readdir(folder)).filter((name) => name.startsWith('.'))).toEqual([]);
    expect(await readFile(path, 'utf8')).toBe('second');
  });
});

describe('logs', () => {
  const report = {
    epoch: 0,
    loss: 0.5,
    metrics: { 'a,b': 1 },
    validation: { loss: Infinity, metrics: {} },
    seconds: 2,
    steps: 3,
  };

  it('of comma-separated values go on in the same file, if it has the same columns', async () => {
    const path = join(folder, 'logs', 'epochs.csv');
    await csvLog(path).onEpochEnd(report);
    const again = csvLog(path);
    await again.onEpochEnd({ ...report, epoch: 1 });
    await again.onEpochEnd({ ...report, epoch: 2 });
    const lines = (await readFile(path, 'utf8')).split('\n');
    expect(lines).toEqual([
      'epoch,loss,"a,b",validation_loss,seconds,steps',
      '0,0.5,1,Infinity,2,3',
      '1,0.5,1,Infinity,2,3',
      '2,0.5,1,Infinity,2,3',
      '',
    ]);
    await writeFile(path, `${lines.slice(0, 2).join('\n')}`);
    await csvLog(path).onEpochEnd(report);
    expect((await readFile(path, 'utf8')).split('\n')).toHaveLength(4);
    await expect(csvLog(path).onEpochEnd({ ...report, metrics: {} })).rejects.toThrow(/has the columns/);
  });

  it('of JSON lines', async () => {
    const path = join(folder, 'epochs.jsonl');
    const log = jsonLinesLog(path);
    await log.onEpochEnd(report);
    await log.onEpochEnd({ ...report, epoch: 1 });
    const lines = (await readFile(path, 'utf8'))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.map(({ epoch }) => epoch)).toEqual([0, 1]);
    expect(lines[0]).toEqual({ epoch: 0, loss: 0.5, 'a,b': 1, validation_loss: 'Infinity', seconds: 2, steps: 3 });
    await expect(jsonLinesLog(join(path, 'x')).onEpochEnd(report)).rejects.toThrow(/cannot write/);
  });
});

describe('the random generator', () => {
  it('goes on from where it stood', async () => {
    seed(11);
    await rand([5]).data();
    const state = JSON.parse(JSON.stringify(getRandomState()));
    const wanted = await rand([5]).array();
    seed(1);
    setRandomState(state);
    expect(await rand([5]).array()).toEqual(wanted);
    for (const bad of [
      undefined,
      null,
      {},
      { key: [1, 2] },
      { key: [1], calls: 0 },
      { key: [1, 2], calls: -1 },
      { key: [0.5, 2], calls: 0 },
    ])
      expect(() => setRandomState(bad)).toThrow(/setRandomState.*bad (key|calls)/);
  });
});
