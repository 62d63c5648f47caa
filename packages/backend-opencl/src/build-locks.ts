/**
 * What programs under PoCL depend on outside of them: variables it compiles by, and files that processes lock while they build a program.
 *
 * Its kernel cache is a folder that all processes share, without locks.
 *
 * PoCL 3.1 deletes `program.bc` of a program before it writes it anew, when another process has written it meanwhile. Who serialises the
 * program at that moment gets a binary without it, and ends by an assertion when it loads that. So a program is built from source,
 * serialised and loaded by one process at a time; different programs at the same time. All files PoCL changes for a program are in a
 * folder of that program, or appear in it by one rename.
 */
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { refusalOf } from '@polygrad/core/engine/folders';

/** Programs share that many files, by hash: none is ever deleted, as somebody may wait for it. */
const files = 256;

/** The folder of the locks: in PoCL's cache, so that processes with one cache have the same. */
export function poclLockFolder(
  env: Readonly<Record<string, string | undefined>> = process.env,
  platform: string = process.platform,
): string {
  const ofWindows = platform === 'win32' ? env.LOCALAPPDATA : undefined;
  const cache = env.POCL_CACHE_DIR || join(ofWindows || env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'pocl');
  return resolve(cache, 'polygrad-locks');
}

/**
 * PoCL's environment variables that are set, such as POCL_EXTRA_BUILD_FLAGS, but for those that only name places or ask for messages: with others
 * the same source becomes another binary.
 */
export function poclVariables(env: Readonly<Record<string, string | undefined>> = process.env): string[] {
  return Object.entries(env)
    .filter(([name, value]) => /^POCL_(?!CACHE_DIR|KERNEL_CACHE|DEBUG|TRACING|LEAVE_)/.test(name) && value)
    .map(([name, value]) => `${name}=${value}`)
    .sort();
}

/** The file to lock for a program, known by what it consists of; '' where the folder cannot be used. */
export function lockFileOf(folder: string, program: readonly string[]): string {
  if (refusalOf(fs, folder) !== null) return '';
  const hash = createHash('sha256');
  for (const part of program) hash.update(`${part}\n`);
  return join(folder, `${hash.digest().readUInt32LE(0) % files}`);
}
