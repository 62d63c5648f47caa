/**
 * Compiled programs on disk: one file for each kernel, named by a hash of everything that decides what the compiler makes.
 *
 * Files hold a hash of their contents, which is verified before anything is run; what does not agree is deleted and
 * compiled again. Files are written under another name and renamed, so readers never see half of one. The folder must
 * belong to the user alone: otherwise somebody else could put code into it.
 */
import { createHash, randomBytes } from 'node:crypto';
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

const magic = Buffer.from('PGCLBIN1');
const hashBytes = 32;
const header = magic.length + hashBytes;
const ending = '.clbin';
/** The folder is kept below this size; the oldest files go first. */
const mostBytes = 256 * 2 ** 20;
/** How many writes there are between two looks at the size. */
const writesBetweenLooks = 64;

/** A program read from the cache; `id` is the same for all kernels that lie in one program. */
export interface CachedProgram {
  readonly id: string;
  readonly binary: Uint8Array;
}

/** The folder used where none is named. */
export function defaultCacheFolder(): string {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'polygrad', 'opencl');
}

/** A folder of compiled programs. Never throws: a cache that fails is a cache that misses. */
export class ProgramCache {
  readonly folder: string;
  /** Why the folder is not used, or null. */
  readonly refused: string | null;
  #writes = 0;

  constructor(folder: string) {
    this.folder = folder;
    this.refused = prepare(folder);
  }

  /** The program in which the kernel of this key lies, or null. */
  read(key: string): CachedProgram | null {
    if (this.refused !== null) return null;
    const path = join(this.folder, key + ending);
    let file: Buffer;
    try {
      file = readFileSync(path);
    } catch {
      return null;
    }
    const binary = file.subarray(header);
    const written = file.subarray(magic.length, header);
    if (file.length > header && file.subarray(0, magic.length).equals(magic) && sha256(binary).equals(written))
      return { id: written.toString('hex'), binary };
    rmSync(path, { force: true });
    return null;
  }

  /** Keeps a program under the keys of all kernels in it. */
  write(keys: readonly string[], binary: Uint8Array): void {
    if (this.refused !== null || binary.length === 0) return;
    const part = join(this.folder, `.${process.pid}-${randomBytes(6).toString('hex')}`);
    try {
      writeFileSync(part, Buffer.concat([magic, sha256(binary), binary]), { mode: 0o600, flag: 'wx' });
      for (const key of keys) {
        const name = `${part}-${key.slice(0, 8)}`;
        linkSync(part, name);
        renameSync(name, join(this.folder, key + ending));
      }
    } catch {
      // A full disk or a file system without links: the next program compiles again.
    } finally {
      rmSync(part, { force: true });
    }
    if (this.#writes++ % writesBetweenLooks === 0) this.#prune();
  }

  /** Forgets a program that the driver refuses. */
  remove(key: string): void {
    rmSync(join(this.folder, key + ending), { force: true });
  }

  #prune(): void {
    try {
      const files = new Map<number, { paths: string[]; bytes: number; time: number }>();
      for (const name of readdirSync(this.folder)) {
        const path = join(this.folder, name);
        const { ino, size, mtimeMs } = statSync(path);
        const known = files.get(ino);
        if (known) known.paths.push(path);
        else files.set(ino, { paths: [path], bytes: size, time: mtimeMs });
      }
      let total = [...files.values()].reduce((sum, { bytes }) => sum + bytes, 0);
      for (const { paths, bytes } of [...files.values()].sort((a, b) => a.time - b.time)) {
        if (total <= mostBytes) return;
        for (const path of paths) rmSync(path, { force: true });
        total -= bytes;
      }
    } catch {
      // Somebody else is tidying up.
    }
  }
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

/** Makes a folder and those above it. Node 20's own recursive way never ends where a file system takes no folders (/proc). */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  const above = dirname(folder);
  if (above !== folder) makeFolder(above);
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Somebody else may have made it meanwhile.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** Makes the folder; says why it must not be used, or null. */
function prepare(folder: string): string | null {
  try {
    makeFolder(folder);
    const status = lstatSync(folder);
    if (!status.isDirectory()) return `${folder} is not a folder`;
    if (process.platform === 'win32') return null;
    if (status.uid !== process.getuid?.()) return `${folder} belongs to another user`;
    if ((status.mode & 0o077) !== 0)
      return `${folder} is open to other users (mode ${(status.mode & 0o777).toString(8)}): chmod 700 makes it usable`;
    return null;
  } catch (error) {
    return `${folder} cannot be used: ${error instanceof Error ? error.message : error}`;
  }
}
