/** Entry point: `npm run playground -- [options]`. */
import { resolve } from 'node:path';
import { HELP, readOptions, UsageError } from './server/options.ts';
import { buildPlayground, developPlayground, servePlayground } from './server/playground.ts';

async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args);
  if (options === 'help') {
    process.stdout.write(HELP);
    return 0;
  }
  if (options.mode === 'build') {
    const out = resolve(options.out);
    await buildPlayground(out);
    process.stdout.write(`wrote ${out}\n`);
    return 0;
  }
  const { url } = await (options.mode === 'dev' ? developPlayground(options.port) : servePlayground(options.port));
  process.stdout.write(`The playground is at ${url}  (end with Ctrl+C)\n`);
  return 0;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  const { message, stack } = error as Error;
  process.stderr.write(`playground: ${error instanceof UsageError ? message : (stack ?? message)}\n`);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
