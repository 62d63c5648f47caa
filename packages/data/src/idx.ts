/**
 * IDX: the file format of MNIST and its relatives. Reads and writes whole files in memory; finding, unpacking and
 * checking files is node/files.ts.
 *
 * A file is two zero bytes, a type byte, the number of dimensions, the dimensions as big-endian uint32, and the
 * elements in row-major order, big-endian. (http://yann.lecun.com/exdb/mnist/, "the IDX file format".)
 */
import { allocateHost, bytesOf, HOST_BYTES, type HostArray, LITTLE_ENDIAN, swapBytes, wrongArray } from './arrays.ts';
import { checkFits, DataError, isListOf, shown } from './errors.ts';

/** Element types that IDX knows. */
export type IdxDType = 'uint8' | 'int8' | 'int16' | 'int32' | 'float32' | 'float64';

const TYPE_CODES: Readonly<Record<IdxDType, number>> = {
  uint8: 0x08,
  int8: 0x09,
  int16: 0x0b,
  int32: 0x0c,
  float32: 0x0d,
  float64: 0x0e,
};

const TYPES_BY_CODE: ReadonlyMap<number, IdxDType> = new Map(
  (Object.keys(TYPE_CODES) as IdxDType[]).map((dtype) => [TYPE_CODES[dtype], dtype]),
);

/** What an IDX file says of its array. */
export interface IdxHeader {
  readonly dtype: IdxDType;
  readonly shape: readonly number[];
  /** Bytes before the first element. */
  readonly headerBytes: number;
  /** Bytes of all elements. */
  readonly dataBytes: number;
}

/**
 * Reads the header of an IDX file and checks that the file has exactly the bytes it announces.
 *
 * @param file the whole file: a Uint8Array or an ArrayBuffer
 * @param source what to call the file in errors
 * @throws DataError `format` for another kind of file, `truncated`, `oversized`
 * @example
 * const { dtype, shape } = readIdxHeader(new Uint8Array([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]));
 * dtype; // 'uint8'
 * shape; // [3]
 */
export function readIdxHeader(file: Uint8Array | ArrayBufferLike, source = 'IDX data'): IdxHeader {
  const bytes = bytesOf('idx', file, source);
  const hex = (from: number, to: number): string =>
    Array.from(bytes.subarray(from, to), (byte) => byte.toString(16).padStart(2, '0')).join(' ');
  if (bytes.length < 4) {
    throw new DataError(
      'truncated',
      source,
      `[idx] ${source} is truncated: ${bytes.length} bytes, a header has at least 4; get the file again`,
    );
  }
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) {
    throw new DataError('format', source, `[idx] ${source} is gzip-compressed; unpack it first (or name it .gz)`);
  }
  const dtype = TYPES_BY_CODE.get(bytes[2]!);
  if (bytes[0] !== 0 || bytes[1] !== 0 || dtype === undefined) {
    throw new DataError(
      'format',
      source,
      `[idx] ${source} is not an IDX file: it starts with ${hex(0, 4)}, not with 00 00 and a type of 08 09 0b 0c 0d 0e`,
    );
  }
  const dimensions = bytes[3]!;
  const headerBytes = 4 + 4 * dimensions;
  if (bytes.length < headerBytes) {
    throw new DataError(
      'truncated',
      source,
      `[idx] ${source} is truncated: ${bytes.length} bytes, its header of ${dimensions} dimensions has ${headerBytes}; get the file again`,
    );
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const shape = Array.from({ length: dimensions }, (_, axis) => view.getUint32(4 + 4 * axis));
  // A double holds this product well enough to compare: a file never has 2^53 bytes.
  const dataBytes = shape.reduce((size, extent) => size * extent, HOST_BYTES[dtype]);
  const present = bytes.length - headerBytes;
  if (present !== dataBytes) {
    const code = present < dataBytes ? 'truncated' : 'oversized';
    throw new DataError(
      code,
      source,
      `[idx] ${source} is ${code}: shape (${shape.join(', ')}) of ${dtype} is ${dataBytes} bytes, the file holds ${present}; get the file again`,
    );
  }
  return { dtype, shape, headerBytes, dataBytes };
}

/**
 * Reads an IDX file that is in memory. Elements of uint8 and int8 are a view of `file`; others are copied, in the
 * machine's byte order.
 *
 * @param file the whole file: a Uint8Array or an ArrayBuffer
 * @param source what to call the file in errors
 * @throws DataError `format`, `truncated`, `oversized`; nothing is returned half-read
 * @example
 * const labels = parseIdx(new Uint8Array([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]));
 * labels.shape; // [3]
 * labels.data; // Uint8Array [7, 2, 1]
 */
export function parseIdx(file: Uint8Array | ArrayBufferLike, source = 'IDX data'): HostArray<IdxDType> {
  const bytes = bytesOf('idx', file, source);
  const { dtype, shape, headerBytes, dataBytes } = readIdxHeader(bytes, source);
  const elementBytes = HOST_BYTES[dtype];
  if (dtype === 'uint8') return { dtype, shape, data: bytes.subarray(headerBytes) };
  if (dtype === 'int8') {
    return { dtype, shape, data: new Int8Array(bytes.buffer, bytes.byteOffset + headerBytes, dataBytes) };
  }
  const data = allocateHost(dtype, dataBytes / elementBytes);
  const raw = new Uint8Array(data.buffer);
  raw.set(bytes.subarray(headerBytes));
  if (LITTLE_ENDIAN) swapBytes(raw, elementBytes);
  return { dtype, shape, data };
}

function isExtent(value: unknown): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 0xffffffff;
}

/**
 * The bytes of an IDX file with the given contents.
 *
 * @throws DataError `argument` if the shape has more than 255 dimensions or an extent over 2^32 - 1; `argument` if IDX does not know the
 *   data's dtype; `mismatch` if data and shape disagree
 * @example
 * encodeIdx({ dtype: 'uint8', shape: [3], data: new Uint8Array([7, 2, 1]) }); // Uint8Array [0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]
 */
export function encodeIdx(array: HostArray<IdxDType>): Uint8Array {
  checkFits('idx', 'array', array, typeof array === 'object' && array !== null, 'an array { dtype, shape, data }');
  const { dtype, shape, data } = array;
  const wrong = wrongArray(dtype, data);
  if (wrong !== undefined) throw new DataError('argument', 'data', `[idx] ${wrong}`);
  if (TYPE_CODES[dtype] === undefined)
    throw new DataError(
      'argument',
      'data',
      `[idx] IDX has no ${dtype}; convert it to one of ${Object.keys(TYPE_CODES).join(', ')}`,
    );
  const fits = isListOf(shape, isExtent);
  if (!fits || shape.length > 255) {
    const text = Array.isArray(shape) ? `(${Array.from(shape.slice(0, 256), shown).join(', ')})` : typeof shape;
    throw new DataError('argument', 'shape', `[idx] shape ${text} does not fit an IDX header`);
  }
  const size = shape.reduce((product, extent) => product * extent, 1);
  if (size !== data.length) {
    throw new DataError(
      'mismatch',
      'data',
      `[idx] shape (${shape.join(', ')}) has ${size} elements, the data ${data.length}`,
    );
  }
  const headerBytes = 4 + 4 * shape.length;
  const bytes = new Uint8Array(headerBytes + data.byteLength);
  bytes[2] = TYPE_CODES[dtype];
  bytes[3] = shape.length;
  const view = new DataView(bytes.buffer);
  shape.forEach((extent, axis) => {
    view.setUint32(4 + 4 * axis, extent);
  });
  const body = bytes.subarray(headerBytes);
  body.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  if (LITTLE_ENDIAN) swapBytes(body, HOST_BYTES[dtype]);
  return bytes;
}
