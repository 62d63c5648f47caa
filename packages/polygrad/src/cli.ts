#!/usr/bin/env node
/** The command `polygrad`: its arguments and its exit code. `doctor` is all there is; it reports and does not judge. */
import { readFileSync } from 'node:fs';
import { examine } from './doctor.ts';
import { linesOf } from './lines.ts';

const usage = `usage: polygrad doctor [--json] [--again]

  doctor   what this machine and the project in this folder offer Polygrad, and what to install
  --json   the same for programs
  --again  auto-detection asks, tests and measures all anew, whatever earlier runs found
`;

function version(): string {
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { readonly version: string }).version;
}

async function main(args: readonly string[]): Promise<number> {
  const [command, ...options] = args;
  if (args.some((word) => word === '--help' || word === '-h')) {
    process.stdout.write(usage);
    return 0;
  }
  if (command === '--version') {
    process.stdout.write(`${version()}\n`);
    return 0;
  }
  const unknown = command !== 'doctor' ? command : options.find((word) => word !== '--json' && word !== '--again');
  if (command === undefined || unknown !== undefined) {
    process.stderr.write(unknown === undefined ? usage : `polygrad: no command or option '${unknown}'\n${usage}`);
    return 2;
  }
  const report = await examine(process.cwd(), options.includes('--again'));
  const text = options.includes('--json') ? JSON.stringify(report, null, 2) : linesOf(report).join('\n');
  process.stdout.write(`${text}\n`);
  return 0;
}

process.exitCode = await main(process.argv.slice(2));
