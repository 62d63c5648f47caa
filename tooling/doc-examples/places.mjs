/**
 * Places that documents name: links lead to files and headings that are there, files and folders in backticks exist. The README of a `src` folder
 * names every source file in it (as `name.ts`, `part-*.ts` or `folder/`). READMEs of core's rooms are texts and need not: what they name is there,
 * seen from the room, from `src` or from the root. Comments of sources name files that exist, too. Returns what is wrong, as lines of text.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Files that programs or readers write, and parts of names. */
const written = new Set([
  'summary.json',
  'report.json',
  'report.md',
  '-indexing.json',
  '-cnn.json',
  'name.test.ts',
  'name.long.test.ts',
  'train.mjs',
  'dist/',
]);

const fileName = /`((?:\.{1,2}\/)*[\w@.*/-]+\.(?:ts|mjs|md|json|c|cpp|sh|py|html))`/g;

/** Folders as text names them. Names that begin with a dot are not among the files. */
const folderName = /`((?:\.{1,2}\/)*[\w@-][\w@.*/-]*\/)`/g;

/** The README of a room of core or of its compiler, which is a text. */
const roomReadme = /^packages\/(?:core|compiler)\/src\/[^/]+\/README\.md$/;

const repositoryFile = /^https:\/\/github\.com\/polygrad\/polygrad\/(?:blob|tree)\/main\/(.+)$/;

/** The name as a pattern, in which * stands for a part of a name. */
const patternOf = (name) => name.replace(/[.+]/g, '\\$&').replaceAll('*', '[^/]*');

/** A test of paths: do they end in a name, which may have a *? */
function ending(name) {
  const pattern = new RegExp(`(?:^|/)${patternOf(name.replace(/^(?:\.{1,2}\/)+/, ''))}$`);
  return (path) => pattern.test(path);
}

/** A test of names in a document: is there such a file or folder? Only rooms say from where their names are seen. */
function isThere(document, files) {
  const folders = files.flatMap((file) => [...file.matchAll(/\//g)].map(({ index }) => file.slice(0, index + 1)));
  const paths = [...new Set([...files, ...folders])];
  if (!roomReadme.test(document)) return (name) => paths.some(ending(name));
  const places = [dirname(document), 'packages/core/src', 'packages/compiler/src', '.'];
  const patterns = (name) => places.map((place) => new RegExp(`^${patternOf(join(place, name))}$`));
  return (name) => patterns(name).some((pattern) => paths.some((path) => pattern.test(path)));
}

/** A document without its blocks of code, whose lines stay. */
const withoutBlocks = (text) => text.replace(/^```[\s\S]*?^```/gm, (block) => block.replace(/[^\n]/g, ''));

/** What links to the headings of a document are called, as GitHub has them. */
function headingsOf(path) {
  const headings = withoutBlocks(readFileSync(path, 'utf8')).matchAll(/^#+ +(.+)$/gm);
  const plain = (text) => text.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[^\p{L}\p{N} _-]/gu, '');
  return new Set(Array.from(headings, ([, text]) => plain(text.trim()).toLowerCase().replaceAll(' ', '-')));
}

/** Problems of one document; `files` are all files of the repository. */
function wrongNames(document, text, root, files) {
  const found = [];
  const there = isThere(document, files);
  for (const [index, line] of text.split('\n').entries()) {
    const at = `${document}:${index + 1}`;
    for (const [, target, heading] of line.matchAll(/\]\(([^)#]*)(?:#([^)]*))?\)/g)) {
      // Documents that are read on npm name files of the repository by their address.
      const own = target === '' ? document : repositoryFile.exec(target)?.[1];
      const path = own ?? (/^[a-z]+:/.test(target) ? null : join(dirname(document), target));
      if (path === null) continue;
      if (!existsSync(join(root, path))) found.push(`${at} links to ${target}, which is not there`);
      else if (heading !== undefined && path.endsWith('.md') && !headingsOf(join(root, path)).has(heading))
        found.push(`${at} links to #${heading}, which no heading of ${path} is`);
    }
    for (const [, name] of [...line.matchAll(fileName), ...line.matchAll(folderName)])
      if (!written.has(name) && !there(name)) found.push(`${at} names ${name}, which is not there`);
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
    const text = withoutBlocks(readFileSync(join(root, document), 'utf8'));
    const isTable = /^(?:packages|apps)\/[^/]+\/src\/(?:.*\/)?README\.md$/.test(document) && !roomReadme.test(document);
    const table = isTable ? unnamed(document, text, files) : [];
    return [...wrongNames(document, text, root, files), ...table];
  });
}

/** Files in a comment's line, as `name.ts`, `folder/name.ts`. */
const commentName = /(?<![\w./@-])([\w-]+(?:\/[\w.-]+)*\.(?:ts|mjs))\b/g;

/** What is wrong in the comments of sources, given as all files are: names of files that are not there, less those that `written` has. */
export function wrongComments(root, sources, files) {
  const paths = files.map((file) => `/${file}`);
  const isThere = (name) => written.has(name) || paths.some((path) => path.endsWith(`/${name}`));
  return sources.flatMap((source) =>
    readFileSync(join(root, source), 'utf8')
      .split('\n')
      .flatMap((line, index) => {
        const comment = /^\s*(?:\/\*\*?|\*|\/\/)(.*)/.exec(line)?.[1] ?? '';
        return [...comment.matchAll(commentName)]
          .filter(([, name]) => !isThere(name))
          .map(([, name]) => `${source}:${index + 1} names ${name}, which is not there`);
      }),
  );
}
