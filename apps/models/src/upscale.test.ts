/**
 * @upscalerjs/esrgan-slim: networks that enlarge images, trained in TensorFlow. Its package has an image and what its authors' program made of it.
 *   The same weights run by Polygrad give the same bytes, but for a few that are one off.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import '@polygrad/backend-cpu';
import { clip, memory, scope, setEngine, tensor } from '@polygrad/core';
import { beforeAll, describe, expect, it } from 'vitest';
import { predict, readLayersModel } from './layers-model.ts';
import { packageFolder } from './package-folder.ts';

interface Image {
  readonly width: number;
  readonly height: number;
  /** Red, green, blue, alpha of every pixel. */
  readonly data: Uint8Array;
}
const { PNG } = createRequire(import.meta.url)('pngjs') as {
  readonly PNG: { readonly sync: { readonly read: (bytes: Uint8Array) => Image } };
};
const folder = packageFolder('@upscalerjs/esrgan-slim');

function readImage(path: string): Image {
  return PNG.sync.read(readFileSync(join(folder, 'assets', path)));
}

/** Red, green and blue. */
function colours({ data, width, height }: Image): Float32Array {
  return Float32Array.from({ length: width * height * 3 }, (_, i) => data[Math.floor(i / 3) * 4 + (i % 3)]!);
}

describe('@upscalerjs/esrgan-slim', () => {
  beforeAll(() => setEngine('cpu'));

  it.each([2, 3, 4])('enlarges its own image %i times as its authors did', async (scale) => {
    const image = readImage('fixture.png');
    const expected = readImage(`samples/${scale}x/result.png`);
    expect([expected.width, expected.height]).toEqual([image.width * scale, image.height * scale]);
    const before = memory().numBuffers;
    const model = readLayersModel(join(folder, `models/x${scale}/model.json`));
    const x = tensor(colours(image), { shape: [1, image.height, image.width, 3] });
    const y = scope(() => clip(predict(model, x), 0, 255));
    expect(y.shape).toEqual([1, expected.height, expected.width, 3]);
    const bytes = Uint8Array.from((await y.data()) as Float32Array, Math.round);
    const wanted = colours(expected);
    const histogram = new Map<number, number>();
    bytes.forEach((byte, i) => {
      const off = Math.abs(byte - wanted[i]!);
      histogram.set(off, (histogram.get(off) ?? 0) + 1);
    });
    expect(histogram.get(0)).toBeGreaterThan(0.9999 * wanted.length);
    expect(Math.max(...histogram.keys())).toBeLessThanOrEqual(1);
    for (const t of [x, y, ...model.weights.values()]) t.dispose();
    expect(memory().numBuffers).toBe(before);
  });
});
