/** Files and folders of data, worker threads, and event files of TensorBoard decoded by another library. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import protobuf from 'protobufjs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DataError } from '../errors.ts';
import { encodePng } from '../pictures/decode.ts';
import { Dataset } from '../pipeline/dataset.ts';
import { crc32c } from './crc32c.ts';
import { imageFolder } from './image-folder.ts';
import { csvFile, jsonLinesFile, readCsv, readJsonLines } from './tables.ts';
import { EventWriter, tensorBoard } from './tensorboard.ts';
import { workerPool } from './worker-pool.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'polygrad-data-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const file = (name: string, content: string | Uint8Array): string => {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};

describe('files of tables', () => {
  it('are read whole and row by row, packed or not', async () => {
    const text = `x,name\n${Array.from({ length: 20_000 }, (_, i) => `${i},"row ${i}"`).join('\n')}\n`;
    for (const path of [file('rows.csv', text), file('rows.csv.gz', gzipSync(text))]) {
      const frame = await readCsv(path);
      expect([frame.rows, frame.row(19_999)]).toEqual([20_000, { x: 19_999, name: 'row 19999' }]);
      const rows = csvFile(path);
      for (let epoch = 0; epoch < 2; epoch++) {
        const found = await rows.map(({ x }) => x as number).toArray();
        expect(found).toEqual(Array.from({ length: 20_000 }, (_, i) => i));
      }
      expect(await rows.take(1).toArray()).toEqual([{ x: 0, name: 'row 0' }]);
    }
    const lines = file('lines.jsonl', '{"a":1}\n{"a":2}\n');
    expect(await readJsonLines(lines)).toEqual([{ a: 1 }, { a: 2 }]);
    expect(
      await jsonLinesFile<{ a: number }>(lines)
        .map(({ a }) => a)
        .toArray(),
    ).toEqual([1, 2]); // prettier-ignore
  });

  it('say which file and line is wrong', async () => {
    const broken = file('broken.csv', 'a\n1\n"2');
    await expect(readCsv(broken)).rejects.toThrow(new RegExp(`${broken}, line 3: a quote is opened`));
    await expect(csvFile(broken).toArray()).rejects.toThrow(new RegExp(`${broken}, line 3`));
    await expect(csvFile(join(folder, 'none.csv')).toArray()).rejects.toMatchObject({ code: 'missing' });
    await expect(csvFile(join(folder, 'none.csv.gz')).toArray()).rejects.toMatchObject({ code: 'missing' });
    const packed = gzipSync('a\n1\n');
    const cut = file('cut.csv.gz', packed.subarray(0, packed.length - 5));
    await expect(csvFile(cut).toArray()).rejects.toMatchObject({ code: 'format', name: 'DataError' });
  });
});

describe('imageFolder', () => {
  it('gives images with the classes of their folders', async () => {
    const root = join(folder, 'pets');
    for (const [name, values] of Object.entries({ dog: [200, 201], cat: [10, 11, 12] })) {
      mkdirSync(join(root, name, 'more'), { recursive: true });
      for (const [i, value] of values.entries()) {
        const image = { dtype: 'uint8', shape: [1, 4, 6], data: new Uint8Array(24).fill(value) } as const;
        writeFileSync(join(root, name, i === 1 ? 'more' : '.', `${i}.png`), await encodePng(image));
      }
      writeFileSync(join(root, name, 'notes.txt'), 'no image');
    }
    // What other programs leave behind.
    mkdirSync(join(root, '.checkpoints'));
    writeFileSync(join(root, 'cat', '._0.png'), 'no image');
    const { classes, labels, files, dataset } = await imageFolder(root, { channels: 3, size: [2, 2] });
    expect([classes, [...labels], files.length]).toEqual([['cat', 'dog'], [0, 0, 0, 1, 1], 5]);
    const [batch] = await dataset.batch(5).toArray();
    expect([batch!.x.shape, batch!.x.dtype, batch!.y.dtype]).toEqual([[5, 3, 2, 2], 'float32', 'int32']);
    expect(batch!.x.data[0]).toBe(Math.fround(10 / 255));
    expect([...batch!.y.data]).toEqual([0, 0, 0, 1, 1]);
    writeFileSync(join(root, 'cat', '0.png'), 'broken');
    await expect(dataset.toArray()).rejects.toThrow(/cat.0\.png is neither PNG nor JPEG/);
    rmSync(join(root, 'cat', '0.png'));
    await expect(dataset.toArray()).rejects.toMatchObject({ code: 'missing' });
    mkdirSync(join(root, 'eel'));
    await expect(imageFolder(root)).rejects.toThrow(/eel has no files that end in .png/);
    await expect(imageFolder(join(root, 'eel'))).rejects.toThrow(/has no folders in it/);
    await expect(imageFolder(join(root, 'none'))).rejects.toMatchObject({ code: 'missing' });
  });
});

describe('workerPool', () => {
  const module = new URL('./fixtures/worker.mjs', import.meta.url);

  it('runs functions of a module in threads, in order', async () => {
    const pool = workerPool<number, number>(module, { size: 2, name: 'twice' });
    try {
      const items = Array.from({ length: 30 }, (_, i) => i);
      const data = Dataset.from(items).map(pool.run, { concurrency: 4 });
      expect(await data.toArray()).toEqual(items.map((x) => x * 2));
      await expect(pool.run('fail' as never)).rejects.toThrow(/worker\.mjs: worker says no/);
      expect(await pool.run(4)).toBe(8);
    } finally {
      await pool.close();
    }
    await expect(pool.run(1)).rejects.toThrow(/the pool is closed/);
    const threads = workerPool<number, number>(module, { size: 1, name: 'thread' });
    expect(await threads.run(0)).toBeGreaterThan(0);
    await threads.close();
  });

  it('tells of threads that end, and of what cannot be copied or found', async () => {
    const pool = workerPool<unknown, number>(module, { size: 1, name: 'twice' });
    const exits = pool.run('exit');
    const after = pool.run(4);
    await expect(exits).rejects.toThrow(/the thread ended with code 3/);
    // Another thread has taken its place.
    expect(await after).toBe(8);
    await expect(pool.run(() => 1)).rejects.toThrow(/the item cannot be copied/);
    await expect(pool.run('function')).rejects.toThrow(/could not be cloned/);
    expect(await pool.run(5)).toBe(10);
    const left = pool.run(1);
    const closing = pool.close();
    await expect(left).rejects.toThrow(/the pool was closed/);
    await closing;
    const none = workerPool<number, number>(join(folder, 'none.mjs'), { size: 1 });
    await expect(none.run(1)).rejects.toThrow(/Cannot find module/);
    await none.close();
    const unnamed = workerPool<number, number>(module, { size: 1 });
    await expect(unnamed.run(1)).rejects.toThrow(/has no function 'default'/);
    await unnamed.close();
    for (const options of [{ size: 0 }, { name: 3 }, { threads: 2 }])
      expect(() => workerPool(module, options as never)).toThrow(DataError);
    for (const place of [5, null, {}]) expect(() => workerPool(place as never)).toThrow(DataError);
  });
});

/** The parts of TensorFlow's event.proto and summary.proto that are written. */
const proto = `syntax = "proto3";
message HistogramProto { double min = 1; double max = 2; double num = 3; double sum = 4; double sum_squares = 5; repeated double bucket_limit = 6; repeated double bucket = 7; }
message Value { string tag = 1; float simple_value = 2; HistogramProto histo = 5; }
message Summary { repeated Value value = 1; }
message Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; }`;

/** CRC-32C bit by bit, with the bits turned round only at the end. */
function slowCrc(bytes: Uint8Array): number {
  let crc = 0xffffffffn;
  const reversed = (value: bigint, width: number): bigint =>
    BigInt(`0b${value.toString(2).padStart(width, '0').split('').reverse().join('')}`); // prettier-ignore
  for (const byte of bytes) {
    crc ^= reversed(BigInt(byte), 8) << 24n;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 0x80000000n ? (crc << 1n) ^ 0x1edc6f41n : crc << 1n) & 0xffffffffn;
  }
  return Number(reversed(crc ^ 0xffffffffn, 32));
}

interface Told {
  wallTime: number;
  step: number;
  fileVersion: string;
  summary: {
    value: {
      tag: string;
      simpleValue: number;
      histo: Record<string, number[]> & { num: number; min: number; max: number; sum: number; sumSquares: number };
    }[];
  } | null; // prettier-ignore
}

/** The events of a file, its checksums checked. */
function eventsOf(path: string): Told[] {
  const Event = protobuf.parse(proto).root.lookupType('Event');
  const bytes = readFileSync(path);
  const unmask = (value: number): number => {
    const rotated = (value - 0xa282ead8) >>> 0;
    return ((rotated >>> 17) | (rotated << 15)) >>> 0;
  };
  const found: Told[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = Number(bytes.readBigUInt64LE(at));
    expect(unmask(bytes.readUInt32LE(at + 8))).toBe(slowCrc(bytes.subarray(at, at + 8)));
    const message = bytes.subarray(at + 12, at + 12 + length);
    expect(unmask(bytes.readUInt32LE(at + 12 + length))).toBe(slowCrc(message));
    found.push(Event.toObject(Event.decode(message), { longs: Number, defaults: true }) as Told);
    at += 16 + length;
  }
  return found;
}

describe('event files', () => {
  it('have the checksums of RFC 3720', () => {
    const bytes = (make: (i: number) => number): Uint8Array => Uint8Array.from({ length: 32 }, (_, i) => make(i));
    expect(crc32c(bytes(() => 0))).toBe(0x8a9136aa);
    expect(crc32c(bytes(() => 0xff))).toBe(0x62a8ab43);
    expect(crc32c(bytes((i) => i))).toBe(0x46dd794e);
    expect(crc32c(bytes((i) => 31 - i))).toBe(0x113fdb5c);
    expect(crc32c(new TextEncoder().encode('123456789'))).toBe(0xe3069283);
    expect(slowCrc(new TextEncoder().encode('123456789'))).toBe(0xe3069283);
  });

  it('hold what was written, as another library reads it', async () => {
    const events = await EventWriter.open(join(folder, 'run'));
    events.scalar('train/loss', 0.25, 7);
    events.scalar('bad', Number.NaN, 2 ** 40);
    events.histogram('w', new Float32Array([0, 1, 1, 4]), 1);
    events.histogram('same', [2, 2], 1);
    await Promise.all([events.flush(), events.flush()]);
    events.scalar('train/loss', 0.125, 8);
    await events.flush();
    const [first, loss, bad, w, same, later] = eventsOf(events.path) as [Told, Told, Told, Told, Told, Told];
    expect([first.fileVersion, first.summary]).toEqual(['brain.Event:2', null]);
    // Seconds since 1970.
    expect(first.wallTime).toBeGreaterThan(1.7e9);
    expect(first.wallTime).toBeLessThan(1e11);
    expect([loss.step, loss.summary!.value[0]]).toMatchObject([7, { tag: 'train/loss', simpleValue: 0.25 }]);
    expect([bad.step, bad.summary!.value[0]!.simpleValue]).toEqual([2 ** 40, Number.NaN]);
    const { histo } = w.summary!.value[0]!;
    expect([histo.min, histo.max, histo.num, histo.sum, histo.sumSquares]).toEqual([0, 4, 4, 6, 18]);
    const above = (limit: number): number =>
      histo.bucket!.filter((_, i) => histo.bucketLimit![i]! > limit).reduce((a, b) => a + b, 0); // prettier-ignore
    expect([histo.bucket!.reduce((a, b) => a + b), above(0.5), above(2)]).toEqual([4, 3, 1]);
    expect(same.summary!.value[0]!.histo.bucket).toEqual([2]);
    expect(later.summary!.value[0]!.simpleValue).toBe(0.125);
    expect(() => events.scalar('', 1, 1)).toThrow(DataError);
    expect(() => events.scalar('x', '1' as never, 1)).toThrow(DataError);
    expect(() => events.scalar('x', 1, -1)).toThrow(DataError);
    expect(() => events.histogram('x', [], 1)).toThrow(DataError);
    expect(() => events.histogram('x', [Number.NaN], 1)).toThrow(/all finite/);
    await expect(EventWriter.open('/proc/none')).rejects.toMatchObject({ code: 'missing' });
  });

  it('follow a training', async () => {
    const run = join(folder, 'followed');
    const optimizer = { currentRate: 0.5 };
    const log = tensorBoard(run, { optimizer, everySteps: 2 });
    for (let epoch = 0; epoch < 2; epoch++) {
      for (let step = 1; step <= 3; step++)
        log.onStep({ epoch, step, loss: step === 1 && epoch === 0 ? null : step / 4, metrics: {} });
      await log.onEpochEnd({
        epoch,
        loss: 2 - epoch,
        metrics: { accuracy: 0.5 },
        validation: { loss: 3, metrics: { accuracy: 0.25 } },
        seconds: 1,
        steps: 3,
      }); // prettier-ignore
      optimizer.currentRate /= 2;
    }
    await log.onTrainEnd();
    const [name] = readdirSync(run);
    expect(name).toMatch(/^events\.out\.tfevents\.\d+\./);
    const points = eventsOf(join(run, name!))
      .slice(1)
      .map(({ step, summary }) => `${summary!.value[0]!.tag} ${step} ${summary!.value[0]!.simpleValue}`); // prettier-ignore
    expect(points).toEqual([
      'steps/loss 2 0.5',
      'train/loss 0 2',
      'train/accuracy 0 0.5',
      'validation/loss 0 3',
      'validation/accuracy 0 0.25',
      'learning_rate 0 0.5',
      'seconds 0 1',
      'steps/loss 4 0.25',
      'steps/loss 6 0.75',
      'train/loss 1 1',
      'train/accuracy 1 0.5',
      'validation/loss 1 3',
      'validation/accuracy 1 0.25',
      'learning_rate 1 0.25',
      'seconds 1 1',
    ]); // prettier-ignore
    expect(() => tensorBoard(run, { optimizer: {} as never })).toThrow(/currentRate/);
    expect(() => tensorBoard(5 as never)).toThrow(DataError);
  });
});

it('loads the libraries of images, text, threads and event files late', () => {
  const sources = new URL('..', import.meta.url);
  const late = ['fast-png', 'jpeg-js', '@huggingface/tokenizers', 'pbf'];
  const early = readdirSync(sources, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts'))
    .flatMap((path) => {
      const text = readFileSync(new URL(path, sources), 'utf8');
      const imported = [...text.matchAll(/^import (?!type\b)[^;]*? from '([^']+)'/gm)].map(([, name]) => name!);
      return imported.filter((name) => late.includes(name)).map((name) => `${path}: ${name}`);
    });
  expect(early).toEqual([]);
});
