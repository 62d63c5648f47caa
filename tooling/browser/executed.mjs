/**
 * `node tooling/browser/executed.mjs [PAGE] [STEPS]`: which code of a page of pages/ that trains runs until so many steps are read (one if left
 * out), by the coverage of Node, on one thread.
 *
 * For each room of what is loaded at once, and for other packages each folder: bytes of gzip that the page would lose without it, and how much of
 * its minified code never ran.
 */
import { Session } from 'node:inspector/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';
import { bySource, folderOf, outputFolder } from './sizes.mjs';

const [page = 'cnn-cpu', steps = '1'] = process.argv.slice(2);
const gzip = (text) => gzipSync(text, { level: 9 }).length;

const build = await rolldown({
  input: fileURLToPath(new URL(`pages/${page}.mjs`, import.meta.url)),
  platform: 'browser',
  preserveEntrySignatures: 'allow-extension',
  resolve: { conditionNames: ['@polygrad/source', 'production', 'browser', 'import', 'default'] },
});
const { output } = await build.write({ format: 'es', minify: true, sourcemap: true, dir: outputFolder });
await build.close();

const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
const { train } = await import(pathToFileURL(`${outputFolder}/${output[0].fileName}`));
await train(Number(steps));
const { result } = await session.post('Profiler.takePreciseCoverage');

/** `core/planner/capture/` is part of the room `core/planner/`. */
const roomOf = (source) => folderOf(source).replace(/^(core\/\w+\/).*/, '$1');

const rooms = new Map();
const pieces = [];
let ran = '';
for (const { fileName, code, map } of output.filter(({ type }) => type === 'chunk')) {
  const covered = result.find(({ url }) => url.endsWith(`/${fileName}`));
  if (covered === undefined) continue;
  const runs = new Uint8Array(code.length).fill(1);
  const ranges = covered.functions.flatMap((f) => f.ranges);
  // Inner ranges say more than those around them.
  ranges.sort((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset);
  for (const { startOffset, endOffset, count } of ranges) runs.fill(Math.min(1, count), startOffset, endOffset);
  let at = 0;
  for (const { source, text } of bySource(code, map)) {
    const name = roomOf(source);
    pieces.push({ name, text });
    const room = rooms.get(name) ?? { code: 0, idle: 0 };
    rooms.set(name, room);
    for (let i = 0; i < text.length && at + i < code.length; i++) {
      room.code++;
      if (runs[at + i] === 1) ran += code[at + i];
      else room.idle++;
    }
    at += text.length;
  }
}

const without = (left) => gzip(pieces.map(({ name, text }) => (name === left ? '' : text)).join(''));
const all = without(null);
console.log(`${page}: ${all} bytes of gzip at once; of what runs alone ${gzip(ran)}\n     gzip  not run`);
const table = [...rooms].map(([name, { code, idle }]) => ({ name, saved: all - without(name), part: idle / code }));
table.sort((a, b) => b.saved - a.saved);
for (const { name, saved, part } of table)
  console.log(`${String(saved).padStart(9)} ${`${Math.round(part * 100)} %`.padStart(8)}  ${name}`);
// Workers and timers of the page would go on.
process.exit(0);
