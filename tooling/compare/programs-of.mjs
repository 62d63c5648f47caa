/**
 * `node tooling/compare/programs-of.mjs CHECKOUT ENGINE [FILTER]`: runs a checkout's conformance suite on its engine and writes a line for each
 * different kernel program that was compiled: the hash of its text, and the case that was the first to need it. The last line has the
 * totals of the suite. ../compare-programs.mjs reads them.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [, , checkout, engineName, filter] = process.argv;
const load = (path) => import(pathToFileURL(join(checkout, 'packages', path)).href);
const { runConformance } = await load('conformance/dist/index.js');
const { makeEngine } = await load('conformance/dist/engines.js');
// Checkouts may keep their files elsewhere.
const { exports } = JSON.parse(readFileSync(join(checkout, 'packages/core/package.json'), 'utf8'));
const { printProgram } = await load(join('core', exports['./kernel'].default));

const made = await makeEngine(engineName, {});
if ('missing' in made) {
  process.stderr.write(`${engineName}: ${made.missing}\n`);
  process.exit(2);
}
const { engine, skip } = made;
const first = new Map();
let fresh = [];
const compile = engine.compile.bind(engine);
engine.compile = (programs, ...rest) => {
  for (const program of programs) {
    const hash = createHash('sha256').update(printProgram(program)).digest('hex').slice(0, 20);
    if (first.has(hash)) continue;
    first.set(hash, '');
    fresh.push(hash);
  }
  return compile(programs, ...rest);
};
const { passed, failed, skipped } = await runConformance({
  engine,
  skip,
  ...(filter === undefined ? {} : { filter }),
  onResult({ name }) {
    for (const hash of fresh) first.set(hash, name);
    fresh = [];
  },
});
const lines = [...first].map(([hash, name]) => `${hash} ${name}`);
process.stdout.write(`${lines.join('\n')}\n${passed} passed, ${failed} failed, ${skipped} skipped\n`, () =>
  process.exit(0),
);
