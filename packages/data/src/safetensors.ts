/**
 * safetensors: named arrays in one file that other frameworks read. Encodes to and decodes from bytes in memory.
 *
 * A file is the header's length as a uint64, the header (JSON, padded with spaces), and the elements of all tensors, end to
 * end. Numbers are little-endian. Follows https://huggingface.co/docs/safetensors: the header is at most 100 MB and starts
 * with `{`, names are unique, offsets leave no holes. Like the reference writer this one puts types with larger elements
 * first, so every tensor is aligned in the file. Within a type it orders by name.
 */
import {
  bytesOf,
  HOST_BYTES,
  type HostArray,
  type HostDType,
  LITTLE_ENDIAN,
  littleEndianBytes,
  sizeOf,
  swapBytes,
  viewHost,
} from './arrays.ts';
import { DataError } from './errors.ts';
import { repeatedName } from './json-keys.ts';
import { type NamedArray, type NamedArrays, namedArrays } from './named-arrays.ts';
import {
  headerLimit,
  metadataName,
  shownValue,
  typeNames,
  wrongMetadata,
  wrongName,
  wrongShape,
} from './safetensors-rules.ts';

const TYPES_BY_NAME: ReadonlyMap<string, HostDType> = new Map(
  (Object.keys(typeNames) as HostDType[]).map((dtype) => [typeNames[dtype], dtype]),
);

/** What a safetensors file holds. */
export interface SafetensorsContent {
  readonly tensors: ReadonlyMap<string, HostArray>;
  /** The free text that `__metadata__` carries. */
  readonly metadata: Readonly<Record<string, string>>;
}

function compare(a: NamedArray, b: NamedArray): number {
  const bySize = HOST_BYTES[b.array.dtype] - HOST_BYTES[a.array.dtype];
  if (bySize !== 0) return bySize;
  return a.name < b.name ? -1 : 1;
}

/** The given arrays in the order of the file, after asking whether it may hold them. */
const entriesOf = (tensors: unknown): NamedArray[] => namedArrays('safetensors', tensors, wrongName).sort(compare);

/**
 * The bytes of a safetensors file with the given arrays. Equal contents give equal bytes, whatever the order given. What
 * `decodeSafetensors` would refuse is not written.
 *
 * @param tensors arrays by name
 * @param metadata free text for the header
 * @throws DataError `argument` for the name `__metadata__`, data of another dtype, shapes that are none, more than 32 axes, metadata
 *   that is not text, and headers above 100 MB; `mismatch` if an array does not fill its shape
 * @example
 * const file = encodeSafetensors({ 'fc.bias': { dtype: 'float32', shape: [2], data: new Float32Array([1, 2]) } });
 */
export function encodeSafetensors(tensors: NamedArrays, metadata: Readonly<Record<string, string>> = {}): Uint8Array {
  const entries = entriesOf(tensors);
  const wrong = wrongMetadata(metadata);
  if (wrong !== undefined) throw new DataError('argument', metadataName, `[safetensors] ${wrong}`);
  const header: [string, unknown][] = [];
  if (Object.keys(metadata).length > 0) {
    header.push([metadataName, Object.fromEntries(Object.entries(metadata).sort(([a], [b]) => (a < b ? -1 : 1)))]);
  }
  let offset = 0;
  for (const { name, array } of entries) {
    const end = offset + array.data.byteLength;
    header.push([name, { dtype: typeNames[array.dtype], shape: array.shape, data_offsets: [offset, end] }]);
    offset = end;
  }
  // Written pair by pair: an object would put names that look like integers first.
  const json = `{${header.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(',')}}`;
  const text = new TextEncoder().encode(json);
  const headerBytes = Math.ceil(text.length / 8) * 8;
  if (headerBytes > headerLimit)
    throw new DataError(
      'argument',
      'tensors',
      `[safetensors] the header would have ${headerBytes} bytes, the limit is ${headerLimit}; write several files`,
    );
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

/** A zip archive, or a pickle as `torch.save` wrote before 1.6: neither is the start of a header's length below the limit. */
function isTorchFile([a, b, c, d]: Uint8Array): boolean {
  return (a === 0x50 && b === 0x4b && c === 3 && d === 4) || (a === 0x80 && b === 2 && c === 0x8a && d === 0x0a);
}

function readHeader(bytes: Uint8Array, source: string): { fields: Record<string, unknown>; dataStart: number } {
  const fail = (code: 'truncated' | 'format', text: string): DataError =>
    new DataError(code, source, `[safetensors] ${source} ${text}`);
  if (bytes.length < 8) throw fail('truncated', `is truncated: ${bytes.length} bytes, the header's length takes 8`);
  if (isTorchFile(bytes))
    throw fail(
      'format',
      `is no safetensors file, but what torch.save writes (.pt, .pth): give model.loadStateDict decodeTorch(bytes).tensors`,
    );
  const length = new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true);
  if (length > BigInt(headerLimit)) {
    throw fail(
      'format',
      `is not a safetensors file: its header would have ${length} bytes, the limit is ${headerLimit}`,
    );
  }
  const dataStart = 8 + Number(length);
  if (bytes.length < dataStart) {
    throw fail('truncated', `is truncated: ${bytes.length} bytes, its header ends at ${dataStart}`);
  }
  if (bytes[8] !== 0x7b) throw fail('format', 'is not a safetensors file: its header does not start with {');
  let text: string;
  let parsed: unknown;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(8, dataStart));
    parsed = JSON.parse(text);
  } catch {
    throw fail('format', 'is damaged: its header is not JSON');
  }
  const repeated = repeatedName(text);
  if (repeated !== undefined) throw fail('format', `is damaged: its header has the name ${shownValue(repeated)} twice`);
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
  const { dtype: typeName, shape: given, data_offsets: offsets } = (value ?? {}) as Record<string, unknown>;
  const dtype = typeof typeName === 'string' ? TYPES_BY_NAME.get(typeName) : undefined;
  if (dtype === undefined) throw fail(`has dtype ${shownValue(typeName)}, which is not one this library reads`);
  const misnamed = wrongName(name);
  if (misnamed !== undefined) throw fail(`cannot be read: ${misnamed}`);
  const misshapen = wrongShape(given, dtype);
  if (misshapen !== undefined) throw fail(misshapen);
  const shape = given as readonly number[];
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
  const wrong = wrongMetadata(value);
  if (wrong !== undefined) throw new DataError('format', source, `[safetensors] ${source} is damaged: ${wrong}`);
  return value as Record<string, string>;
}

/**
 * Reads a safetensors file that is in memory. The arrays are copies, so its memory may be reused.
 *
 * @param file the whole file: a Uint8Array, or an ArrayBuffer as `response.arrayBuffer()` gives it
 * @param source what to call the file in errors
 * @throws DataError `truncated`, `oversized` or `format` for files that break the rules of the format; `argument` for what is no
 *   bytes; nothing is returned half-read
 * @example
 * const file = encodeSafetensors({ w: { dtype: 'float32', shape: [2], data: new Float32Array([1, 2]) } });
 * decodeSafetensors(file).tensors.get('w')?.data; // Float32Array [1, 2]
 */
export function decodeSafetensors(file: Uint8Array | ArrayBufferLike, source = 'safetensors data'): SafetensorsContent {
  const bytes = bytesOf('safetensors', file, source);
  const { fields, dataStart } = readHeader(bytes, source);
  const metadata = readMetadata(fields[metadataName], source);
  const extents = Object.keys(fields)
    .filter((name) => name !== metadataName)
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
