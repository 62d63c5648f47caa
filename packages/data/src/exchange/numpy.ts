/** Arrays of NumPy: files of one (.npy) and archives of several (.npz). Source: numpy/lib/format.py, versions 1.0 to 3.0 of the format. */
import {
  bytesOf,
  HOST_BYTES,
  type HostArray,
  type HostDType,
  LITTLE_ENDIAN,
  littleEndianBytes,
  sizeOf,
} from '../arrays.ts';
import { DataError, shown } from '../errors.ts';
import { type NamedArrays, namedArrays } from '../named-arrays.ts';
import { wrongShape } from '../safetensors-rules.ts';
import { rowMajor, rowMajorStrides } from './strided.ts';
import { isZip, readZip, unpackedBytes, writeZip } from './zip.ts';

/** How NumPy calls the types, without the order of bytes. */
const codes: Readonly<Partial<Record<HostDType, string>>> = {
  float64: 'f8',
  float32: 'f4',
  float16: 'f2',
  int64: 'i8',
  int32: 'i4',
  int16: 'i2',
  int8: 'i1',
  uint64: 'u8',
  uint32: 'u4',
  uint16: 'u2',
  uint8: 'u1',
  bool: 'b1',
};

const byCode: ReadonlyMap<string, HostDType> = /* @__PURE__ */ new Map(
  (Object.keys(codes) as HostDType[]).map((dtype) => [codes[dtype]!, dtype]),
);

const magic = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59]; // \x93NUMPY

interface Header {
  readonly descr: string;
  readonly isFortran: boolean;
  readonly shape: readonly number[];
}

/** The fields of a header, which is a dictionary of Python with three names. */
function fieldsOf(text: string): Header | undefined {
  const descr = /'descr':\s*'([^']*)'/.exec(text)?.[1];
  const fortran = /'fortran_order':\s*(True|False)/.exec(text)?.[1];
  const shape = /'shape':\s*\(([\d\s,L]*)\)/.exec(text)?.[1];
  if (descr === undefined || fortran === undefined || shape === undefined) return undefined;
  const extents = shape.match(/\d+/g) ?? [];
  return { descr, isFortran: fortran === 'True', shape: extents.map(Number) };
}

/** `part` says where in the source the array is. */
function npyArray(op: string, bytes: Uint8Array, source: string, part = ''): HostArray {
  const fail = (code: 'format' | 'truncated' | 'oversized', text: string): DataError =>
    new DataError(code, source, `[${op}] ${part}${source} ${text}`);
  if (magic.some((byte, i) => bytes[i] !== byte))
    throw fail(
      'format',
      isZip(bytes)
        ? 'is an archive of arrays (.npz): decodeNpz reads it'
        : 'is no file of NumPy: it does not begin with \\x93NUMPY',
    );
  const isShort = bytes[6] === 1;
  const start = isShort ? 10 : 12;
  if (bytes.length < start) throw fail('truncated', `is truncated: ${bytes.length} bytes; get the file again`);
  if (bytes[6]! > 3) throw fail('format', `is of version ${bytes[6]} of the format; 1 to 3 are read`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = start + (isShort ? view.getUint16(8, true) : view.getUint32(8, true));
  if (bytes.length < end) throw fail('truncated', `is truncated: ${bytes.length} bytes, its header ends at ${end}`);
  const text = new TextDecoder().decode(bytes.subarray(start, Math.min(end, start + 2 ** 16)));
  const header = fieldsOf(text);
  if (header === undefined)
    throw fail(
      'format',
      `has a header that is not read: ${shown(text.trim())}; arrays of numbers are, in Python array.astype('float32')`,
    );
  const { descr, isFortran, shape } = header;
  const dtype = byCode.get(descr.replace(/^[<>|=]/, ''));
  if (dtype === undefined)
    throw fail('format', `is of type ${shown(descr)}; numbers and bools are read, in Python array.astype('float32')`);
  const wrong = wrongShape(shape, dtype);
  if (wrong !== undefined) throw fail('format', wrong);
  const size = sizeOf(shape) * HOST_BYTES[dtype];
  const found = bytes.length - end;
  if (found !== size) {
    const code = found < size ? 'truncated' : 'oversized';
    throw fail(
      code,
      `is ${code}: shape (${shape.join(', ')}) of ${dtype} takes ${size} bytes, the file holds ${found}`,
    );
  }
  const strides = isFortran ? rowMajorStrides(shape.toReversed()).reverse() : rowMajorStrides(shape);
  const littleEndian = descr[0] === '<' || (descr[0] !== '>' && LITTLE_ENDIAN);
  const data = rowMajor({ dtype, bytes: bytes.subarray(end), littleEndian }, 0, shape, strides);
  return { dtype, shape, data } as HostArray;
}

/**
 * Reads an array that `numpy.save` wrote (.npy). It is a copy, row by row, in the machine's order of bytes.
 *
 * @param file the whole file: a Uint8Array, or an ArrayBuffer as `response.arrayBuffer()` gives it
 * @param source what to call the file in errors
 * @throws DataError `format` for other files and for arrays of objects, texts, dates and complex numbers; `truncated`, `oversized`; `argument` for
 *   what is no bytes
 * @example
 * const file = encodeNpy({ dtype: 'int32', shape: [2], data: new Int32Array([1, 2]) });
 * decodeNpy(file).data; // Int32Array [1, 2]
 */
export function decodeNpy(file: Uint8Array | ArrayBufferLike, source = 'npy data'): HostArray {
  return npyArray('decodeNpy', bytesOf('decodeNpy', file, source), source);
}

/**
 * Reads the arrays that `numpy.savez` or `numpy.savez_compressed` wrote (.npz), by name.
 *
 * @param file the whole file: a Uint8Array, or an ArrayBuffer as `response.arrayBuffer()` gives it
 * @param source what to call the file in errors
 * @throws DataError as `decodeNpy`, and `checksum` for damaged ones
 * @example
 * const file = encodeNpz({ x: { dtype: 'int32', shape: [2], data: new Int32Array([1, 2]) } });
 * (await decodeNpz(file)).get('x')?.shape; // [2]
 */
export async function decodeNpz(
  file: Uint8Array | ArrayBufferLike,
  source = 'npz data',
): Promise<ReadonlyMap<string, HostArray>> {
  const op = 'decodeNpz';
  const bytes = bytesOf(op, file, source);
  if (magic.every((byte, i) => bytes[i] === byte))
    throw new DataError('format', source, `[${op}] ${source} is one array (.npy): decodeNpy reads it`);
  const arrays = new Map<string, HostArray>();
  for (const entry of readZip(op, bytes, source).values())
    arrays.set(
      entry.name.replace(/\.npy$/, ''),
      npyArray(op, await unpackedBytes(op, entry, source), source, `${entry.name} of `),
    );
  return arrays;
}

function npyBytes(op: string, name: string, array: HostArray): Uint8Array {
  const { dtype, shape } = array;
  const code = codes[dtype];
  if (code === undefined)
    throw new DataError('argument', name, `[${op}] ${name} is ${dtype}, which NumPy does not have; cast it to float32`);
  const order = HOST_BYTES[dtype] === 1 ? '|' : '<';
  const sizes = `${shape.join(', ')}${shape.length === 1 ? ',' : ''}`;
  const fields = `{'descr': '${order}${code}', 'fortran_order': False, 'shape': (${sizes}), }`;
  // The elements begin at a multiple of 64 bytes.
  const text = `${fields.padEnd(Math.ceil((fields.length + 11) / 64) * 64 - 11)}\n`;
  const elements = littleEndianBytes(array);
  const file = new Uint8Array(10 + text.length + elements.length);
  file.set([...magic, 1, 0, text.length & 0xff, text.length >> 8]);
  file.set(new TextEncoder().encode(text), 10);
  file.set(elements, 10 + text.length);
  return file;
}

/**
 * The bytes of a file that `numpy.load` reads (.npy).
 *
 * @throws DataError `argument` for what is no array, and for bfloat16, which NumPy does not have; `mismatch` if it does not fill its shape
 * @example
 * encodeNpy({ dtype: 'float32', shape: [2], data: new Float32Array([1, 2]) }).length; // 136
 */
export function encodeNpy(array: HostArray): Uint8Array {
  const [checked] = namedArrays('encodeNpy', { array }, () => undefined);
  return npyBytes('encodeNpy', 'array', checked!.array);
}

/**
 * The bytes of an archive of arrays by name that `numpy.load` reads (.npz), not packed. Equal contents give equal bytes.
 *
 * @param arrays arrays by name
 * @throws DataError as `encodeNpy`, and `argument` for names that are empty and above 4 GiB
 * @example
 * encodeNpz({ x: { dtype: 'int32', shape: [2], data: new Int32Array([1, 2]) } }).length > 136; // true
 */
export function encodeNpz(arrays: NamedArrays): Uint8Array {
  const named = namedArrays('encodeNpz', arrays, (name) =>
    typeof name === 'string' && name !== ''
      ? undefined
      : `a name is ${shown(name)}; names are texts of a letter at least`,
  );
  return writeZip(
    'encodeNpz',
    named.map(({ name, array }) => [`${name}.npy`, npyBytes('encodeNpz', `'${name}'`, array)]),
  );
}
