/**
 * Places that documents name: links lead somewhere, files in backticks exist, and the README of a `src` folder names every source file in it (as
 * `name.ts`, `part-*.ts` or `folder/`). Returns what is wrong, as lines of text.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Files that programs or readers write, and parts of names. */
const written = new Set([
  'summary.json',
  '-indexing.json',
  '-cnn.json',
  'name.test.ts',
  'name.long.test.ts',
  'train.mjs',
]);

const fileName = /`((?:\.{1,2}\/)*[\w@.*/-]+\.(?:ts|mjs|md|json|c|cpp|sh|py|html))`/g;

const repositoryFile = /^https:\/\/github\.com\/polygrad\/polygrad\/(?:blob|tree)\/main\/(.+)$/;

/** A test of paths: do they end in a name, which may have a *? */
function ending(name) {
  const end = name.replace(/^(?:\.{1,2}\/)+/, '');
  if (!end.includes('*')) return (path) => path.endsWith(end) && [undefined, '/'].includes(path.at(-end.length - 1));
  const pattern = new RegExp(`(?:^|/)${end.replace(/[.+]/g, '\\$&').replaceAll('*', '[^/]*')}$`);
  return (path) => pattern.test(path);
}

/** Problems of one document; `files` are all files of the repository. */
function wrongNames(document, text, root, files) {
  const found = [];
  for (const [index, line] of text.split('\n').entries()) {
    const at = `${document}:${index + 1}`;
    for (const [, target] of line.matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)) {
      // Documents that are read on npm name files of the repository by their address.
      const own = repositoryFile.exec(target)?.[1];
      const path = own ?? (/^[a-z]+:/.test(target) ? null : join(dirname(document), target));
      if (path !== null && !existsSync(join(root, path))) found.push(`${at} links to ${target}, which is not there`);
    }
    for (const [, name] of line.matchAll(fileName))
      if (!written.has(name) && !files.some(ending(name))) found.push(`${at} names ${name}, which is not there`);
  }
  return found;
}

/** Sources that the README of their folder, or of a folder above without one between, does not name. */
function unnamed(readme, text, files) {
  const folder = dirname(readme);
  const below = files.filter((file) => file.startsWith(`${folder}/`) && file !== readme);
  const rooms = below.filter((file) => file.endsWith('/README.md')).map((file) => `${dirname(file)}/`);
  const names = [...text.matchAll(/`([^`]+)`/g)].map(([, name]) => name);
  const tests = names.map((name) => (name.endsWith('/') ? (path) => path.startsWith(name) : ending(name)));
  return below
    .filter((file) => /\.(?:ts|mjs)$/.test(file) && !/\.(?:test|fixture|d)\.ts$|\/fixtures\//.test(file))
    .filter((file) => !rooms.some((room) => file.startsWith(room)))
    .map((file) => file.slice(folder.length + 1))
    .filter((path) => !tests.some((test) => test(path)))
    .map((path) => `${readme} does not name ${path}`);
}

/** What is wrong in the documents of a repository: `documents` are those to look at among `files`, all as paths from `root`. */
export function wrongPlaces(root, documents, files) {
  return documents.flatMap((document) => {
    const text = readFileSync(join(root, document), 'utf8').replace(/^```[\s\S]*?^```/gm, (block) =>
      block.replace(/[^\n]/g, ''),
    );
    const table = /^(?:packages|apps)\/[^/]+\/src\/(?:.*\/)?README\.md$/.test(document)
      ? unnamed(document, text, files)
      : [];
    return [...wrongNames(document, text, root, files), ...table];
  });
}
