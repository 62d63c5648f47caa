/** The folder of results: made and tried before the training, so that hours of work do not end at a closed door. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { writeWhole } from '@polygrad/data/node';
import { oneLine, UsageError } from './errors.ts';

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
      await writeWhole(trial, '');
      await rm(trial);
    } catch (error) {
      throw new UsageError(`cannot write to the folder ${path}: ${oneLine((error as Error).cause ?? error)}`);
    }
    return new OutputFolder(path);
  }

  /** Writes one file and returns its path. It is there as a whole or not at all, whenever the process is ended. */
  async write(name: string, content: string | Uint8Array): Promise<string> {
    const path = join(this.path, name);
    try {
      await writeWhole(path, content);
    } catch (error) {
      throw new UsageError(`cannot write ${path}: ${oneLine((error as Error).cause ?? error)}`);
    }
    return path;
  }
}
