/**
 * `node tooling/browser/executed.mjs [PAGE] [STEPS]`: which code of a page of pages/ that trains runs until so many steps are read (one if left
 * out). The coverage of Node says so, on one thread.
 *
 * For each room of what is loaded at once, and for other packages each folder: bytes of gzip that the page would lose without it, and how much of
 * its minified code never ran. Then bytes that it would lose without the functions that never ran, and without the branches of others that did
 * not. Functions could be loaded later; branches are what stands in the way of those that run: checks, texts of errors, other cases.
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

/** How code ran: not at all with its function, or only that branch did not; large functions are those worth a module. */
const [runs, branch, small, large] = [0, 1, 2, 3];
const largeLength = 300;

const pieces = [];
for (const { fileName, code, map } of output.filter(({ type }) => type === 'chunk')) {
  const covered = result.find(({ url }) => url.endsWith(`/${fileName}`));
  if (covered === undefined) continue;
  const ways = new Uint8Array(code.length);
  const ranges = covered.functions.flatMap((f) => f.ranges.map((range, i) => ({ ...range, whole: i === 0 })));
  // Inner ranges say more than those around them, but for functions inside of one that never ran.
  ranges.sort((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset);
  for (const { startOffset, endOffset, count, whole } of ranges) {
    const way = count > 0 ? runs : !whole ? branch : endOffset - startOffset < largeLength ? small : large;
    if (way === runs || ways[startOffset] < small) ways.fill(way, startOffset, endOffset);
  }
  let at = 0;
  for (const { source, text } of bySource(code, map)) {
    pieces.push({ room: roomOf(source), text, ways: ways.subarray(at, at + text.length) });
    at += text.length;
  }
}

/** Bytes of gzip of what is left without the code of a room, or of all, that ran in some ways. */
function left(without, room) {
  const texts = pieces.map((piece) => {
    if (room !== undefined && piece.room !== room) return piece.text;
    return [...piece.text].filter((_, i) => !without.includes(piece.ways[i] ?? runs)).join('');
  });
  return gzip(texts.join(''));
}

const all = left([]);
console.log(`${page}: ${all} bytes of gzip at once; of what runs alone ${left([branch, small, large])}`);
console.log(
  `without functions that never ran ${left([small, large])}, without those of ${largeLength} characters or more ${left([large])}`,
);
console.log('     gzip  not run  functions  branches');
const table = [...new Set(pieces.map(({ room }) => room))].map((room) => {
  const ways = pieces.filter((piece) => piece.room === room).flatMap((piece) => [...piece.ways]);
  const idle = ways.filter((way) => way !== runs).length / ways.length;
  const saved = (without) => all - left(without, room);
  return {
    room,
    idle,
    saved: saved([runs, branch, small, large]),
    functions: saved([small, large]),
    branches: saved([branch]),
  };
});
table.sort((a, b) => b.saved - a.saved);
for (const { room, idle, saved, functions, branches } of table) {
  const columns = [
    [saved, 9],
    [`${Math.round(100 * idle)} %`, 9],
    [functions, 11],
    [branches, 10],
  ];
  console.log(`${columns.map(([value, width]) => String(value).padStart(width)).join('')}  ${room}`);
}
// Workers and timers of the page would go on.
process.exit(0);
