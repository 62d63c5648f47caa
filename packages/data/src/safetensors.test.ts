import { describe, expect, it } from 'vitest';
import type { HostArray } from './arrays.ts';
import { DataError } from './errors.ts';
import { decodeSafetensors, encodeSafetensors } from './safetensors.ts';

const ALL: Record<string, HostArray> = {
  f64: { dtype: 'float64', shape: [1], data: new Float64Array([Math.PI]) },
  f32: { dtype: 'float32', shape: [2, 2], data: new Float32Array([1, -2.5, 0, Number.NaN]) },
  f16: { dtype: 'float16', shape: [1], data: new Uint16Array([0x3c00]) },
  bf16: { dtype: 'bfloat16', shape: [3], data: new Uint16Array([0x3f80, 1, 2]) },
  i64: { dtype: 'int64', shape: [1], data: new BigInt64Array([-5n]) },
  i32: { dtype: 'int32', shape: [1], data: new Int32Array([-7]) },
  i16: { dtype: 'int16', shape: [1], data: new Int16Array([-8]) },
  i8: { dtype: 'int8', shape: [3], data: new Int8Array([-1, 0, 1]) },
  u64: { dtype: 'uint64', shape: [1], data: new BigUint64Array([2n ** 63n]) },
  u32: { dtype: 'uint32', shape: [], data: new Uint32Array([4294967295]) },
  u16: { dtype: 'uint16', shape: [1], data: new Uint16Array([65535]) },
  u8: { dtype: 'uint8', shape: [0, 4], data: new Uint8Array(0) },
  bool: { dtype: 'bool', shape: [2], data: new Uint8Array([1, 0]) },
};

/** A file put together from the format's description, not by encodeSafetensors. */
function file(header: string, data: number[] = [], length?: bigint): Uint8Array {
  const text = new TextEncoder().encode(header);
  const bytes = new Uint8Array(8 + text.length + data.length);
  new DataView(bytes.buffer).setBigUint64(0, length ?? BigInt(text.length), true);
  bytes.set(text, 8);
  bytes.set(data, 8 + text.length);
  return bytes;
}

describe('encodeSafetensors', () => {
  it('brings every dtype there and back', () => {
    const { tensors, metadata } = decodeSafetensors(encodeSafetensors(ALL, { format: 'pt', b: 'ä' }));
    expect(Object.fromEntries(tensors)).toEqual(ALL);
    expect(metadata).toEqual({ format: 'pt', b: 'ä' });
  });

  it('writes what the format says', () => {
    const bytes = encodeSafetensors({
      b: { dtype: 'uint8', shape: [1], data: new Uint8Array([9]) },
      a: { dtype: 'uint8', shape: [2], data: new Uint8Array([7, 8]) },
      w: { dtype: 'float32', shape: [1], data: new Float32Array([1]) },
    });
    const headerBytes = Number(new DataView(bytes.buffer).getBigUint64(0, true));
    expect(headerBytes % 8).toBe(0);
    const header = new TextDecoder().decode(bytes.subarray(8, 8 + headerBytes));
    expect(header.trimEnd()).toBe(
      '{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},' +
        '"a":{"dtype":"U8","shape":[2],"data_offsets":[4,6]},"b":{"dtype":"U8","shape":[1],"data_offsets":[6,7]}}',
    );
    expect([...bytes.subarray(8 + headerBytes)]).toEqual([0, 0, 0x80, 0x3f, 7, 8, 9]);
  });

  it('gives the same bytes whatever the order given, and keeps names that look like numbers in order', () => {
    const entries = Object.entries(ALL);
    const backwards = encodeSafetensors(new Map([...entries].reverse()));
    expect(backwards).toEqual(encodeSafetensors(ALL));
    const numbers = { '10.w': ALL.i8!, '2': ALL.i8!, a: ALL.i8! };
    expect([...decodeSafetensors(encodeSafetensors(numbers)).tensors.keys()].sort()).toEqual(['10.w', '2', 'a']);
  });

  it('writes a view of a larger buffer', () => {
    const data = new Float32Array([1, 2, 3, 4]).subarray(1, 3);
    const { tensors } = decodeSafetensors(encodeSafetensors({ v: { dtype: 'float32', shape: [2], data } }));
    expect([...(tensors.get('v')!.data as Float32Array)]).toEqual([2, 3]);
  });

  it('refuses what cannot be written', () => {
    const data = new Float32Array(3);
    expect(() => encodeSafetensors({ __metadata__: { dtype: 'float32', shape: [3], data } })).toThrow(DataError);
    expect(() => encodeSafetensors({ w: { dtype: 'float32', shape: [2], data } })).toThrow(/2 elements, the data 3/);
  });
});

describe('decodeSafetensors', () => {
  it('copies out of a Buffer, as files are read into on Node', () => {
    const written = encodeSafetensors(ALL);
    const bytes = Buffer.concat([Buffer.alloc(24), written]).subarray(24);
    const { tensors } = decodeSafetensors(bytes);
    bytes.fill(0);
    expect(Object.fromEntries(tensors)).toEqual(ALL);
  });

  it('reads a hand-made file, unpadded and with spaces after its header', () => {
    const header = '{"t":{"data_offsets":[0,2],"shape":[2],"dtype":"I8"}}   ';
    const { tensors, metadata } = decodeSafetensors(file(header, [1, 255]));
    expect(tensors.get('t')).toEqual({ dtype: 'int8', shape: [2], data: new Int8Array([1, -1]) });
    expect(metadata).toEqual({});
    expect(decodeSafetensors(file('{}')).tensors.size).toBe(0);
  });

  it('does not confuse names with parts of objects', () => {
    const header = '{"__proto__":{"data_offsets":[0,1],"shape":[],"dtype":"U8"}}';
    expect(decodeSafetensors(file(header, [3])).tensors.get('__proto__')?.data[0]).toBe(3);
  });

  const entry = (fields: object): string =>
    JSON.stringify({ t: { dtype: 'U8', shape: [2], data_offsets: [0, 2], ...fields } });
  const wrong: [string, Uint8Array, string, RegExp][] = [
    ['an empty file', new Uint8Array(0), 'truncated', /0 bytes/],
    ['a file of another kind', new TextEncoder().encode('PK\u0003\u0004 something'), 'format', /header would have/],
    ['a header beyond the end', file('{}', [], 50n), 'truncated', /header ends at 58/],
    ['a header over the limit', file('{}', [], 100_000_001n), 'format', /limit is 100000000/],
    ['a header that starts with a space', file(' {}'), 'format', /does not start with \{/],
    ['a header that is not JSON', file('{"t":'), 'format', /not JSON/],
    ['a header of bad UTF-8', file('{"\u00e4":1}').map((byte) => (byte === 0xa4 ? 0xff : byte)), 'format', /not JSON/],
    ['a tensor that is no object', file('{"t":3}'), 'format', /dtype undefined/],
    ['an unknown dtype', file(entry({ dtype: 'F8' }), [1, 2]), 'format', /dtype "F8"/],
    ['a negative extent', file(entry({ shape: [-2] }), [1, 2]), 'format', /shape \[-2\]/],
    ['a shape that is none', file(entry({ shape: '2' }), [1, 2]), 'format', /shape "2"/],
    ['three offsets', file(entry({ data_offsets: [0, 1, 2] }), [1, 2]), 'format', /data_offsets/],
    [
      'offsets that disagree with the shape',
      file(entry({ shape: [3] }), [1, 2]),
      'format',
      /3 bytes, its offsets span 2/,
    ],
    ['offsets that run backwards', file(entry({ data_offsets: [2, 0] }), [1, 2]), 'format', /offsets span -2/],
    ['a hole before the first tensor', file(entry({ data_offsets: [1, 3] }), [1, 2, 3]), 'format', /starts at 1/],
    ['missing elements', file(entry({}), [1]), 'truncated', /take 2 bytes, the file holds 1/],
    ['bytes after the last element', file(entry({}), [1, 2, 3]), 'oversized', /take 2 bytes, the file holds 3/],
    ['metadata that is not text', file('{"__metadata__":{"a":1}}'), 'format', /map of strings/],
  ];
  for (const [what, bytes, code, text] of wrong) {
    it(`refuses ${what}`, () => {
      let error: unknown;
      try {
        decodeSafetensors(bytes, 'w.safetensors');
      } catch (thrown) {
        error = thrown;
      }
      expect(error).toBeInstanceOf(DataError);
      expect((error as DataError).code).toBe(code);
      expect((error as DataError).message).toMatch(text);
    });
  }

  it('refuses overlapping tensors', () => {
    const part = { dtype: 'U8', shape: [2], data_offsets: [0, 2] };
    expect(() => decodeSafetensors(file(JSON.stringify({ a: part, b: part }), [1, 2]))).toThrow(/starts at 0/);
  });

  it('refuses every proper prefix of a file, and every file with a byte too many', () => {
    const whole = encodeSafetensors(ALL);
    for (let length = 0; length < whole.length; length++) {
      expect(() => decodeSafetensors(whole.subarray(0, length))).toThrow(DataError);
    }
    expect(() => decodeSafetensors(new Uint8Array([...whole, 0]))).toThrow(/oversized/);
  });

  it.each([
    ['float32', new Float64Array(2), /'w': float32 needs a Float32Array: the data is a Float64Array/],
    ['float16', new Float32Array(2), /float16 needs a Uint16Array: the data is a Float32Array/],
    ['float32', [1, 2], /the data is a Array/],
    ['float31', new Float32Array(2), /unknown dtype float31/],
  ])('refuses %s with other data', (dtype, data, message) => {
    expect(() => encodeSafetensors({ w: { dtype, shape: [2], data } as never })).toThrow(message);
  });
});
