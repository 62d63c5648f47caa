/** Writing files whole or not at all. Node only. */
import { randomBytes } from 'node:crypto';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { DataError } from '../errors.ts';

/** Why a file could not be written, and what to do. */
export function unwritten(path: string, error: unknown): DataError {
  const code = (error as NodeJS.ErrnoException).code;
  const known: Record<string, string> = {
    ENOENT: 'its folder is not there',
    EACCES: 'permission was denied',
    EPERM: 'permission was denied',
    EROFS: 'the file system is read-only',
    EISDIR: 'it is a folder',
    ENOTDIR: 'a part of the path is no folder',
    ENOSPC: 'the disk is full',
    EDQUOT: 'the quota is used up',
  };
  const why = known[code ?? ''] ?? (error instanceof Error ? error.message : String(error));
  return new DataError('missing', path, `[data] cannot write ${path}: ${why}; what was there is as it was`, {
    cause: error,
  });
}

/**
 * Makes a folder and the folders above it. Node 20's own recursive form never returns where a file system answers
 * 'no such file' for a folder it refuses to make, as /proc does.
 */
export async function makeFolder(path: string): Promise<void> {
  const missing: string[] = [];
  for (let at = resolve(path); ; at = dirname(at)) {
    const found = await stat(at).catch(() => null);
    if (found?.isDirectory()) break;
    if (found || at === dirname(at)) throw new Error(`${at} is not a folder`);
    missing.push(at);
  }
  for (const folder of missing.reverse()) {
    await mkdir(folder).catch((error: NodeJS.ErrnoException) => {
      // Another program made it meanwhile.
      if (error.code !== 'EEXIST') throw error;
    });
  }
}

/**
 * Writes a file whole or not at all: under another name beside it first, on the disk before it takes the place. A full disk or a crash at any
 * time leaves what was there before. Its folder is made if need be.
 *
 * @throws DataError `missing` if it cannot be written; nothing has changed then
 * @example
 * await writeWhole('/proc/none', new Uint8Array(1)); // throws DataError
 */
export async function writeWhole(path: string, content: Uint8Array | string): Promise<void> {
  const folder = dirname(path);
  const whole = join(folder, `.${basename(path)}-${process.pid}-${randomBytes(4).toString('hex')}`);
  try {
    await makeFolder(folder);
    const file = await open(whole, 'wx');
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(whole, path);
  } catch (error) {
    // A part of a file would take the room that is wanted.
    await rm(whole, { force: true }).catch(() => undefined);
    throw unwritten(path, error);
  }
}
