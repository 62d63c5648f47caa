/** Functions of the data package with one argument of a wrong or hostile kind: they work, or refuse it with an error of the library. */
import { PolygradError } from '@polygrad/core';
import {
  batches,
  CharTokenizer,
  csvRows,
  DataFrame,
  Dataset,
  decodeImage,
  decodeNpy,
  decodeNpz,
  decodeSafetensors,
  decodeTorch,
  encodeIdx,
  encodeNpy,
  encodeNpz,
  encodePng,
  encodeSafetensors,
  encodeTorch,
  FeatureEncoder,
  fitFeatures,
  fitNormalizer,
  imageDataset,
  jsonLines,
  loadTokenizer,
  memoryDataset,
  Normalizer,
  parseCsv,
  parseIdx,
  parseJsonLines,
  pixelStatistics,
  RandomStream,
  readIdxHeader,
  resizeImage,
  shuffledIndices,
  subset,
  tokenWindows,
  trainBpe,
} from '@polygrad/data';
import { tensorBoard, workerPool } from '@polygrad/data/node';
import { HostileError, hostileArguments, wrongCalls } from '@polygrad/testing';
import { expect, it } from 'vitest';

const image = { dtype: 'uint8', shape: [1, 2, 2], data: new Uint8Array(4) };
const numbers = { dtype: 'float32', shape: [2, 1], data: Float32Array.of(1, 2) };
const memory = memoryDataset({ x: { array: numbers } });
const frame = parseCsv('x,name,y\n1,a,2\n3,b,4\n');
const features = fitFeatures(frame, { target: 'y' });
const letters = CharTokenizer.fit('abc');
const scale = new Normalizer('all', [0], [1]);
const file = trainBpe('a text', { vocabSize: 257 });
const tokenizer = await loadTokenizer(file);
const list = () => Dataset.from([1, 2, 3, 4]);
const all = async (data) => data.toArray();

const calls = {
  from: [(items) => all(Dataset.from(items).take(2)), [1, 2, 3]],
  epoch: [(n) => list().epoch(n), 1],
  map: [(change, options) => all(list().map(change, options)), (x) => x, { concurrency: 2 }],
  batch: [(size, options) => all(list().batch(size, options)), 2, { dropLast: true, dtypes: { '': 'int32' }, pad: {} }],
  'rows of a batch': [(a, b) => all(Dataset.from([a, b]).batch(2)), { x: [1], y: 2 }, { x: [2], y: 3 }],
  shuffle: [(options) => all(list().shuffle(options)), { seed: 1, buffer: 3, eachEpoch: true }],
  bucket: [
    (options) => all(Dataset.from([[1], [2]]).bucket(options)),
    { length: (x) => x.length, boundaries: [2], batchSize: 1, dropLast: false },
  ],
  zip: [(other) => all(list().zip(other)), list()],
  take: [(n) => all(list().take(n)), 2],
  skip: [(n) => all(list().skip(n)), 2],
  repeat: [(n) => all(list().repeat(n).take(5)), 2],
  prefetch: [(n) => all(list().prefetch(n)), 2],
  split: [(shares, options) => list().split(shares, options), [0.5, 0.5], { seed: 1, stratify: [0, 1, 0, 1] }],
  folds: [(n, options) => list().folds(n, options), 2, { seed: 1 }],
  parseCsv: [
    parseCsv,
    'a,b\n1,2\n',
    { delimiter: ',', header: true, types: { a: 'number' }, missing: [''], source: 's' },
  ],
  csvRows: [(open, options) => all(csvRows(open, options)), () => ['a\n1\n'], { inferRows: 2, header: true }],
  parseJsonLines: [parseJsonLines, '1\n2', { source: 's' }],
  jsonLines: [(open, options) => all(jsonLines(open, options)), () => ['1\n'], { source: 's' }],
  fromRows: [DataFrame.fromRows, [{ x: 1 }, { x: 2 }]],
  column: [(name) => frame.column(name), 'x'],
  row: [(n) => frame.row(n), 1],
  takeRows: [(rows) => frame.take(rows), [1, 0]],
  fitFeatures: [fitFeatures, frame, { inputs: ['x'], target: 'y', normalize: true, missing: 'mean', unknown: 'zeros' }],
  encodeRow: [(row) => features.encodeRow(row), { x: 1, name: 'a' }],
  'FeatureEncoder.fromJSON': [FeatureEncoder.fromJSON, JSON.parse(JSON.stringify(features))],
  fitNormalizer: [
    fitNormalizer,
    [
      [1, 2],
      [3, 4],
    ],
    (row) => row,
    { per: 'element' },
  ],
  Normalizer: [(per, mean, std) => new Normalizer(per, mean, std), 'all', [0], [1]],
  'Normalizer.fromJSON': [Normalizer.fromJSON, scale.toJSON()],
  apply: [(row) => scale.apply(row), [1, 2]],
  invert: [(row) => scale.invert(row), [1, 2]],
  'inputs of features': [(table) => features.inputs(table), frame],
  'targets of features': [(table) => features.targets(table), frame],
  'encode of features': [(table) => features.encode(table), frame],
  'CharTokenizer.fromJSON': [CharTokenizer.fromJSON, JSON.parse(JSON.stringify(letters))],
  batches: [batches, memory, { batchSize: 2, shuffle: true, seed: 1, dropLast: true, prefetch: 1, reuse: true }],
  memoryDataset: [memoryDataset, { x: { array: numbers } }],
  subset: [subset, memory, 0, 1],
  parseIdx: [parseIdx, encodeIdx(numbers), 's'],
  readIdxHeader: [readIdxHeader, encodeIdx(numbers), 's'],
  encodeIdx: [encodeIdx, numbers],
  encodeSafetensors: [encodeSafetensors, { x: numbers }, { name: 'a' }],
  decodeNpy: [decodeNpy, encodeNpy(numbers), 's'],
  decodeNpz: [decodeNpz, encodeNpz({ x: numbers }), 's'],
  decodeTorch: [decodeTorch, encodeTorch({ x: numbers }), 's'],
  encodeNpy: [encodeNpy, numbers],
  encodeNpz: [encodeNpz, { x: numbers }],
  encodeTorch: [encodeTorch, { x: numbers }],
  decodeSafetensors: [decodeSafetensors, encodeSafetensors({ x: numbers }), 's'],
  imageDataset: [imageDataset, image, { dtype: 'uint8', shape: [1], data: Uint8Array.of(1) }, { classes: 3 }],
  pixelStatistics: [pixelStatistics, image],
  shuffledIndices: [shuffledIndices, 4, 1, 2],
  RandomStream: [(seed, stream) => new RandomStream(seed, stream), 1, 2],
  decodeImage: [decodeImage, await encodePng(image), { channels: 1, size: [2, 2], resizing: 'nearest', source: 's' }],
  encodePng: [encodePng, image],
  resizeImage: [resizeImage, image, [3, 3], { resizing: 'bilinear' }],
  CharTokenizer: [(of, options) => new CharTokenizer(of, options), ['a', 'b'], { unknown: 'a' }],
  'CharTokenizer.fit': [CharTokenizer.fit, 'abc', { unknown: 'a' }],
  'letters encode': [(text) => letters.encode(text), 'abc'],
  'letters decode': [(ids) => letters.decode(ids), [0, 1]],
  loadTokenizer: [loadTokenizer, file, { source: 's' }],
  encode: [(text, options) => tokenizer.encode(text, options), 'a text', { special: true }],
  decode: [(ids, options) => tokenizer.decode(ids, options), [1, 2], { skipSpecial: true }],
  trainBpe: [trainBpe, ['a text'], { vocabSize: 260, specialTokens: ['<end>'], minFrequency: 1 }],
  tokenWindows: [tokenWindows, [1, 2, 3, 4], { length: 2, stride: 1 }],
  tensorBoard: [tensorBoard, 'runs', { everySteps: 2, optimizer: { currentRate: 1 } }],
  workerPool: [workerPool, 'none.mjs', { size: 1, name: 'run' }],
};

/** Processor time of one call: what looks at all paths of a hostile list would take for ever, and what copies the longest one half a minute. */
const mostMicroseconds = 5e6;

/** What an object of the user's throws when its properties are read, or a function of the user's, is the user's. */
const isTheirs = (error) => error instanceof HostileError || /revoked|Class constructor/.test(String(error?.message));

it.each(Object.entries(calls))('%s', async (_, [call, ...args]) => {
  await call(...args);
  const complaints = new Set();
  for (const hostile of [undefined, hostileArguments()])
    for await (const [text, changed] of wrongCalls(call, args, null, hostile)) {
      const begun = process.cpuUsage();
      try {
        await call(...changed);
      } catch (error) {
        if (error instanceof PolygradError && error.message.length < 2000) continue;
        if (hostile !== undefined && isTheirs(error)) continue;
        complaints.add(`${text}: ${String(error?.message).slice(0, 200)}`);
      } finally {
        const { user, system } = process.cpuUsage(begun);
        if (user + system > mostMicroseconds) complaints.add(`${text}: takes ${(user + system) / 1e6} s`);
      }
    }
  expect([...complaints]).toEqual([]);
});
