/** Images against PIL: files of many kinds, other sizes, and damaged ones. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { DataError, isDataError } from '../errors.ts';
import { RandomStream } from '../random.ts';
import { decodeImage, encodePng } from './decode.ts';
import { resizeImage } from './resize.ts';

interface Golden {
  readonly shape: [number, number, number];
  readonly data: string;
}
const goldens = JSON.parse(readFileSync(new URL('../fixtures/goldens.json', import.meta.url), 'utf8')) as {
  files: (Golden & { name: string; file: string; tolerance: number })[];
  grey: (Golden & { source: string })[];
  resized: (Golden & { size: [number, number]; resizing: 'nearest' | 'bilinear' })[];
};
const bytes = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'base64'));
const fileOf = (name: string): Uint8Array => bytes(goldens.files.find((one) => one.name === name)!.file);
const most = (a: Uint8Array, b: Uint8Array): number => a.reduce((so, x, i) => Math.max(so, Math.abs(x - b[i]!)), 0);

describe('decodeImage', () => {
  for (const { name, file, shape, data, tolerance } of goldens.files)
    it(`decodes ${name} as PIL does`, async () => {
      const image = await decodeImage(bytes(file));
      expect(image.shape).toEqual(shape);
      expect(most(image.data, bytes(data))).toBeLessThanOrEqual(tolerance);
    });

  it('makes grey of colours as PIL does, and colours of grey', async () => {
    for (const { source, data } of goldens.grey)
      expect((await decodeImage(fileOf(source), { channels: 1 })).data).toEqual(bytes(data));
    const grey = await decodeImage(fileOf('grey'));
    const colours = await decodeImage(fileOf('grey'), { channels: 3 });
    expect(colours.shape).toEqual([3, ...grey.shape.slice(1)]);
    expect(colours.data).toEqual(Uint8Array.from([...grey.data, ...grey.data, ...grey.data]));
    const four = await decodeImage(fileOf('grey with alpha'), { channels: 4 });
    const two = await decodeImage(fileOf('grey with alpha'));
    expect(four.data.subarray(3 * grey.data.length)).toEqual(two.data.subarray(grey.data.length));
    expect((await decodeImage(fileOf('rgb'), { channels: 4 })).data.at(-1)).toBe(255);
  });

  it('reads back what encodePng writes', async () => {
    for (const channels of [1, 2, 3, 4]) {
      const data = Uint8Array.from({ length: channels * 15 }, (_, i) => (i * 89) & 255);
      const image = { dtype: 'uint8', shape: [channels, 3, 5], data } as const;
      expect(await decodeImage(await encodePng(image))).toEqual(image);
    }
  });

  it('refuses what is no image, with its name', async () => {
    const failure = (file: unknown, options = {}) =>
      decodeImage(file as never, options).then(
        () => null,
        (error) => error as DataError,
      ); // prettier-ignore
    expect((await failure(new Uint8Array([1, 2, 3]), { source: 'cat.gif' }))?.message).toMatch(
      /cat.gif is neither PNG nor JPEG: its 3 bytes begin with 01 02 03/,
    );
    for (const { name, file } of goldens.files) {
      const whole = bytes(file);
      for (const length of [20, 40, Math.floor(whole.length / 2), whole.length - 13, whole.length - 2])
        expect(await failure(whole.subarray(0, length), { source: name })).toMatchObject({
          code: 'truncated',
          message: expect.stringContaining(`ends at byte ${length}`),
        });
    }
    const huge = fileOf('rgb').slice();
    new DataView(huge.buffer).setUint32(16, 2 ** 31);
    expect((await failure(huge))?.message).toMatch(/says it is 2147483648 x 37/);
    for (const options of [
      { channels: 2 },
      { size: [0, 3] },
      { size: 3 },
      { resizing: 'cubic', size: [2, 2] },
      { colour: 1 },
    ])
      expect(await failure(fileOf('rgb'), options)).toBeInstanceOf(DataError);
    for (const file of [null, 'text', {}, [1, 2]]) expect((await failure(file))?.code).toBe('argument');
  });

  it('is not thrown off by damage: an image or a DataError, always', async () => {
    const random = new RandomStream(7);
    let refused = 0;
    for (const { file } of goldens.files) {
      const whole = bytes(file);
      for (let round = 0; round < 60; round++) {
        let damaged = whole.slice();
        if (round % 2) damaged = damaged.slice(0, random.below(whole.length));
        else for (let i = 0; i <= round % 5; i++) damaged[random.below(whole.length)]! ^= 1 << random.below(8);
        try {
          const image = await decodeImage(damaged);
          expect(image.data.length).toBe(image.shape.reduce((a, b) => a * b, 1));
        } catch (error) {
          if (!isDataError(error)) throw error;
          expect(error.message).toMatch(/^\[decodeImage\] image /);
          refused++;
        }
      }
    }
    expect(refused).toBeGreaterThan(500);
  });
});

describe('resizeImage', () => {
  it('resizes as PIL does', async () => {
    const image = await decodeImage(fileOf('noise'));
    for (const { size, resizing, data } of goldens.resized) {
      const found = resizeImage(image, size, { resizing });
      expect(found.shape).toEqual([3, ...size]);
      // PIL has weights of 22 bits.
      expect(most(found.data, bytes(data))).toBeLessThanOrEqual(resizing === 'nearest' ? 0 : 1);
    }
  });

  it('resizes floats without rounding', () => {
    const image = { dtype: 'float32', shape: [1, 1, 2], data: new Float32Array([0, 1]) } as const;
    expect(resizeImage(image, [1, 4]).data).toEqual(new Float32Array([0, 0.25, 0.75, 1]));
    expect(resizeImage(image, [2, 1]).data).toEqual(new Float32Array([0.5, 0.5]));
  });

  it('refuses what does not fit', () => {
    const image = { dtype: 'uint8', shape: [1, 2, 2], data: new Uint8Array(4) } as const;
    expect(() => resizeImage({ ...image, shape: [1, 2, 3] }, [1, 1])).toThrow(/has 6 elements, the data 4/);
    for (const size of [[0, 1], [1.5, 1], [1], null, [2 ** 20, 1]])
      expect(() => resizeImage(image, size as never)).toThrow(DataError); // prettier-ignore
    expect(() => resizeImage(null as never, [1, 1])).toThrow(DataError);
  });
});
