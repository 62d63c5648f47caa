/**
 * The program as a function of its arguments. Exit codes: 0 done, 1 a fault of the program (with its stack), 2 something
 * its user can mend (one line).
 */
import { isDataError } from '@polygrad/data';
import { oneLine, UsageError } from './errors.ts';
import { HELP, readOptions } from './options.ts';
import { train } from './train.ts';

/** Where the program writes. */
export interface Streams {
  out(text: string): void;
  error(text: string): void;
}

/** Runs the program and returns its exit code; never throws. */
export async function run(args: readonly string[], streams: Streams): Promise<number> {
  try {
    const options = readOptions(args);
    if (options === 'help') streams.out(HELP);
    else await train(options, (line) => streams.out(`${line}\n`));
    return 0;
  } catch (error) {
    if (error instanceof UsageError || isDataError(error)) {
      streams.error(`mnist: ${oneLine(error)}\n`);
      return 2;
    }
    streams.error(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    return 1;
  }
}
