/** Options of the commands of this folder, and what they say to `--help` or to an option that they do not know: the comment that opens their file. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs, type ParseArgsConfig } from 'node:util';

type Values<Options extends ParseArgsConfig['options']> = ReturnType<typeof parseArgs<{ options: Options }>>['values'];

/** The comment that opens a file, without stars. */
export function openingComment(url: string): string {
  const [, comment = ''] = /\/\*\*([\s\S]*?)\*\//.exec(readFileSync(fileURLToPath(url), 'utf8')) ?? [];
  return comment
    .split('\n')
    .map((line) => line.replace(/^ ?\* ?/, ''))
    .join('\n')
    .trim();
}

/**
 * The options of a command. Ends the process where help is asked for, or an option is none.
 *
 * @param url of the command's file (`import.meta.url`)
 */
export function optionsOf<const Options extends NonNullable<ParseArgsConfig['options']>>(
  url: string,
  options: Options,
): Values<Options> {
  if (process.argv.includes('--help') || process.argv.includes('-h')) {
    process.stdout.write(`${openingComment(url)}\n`);
    process.exit(0);
  }
  try {
    return parseArgs({ options }).values as Values<Options>;
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n\n${openingComment(url)}\n`);
    process.exit(2);
  }
}
