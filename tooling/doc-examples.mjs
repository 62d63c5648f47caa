/**
 * Makes every example of the documentation a test: fenced `ts` blocks with at least one import in README files, in docs/*.md and in
 * CONTRIBUTING.md, and every `@example` in the packages' sources. Needs a built workspace: examples see the packages as users do.
 *
 * Each example becomes a module in .cache/doc-examples, at the same line numbers as in its document. One run of the type checker checks and
 * translates all of them. Those that import run in a process of their own, the others in one process on the CPU engine. Results that
 * comments state are compared (module.mjs). "```ts no-run: why" and `@example no-run: why` are type-checked only.
 *
 * A public function or class without an example is a failure, and so are files that documents name and that are not there.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { deviceEnvironment } from './devices/environment.mjs';
import { examplesInMarkdown, examplesInSource, imports } from './doc-examples/blocks.mjs';
import { entriesOf } from './doc-examples/exports.mjs';
import { expectedOutput, moduleOf } from './doc-examples/module.mjs';
import { wrongComments, wrongPlaces } from './doc-examples/places.mjs';
import { sideBySide } from './running.mjs';
import { root, runNode } from './workspace.mjs';

const folder = join(root, '.cache/doc-examples');
const program = join(root, 'tooling/doc-examples/run.mjs');

/** Files below the root, as relative paths, less what is installed, built or hidden. */
function filesBelow() {
  const found = [];
  const visit = (place) => {
    for (const entry of readdirSync(join(root, place), { withFileTypes: true })) {
      if (['node_modules', 'dist'].includes(entry.name) || entry.name.startsWith('.')) continue;
      const path = place === '' ? entry.name : `${place}/${entry.name}`;
      if (entry.isDirectory()) visit(path);
      else found.push(path);
    }
  };
  visit('');
  return found.sort();
}

const isDocument = (path) =>
  /(^|\/)README\.md$/.test(path) || path === 'CONTRIBUTING.md' || /^docs\/.*\.md$/.test(path);
const isSource = (path) =>
  /^packages\/[^/]+\/src\/.*\.ts$/.test(path) && !/\.(test|bench|fuzz|fixture)\.ts$/.test(path);

/** Entry points of all packages, by the folder of the package. */
function allEntries() {
  const folders = readdirSync(join(root, 'packages')).sort();
  return new Map(folders.map((name) => [name, entriesOf(join(root, 'packages', name))]));
}

/** Entry points an example of a source file sees, the nearest first: that of its folder, those of its package, the other packages'. */
function entriesFor(document, entries) {
  const [, name, , place] = document.split('/');
  const own = entries.get(name) ?? [];
  const nearest = own.filter(
    ({ specifier }) => specifier.endsWith(`/${place}`) || specifier.endsWith(`/${place}`.replace('.ts', '')),
  );
  const users = ['core', 'micrograd', 'nn', 'data', 'auto-detect', 'numbers', 'testing'].flatMap(
    (other) => entries.get(other) ?? [],
  );
  return [...nearest, ...own, ...users];
}

/** Public functions and classes without an example. */
async function withoutExample(entries) {
  const missing = new Map();
  for (const { specifier, exports } of [...entries.values()].flat())
    for (const [name, value] of Object.entries(await import(specifier))) {
      const { kind, doc, file } = exports.get(name) ?? { kind: '', doc: '', file: specifier };
      if (typeof value === 'function' && kind !== 'elsewhere' && !/@example\b/.test(doc))
        missing.set(`${file} ${name}`, `${specifier}: ${name} has no @example`);
    }
  return [...missing.values()];
}

/** Writes the modules; returns the examples and what is wrong with them before they run. */
async function writeExamples() {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, 'node_modules'), { recursive: true });
  // An example uses what core has for its tests alone.
  symlinkSync(
    join(root, 'packages/numbers/node_modules/decimal.js'),
    join(folder, 'node_modules/decimal.js'),
    'junction',
  );
  const entries = allEntries();
  const files = filesBelow();
  const problems = [
    ...(await withoutExample(entries)),
    ...wrongPlaces(root, files.filter(isDocument), files),
    ...wrongComments(
      root,
      files.filter((path) => /^(?:packages|apps)\/.*\.ts$/.test(path)),
      files,
    ),
  ];
  const examples = [];
  for (const document of files.filter((path) => isDocument(path) || isSource(path))) {
    const text = readFileSync(join(root, document), 'utf8');
    for (const example of isSource(document) ? examplesInSource(text) : examplesInMarkdown(text)) {
      const { code, line, skip } = example;
      const name = `${document}:${line}${example.name ? ` ${example.name}` : ''}`;
      if (skip === '') problems.push(`${name}: no-run needs a reason: "no-run: why"`);
      const stem = `${document.replace(/[^A-Za-z0-9]+/g, '_')}_${line}`;
      const made = moduleOf(example, isSource(document) ? entriesFor(document, entries) : []);
      writeFileSync(join(folder, `${stem}.ts`), made.text);
      const file = pathToFileURL(join(folder, 'js', `${stem}.js`)).href;
      examples.push({ name, file, skip, alone: imports(code), stated: made.stated, expected: expectedOutput(code) });
    }
  }
  const options = {
    extends: '../../tooling/tsconfig/base.json',
    compilerOptions: { outDir: 'js', rootDir: '.', types: ['node'], customConditions: [], noUnusedLocals: false },
    include: ['*.ts'],
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(options));
  writeFileSync(
    join(folder, 'checks.d.ts'),
    `declare function stated(value: unknown, comment: string): Promise<void>;
declare function throwing(action: () => unknown, comment: string): Promise<void>;
`,
  );
  return { examples, problems };
}

/** Runs examples in one process; resolves with what went wrong. */
function runIn(examples, mode) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [program, mode], {
      cwd: root,
      env: { ...process.env, ...deviceEnvironment() },
      stdio: ['pipe', 'pipe', 'inherit'],
      // A process that does not end has failed; nothing else depends on the clock.
      timeout: 3_600_000,
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
    child.stdin.end(examples.map(({ file, expected }) => JSON.stringify({ file, expected })).join('\n'));
    child.on('close', (code, signal) => {
      const results = new Map(
        output
          .split('\n')
          .filter(Boolean)
          .map((line) => JSON.parse(line))
          .map((r) => [r.file, r.error]),
      );
      resolve(
        examples.flatMap(({ name, file }) => {
          const error = results.has(file) ? results.get(file) : 'it did not end';
          const late =
            error === null && mode === 'alone' && code !== 0 ? `the process ended with ${signal ?? code}` : error;
          return late === null ? [] : [`${name}: ${late}`];
        }),
      );
    });
  });
}

/** Runs all examples; `say` gets a line for each failure and for each example that is not run. */
export async function checkExamples(say) {
  const { examples, problems } = await writeExamples();
  const types = runNode(join(root, 'node_modules/typescript/bin/tsc'), ['-p', folder]);
  const runs = examples.filter(({ skip }) => skip === null);
  const groups = [runs.filter(({ alone }) => !alone), ...runs.filter(({ alone }) => alone).map((example) => [example])];
  const tasks = groups.map((group) => async () => {
    problems.push(...(await runIn(group, group[0]?.alone ? 'alone' : 'together')));
  });
  await sideBySide(tasks, Math.min(4, availableParallelism()));
  if (types !== 0) problems.unshift('the type checker refuses some: see above');
  for (const problem of problems) say(problem);
  const skipped = examples.filter(({ skip }) => skip !== null);
  for (const { name, skip } of skipped) say(`${name}: not run: ${skip}`);
  const stated = examples.reduce((sum, example) => sum + example.stated, 0);
  return {
    passed: Math.max(0, runs.length - problems.length),
    failed: problems.length,
    failures: problems,
    skipped: skipped.length,
    note: `${examples.length} examples, ${stated} stated results`,
  };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { passed, failed, skipped, note } = await checkExamples((text) => process.stdout.write(`${text}\n`));
  process.stdout.write(`${passed} passed, ${failed} failed, ${skipped} skipped (${note})\n`);
  process.exitCode = failed > 0 ? 1 : 0;
}
