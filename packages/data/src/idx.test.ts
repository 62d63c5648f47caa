import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { HostArray } from './arrays.ts';
import { DataError, type DataErrorCode } from './errors.ts';
import { encodeIdx, type IdxDType, parseIdx, readIdxHeader } from './idx.ts';

/** Bytes written by hand from the format's description, not by encodeIdx. */
const HAND_WRITTEN: Record<IdxDType, { bytes: number[]; values: number[] }> = {
  uint8: { bytes: [0, 0, 0x08, 1, 0, 0, 0, 3, 0, 127, 255], values: [0, 127, 255] },
  int8: { bytes: [0, 0, 0x09, 1, 0, 0, 0, 3, 0, 127, 0x80], values: [0, 127, -128] },
  int16: { bytes: [0, 0, 0x0b, 1, 0, 0, 0, 2, 0x01, 0x02, 0xff, 0xfe], values: [258, -2] },
  int32: { bytes: [0, 0, 0x0c, 1, 0, 0, 0, 2, 0, 1, 0, 2, 0xff, 0xff, 0xff, 0xfd], values: [65538, -3] },
  float32: { bytes: [0, 0, 0x0d, 1, 0, 0, 0, 2, 0x3f, 0x80, 0, 0, 0xc0, 0x20, 0, 0], values: [1, -2.5] },
  float64: { bytes: [0, 0, 0x0e, 1, 0, 0, 0, 1, 0x40, 0x09, 0x21, 0xfb, 0x54, 0x44, 0x2d, 0x18], values: [Math.PI] },
};

function failure(run: () => unknown): DataError {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(DataError);
    return error as DataError;
  }
  throw new Error('nothing was thrown');
}

describe('parseIdx', () => {
  it('takes an ArrayBuffer, and says what it takes', () => {
    const { bytes, values } = HAND_WRITTEN.int16;
    expect(Array.from(parseIdx(new Uint8Array(bytes).buffer).data as Iterable<number>)).toEqual(values);
    expect(failure(() => parseIdx('bytes' as never)).message).toMatch(/give a Uint8Array or an ArrayBuffer/);
  });

  for (const [dtype, { bytes, values }] of Object.entries(HAND_WRITTEN)) {
    it(`reads ${dtype}`, () => {
      const array = parseIdx(new Uint8Array(bytes));
      expect(array.dtype).toBe(dtype);
      expect(array.shape).toEqual([values.length]);
      expect(Array.from(array.data as Iterable<number>)).toEqual(values);
    });

    it(`reads ${dtype} at an odd offset of a larger buffer`, () => {
      const padded = new Uint8Array(bytes.length + 5);
      padded.set(bytes, 3);
      const array = parseIdx(padded.subarray(3, 3 + bytes.length));
      expect(Array.from(array.data as Iterable<number>)).toEqual(values);
    });
  }

  it('reads several dimensions, empty ones and scalars', () => {
    expect(parseIdx(new Uint8Array([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 1, 5, 6])).shape).toEqual([2, 1]);
    expect(parseIdx(new Uint8Array([0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0, 9])).data.length).toBe(0);
    expect(parseIdx(new Uint8Array([0, 0, 8, 0, 42])).data[0]).toBe(42);
  });

  const wrong: [string, number[], DataErrorCode, RegExp][] = [
    ['an empty file', [], 'truncated', /0 bytes/],
    ['a header cut in its magic', [0, 0, 8], 'truncated', /3 bytes/],
    ['a header cut in its shape', [0, 0, 8, 2, 0, 0, 0, 1], 'truncated', /8 bytes, its header of 2 dimensions has 12/],
    [
      'missing elements',
      [0, 0, 8, 1, 0, 0, 0, 3, 1, 2],
      'truncated',
      /shape \(3\) of uint8 is 3 bytes, the file holds 2/,
    ],
    ['elements cut in the middle', [0, 0, 0x0c, 1, 0, 0, 0, 1, 1, 2, 3], 'truncated', /4 bytes, the file holds 3/],
    ['bytes after the last element', [0, 0, 8, 1, 0, 0, 0, 1, 1, 2], 'oversized', /1 bytes, the file holds 2/],
    ['nonzero first bytes', [1, 0, 8, 1, 0, 0, 0, 0], 'format', /starts with 01 00 08 01/],
    ['an unknown type', [0, 0, 0x0a, 1, 0, 0, 0, 0], 'format', /starts with 00 00 0a 01/],
    ['a gzip file', [0x1f, 0x8b, 8, 0, 0], 'format', /gzip/],
    ['a shape of astronomic size', [0, 0, 8, 2, 255, 255, 255, 255, 255, 255, 255, 255, 1], 'truncated', /holds 1/],
  ];
  for (const [what, bytes, code, text] of wrong) {
    it(`refuses ${what}`, () => {
      const error = failure(() => parseIdx(new Uint8Array(bytes), 'digits.idx'));
      expect(error.code).toBe(code);
      expect(error.source).toBe('digits.idx');
      expect(error.message).toMatch(text);
      expect(error.message).toContain('digits.idx');
    });
  }

  it('refuses every proper prefix of a file', () => {
    const whole = new Uint8Array(HAND_WRITTEN.int32.bytes);
    for (let length = 0; length < whole.length; length++) {
      expect(failure(() => parseIdx(whole.subarray(0, length))).code).toBe('truncated');
    }
  });

  it('never throws anything but DataError, whatever the bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        try {
          parseIdx(bytes);
        } catch (error) {
          return error instanceof DataError;
        }
        return true;
      }),
      { seed: 1, numRuns: 500 },
    );
  });
});

describe('encodeIdx', () => {
  it('writes the bytes of the hand-written files', () => {
    for (const [dtype, { bytes }] of Object.entries(HAND_WRITTEN)) {
      const array = parseIdx(new Uint8Array(bytes));
      expect(array.dtype).toBe(dtype);
      expect(Array.from(encodeIdx(array))).toEqual(bytes);
    }
  });

  it('leaves its argument as it was', () => {
    const array: HostArray<'int32'> = { dtype: 'int32', shape: [1], data: new Int32Array([1]) };
    encodeIdx(array);
    expect(array.data[0]).toBe(1);
  });

  it('refuses what no header can say', () => {
    const data = new Uint8Array(1);
    expect(failure(() => encodeIdx({ dtype: 'uint8', shape: [2], data })).code).toBe('mismatch');
    expect(failure(() => encodeIdx({ dtype: 'uint8', shape: [2 ** 32], data })).code).toBe('argument');
    expect(failure(() => encodeIdx({ dtype: 'uint8', shape: new Array(1), data })).code).toBe('argument');
    expect(failure(() => encodeIdx({ dtype: 'float32', shape: [data.length], data } as never)).message).toMatch(
      /Float32Array/,
    );
    const longs = { dtype: 'int64', shape: [1], data: new BigInt64Array(1) };
    expect(failure(() => encodeIdx(longs as never)).message).toMatch(/IDX has no int64/);
    expect(failure(() => encodeIdx({ dtype: 'uint8', shape: new Array(256).fill(1), data })).code).toBe('argument');
  });
});

it('readIdxHeader tells where the elements are', () => {
  expect(readIdxHeader(new Uint8Array(HAND_WRITTEN.int16.bytes))).toEqual({
    dtype: 'int16',
    shape: [2],
    headerBytes: 8,
    dataBytes: 4,
  });
});
