/** The program: `npm start -- [options]`. Exit codes: 0 done, 1 a fault of the program, 2 something its user can mend. */
import { isDataError } from '@polygrad/data';
import { oneLine, UsageError } from './errors.ts';
import { HELP, readOptions } from './options.ts';
import { train } from './train.ts';

async function main(args: readonly string[]): Promise<number> {
  try {
    const options = readOptions(args);
    if (options === 'help') process.stdout.write(HELP);
    else await train(options, (line) => process.stdout.write(`${line}\n`));
    return 0;
  } catch (error) {
    if (error instanceof UsageError || isDataError(error)) {
      process.stderr.write(`mnist: ${oneLine(error)}\n`);
      return 2;
    }
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    return 1;
  }
}

// Worker threads of the engine would keep the process alive.
process.exit(await main(process.argv.slice(2)));
