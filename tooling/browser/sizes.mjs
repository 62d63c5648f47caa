/**
 * `node tooling/browser/sizes.mjs [PAGE] [COUNT]`: what a page of pages/ is made of once it is bundled.
 *
 * For each folder, and for the COUNT largest modules: bytes of minified code, by the source map, and bytes of gzip that the bundle would lose without it.
 */
import { gzipSync } from 'node:zlib';
import { rolldown } from 'rolldown';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { relative, resolve } from 'node:path';

const root = fileURLToPath(new URL('../..', import.meta.url));
const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** The numbers of one field list of a source map: base 64, five bits a digit, sign in the lowest bit. */
function numbers(text) {
  const out = [];
  let value = 0;
  let shift = 0;
  for (const letter of text) {
    const digit = digits.indexOf(letter);
    value += (digit & 31) * 2 ** shift;
    shift += 5;
    if (digit & 32) continue;
    out.push(value & 1 ? -Math.floor(value / 2) : Math.floor(value / 2));
    value = 0;
    shift = 0;
  }
  return out;
}

/** The pieces of a text by the source they come from. */
export function bySource(code, map) {
  const pieces = [];
  let source = 0;
  for (const [row, line] of map.mappings.split(';').entries()) {
    const text = code.split('\n')[row] ?? '';
    let column = 0;
    let last = { at: 0, source: null };
    for (const segment of line === '' ? [] : line.split(',')) {
      const [dColumn, dSource] = numbers(segment);
      column += dColumn;
      if (dSource !== undefined) source += dSource;
      if (column > last.at) pieces.push({ source: last.source, text: text.slice(last.at, column) });
      last = { at: column, source: dSource === undefined ? null : map.sources[source] };
    }
    pieces.push({ source: last.source, text: `${text.slice(last.at)}\n` });
  }
  return pieces;
}

/** Where bundles are said to be: source maps name sources from there. */
export const outputFolder = resolve(root, '.cache/sizes');

const nameOf = (source) =>
  source === null
    ? '(between modules)'
    : relative(root, resolve(outputFolder, source))
        .replace(/^packages\//, '')
        .replace('/src/', '/');

/** The folder of a source, short. */
export const folderOf = (source) => nameOf(source).replace(/\/[^/]*$/, '/');

const gzip = (text) => gzipSync(text, { level: 9 }).length;

/** Bytes by a name of their source, and what gzip saves without them. */
function table(pieces, total, nameOf) {
  const groups = new Map();
  for (const { source, text } of pieces) groups.set(nameOf(source), (groups.get(nameOf(source)) ?? 0) + text.length);
  const without = (name) => pieces.map(({ source, text }) => (nameOf(source) === name ? '' : text)).join('');
  return [...groups]
    .map(([name, bytes]) => ({ name, bytes, saved: total - gzip(without(name)) }))
    .sort((a, b) => b.saved - a.saved);
}

async function main([page = 'cnn', most = '30']) {
  const build = await rolldown({
    input: fileURLToPath(new URL(`pages/${page}.mjs`, import.meta.url)),
    platform: 'browser',
    preserveEntrySignatures: 'allow-extension',
    resolve: { conditionNames: ['@polygrad/source', 'production', 'browser', 'import', 'default'] },
  });
  const { output } = await build.generate({ format: 'es', minify: true, sourcemap: true, dir: outputFolder });
  await build.close();
  for (const { fileName, code, map } of output.filter(({ type }) => type === 'chunk')) {
    const total = gzip(code);
    const pieces = bySource(code, map);
    const show = ({ name, bytes, saved }) =>
      console.log(`${String(bytes).padStart(9)} ${String(saved).padStart(8)}  ${name}`);
    console.log(`\n${fileName}: ${Buffer.byteLength(code)} bytes, ${total} gzip\n    bytes     gzip`);
    for (const row of table(pieces, total, folderOf)) show(row);
    console.log();
    for (const row of table(pieces, total, nameOf).slice(0, Number(most))) show(row);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) await main(process.argv.slice(2));
