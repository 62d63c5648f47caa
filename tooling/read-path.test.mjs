/** The way of `await t.data()`: as short as docs/architecture.md says, through the files that it names, and never back up. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, normalize } from 'node:path';
import { describe, expect, it } from 'vitest';
import { importsOf } from './check-imports.mjs';
import { compilerFile, root } from './workspace.mjs';

/** Files that a reader may have to visit to follow one `await t.data()`. */
const most = 12;

const path = JSON.parse(execFileSync(process.execPath, ['tooling/read-path.mjs', '--json'], { cwd: root }));
const [, section = ''] = readFileSync(join(root, 'docs/architecture.md'), 'utf8').split(
  /^## What `await t\.data\(\)` visits$/m,
);
const rows = [...(section.split('\n## ')[0] ?? '').matchAll(/^\| `([\w/-]+\.ts)` +\|([^|]*)\|([^|]*)\|/gm)];
const table = rows.map(([, file, inMemory]) => ({ file, inMemory: inMemory.trim() === 'yes' }));

describe('await t.data()', () => {
  it.each(['inMemory', 'pending'])(`visits at most ${most} files: %s`, (name) => {
    const files = Object.keys(path[name]);
    expect(files.length).toBeGreaterThan(1);
    expect(files.length).toBeLessThanOrEqual(most);
  });

  it('visits the files that docs/architecture.md names', () => {
    expect(Object.keys(path.pending).sort()).toEqual(table.map(({ file }) => file).sort());
    expect(Object.keys(path.inMemory).sort()).toEqual(
      table
        .filter(({ inMemory }) => inMemory)
        .map(({ file }) => file)
        .sort(),
    );
  });

  it('goes down: no file imports one that stands above it there', () => {
    const order = table.map(({ file }) => file);
    for (const [at, file] of order.entries()) {
      const paths = ['core', 'compiler'].map((name) => join(root, 'packages', name, 'src', file));
      const source = readFileSync(paths.find(existsSync), 'utf8');
      for (const { specifier, value } of importsOf(source)) {
        const named = compilerFile(specifier);
        const target = order.indexOf(named === undefined ? normalize(join(file, '..', specifier)) : `${named}.ts`);
        if (value && target >= 0) expect([file, specifier, target > at]).toEqual([file, specifier, true]);
      }
    }
  });
});
