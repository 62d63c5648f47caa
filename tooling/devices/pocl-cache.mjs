/**
 * Bounds PoCL's cache of kernels: it never deletes from it, and tests compile new programs every day.
 *
 * A program is a folder, `XX/REST` by its hash; PoCL touches `last_accessed` in it whenever it uses the program.
 */
import { lstatSync, readdirSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** About a gigabyte: 125 kB each. */
const mostPrograms = 8000;
/** Hours after which no process uses a program any more without touching it: parts of the long tests end within one. */
const idleHours = 2;

/** PoCL's folder of kernels in this environment. */
export function poclCache(env = process.env) {
  return env.POCL_CACHE_DIR || join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'pocl/kcache');
}

const names = (folder) => {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
};

/** When a file was written, in milliseconds; of what is not there, long ago. */
const timeOf = (path) => lstatSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

/**
 * Deletes programs that were not used for hours, those first that have waited longest, until there are no more than `most`; and files that PoCL began and left.
 *
 * @returns how many programs went
 */
export function trimPoclCache(folder, { most = mostPrograms, now = Date.now() } = {}) {
  const idle = now - idleHours * 3_600_000;
  const programs = [];
  for (const name of names(folder)) {
    const path = join(folder, name);
    if (/^tempfile[_-]/.test(name) && timeOf(path) < idle) rmSync(path, { force: true, recursive: true });
    if (!/^[A-P]{2}$/.test(name)) continue;
    for (const rest of names(path)) {
      if (!/^[A-P]{30,}$/.test(rest)) continue;
      const program = join(path, rest);
      // One that is just being written has no such file yet.
      programs.push({ program, used: timeOf(join(program, 'last_accessed')) || timeOf(program) });
    }
  }
  const old = programs
    .sort((a, b) => a.used - b.used)
    .slice(0, Math.max(0, programs.length - most))
    .filter(({ used }) => used < idle);
  for (const { program } of old) rmSync(program, { recursive: true, force: true });
  return old.length;
}
