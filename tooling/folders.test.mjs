/** How large the house is: files of core, files of a folder, lines of a file. Whoever must raise a number says why in the commit. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { filesBelow } from './check-imports.mjs';
import { root } from './workspace.mjs';

const mostFilesOfCore = 219;
const mostFilesOfFolder = 25;
/** Splitting is thought about at 500. */
const mostLinesOfFile = 550;

const isTest = (path) => /\.(test|bench)\.\w+$/.test(path) || path.includes('/fixtures/');
const isMade = (path) => /\/(build|goldens)\//.test(path);
const files = ['packages', 'apps', 'tooling', 'bench']
  .flatMap((folder) => filesBelow(root, folder, ['.ts', '.mjs', '.cc', '.c', '.h', '.py']))
  .filter((path) => !path.endsWith('.d.ts') && !isMade(path));
const sources = files.filter((path) => !isTest(path));

it('core has few files', () => {
  expect(sources.filter((path) => path.startsWith('packages/core/src/')).length).toBeLessThanOrEqual(mostFilesOfCore);
});

it('no folder has more files than a reader takes in, tests beside them not counted', () => {
  const counts = new Map();
  for (const folder of sources.map(dirname)) counts.set(folder, (counts.get(folder) ?? 0) + 1);
  const large = [...counts].filter(([, count]) => count > mostFilesOfFolder);
  expect(large.map(([folder, count]) => `${folder}: ${count} files`)).toEqual([]);
});

it('no file is long, tests as little as what they test', () => {
  const long = files.flatMap((path) => {
    const lines = readFileSync(join(root, path), 'utf8').trimEnd().split('\n').length;
    return lines > mostLinesOfFile ? [`${path}: ${lines} lines`] : [];
  });
  expect(long).toEqual([]);
});
