import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { batches } from '../batches.ts';
import { DataError } from '../errors.ts';
import { encodeIdx } from '../idx.ts';
import { readWhole, sha256, verifySha256 } from './files.ts';
import { loadIdxFolder, loadMnist } from './mnist.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'polygrad-data-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const FILES = [
  'train-images-idx3-ubyte',
  'train-labels-idx1-ubyte',
  't10k-images-idx3-ubyte',
  't10k-labels-idx1-ubyte',
] as const;

/** Writes a whole tiny set into a new folder, then lets the test damage it. */
async function tinySet(
  name: string,
  change: Partial<Record<(typeof FILES)[number], Uint8Array | null>> = {},
): Promise<string> {
  const { mkdir } = await import('node:fs/promises');
  const at = join(folder, name);
  await mkdir(at);
  const images = (rows: number) =>
    encodeIdx({ dtype: 'uint8', shape: [rows, 2, 2], data: new Uint8Array(rows * 4).map((_, index) => index) });
  const labels = (rows: number) =>
    encodeIdx({ dtype: 'uint8', shape: [rows], data: new Uint8Array(rows).map((_, index) => index % 10) });
  const contents = [images(5), labels(5), images(3), labels(3)];
  for (const [index, file] of FILES.entries()) {
    const bytes = change[file] === undefined ? contents[index]! : change[file];
    if (bytes !== null) await writeFile(join(at, file), bytes);
  }
  return at;
}

async function failure(promise: Promise<unknown>): Promise<DataError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(DataError);
  return error as DataError;
}

describe('loadMnist', () => {
  it('reads the official split and delivers normalised batches', async () => {
    const { train, test } = await loadMnist();
    expect([train.size, test.size]).toEqual([60_000, 10_000]);
    expect([train.height, train.width, train.classes]).toEqual([28, 28, 10]);
    expect([train.mean, train.std, test.mean, test.std]).toEqual([0.1307, 0.3081, 0.1307, 0.3081]);
    // Facts about MNIST found in any description of it: the first labels, and the pixels' mean and deviation.
    expect([...train.labels.data.subarray(0, 10)]).toEqual([5, 0, 4, 1, 9, 2, 1, 3, 1, 4]);
    expect([...test.labels.data.subarray(0, 5)]).toEqual([7, 2, 1, 0, 4]);
    let sum = 0;
    let squares = 0;
    let count = 0;
    for await (const { x, y } of batches(train, { batchSize: 1000 })) {
      expect([x.dtype, x.shape, y.dtype, y.shape]).toEqual(['float32', [1000, 1, 28, 28], 'int32', [1000]]);
      for (const value of x.data as Float32Array) {
        sum += value;
        squares += value * value;
      }
      count += x.data.length;
      if (count >= 10_000 * 784) break;
    }
    expect(Math.abs(sum / count)).toBeLessThan(0.01);
    expect(Math.abs(squares / count - 1)).toBeLessThan(0.02);
  });
});

describe('loadIdxFolder', () => {
  it('reads plain files and packed ones', async () => {
    const plain = await loadIdxFolder(await tinySet('plain'));
    const packed = await tinySet('packed', Object.fromEntries(FILES.map((file) => [file, null])));
    for (const file of FILES) {
      await writeFile(join(packed, `${file}.gz`), gzipSync(await readWhole(join(folder, 'plain', file))));
    }
    const unpacked = await loadIdxFolder(packed);
    expect(unpacked.train.images).toEqual(plain.train.images);
    expect([...unpacked.test.labels.data]).toEqual([0, 1, 2]);
    expect([plain.train.size, plain.test.size, plain.train.height]).toEqual([5, 3, 2]);
  });

  it('normalises by the mean and deviation of the training images', async () => {
    const { train } = await loadIdxFolder(await tinySet('measured'));
    const x = train.gather(new Uint32Array([0, 1, 2, 3, 4]), 0, 5).x.data as Float32Array;
    const mean = x.reduce((sum, value) => sum + value, 0) / x.length;
    const square = x.reduce((sum, value) => sum + value * value, 0) / x.length;
    expect([mean, square].map((value) => Math.round(value * 1e5) / 1e5)).toEqual([0, 1]);
  });

  it('leaves the range from 0 to 1 where asked, and says what it took', async () => {
    const folder = await tinySet('raw');
    const { train } = await loadIdxFolder(folder, { normalize: false });
    const x = train.gather(new Uint32Array([4]), 0, 1).x.data as Float32Array;
    expect([...x]).toEqual([16, 17, 18, 19].map((byte) => Math.fround(byte / 255)));
    expect([train.mean, train.std]).toEqual([0, 1]);
    const given = await loadIdxFolder(folder, { mean: 0.5, std: 0.25 });
    expect([given.test.mean, given.test.std]).toEqual([0.5, 0.25]);
    const measured = await loadIdxFolder(folder);
    expect(measured.test.mean).toBeCloseTo(9.5 / 255, 12);
    const both = await failure(loadIdxFolder(folder, { normalize: false, std: 2 }));
    expect([both.code, both.message]).toEqual([
      'argument',
      '[images] normalize is false, and std is 2: leave one of the two out',
    ]);
    expect((await failure(loadIdxFolder(folder, { normalize: 1 as never }))).message).toMatch(
      /normalize is 1; it must be a boolean/,
    );
  });

  it('names the function that takes a folder', async () => {
    await expect(loadMnist('/data/mnist' as never)).rejects.toThrow(
      "[mnist] bad options: '/data/mnist'; must be an object: write await loadIdxFolder('/data/mnist')",
    );
  });

  it('says which file is missing', async () => {
    const at = await tinySet('missing', { 't10k-labels-idx1-ubyte': null });
    const error = await failure(loadIdxFolder(at));
    expect(error.code).toBe('missing');
    expect(error.message).toContain(join(at, 't10k-labels-idx1-ubyte'));
    expect((await failure(loadIdxFolder(join(folder, 'nowhere')))).code).toBe('missing');
  });

  it('refuses images and labels of different counts', async () => {
    const nine = encodeIdx({ dtype: 'uint8', shape: [9], data: new Uint8Array(9) });
    const error = await failure(loadIdxFolder(await tinySet('counts', { 'train-labels-idx1-ubyte': nine })));
    expect(error.code).toBe('mismatch');
    expect(error.message).toMatch(/5 images, .* has 9 labels/);
  });

  it('refuses labels that are no class', async () => {
    const eleven = encodeIdx({ dtype: 'uint8', shape: [3], data: new Uint8Array([1, 11, 2]) });
    const error = await failure(loadIdxFolder(await tinySet('classes', { 't10k-labels-idx1-ubyte': eleven })));
    expect(error.message).toMatch(/label 11 at row 1/);
  });

  it('refuses labels in the place of images, and images of another size', async () => {
    const labels = encodeIdx({ dtype: 'uint8', shape: [3], data: new Uint8Array(3) });
    const swapped = await failure(loadIdxFolder(await tinySet('swapped', { 't10k-images-idx3-ubyte': labels })));
    expect(swapped.code).toBe('format');
    const larger = encodeIdx({ dtype: 'uint8', shape: [3, 4, 4], data: new Uint8Array(48) });
    const sizes = await failure(loadIdxFolder(await tinySet('sizes', { 't10k-images-idx3-ubyte': larger })));
    expect(sizes.message).toMatch(/2 x 2, test images 4 x 4/);
  });

  it('refuses truncated, oversized and badly packed files', async () => {
    const cut = new Uint8Array([0, 0, 8, 1, 0, 0, 0, 5, 1]);
    expect((await failure(loadIdxFolder(await tinySet('cut', { 'train-labels-idx1-ubyte': cut })))).code).toBe(
      'truncated',
    );
    const long = new Uint8Array([0, 0, 8, 1, 0, 0, 0, 5, 1, 2, 3, 4, 5, 6]);
    expect((await failure(loadIdxFolder(await tinySet('long', { 'train-labels-idx1-ubyte': long })))).code).toBe(
      'oversized',
    );
    const packed = await tinySet('badly-packed', { 'train-labels-idx1-ubyte': null });
    await writeFile(join(packed, 'train-labels-idx1-ubyte.gz'), gzipSync(long).subarray(0, 20));
    expect((await failure(loadIdxFolder(packed))).code).toBe('format');
  });
});

describe('files', () => {
  it('knows sha256 (the vectors of FIPS 180-2) and refuses another', () => {
    const abc = new TextEncoder().encode('abc');
    expect(sha256(abc)).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
    expect(() => verifySha256(abc, sha256(abc), 'abc')).not.toThrow();
    expect(() => verifySha256(abc, sha256(new Uint8Array(0)), 'abc')).toThrow(
      /abc has sha256 ba7816bf.*expected e3b0c442/,
    );
  });

  it('says that a folder is no file', async () => {
    expect((await failure(readWhole(folder))).message).toMatch(/it is a folder/);
  });
});
