/**
 * `node tooling/browser/sizes.mjs [ENTRY] [--modules N]`: what a bundle for browsers is made of.
 *
 * For each folder and module: bytes of minified code, by the source map, and bytes of gzip that the bundle would lose without it.
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
const gzip = (text) => gzipSync(text, { level: 9 }).length;

async function main([entry = 'tooling/browser/training.mjs', count = '40']) {
  const build = await rolldown({
    input: resolve(root, entry),
    platform: 'browser',
    resolve: { conditionNames: ['@polygrad/source', 'browser', 'import', 'default'] },
    onLog(l, g) {
      if (l !== 'debug' && l !== 'info') console.log(g.message);
    },
  });
  const { output } = await build.generate({
    format: 'es',
    minify: true,
    sourcemap: true,
    dir: resolve(root, '.cache/x'),
  });
  for (const chunk of output.filter((c) => c.type === 'chunk')) {
    const pieces = bySource(chunk.code, chunk.map);
    const total = gzip(chunk.code);
    console.log(`${chunk.fileName}: ${Buffer.byteLength(chunk.code)} bytes, ${total} gzip`);
    const table = (key) => {
      const groups = new Map();
      for (const { source, text } of pieces) {
        const name = key(source);
        groups.set(name, (groups.get(name) ?? 0) + text.length);
      }
      return [...groups]
        .map(([name, bytes]) => {
          const rest = pieces
            .filter((p) => key(p.source) !== name)
            .map((p) => p.text)
            .join('');
          return { name, bytes, gzip: total - gzip(rest) };
        })
        .sort((a, b) => b.gzip - a.gzip);
    };
    const name = (s) =>
      s === null
        ? '(glue)'
        : relative(root, resolve(root, '.cache/x', s))
            .replace(/^packages\//, '')
            .replace('/src/', '/');
    const folder = (s) => name(s).replace(/\/[^/]*$/, '');
    for (const r of table(folder))
      console.log(`${String(r.bytes).padStart(8)} ${String(r.gzip).padStart(7)}  ${r.name}`);
    console.log();
    for (const r of table(name).slice(0, +count))
      console.log(`${String(r.bytes).padStart(8)} ${String(r.gzip).padStart(7)}  ${r.name}`);
  }
}
if (import.meta.url === pathToFileURL(process.argv[1]).href) await main(process.argv.slice(2));
