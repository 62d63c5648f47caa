import fc from 'fast-check';
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

describe('what can be read back', () => {
  const data = new Float32Array(2);
  const sized = (shape: unknown): unknown => ({ w: { dtype: 'float32', shape, data } });
  const refused: [string, unknown, unknown, RegExp][] = [
    ['metadata that is no text', {}, { epoch: 3 }, /'epoch' is 3; give its text/],
    ['metadata in a Map', {}, new Map([['a', 'b']]), /not a map of strings/],
    ['metadata that is null', {}, null, /not a map of strings: it is null/],
    ['metadata with half of a surrogate pair', {}, { a: '\ud800' }, /surrogate/],
    ['texts in a shape', sized(['2']), {}, /'w' has shape \["2"\]/],
    ['negative extents', sized([-1, -2]), {}, /has shape \[-1, -2\]/],
    ['fractions', sized([0.5, 4]), {}, /has shape \[0.5, 4\]/],
    ['a shape of holes', sized(new Array(2)), {}, /has shape \[undefined, undefined\]/],
    ['a shape that is a typed array', sized(Int32Array.of(2)), {}, /a shape is an array/],
    ['a shape of 33 axes', sized([...new Array<number>(32).fill(1), 2]), {}, /33 axes; at most 32/],
    ['a name that is a number', new Map([[1, { dtype: 'float32', shape: [2], data }]]), {}, /names are strings/],
    ['a name with half of a surrogate pair', { '\udc00': { dtype: 'float32', shape: [2], data } }, {}, /surrogate/],
    ['an array that is null', { w: null }, {}, /'w' is null; give \{ dtype, shape, data \}/],
    ['tensors in a list', [], {}, /give a Map or an object/],
  ];
  it.each(refused)('%s: is not written', (_, tensors, metadata, message) => {
    expect(() => encodeSafetensors(tensors as never, metadata as never)).toThrow(DataError);
    expect(() => encodeSafetensors(tensors as never, metadata as never)).toThrow(message);
  });

  it('is everything that is written', () => {
    const value = fc.oneof(fc.constantFrom(-1, 0, 1, 2, 0.5, Number.NaN, '1', null, 2 ** 31, 2 ** 53), fc.nat(4));
    const shape = fc.oneof(fc.array(value, { maxLength: 4 }), fc.constant(new Array<number>(33).fill(1)), value);
    const name = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('__metadata__', '__proto__', '\ud800', '1'));
    const metadata = fc.dictionary(name, fc.oneof(name, fc.integer()));
    fc.assert(
      fc.property(name, shape, metadata, (key, wanted, text) => {
        const count = Array.isArray(wanted) ? wanted.reduce<number>((n, d) => n * Number(d), 1) : 1;
        const array = { dtype: 'uint8', shape: wanted, data: new Uint8Array(count >= 0 && count < 99 ? count : 0) };
        let file: Uint8Array;
        try {
          file = encodeSafetensors(new Map([[key, array as HostArray]]), text as Record<string, string>);
        } catch (error) {
          expect(error).toBeInstanceOf(DataError);
          return;
        }
        const read = decodeSafetensors(file);
        expect([...read.tensors]).toEqual([[key, array]]);
        expect({ ...read.metadata }).toEqual({ ...text });
      }),
      { seed: 9, numRuns: 2000 },
    );
  });
});

describe('decodeSafetensors', () => {
  it('takes an ArrayBuffer, and says what it takes', () => {
    const { buffer } = encodeSafetensors(ALL);
    expect(Object.fromEntries(decodeSafetensors(buffer).tensors)).toEqual(ALL);
    for (const value of ['{}', null, new DataView(buffer), [1, 2]])
      expect(() => decodeSafetensors(value as never)).toThrow(/give a Uint8Array or an ArrayBuffer/);
  });

  it('refuses a name that is there twice, however it is spelt', () => {
    const part = '{"dtype":"U8","shape":[],"data_offsets":[0,1]}';
    const twice = [
      `{"a":${part},"a":${part}}`,
      `{"a":${part},"\\u0061":${part}}`,
      '{"t":{"dtype":"U8","dtype":"U8","shape":[],"data_offsets":[0,1]}}',
      `{"__metadata__":{"x":"1","y":"x","x":"2"},"a":${part}}`,
      `{"__metadata__":{},"a":${part},"__metadata__":{}}`,
    ];
    for (const header of twice) expect(() => decodeSafetensors(file(header, [7]))).toThrow(/has the name "\w+" twice/);
    // The same text as a value, in another object, and with brackets and quotes inside is no repetition.
    const once = `{"__metadata__":{"a":"a","b":"{\\"a\\":1,\\"a\\":2}","[":"\\\\"},"a":${part}}`;
    expect(decodeSafetensors(file(once, [7])).tensors.size).toBe(1);
  });

  it('refuses more than 32 axes', () => {
    const shape = (axes: number): string => `[${new Array(axes).fill(1).join()}]`;
    const header = (axes: number): string => `{"t":{"dtype":"U8","shape":${shape(axes)},"data_offsets":[0,1]}}`;
    expect(decodeSafetensors(file(header(32), [1])).tensors.get('t')?.shape.length).toBe(32);
    expect(() => decodeSafetensors(file(header(33), [1]))).toThrow(/shape of 33 axes; at most 32/);
  });

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
    ['a file of another kind', new TextEncoder().encode('GIF89a something'), 'format', /header would have/],
    ['a zip archive', new TextEncoder().encode('PK\u0003\u0004 something'), 'format', /torch\.save/],
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
    ['float32', [1, 2], /'w': float32 needs a Float32Array: the data is a list of 2; convert it first/],
    ['float31', new Float32Array(2), /unknown dtype 'float31'/],
  ])('refuses %s with other data', (dtype, data, message) => {
    expect(() => encodeSafetensors({ w: { dtype, shape: [2], data } as never })).toThrow(message);
  });
});

it('names what reads files of PyTorch, new and old', () => {
  for (const start of [
    [0x50, 0x4b, 3, 4, 0, 0, 8, 8],
    [0x80, 2, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46],
  ])
    expect(() => decodeSafetensors(Uint8Array.from(start), 'model.pt')).toThrow(
      /model\.pt is no safetensors file, but what torch\.save writes \(\.pt, \.pth\): .* decodeTorch\(bytes\)\.tensors$/,
    );
});
