/**
 * safetensors: named arrays in one file that other frameworks read. Encodes to and decodes from bytes in memory.
 *
 * A file is the header's length as a little-endian uint64, the header (JSON, padded with spaces), and the elements of
 * all tensors, little-endian, end to end. Follows https://huggingface.co/docs/safetensors: the header is at most
 * 100 MB and starts with `{`, names are unique, offsets leave no holes. Like the reference writer this one puts types
 * with larger elements first and orders by name within a type, so every tensor is aligned in the file.
 */
import {
  HOST_BYTES,
  type HostArray,
  type HostDType,
  LITTLE_ENDIAN,
  sizeOf,
  swapBytes,
  viewHost,
  wrongArray,
} from './arrays.ts';
import { DataError } from './errors.ts';

const HEADER_LIMIT = 100_000_000;

const TYPE_NAMES: Readonly<Record<HostDType, string>> = {
  float64: 'F64',
  float32: 'F32',
  float16: 'F16',
  bfloat16: 'BF16',
  int64: 'I64',
  int32: 'I32',
  int16: 'I16',
  int8: 'I8',
  uint64: 'U64',
  uint32: 'U32',
  uint16: 'U16',
  uint8: 'U8',
  bool: 'BOOL',
};

const TYPES_BY_NAME: ReadonlyMap<string, HostDType> = new Map(
  (Object.keys(TYPE_NAMES) as HostDType[]).map((dtype) => [TYPE_NAMES[dtype], dtype]),
);

/** What a safetensors file holds. */
export interface SafetensorsContent {
  readonly tensors: ReadonlyMap<string, HostArray>;
  /** The free text that `__metadata__` carries. */
  readonly metadata: Readonly<Record<string, string>>;
}

interface Entry {
  readonly name: string;
  readonly array: HostArray;
}

function compare(a: Entry, b: Entry): number {
  const bySize = HOST_BYTES[b.array.dtype] - HOST_BYTES[a.array.dtype];
  if (bySize !== 0) return bySize;
  return a.name < b.name ? -1 : 1;
}

function littleEndianBytes(array: HostArray): Uint8Array {
  const { buffer, byteOffset, byteLength } = array.data;
  const bytes = new Uint8Array(buffer, byteOffset, byteLength);
  if (LITTLE_ENDIAN) return bytes;
  const swapped = bytes.slice();
  swapBytes(swapped, HOST_BYTES[array.dtype]);
  return swapped;
}

/**
 * The bytes of a safetensors file with the given arrays. Equal contents give equal bytes, whatever the order given.
 *
 * @param tensors arrays by name
 * @param metadata free text for the header
 * @throws DataError `argument` for the name `__metadata__` and data of another dtype, `mismatch` if an array does not fill its shape
 * @example
 * const file = encodeSafetensors({ 'fc.bias': { dtype: 'float32', shape: [2], data: new Float32Array([1, 2]) } });
 */
export function encodeSafetensors(
  tensors: Readonly<Record<string, HostArray>> | ReadonlyMap<string, HostArray>,
  metadata: Readonly<Record<string, string>> = {},
): Uint8Array {
  const given = tensors instanceof Map ? [...tensors] : Object.entries(tensors as Record<string, HostArray>);
  const entries = given.map(([name, array]): Entry => ({ name, array })).sort(compare);
  const header: [string, unknown][] = [];
  if (Object.keys(metadata).length > 0) {
    header.push(['__metadata__', Object.fromEntries(Object.entries(metadata).sort(([a], [b]) => (a < b ? -1 : 1)))]);
  }
  let offset = 0;
  for (const { name, array } of entries) {
    const wrong = wrongArray(array.dtype, array.data);
    if (wrong !== undefined) throw new DataError('argument', name, `[safetensors] '${name}': ${wrong}`);
    if (name === '__metadata__') {
      throw new DataError('argument', name, `[safetensors] no tensor may have the name '__metadata__'; rename it`);
    }
    if (sizeOf(array.shape) !== array.data.length) {
      throw new DataError(
        'mismatch',
        name,
        `[safetensors] '${name}': shape (${array.shape.join(', ')}) has ${sizeOf(array.shape)} elements, the data ${array.data.length}`,
      );
    }
    const end = offset + array.data.byteLength;
    header.push([name, { dtype: TYPE_NAMES[array.dtype], shape: array.shape, data_offsets: [offset, end] }]);
    offset = end;
  }
  // Written pair by pair: an object would put names that look like integers first.
  const json = `{${header.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(',')}}`;
  const text = new TextEncoder().encode(json);
  const headerBytes = Math.ceil(text.length / 8) * 8;
  const file = new Uint8Array(8 + headerBytes + offset);
  new DataView(file.buffer).setBigUint64(0, BigInt(headerBytes), true);
  file.fill(0x20, 8, 8 + headerBytes);
  file.set(text, 8);
  let at = 8 + headerBytes;
  for (const { array } of entries) {
    file.set(littleEndianBytes(array), at);
    at += array.data.byteLength;
  }
  return file;
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function readHeader(bytes: Uint8Array, source: string): { fields: Record<string, unknown>; dataStart: number } {
  const fail = (code: 'truncated' | 'format', text: string): DataError =>
    new DataError(code, source, `[safetensors] ${source} ${text}`);
  if (bytes.length < 8) throw fail('truncated', `is truncated: ${bytes.length} bytes, the header's length takes 8`);
  const length = new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true);
  if (length > BigInt(HEADER_LIMIT)) {
    throw fail(
      'format',
      `is not a safetensors file: its header would have ${length} bytes, the limit is ${HEADER_LIMIT}`,
    );
  }
  const dataStart = 8 + Number(length);
  if (bytes.length < dataStart) {
    throw fail('truncated', `is truncated: ${bytes.length} bytes, its header ends at ${dataStart}`);
  }
  if (bytes[8] !== 0x7b) throw fail('format', 'is not a safetensors file: its header does not start with {');
  let parsed: unknown;
  try {
    parsed = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(8, dataStart)));
  } catch {
    throw fail('format', 'is damaged: its header is not JSON');
  }
  return { fields: parsed as Record<string, unknown>, dataStart };
}

interface Extent {
  readonly name: string;
  readonly dtype: HostDType;
  readonly shape: readonly number[];
  readonly begin: number;
  readonly end: number;
}

function readExtent(name: string, value: unknown, source: string): Extent {
  const fail = (text: string): DataError =>
    new DataError('format', source, `[safetensors] ${source} is damaged: tensor '${name}' ${text}`);
  const { dtype: typeName, shape, data_offsets: offsets } = (value ?? {}) as Record<string, unknown>;
  const dtype = typeof typeName === 'string' ? TYPES_BY_NAME.get(typeName) : undefined;
  if (dtype === undefined) throw fail(`has dtype ${JSON.stringify(typeName)}, which is not one this library reads`);
  if (!Array.isArray(shape) || !shape.every(isCount)) throw fail(`has shape ${JSON.stringify(shape)}`);
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isCount)) {
    throw fail(`has data_offsets ${JSON.stringify(offsets)}`);
  }
  const [begin, end] = offsets as [number, number];
  const bytes = sizeOf(shape) * HOST_BYTES[dtype];
  if (end - begin !== bytes) {
    throw fail(
      `of shape (${shape.join(', ')}) and dtype ${typeName} is ${bytes} bytes, its offsets span ${end - begin}`,
    );
  }
  return { name, dtype, shape, begin, end };
}

function readMetadata(value: unknown, source: string): Record<string, string> {
  if (value === undefined) return {};
  const fine = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!fine || !Object.values(value).every((text) => typeof text === 'string')) {
    throw new DataError('format', source, `[safetensors] ${source} is damaged: __metadata__ is not a map of strings`);
  }
  return value as Record<string, string>;
}

/**
 * Reads a safetensors file that is in memory. The arrays are copies, so `bytes` may be reused.
 *
 * @param bytes the whole file
 * @param source what to call the file in errors
 * @throws DataError `truncated`, `oversized` or `format` for files that break the rules of the format; nothing is
 *   returned half-read
 * @example
 * const file = encodeSafetensors({ w: { dtype: 'float32', shape: [2], data: new Float32Array([1, 2]) } });
 * decodeSafetensors(file).tensors.get('w')?.data; // Float32Array [1, 2]
 */
export function decodeSafetensors(bytes: Uint8Array, source = 'safetensors data'): SafetensorsContent {
  const { fields, dataStart } = readHeader(bytes, source);
  const metadata = readMetadata(fields.__metadata__, source);
  const extents = Object.keys(fields)
    .filter((name) => name !== '__metadata__')
    .map((name) => readExtent(name, fields[name], source))
    .sort((a, b) => a.begin - b.begin || a.end - b.end);
  let end = 0;
  for (const extent of extents) {
    if (extent.begin !== end) {
      throw new DataError(
        'format',
        source,
        `[safetensors] ${source} is damaged: tensor '${extent.name}' starts at ${extent.begin}, the one before ends at ${end}`,
      );
    }
    end = extent.end;
  }
  const present = bytes.length - dataStart;
  if (present !== end) {
    const code = present < end ? 'truncated' : 'oversized';
    throw new DataError(
      code,
      source,
      `[safetensors] ${source} is ${code}: its tensors take ${end} bytes, the file holds ${present}`,
    );
  }
  const tensors = new Map<string, HostArray>();
  for (const { name, dtype, shape, begin, end: stop } of extents) {
    // Not `slice`: that of Node's Buffer is a view.
    const copy = new Uint8Array(bytes.subarray(dataStart + begin, dataStart + stop));
    if (!LITTLE_ENDIAN) swapBytes(copy, HOST_BYTES[dtype]);
    tensors.set(name, { dtype, shape, data: viewHost(dtype, copy.buffer, 0, sizeOf(shape)) });
  }
  return { tensors, metadata };
}
