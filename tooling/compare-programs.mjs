/**
 * `node tooling/compare-programs.mjs --other CHECKOUT [--engine NAME] [--filter TEXT]`: which kernel programs of the conformance suite are not the
 * same in another checkout of this repository. Both must be built (`npm run build`).
 *
 * Programs are compared by their text, all of one checkout with all of the other: which case is the first to need one does not count, and
 * neither do cases that only one checkout has. A change that is to leave code generation as it is gives no line but the totals. Exit code 1
 * where programs differ.
 */
import { spawn } from 'node:child_process';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { deviceEnvironment } from './devices/environment.mjs';
import { root } from './workspace.mjs';

const text = { type: 'string' };
const { values } = parseArgs({
  options: {
    other: text,
    engine: { type: 'string', default: 'cpu' },
    filter: text,
    show: { type: 'string', default: '40' },
  },
});
if (values.other === undefined) {
  process.stderr.write('--other CHECKOUT is missing: a built checkout to compare with\n');
  process.exit(2);
}

/** The programs of a checkout: the first case of each by its hash, and the totals. */
function programsOf(checkout) {
  const args = [join(root, 'tooling/compare/programs-of.mjs'), checkout, values.engine];
  const child = spawn(process.execPath, values.filter === undefined ? args : [...args, values.filter], {
    env: { ...process.env, ...deviceEnvironment() },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (part) => {
    output += part;
  });
  return new Promise((done) => {
    child.on('close', (code) => {
      if (code !== 0) {
        process.stderr.write(`${checkout}: the suite did not run (exit code ${code})\n`);
        process.exit(2);
      }
      const lines = output.trimEnd().split('\n');
      const totals = lines.pop();
      done({ totals, first: new Map(lines.map((line) => [line.slice(0, 20), line.slice(21)])) });
    });
  });
}

const other = await programsOf(resolve(values.other));
const here = await programsOf(root);
const only = (a, b) => [...a.first].filter(([hash]) => !b.first.has(hash)).map(([, name]) => name);
const most = Number(values.show);

/** How many programs there are of each operation, the first word of a case's name, most first. */
function byOperation(names) {
  const counts = new Map();
  for (const name of names) {
    const [operation] = name.split(' / ');
    counts.set(operation, (counts.get(operation) ?? 0) + 1);
  }
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([operation, count]) => `${operation}: ${count}`)
    .join(', ');
}

let differs = false;
for (const [where, names] of [
  ['there', only(other, here)],
  ['here', only(here, other)],
]) {
  if (names.length === 0) continue;
  differs = true;
  console.log(`${names.length} programs are only ${where}, first needed by`);
  for (const name of names.slice(0, most)) console.log(`  ${name}`);
  if (names.length > most) console.log(`  and ${names.length - most} more`);
  if (names.length > 1) console.log(`  of ${byOperation(names)}`);
}
console.log(`there: ${other.first.size} programs; ${other.totals}`);
console.log(`here:  ${here.first.size} programs; ${here.totals}`);
process.exitCode = differs ? 1 : 0;
