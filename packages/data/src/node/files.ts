/**
 * Files of data sets on disk: reading them whole, unpacking gzip, and checking their sha256. Node only.
 */
import { createHash } from 'node:crypto';
import { open, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { DataError } from '../errors.ts';

const unpack = promisify(gunzip);

/** Most bytes a packed file may unpack to, so that a damaged or hostile one cannot fill the memory. */
const UNPACKED_LIMIT = 2 ** 30;

function reason(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'ENOENT') return 'there is no such file';
  if (code === 'EACCES' || code === 'EPERM') return 'permission was denied';
  if (code === 'EISDIR') return 'it is a folder';
  return error instanceof Error ? error.message : String(error);
}

/** Most bytes that one call reads: Node's own `readFile` refuses files above 2 GiB, and the system reads no more at once. */
const mostAtOnce = 2 ** 30;

/** The bytes of a file of any size that fits in memory. */
async function bytesOfFile(path: string): Promise<Uint8Array> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    if (size <= mostAtOnce) return await readFile(file);
    const bytes = new Uint8Array(size);
    let at = 0;
    while (at < size) {
      const { bytesRead } = await file.read(bytes, at, Math.min(mostAtOnce, size - at), at);
      if (bytesRead === 0) break; // another program cut it off meanwhile
      at += bytesRead;
    }
    return bytes.subarray(0, at);
  } finally {
    await file.close();
  }
}

/**
 * Reads a file whole; names that end in `.gz` are unpacked.
 *
 * @throws DataError `missing` if it cannot be read, `format` if it should be gzip and is damaged or is not
 * @example
 * (await readWhole('package.json')).length > 0; // true
 * await readWhole('nowhere.gz'); // throws DataError
 */
export async function readWhole(path: string): Promise<Uint8Array> {
  let bytes: Uint8Array;
  try {
    bytes = await bytesOfFile(path);
  } catch (error) {
    throw new DataError('missing', path, `[data] cannot read ${path}: ${reason(error)}`, { cause: error });
  }
  if (!path.endsWith('.gz')) return bytes;
  try {
    return await unpack(bytes, { maxOutputLength: UNPACKED_LIMIT });
  } catch (error) {
    throw new DataError('format', path, `[data] cannot unpack ${path}: ${reason(error)}; get the file again`, {
      cause: error,
    });
  }
}

/**
 * The sha256 of some bytes in lower-case hexadecimal.
 *
 * @example
 * sha256(new Uint8Array()).slice(0, 8); // 'e3b0c442'
 */
export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/**
 * Checks the sha256 of a file's bytes.
 *
 * @throws DataError `checksum`
 * @example
 * const bytes = new Uint8Array([1, 2, 3]);
 * verifySha256(bytes, sha256(bytes), 'three.bin');
 */
export function verifySha256(bytes: Uint8Array, expected: string, path: string): void {
  const found = sha256(bytes);
  if (found !== expected) {
    throw new DataError(
      'checksum',
      path,
      `[data] ${path} has sha256 ${found}, expected ${expected}; the file is damaged or another version, get it again`,
    );
  }
}
