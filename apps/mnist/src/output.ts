/** The folder of results: made and tried before the training, so that hours of work do not end at a closed door. */
import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { oneLine, UsageError } from './errors.ts';

/**
 * Makes a folder and the folders above it. Node 20's own recursive form never returns where a file system answers
 * 'no such file' for a folder it refuses to make, as /proc does.
 */
async function makeFolder(path: string): Promise<void> {
  const missing: string[] = [];
  for (let at = resolve(path); ; at = dirname(at)) {
    const found = await stat(at).catch(() => null);
    if (found?.isDirectory()) break;
    if (found || at === dirname(at)) throw new Error(`${at} is not a folder`);
    missing.push(at);
  }
  for (const folder of missing.reverse()) await mkdir(folder);
}

/** Where results go. */
export class OutputFolder {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  /**
   * Makes the folder if it is not there and writes a file to see that it can.
   *
   * @throws UsageError
   */
  static async open(path: string): Promise<OutputFolder> {
    const trial = join(path, `.trial-${process.pid}`);
    try {
      await makeFolder(path);
      await writeFile(trial, '');
      await rm(trial);
    } catch (error) {
      throw new UsageError(`cannot write to the folder ${path}: ${oneLine(error)}`);
    }
    return new OutputFolder(path);
  }

  /** Writes one file and returns its path. It is there as a whole or not at all, whenever the process is ended. */
  async write(name: string, content: string | Uint8Array): Promise<string> {
    const path = join(this.path, name);
    const whole = join(this.path, `.${name}-${process.pid}`);
    try {
      await writeFile(whole, content);
      await rename(whole, path);
    } catch (error) {
      // A part of a file would take the room that is wanted.
      await rm(whole, { force: true }).catch(() => undefined);
      throw new UsageError(`cannot write ${path}: ${oneLine(error)}`);
    }
    return path;
  }
}
