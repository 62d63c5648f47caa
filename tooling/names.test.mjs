/**
 * A name means one thing in all packages: what two of them export under one name is the same.
 *
 * Values are compared as they are; types by the file they come from, since an entry that passes on another package's names is fine.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { compilerFile, root } from './workspace.mjs';

/** Sources of the entries of every public package: `{ entry, file }`. */
function entries() {
  return readdirSync(join(root, 'packages'))
    .map((name) => join(root, 'packages', name))
    .filter((folder) => existsSync(join(folder, 'package.json')))
    .flatMap((folder) => {
      const { name, exports = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
      return Object.entries(exports)
        .filter(([path, target]) => !path.includes('*') && target['@polygrad/source'] !== undefined)
        .map(([path, target]) => ({ entry: name + path.slice(1), file: join(folder, target['@polygrad/source']) }));
    });
}

/** Names that a source exports and where each is declared: a file, or a package it is passed on from. */
function declared(file) {
  const text = readFileSync(file, 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
  const found = new Map();
  const place = (from) => {
    if (from.startsWith('.')) return join(dirname(file), from);
    const path = compilerFile(from);
    return path === undefined ? from : join(root, 'packages/compiler/src', `${path}.ts`);
  };
  for (const [, names, from] of text.matchAll(/export (?:type )?\{([^}]*)\} from '([^']+)'/g))
    for (const item of names.split(',')) {
      const [own, alias = own] = item
        .trim()
        .replace(/^type /, '')
        .split(' as ');
      if (own !== '') found.set(alias, { from: place(from), own });
    }
  for (const [, from] of text.matchAll(/export \* from '(\.[^']+|@polygrad\/compiler\/[^']+)'/g))
    for (const [name, origin] of declared(place(from))) found.set(name, origin);
  for (const [, name] of text.matchAll(
    /^export (?:declare |abstract |async )*(?:function\*?|class|const|let|interface|type) (\w+)/gm,
  ))
    found.set(name, { from: file, own: name });
  return found;
}

/** Where a name is declared in the end: other packages' entries are looked through. */
function originOf({ from, own }, byEntry) {
  const passed = byEntry.get(from)?.get(own);
  return passed === undefined ? `${from}:${own}` : originOf(passed, byEntry);
}

/** Names of the teaching package, which names what it teaches as its models do. */
const taught = new Set(['Layer']);

/** Functions of nn that hand everything to those of data with the same names, which it loads only then. */
const handedOn = new Set(['saveModel', 'loadModel']);

it('has one meaning for each name', () => {
  const byEntry = new Map(entries().map(({ entry, file }) => [entry, declared(file)]));
  expect(byEntry.size).toBeGreaterThan(12);
  const origins = new Map();
  for (const [entry, names] of byEntry)
    for (const [name, place] of names) {
      const known = origins.get(name) ?? origins.set(name, new Map()).get(name);
      const origin = originOf(place, byEntry);
      known.set(origin, [...(known.get(origin) ?? []), entry]);
    }
  expect(origins.get('valueAndGrad').size).toBe(1);
  const twice = [...origins].filter(([name, places]) => !handedOn.has(name) && places.size > 1 && !taught.has(name));
  expect(twice.map(([name, places]) => `${name}: ${[...places.values()].map(([entry]) => entry).join(', ')}`)).toEqual(
    [],
  );
});
