/**
 * The worked examples of CONTRIBUTING.md, applied to a copy of the packages: files named in a table, each with a row for a table of its own, and
 * blocks of code that are added to the file named before them.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from './workspace.mjs';

const packages = ['compiler', 'core', 'backend-cpu', 'emit-c', 'nn', 'numbers', 'testing', 'conformance'];

/** A copy of the sources of some packages, which find each other, in a new folder; `remove` deletes it. */
export function copiedPackages() {
  const folder = mkdtempSync(join(tmpdir(), 'polygrad-example-'));
  mkdirSync(join(folder, 'node_modules/@polygrad'), { recursive: true });
  for (const name of packages) {
    const from = join(root, 'packages', name);
    const to = join(folder, 'packages', name);
    cpSync(join(from, 'src'), join(to, 'src'), { recursive: true });
    cpSync(join(from, 'package.json'), join(to, 'package.json'));
    symlinkSync(to, join(folder, 'node_modules/@polygrad', name));
  }
  symlinkSync(join(root, 'node_modules/@types'), join(folder, 'node_modules/@types'));
  const base = JSON.parse(readFileSync(join(root, 'tooling/tsconfig/base.json'), 'utf8'));
  const config = {
    compilerOptions: { ...base.compilerOptions, noEmit: true, types: ['node'] },
    include: packages.map((name) => `packages/${name}/src`),
    // Not what names engines of other packages.
    exclude: [
      '**/*.test.ts',
      '**/*.bench.ts',
      '**/fixtures',
      '**/conformance/src/engines.ts',
      '**/conformance/src/cli*.ts',
    ],
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** The part of a document below a heading of the second level. */
export function sectionOf(document, heading) {
  const text = readFileSync(join(root, document), 'utf8');
  const start = text.indexOf(`\n## ${heading}\n`);
  if (start < 0) throw new Error(`${document}: no section ${heading}`);
  const end = text.indexOf('\n## ', start + 1);
  return text.slice(start, end < 0 ? undefined : end);
}

/**
 * The edits a section shows: `{ file, code }` of each block that a line ending in "`file`:" stands before, and `{ file, table, row }` of each row
 * of a table of files.
 */
export function editsOf(section) {
  const blocks = [...section.matchAll(/`(packages\/[\w/.-]+)`[^`\n]*:\n\n```ts\n([\s\S]*?)\n```/g)].map(
    ([, file, code]) => ({ file, code }),
  );
  const rows = [...section.matchAll(/^\| `(packages\/[\w/.-]+)`[^|]*\| `(\w+)`[^|]*\| `([^`]+)`\s*\|$/gm)].map(
    ([, file, table, row]) => ({ file, table, row }),
  );
  return [...blocks, ...rows];
}

/** Makes the edits in a copy. Code goes to the end of a file, a row to the start of its table. */
export function applyEdits(folder, edits) {
  for (const { file, code, table, row } of edits) {
    const path = join(folder, file);
    const text = readFileSync(path, 'utf8');
    if (code !== undefined) {
      writeFileSync(path, `${text}\n${code}\n`);
      continue;
    }
    const start = new RegExp(`^(?:export )?const ${table}\\b[^\\n]*[{[]$`, 'm').exec(text);
    if (start === null) throw new Error(`${file}: no table ${table}`);
    const at = start.index + start[0].length;
    writeFileSync(path, `${text.slice(0, at)}\n  ${row},${text.slice(at)}`);
  }
}
