/**
 * Makes every example of the documentation a test: fenced `ts` blocks with at least one import, in README files, in
 * docs/*.md and in `@example` parts of the packages' sources.
 *
 * Each block becomes a file in .cache/doc-examples, at the same line numbers as in its document, and a test that runs
 * it against the workspace's sources. `console.log(x); //=> text` also checks what is printed.
 * A block marked "```ts no-run: why" is type-checked only.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

export const outputFolder = '.cache/doc-examples';

/**
 * Blocks of one document: `{ code, line, skip }`, `line` being where the code starts (from 1), `skip` the reason not to
 * run it or null. In sources, only comment blocks with `@example` count.
 */
export function examplesIn(text, isSource) {
  const examples = [];
  let block = null;
  let inExample = false;
  for (const [index, raw] of text.split('\n').entries()) {
    let line = raw;
    if (isSource) {
      if (/^\s*\/\*\*/.test(raw)) inExample = false;
      if (/^\s*\*\s*@\w/.test(raw)) inExample = /@example\b/.test(raw);
      if (!/^\s*\*/.test(raw) || /\*\/\s*$/.test(raw)) {
        block = null;
        continue;
      }
      line = raw.replace(/^\s*\* ?/, '');
    }
    const fence = /^\s*```(.*)$/.exec(line);
    if (fence === null) block?.code.push(line);
    else if (block !== null) {
      if (block.wanted && block.code.some((l) => /^\s*import\b/.test(l)))
        examples.push({ code: block.code.join('\n'), line: block.line, skip: block.skip });
      block = null;
    } else {
      const info = /^(?:ts|typescript)(?:\s+no-run(?::\s*(.*))?)?\s*$/.exec(fence[1].trim());
      const noRun = /\bno-run\b/.test(fence[1]);
      const wanted = info !== null && (!isSource || inExample);
      block = { code: [], line: index + 2, wanted, skip: noRun ? (info?.[1] ?? '') : null };
    }
  }
  return examples;
}

/** Documents below `root`, as relative paths. */
function documents(root) {
  const found = [];
  const visit = (folder, wanted) => {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      if (['node_modules', 'dist'].includes(entry.name) || entry.name.startsWith('.')) continue;
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) visit(path, wanted);
      else if (wanted(path)) found.push(path);
    }
  };
  visit(
    '',
    (path) =>
      /(^|\/)README\.md$/.test(path) ||
      path === 'CONTRIBUTING.md' ||
      /^docs\/.*\.md$/.test(path) ||
      (/^packages\/[^/]+\/src\/.*\.ts$/.test(path) && !/\.(test|bench)\.ts$/.test(path)),
  );
  return found.sort();
}

const testOf = (name, file, expected, skip) => `import { format } from 'node:util';
import { expect, test, vi } from 'vitest';
test${skip === null ? '' : '.skip'}(${JSON.stringify(name)}, async () => {
  const log = vi.spyOn(console, 'log').mockImplementation(() => {});
  ${skip === null ? `await import('./${file}');` : ''}
  const printed = log.mock.calls.map((call) => format(...call));
  log.mockRestore();
  let from = 0;
  for (const text of ${JSON.stringify(expected)} as string[]) {
    const at = printed.indexOf(text, from);
    expect(at, \`\${JSON.stringify(text)} among what was printed: \${JSON.stringify(printed.slice(from))}\`).toBeGreaterThanOrEqual(0);
    from = at + 1;
  }
});
`;

/** Writes the test files; returns how many examples there are and what is wrong with their marks. */
export function writeExamples(root) {
  const folder = join(root, outputFolder);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const problems = [];
  let count = 0;
  for (const document of documents(root)) {
    for (const { code, line, skip } of examplesIn(
      readFileSync(join(root, document), 'utf8'),
      document.endsWith('.ts'),
    )) {
      count++;
      if (skip === '') problems.push(`${document}:${line - 1} no-run needs a reason: "\`\`\`ts no-run: why"`);
      const stem = `${document.replace(/[^A-Za-z0-9]+/g, '_')}_${line}`;
      const expected = [...code.matchAll(/\bconsole\.log\(.*\);?\s*\/\/=>[ ]?(.*)$/gm)].map((match) =>
        match[1].trimEnd(),
      );
      const name = `${document}:${line}${skip ? ` (not run: ${skip})` : ''}`;
      writeFileSync(join(folder, `${stem}.ts`), `${'\n'.repeat(line - 1)}${code}\nexport {};\n`);
      writeFileSync(join(folder, `${stem}.test.ts`), testOf(name, `${stem}.ts`, expected, skip));
    }
  }
  const options = {
    extends: '../../tooling/tsconfig/base.json',
    compilerOptions: { noEmit: true, types: ['node'], noUnusedLocals: false },
    include: ['*.ts'],
  };
  writeFileSync(join(folder, 'tsconfig.json'), `${JSON.stringify(options, null, 2)}\n`);
  return { count, problems };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { count, problems } = writeExamples(dirname(dirname(fileURLToPath(import.meta.url))));
  for (const problem of problems) process.stdout.write(`${problem}\n`);
  process.stdout.write(`${count} examples in ${outputFolder}\n`);
  process.exitCode = problems.length > 0 ? 1 : 0;
}
