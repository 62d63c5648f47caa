/**
 * `node apps/bench/dist/commands/new-shapes.js [--other CHECKOUT] [--engine cpu | native] [--rounds N] [--filter TEXT] [--rooms | --bytes | --own]`: what
 * a size costs that was not met before, on the CPU engine or the native one, with one thread.
 *
 * Training steps, a language model and token-by-token generation meet new sizes in processes whose code is warm. Figures are milliseconds of
 * processor time of a whole process, compiler and garbage collector included. What the same use costs once its size is known is taken off. Processes
 * of this checkout and of another (built) one take turns. `--rooms` says where the time goes, `--bytes` whether both checkouts emit the same; with
 * `--own` every size has a plan of its own. Beside them stands the first use of a process: its processor time, and how long its result takes.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fileURLToPath } from 'node:url';
import type { Measured } from './new-shape-child.ts';
import { uses } from './new-shape-uses.ts';
import { optionsOf } from './usage.ts';

const execute = promisify(execFile);
const here = fileURLToPath(new URL('../../../..', import.meta.url));

async function measure(checkout: string, use: string, ...mode: readonly string[]): Promise<Measured> {
  const child = join(here, 'apps/bench/dist/commands/new-shape-child.js');
  // Threads of the garbage collector that wait for each other count as processor time.
  const { stdout } = await execute(process.execPath, [
    '--single-threaded-gc',
    child,
    checkout,
    use,
    values.engine,
    ...mode,
  ]);
  return JSON.parse(stdout) as Measured;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

const text = { type: 'string' } as const;
const flag = { type: 'boolean', default: false } as const;
const values = optionsOf(import.meta.url, {
  other: text,
  engine: { ...text, default: 'cpu' },
  rounds: { ...text, default: '7' },
  filter: text,
  rooms: flag,
  bytes: flag,
  own: flag,
});
const names = Object.keys(uses).filter((name) => values.filter === undefined || name.includes(values.filter));
const sides = values.other === undefined ? [here] : [values.other, here];
if (values.rooms) {
  for (const name of names) {
    const { rooms = {}, steps = {} } = await measure(here, name, 'rooms');
    const list = (parts: Readonly<Record<string, number>>): string =>
      Object.entries(parts)
        .filter(([, part]) => part >= 0.5)
        .map(([key, part]) => `${key} ${part}`)
        .join(', ');
    process.stdout.write(`${name}, percent by folder: ${list(rooms)}\n${name}, percent by step: ${list(steps)}\n`);
  }
} else if (values.bytes) {
  for (const name of names) {
    const hashes = new Set<string | undefined>();
    for (const side of sides) hashes.add((await measure(side, name, 'bytes')).bytes);
    if (hashes.size > 1) process.exitCode = 1;
    process.stdout.write(
      `${name}: ${hashes.size > 1 ? 'DIFFERENT modules' : 'the same modules'} ${[...hashes].join(' ')}\n`,
    );
  }
} else {
  process.stdout.write(
    'use       side   new size, ms (least)   known size, ms   first use, ms   its wait, ms (least)   others over this, new and first\n',
  );
  for (const name of names) {
    const found = sides.map((): Measured[] => []);
    for (let round = 0; round < Number(values.rounds); round++) {
      // Who goes first changes, for a machine that gets busier or calmer.
      const order = round % 2 === 0 ? [...sides.keys()] : [...sides.keys()].reverse();
      for (const i of order) found[i]!.push(await measure(sides[i]!, name, ...(values.own ? ['own'] : [])));
    }
    const own = found.at(-1) as Measured[];
    found.forEach((list, i) => {
      const of = (part: 'wait' | 'cold' | 'fresh' | 'known', from = list): number[] => from.map((m) => m[part]);
      const ratio = (part: 'cold' | 'fresh'): string =>
        median(of(part).map((ms, round) => ms / own[round]![part])).toFixed(2);
      const cells = [
        name.padEnd(9),
        (i === sides.length - 1 ? 'this' : 'other').padEnd(6),
        `${median(of('fresh')).toFixed(1)} (${Math.min(...of('fresh')).toFixed(1)})`.padEnd(22),
        median(of('known')).toFixed(1).padEnd(16),
        median(of('cold')).toFixed(0).padEnd(15),
        `${median(of('wait')).toFixed(0)} (${Math.min(...of('wait')).toFixed(0)})`.padEnd(22),
        `${ratio('fresh')}, ${ratio('cold')}`,
      ];
      process.stdout.write(`${cells.join(' ')}\n`);
    });
  }
}
