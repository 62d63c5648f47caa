/**
 * Zip archives in memory, as PyTorch and NumPy write them: stored or deflated entries, with sizes in 64 bits where they need them. Source: PKWARE's
 * APPNOTE.TXT, version 6.3.
 */
import { crc32 } from '../checksum.ts';
import { DataError, reasonOf, shown } from '../errors.ts';

/** A file of an archive, as it lies there. */
export interface ZipEntry {
  readonly name: string;
  readonly isDeflated: boolean;
  readonly packed: Uint8Array;
  /** Bytes once unpacked. */
  readonly size: number;
  readonly checksum: number;
}

const signatures = {
  local: 0x04034b50,
  central: 0x02014b50,
  end: 0x06054b50,
  end64: 0x06064b50,
  locator64: 0x07064b50,
};

/** A field of 32 bits that says: the number is in the 64-bit part. */
const elsewhere = 0xffffffff;

/** Deflate packs no better than 1 to 1032, so a size above is a lie that would fill the memory. */
const mostUnpacking = 1032;

/** True for bytes that begin as a zip archive does. */
export function isZip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x50 && bytes[1] === 0x4b && (bytes[2] === 3 || bytes[2] === 5);
}

/** Reads numbers of an archive; what lies outside of it makes an error of the file. */
class ZipReader {
  readonly op: string;
  readonly bytes: Uint8Array;
  readonly source: string;
  readonly #view: DataView;

  constructor(op: string, bytes: Uint8Array, source: string) {
    this.op = op;
    this.bytes = bytes;
    this.source = source;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  fail(what: string): DataError {
    return new DataError('format', this.source, `[${this.op}] ${this.source} is damaged: ${what}; get the file again`);
  }

  /** Throws unless `length` bytes from `at` on are there. */
  #need(at: number, length: number): void {
    if (at < 0 || at + length > this.bytes.length)
      throw this.fail(`byte ${at + length} is asked for, and it ends at ${this.bytes.length}`);
  }

  u16(at: number): number {
    this.#need(at, 2);
    return this.#view.getUint16(at, true);
  }

  u32(at: number): number {
    this.#need(at, 4);
    return this.#view.getUint32(at, true);
  }

  u64(at: number): number {
    this.#need(at, 8);
    const value = Number(this.#view.getBigUint64(at, true));
    if (!Number.isSafeInteger(value)) throw this.fail(`it names byte ${value}`);
    return value;
  }

  part(at: number, length: number): Uint8Array {
    this.#need(at, length);
    return this.bytes.subarray(at, at + length);
  }
}

/** Where the list of entries begins, and how many there are. */
function directoryOf(zip: ZipReader): { at: number; count: number } {
  const { length } = zip.bytes;
  // A comment of at most 65,535 bytes may follow the end's 22 bytes.
  for (let end = length - 22; end >= Math.max(0, length - 22 - 0xffff); end--) {
    if (zip.u32(end) !== signatures.end) continue;
    if (end >= 20 && zip.u32(end - 20) === signatures.locator64) {
      const end64 = zip.u64(end - 12);
      if (zip.u32(end64) !== signatures.end64) throw zip.fail('its 64-bit end is not where it should be');
      return { at: zip.u64(end64 + 48), count: zip.u64(end64 + 32) };
    }
    return { at: zip.u32(end + 16), count: zip.u16(end + 10) };
  }
  throw new DataError(
    'truncated',
    zip.source,
    `[${zip.op}] ${zip.source} is truncated: an archive ends in a list of its files, and there is none; get the file again`,
  );
}

/** Sizes and place of an entry: those of 32 bits, or where these say so of 64. */
function sizesOf(zip: ZipReader, at: number): { size: number; packedSize: number; local: number } {
  const found = [zip.u32(at + 24), zip.u32(at + 20), zip.u32(at + 42)];
  const start = at + 46 + zip.u16(at + 28);
  const end = start + zip.u16(at + 30);
  for (let field = start; field + 4 <= end; field += 4 + zip.u16(field + 2)) {
    if (zip.u16(field) !== 1) continue;
    let from = field + 4;
    for (const [i, value] of found.entries()) {
      if (value !== elsewhere) continue;
      found[i] = zip.u64(from);
      from += 8;
    }
  }
  const [size, packedSize, local] = found as [number, number, number];
  return { size, packedSize, local };
}

/**
 * The entries of an archive by name; nothing is unpacked.
 *
 * @throws DataError `truncated` or `format` for what is no whole archive, is encrypted, packed in another way, or has a name twice
 */
export function readZip(op: string, bytes: Uint8Array, source: string): ReadonlyMap<string, ZipEntry> {
  const zip = new ZipReader(op, bytes, source);
  const entries = new Map<string, ZipEntry>();
  const { at: first, count } = directoryOf(zip);
  let at = first;
  for (let i = 0; i < count; i++) {
    if (zip.u32(at) !== signatures.central) throw zip.fail(`entry ${i} is not where its list says`);
    const [flags, method, nameLength] = [zip.u16(at + 8), zip.u16(at + 10), zip.u16(at + 28)];
    const name = new TextDecoder().decode(zip.part(at + 46, nameLength));
    if (flags & 1) throw zip.fail(`${shown(name)} is encrypted`);
    if (method !== 0 && method !== 8) throw zip.fail(`${shown(name)} is packed by method ${method}, not 0 or 8`);
    if (entries.has(name)) throw zip.fail(`${shown(name)} is there twice`);
    const { size, packedSize, local } = sizesOf(zip, at);
    if (zip.u32(local) !== signatures.local) throw zip.fail(`${shown(name)} is not where its list says`);
    const packed = zip.part(local + 30 + zip.u16(local + 26) + zip.u16(local + 28), packedSize);
    if (method === 0 ? size !== packedSize : size > mostUnpacking * packedSize + 64)
      throw zip.fail(`${shown(name)} of ${packedSize} bytes says it has ${size}`);
    entries.set(name, { name, isDeflated: method === 8, packed, size, checksum: zip.u32(at + 16) });
    at += 46 + nameLength + zip.u16(at + 30) + zip.u16(at + 32);
  }
  return entries;
}

function checked(op: string, { name, checksum }: ZipEntry, bytes: Uint8Array, source: string): Uint8Array {
  const found = crc32(bytes);
  if (found === checksum) return bytes;
  throw new DataError(
    'checksum',
    source,
    `[${op}] ${source} is damaged: ${shown(name)} has checksum ${found}, and should have ${checksum}; get the file again`,
  );
}

/**
 * The bytes of an entry that is stored as it is: a view of the archive.
 *
 * @throws DataError `checksum` if they are not those that were written, `format` if it is deflated
 */
export function storedBytes(op: string, entry: ZipEntry, source: string): Uint8Array {
  if (!entry.isDeflated) return checked(op, entry, entry.packed, source);
  throw new DataError(
    'format',
    source,
    `[${op}] ${source} has ${shown(entry.name)} compressed, which such files are not; write it anew`,
  );
}

/** The bytes of an entry, unpacked if need be. */
export async function unpackedBytes(op: string, entry: ZipEntry, source: string): Promise<Uint8Array> {
  if (!entry.isDeflated) return storedBytes(op, entry, source);
  const bytes = new Uint8Array(entry.size);
  let at = 0;
  const fail = (why: string): DataError =>
    new DataError('format', source, `[${op}] ${source} is damaged: ${shown(entry.name)} ${why}; get the file again`);
  try {
    const packed = new Blob([entry.packed.slice().buffer]).stream();
    const reader = packed.pipeThrough(new DecompressionStream('deflate-raw')).getReader();
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      const part = next.value;
      if (at + part.length > bytes.length) throw fail(`unpacks to more than its ${bytes.length} bytes`);
      bytes.set(part, at);
      at += part.length;
    }
  } catch (error) {
    throw error instanceof DataError ? error : fail(`cannot be unpacked (${reasonOf(error)})`);
  }
  if (at < bytes.length) throw fail(`unpacks to ${at} of its ${bytes.length} bytes`);
  return checked(op, entry, bytes, source);
}

/** 1980-01-01: equal contents give equal bytes. */
const dosDate = 0x21;

/** Most bytes, and most files, of an archive without 64-bit parts. */
const [mostBytes, mostFiles] = [2 ** 32 - 2, 2 ** 16 - 2];

/** Files of an archive begin at multiples of this, so that they can be mapped: PyTorch's number. */
const alignment = 64;

/**
 * An archive of stored files.
 *
 * @throws DataError `argument` above 4 GiB or 65,534 files
 */
export function writeZip(op: string, files: readonly (readonly [name: string, bytes: Uint8Array])[]): Uint8Array {
  const encoder = new TextEncoder();
  let at = 0;
  const placed = files.map(([name, bytes]) => {
    const label = encoder.encode(name);
    // The extra field 'FB' holds nothing but the room to the next multiple.
    const padding = (alignment - ((at + 34 + label.length) % alignment)) % alignment;
    const local = at;
    at += 34 + label.length + padding + bytes.length;
    return { label, bytes, padding, local, checksum: crc32(bytes) };
  });
  const directory = at;
  const size = placed.reduce((sum, { label }) => sum + 46 + label.length, directory) + 22;
  if (size > mostBytes || files.length > mostFiles)
    throw new DataError(
      'argument',
      'arrays',
      `[${op}] the file would have ${size} bytes in ${files.length} parts; the limits are ${mostBytes} and ${mostFiles}: encodeSafetensors has none of them`,
    );
  const archive = new Uint8Array(size);
  const view = new DataView(archive.buffer);
  const u16 = (offset: number, ...values: readonly number[]): void => {
    for (const [i, value] of values.entries()) view.setUint16(offset + 2 * i, value, true);
  };
  const u32 = (offset: number, ...values: readonly number[]): void => {
    for (const [i, value] of values.entries()) view.setUint32(offset + 4 * i, value, true);
  };
  let entry = directory;
  for (const { label, bytes, padding, local, checksum } of placed) {
    u32(local, signatures.local);
    u16(local + 4, 20, 0, 0, 0, dosDate); // version, flags, method, time, date
    u32(local + 14, checksum, bytes.length, bytes.length);
    u16(local + 26, label.length, 4 + padding);
    archive.set(label, local + 30);
    u16(local + 30 + label.length, 0x4246, padding);
    archive.set(bytes, local + 34 + label.length + padding);
    u32(entry, signatures.central);
    u16(entry + 4, 20, 20, 0, 0, 0, dosDate);
    u32(entry + 16, checksum, bytes.length, bytes.length);
    u16(entry + 28, label.length);
    u32(entry + 42, local);
    archive.set(label, entry + 46);
    entry += 46 + label.length;
  }
  u32(entry, signatures.end);
  u16(entry + 8, files.length, files.length);
  u32(entry + 12, entry - directory, directory);
  return archive;
}
