/**
 * Folders for files that are kept between processes on Node: the default place; those that belong to one user, because others could put code or links into
 * them; and plain files in them.
 *
 * The caller passes Node's `fs`, because bundlers for browsers should see no import of it.
 */

/** The facts of a process that the folder depends on. */
interface HostUser {
  readonly platform: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

const currentProcess = (): HostUser => (globalThis as unknown as { readonly process: HostUser }).process;

/**
 * The default folder for cached files of a kind: below XDG_CACHE_HOME; on Windows below LOCALAPPDATA; else in `.cache` of the home folder.
 *
 * @example
 * import { cacheFolder } from '@polygrad/core/engine/folders';
 * console.log(cacheFolder('opencl', { platform: 'linux', env: { HOME: '/home/me' } })); //=> /home/me/.cache/polygrad/opencl
 */
export function cacheFolder(name: string, { platform, env }: HostUser = currentProcess()): string {
  const ofWindows = platform === 'win32' ? env.LOCALAPPDATA : undefined;
  const base = env.XDG_CACHE_HOME || ofWindows || `${env.HOME ?? env.USERPROFILE ?? '.'}/.cache`;
  return `${base}/polygrad/${name}`;
}

/** The result of `stat`. */
interface Status {
  readonly uid: number;
  readonly mode: number;
  readonly size: number;
  isFile(): boolean;
  isDirectory(): boolean;
}

/** The part of `node:fs` that is needed. */
export interface SyncFiles {
  readonly constants: { readonly O_RDONLY: number; readonly O_NOFOLLOW?: number; readonly O_NONBLOCK?: number };
  existsSync(path: string): boolean;
  lstatSync(path: string): Status;
  mkdirSync(path: string, options: { mode: number }): unknown;
  openSync(path: string, flags: number): number;
  fstatSync(file: number): Status;
  readFileSync(file: number): Uint8Array<ArrayBuffer>;
  closeSync(file: number): void;
}

interface HostProcess {
  readonly platform: string;
  getuid?(): number;
}

const codeOf = (error: unknown): string => (error as { code?: string }).code ?? '';

/**
 * Makes the folder; says why it must not be used, or null.
 *
 * @example no-run: makes a folder
 * import * as fs from 'node:fs';
 * import { refusalOf } from '@polygrad/core/engine/folders';
 * console.log(refusalOf(fs, 'own')); //=> null
 */
export function refusalOf(fs: SyncFiles, folder: string): string | null {
  const host = (globalThis as { process?: HostProcess }).process;
  try {
    makeFolder(fs, folder);
    const status = fs.lstatSync(folder);
    if (!status.isDirectory()) return `${folder} is not a folder`;
    if (host?.platform === 'win32') return null;
    if (status.uid !== host?.getuid?.()) return `${folder} belongs to another user`;
    if ((status.mode & 0o077) !== 0)
      return `${folder} is open to other users (mode ${(status.mode & 0o777).toString(8)}): chmod 700 makes it usable`;
    return null;
  } catch (error) {
    return `${folder} cannot be used: ${error instanceof Error ? error.message : error}`;
  }
}

/** Makes a folder and those above it. Node 20's own recursive way never ends where a file system takes no folders (/proc). */
function makeFolder(fs: SyncFiles, folder: string): void {
  if (fs.existsSync(folder)) return;
  const above = folder.replace(/[\\/]+[^\\/]*[\\/]*$/, '');
  if (above !== folder && above !== '') makeFolder(fs, above);
  try {
    fs.mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another process may have made it meanwhile.
    if (codeOf(error) !== 'EEXIST') throw error;
  }
}

/**
 * The bytes of a plain file of at most this size, or null if there is none. It never blocks: a pipe or a device is 'no file'.
 *
 * @example
 * import * as fs from 'node:fs';
 * import { readPlainFile } from '@polygrad/core/engine/folders';
 * console.log(readPlainFile(fs, 'nowhere', 100), readPlainFile(fs, '.', 100)); //=> null no file
 */
export function readPlainFile(fs: SyncFiles, path: string, most: number): Uint8Array<ArrayBuffer> | 'no file' | null {
  const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = fs.constants;
  let file: number;
  try {
    // Windows has neither these flags nor the dangers they prevent.
    file = fs.openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch (error) {
    // A link or a socket cannot be opened in this way.
    return /^(ELOOP|ENXIO)$/.test(codeOf(error)) ? 'no file' : null;
  }
  try {
    const status = fs.fstatSync(file);
    return status.isFile() && status.size <= most ? fs.readFileSync(file) : 'no file';
  } catch {
    return null;
  } finally {
    fs.closeSync(file);
  }
}
