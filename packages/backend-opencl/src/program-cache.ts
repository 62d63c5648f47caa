/**
 * Compiled programs on disk: one file for each kernel, named by a hash of everything that decides what the compiler makes.
 *
 * A file holds the keys of the kernels in it and a hash of keys and program, which is verified before anything is run: what does not
 * agree, or was made for other kernels, is deleted and compiled again. Only plain files are opened. Files are written under another name
 * and renamed, so readers never see half of one. The folder must belong to the user alone: otherwise somebody else could put code into it.
 */
import { createHash, randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import { linkSync, lstatSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readPlainFile, refusalOf } from '@polygrad/core/engine/folders';

const magic = Buffer.from('PGCLBIN2');
const hashBytes = 32;
/** What is hashed begins here: how many bytes the keys take, the keys in lines, the program. */
const bodyAt = magic.length + hashBytes;
const ending = '.clbin';
/** The folder is kept below this size; the oldest files go first. */
const mostBytes = 256 * 2 ** 20;
/** How many writes there are between two looks at the size. */
const writesBetweenLooks = 64;

/** A program read from the cache; `id` is the same for all kernels that lie in one program. */
export interface CachedProgram {
  readonly id: string;
  /** Keys of the kernels in it, as they were written. */
  readonly keys: readonly string[];
  readonly binary: Uint8Array;
}

/** A folder of compiled programs. Never throws: a cache that fails is a cache that misses. */
export class ProgramCache {
  readonly folder: string;
  /** Why the folder is not used, or null. */
  readonly refused: string | null;
  #writes = 0;

  constructor(folder: string) {
    this.folder = folder;
    this.refused = refusalOf(fs, folder);
  }

  /** The program in which the kernel of this key lies, or null. */
  read(key: string): CachedProgram | null {
    if (this.refused !== null) return null;
    const path = join(this.folder, key + ending);
    const file = readPlainFile(fs, path, mostBytes);
    if (file === null) return null;
    const found = file === 'no file' ? null : programIn(Buffer.from(file.buffer, file.byteOffset, file.length), key);
    if (found === null) discard(path);
    return found;
  }

  /** Keeps a program under the keys of all kernels in it. */
  write(keys: readonly string[], binary: Uint8Array): void {
    if (this.refused !== null || binary.length === 0) return;
    const part = join(this.folder, `.${process.pid}-${randomBytes(6).toString('hex')}`);
    try {
      const body = Buffer.concat([keyTable(keys), binary]);
      writeFileSync(part, Buffer.concat([magic, sha256(body), body]), { mode: 0o600, flag: 'wx' });
      for (const key of keys) {
        const name = `${part}-${key.slice(0, 8)}`;
        linkSync(part, name);
        try {
          renameSync(name, join(this.folder, key + ending));
        } catch {
          // A folder has the place.
          discard(name);
        }
      }
    } catch {
      // A full disk or a file system without links: the next program compiles again.
    } finally {
      discard(part);
    }
    if (this.#writes++ % writesBetweenLooks === 0) this.#prune();
  }

  /** Forgets a program that the driver refuses. */
  remove(key: string): void {
    discard(join(this.folder, key + ending));
  }

  #prune(): void {
    try {
      const files = new Map<number, { paths: string[]; bytes: number; time: number }>();
      for (const name of readdirSync(this.folder)) {
        const path = join(this.folder, name);
        const status = lstatSync(path);
        if (!status.isFile()) continue;
        const { ino, size, mtimeMs } = status;
        const known = files.get(ino);
        if (known) known.paths.push(path);
        else files.set(ino, { paths: [path], bytes: size, time: mtimeMs });
      }
      let total = [...files.values()].reduce((sum, { bytes }) => sum + bytes, 0);
      for (const { paths, bytes } of [...files.values()].sort((a, b) => a.time - b.time)) {
        if (total <= mostBytes) return;
        for (const path of paths) discard(path);
        total -= bytes;
      }
    } catch {
      // Somebody else is tidying up.
    }
  }
}

/** Deletes a file if that is possible. A folder stays. */
function discard(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // What cannot be deleted is passed over the next time too.
  }
}

/** The program of a file that is whole and was made for this key, or null. */
function programIn(file: Buffer, key: string): CachedProgram | null {
  const start = file.subarray(0, bodyAt);
  const body = file.subarray(bodyAt);
  if (body.length < 4 || !start.subarray(0, magic.length).equals(magic)) return null;
  const written = start.subarray(magic.length);
  if (!sha256(body).equals(written)) return null;
  const tableBytes = 4 + body.readUInt32LE(0);
  const keys = body.toString('latin1', 4, tableBytes).split('\n');
  if (!keys.includes(key) || body.length <= tableBytes) return null;
  return { id: written.toString('hex'), keys, binary: body.subarray(tableBytes) };
}

function keyTable(keys: readonly string[]): Buffer {
  const text = Buffer.from(keys.join('\n'), 'latin1');
  const length = Buffer.alloc(4);
  length.writeUInt32LE(text.length);
  return Buffer.concat([length, text]);
}

/** Hash of the texts, as a file name. */
export function cacheKey(texts: readonly string[]): string {
  const hash = createHash('sha256');
  for (const text of texts) hash.update(`${text.length}:`).update(text);
  return hash.digest('hex');
}

function sha256(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest();
}
