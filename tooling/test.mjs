/**
 * `npm test`: everything that must hold, as a list of steps, ending in `N passed, N failed, N skipped`.
 *
 * Options: `--long` adds the files named *.long.test.ts and sets POLYGRAD_LONG=1 for the conformance suite; `--only a,b`
 * runs only the named steps. POLYGRAD_REQUIRE names engines, and `browser` for Chromium (comma-separated), that must be
 * there: their absence is then a failure instead of a skip. A step that checks one thing counts as one test. Conformance runs and the
 * check of packages, which leave a processor idle much of the time, share the processors at the end.
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { checkImports } from './check-imports.mjs';
import { deviceEnvironment } from './devices/environment.mjs';
import { checkExamples } from './doc-examples.mjs';
import { build, root, runNode } from './workspace.mjs';

const bin = (path) => join(root, 'node_modules', path);
const say = (text) => process.stdout.write(`${text}\n`);
/** Totals as the commands that tests call print them last: `N passed, N failed, N skipped`. */
const totalsOf = (output) => {
  const totals = [...output.matchAll(/^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?\s*$/gm)].at(-1);
  return totals?.slice(1).map((n) => Number(n ?? 0));
};
const counts = (passed, failed, skipped = 0, note = '') => ({ passed, failed, skipped, note });
const one = (good, note) => counts(good ? 1 : 0, good ? 0 : 1, 0, note);

/** Names of tests that failed, said once more at the end, where a reader looks first. */
const failures = [];

/** Runs a Node program, its output given to `show`; resolves with its exit code and what it wrote to stdout. */
function runShown(script, args, env, show) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [script, ...args], {
      cwd: root,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      output += text;
      show(text);
    });
    child.on('close', (code) => resolve({ code: code ?? 1, output }));
  });
}

/** Runs vitest on one kind of tests (see vitest.config.ts) and reads its totals. */
function vitest(kind) {
  const report = join(root, '.cache', `vitest-${kind}.json`);
  mkdirSync(join(root, '.cache'), { recursive: true });
  rmSync(report, { force: true });
  const args = ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`, '--silent=passed-only'];
  const code = runNode(bin('vitest/vitest.mjs'), args, { env: { POLYGRAD_TESTS: kind } });
  if (!existsSync(report)) return one(code === 0, 'no report');
  const { testResults, ...totals } = JSON.parse(readFileSync(report, 'utf8'));
  const { numPassedTests, numFailedTests, numPendingTests, numTodoTests } = totals;
  for (const { name, status, message, assertionResults } of testResults) {
    const broken = assertionResults.filter((test) => test.status === 'failed');
    const file = relative(root, name);
    for (const { fullName, failureMessages } of broken)
      failures.push(`${file}: ${fullName}: ${failureMessages[0]?.split('\n')[0] ?? ''}`);
    if (status === 'failed' && broken.length === 0) failures.push(`${file}: ${message.split('\n')[0]}`);
  }
  const failed = code !== 0 && numFailedTests === 0 ? 1 : numFailedTests;
  return counts(numPassedTests, failed, numPendingTests + numTodoTests);
}

/**
 * Engines the conformance suite runs on. An engine without its package is not there yet and not counted. Where compiling is slow,
 * or a case is (groups of threads on the interpreter), or where another run has the same programs (the interpreter, and one thread of the
 * CPU engine, beside two threads), `sample` runs one of so many cases; `--long` runs all of them. `browser` means in Chromium, with these options.
 */
const engines = [
  { engine: 'cpu', folder: 'packages/backend-cpu', threads: 2 },
  { engine: 'reference', folder: 'packages/core', sample: 2 },
  { engine: 'cpu', folder: 'packages/backend-cpu', threads: 1, sample: 3 },
  { engine: 'reference-simt', folder: 'packages/core', sample: 31 },
  { engine: 'reference-subgroups-8', folder: 'packages/core', sample: 301 },
  { engine: 'reference-limited', folder: 'packages/backend-cpu', threads: 1, sample: 31 },
  { engine: 'cpu', folder: 'packages/backend-cpu', browser: [], sample: 29 },
  { engine: 'cpu', folder: 'packages/backend-cpu', browser: ['--isolated', '--worker'], sample: 31 },
  { engine: 'webgpu', folder: 'packages/backend-webgpu', sample: 61 },
  { engine: 'webgpu', folder: 'packages/backend-webgpu', browser: ['--worker'], sample: 201 },
  { engine: 'opencl', folder: 'packages/backend-opencl', sample: 271 },
  { engine: 'opencl-simt', folder: 'packages/backend-opencl', sample: 421 },
  { engine: 'cuda', folder: 'packages/backend-cuda' },
];
/** These need nothing but this machine's processor, so they are always required. */
const required = new Set([
  'reference',
  'reference-simt',
  'reference-subgroups-8',
  'reference-limited',
  'cpu',
  ...(process.env.POLYGRAD_REQUIRE ?? '').split(',').filter(Boolean),
]);

function conformance({ engine, folder, threads, sample, browser }, long) {
  const place = browser === undefined ? '' : ` browser${browser.join('').replaceAll('--', ' ')}`;
  const name = `conformance ${engine}${threads === undefined ? '' : ` ${threads} thread${threads > 1 ? 's' : ''}`}${place}`;
  const run = async (show) => {
    const cli = join(
      root,
      browser === undefined ? 'packages/conformance/dist/cli.js' : 'tooling/browser/conformance.mjs',
    );
    if (!existsSync(cli)) return one(false, 'the conformance command is not there');
    const args = ['--engine', engine, ...(threads === undefined ? [] : ['--threads', String(threads)])];
    if (browser !== undefined) args.push('--browser', ...browser);
    if (sample !== undefined && !long) args.push('--sample', String(sample));
    const env = {
      ...(browser === undefined ? deviceEnvironment() : {}),
      POLYGRAD_REQUIRE: [...required].join(','),
      ...(long ? { POLYGRAD_LONG: '1' } : {}),
    };
    const { code, output } = await runShown(cli, args, env, show);
    const totals = totalsOf(output);
    for (const [line] of output.matchAll(/^FAILED .*$/gm)) failures.push(`${name}: ${line}`);
    if (totals !== undefined) {
      const [passed, failed, skipped] = totals;
      const note = code === 0 && passed + failed === 0 ? 'engine not available here' : '';
      return counts(passed, code !== 0 && failed === 0 ? 1 : failed, skipped, note);
    }
    return one(false, `exit code ${code}, without totals`);
  };
  return existsSync(join(root, folder)) || required.has(engine) ? [{ name, run, shares: true }] : [];
}

function steps(long) {
  return [
    { name: 'types', run: () => one(build('tsconfig.json') === 0) },
    {
      name: 'lint',
      run: () =>
        one(runNode(bin('@biomejs/biome/bin/biome'), ['check', '--error-on-warnings', '--max-diagnostics=60']) === 0),
    },
    {
      name: 'imports',
      run: () => {
        const { violations, files } = checkImports(root);
        for (const violation of violations) say(violation);
        return one(violations.length === 0, `${files} files`);
      },
    },
    { name: 'unit', run: () => vitest(long ? 'long' : 'unit') },
    {
      name: 'examples',
      run: async () => {
        if (build() !== 0) return one(false, 'the build failed');
        const { failures: found, ...totals } = await checkExamples(say);
        failures.push(...found.map((text) => `examples: ${text}`));
        return totals;
      },
    },
    { name: 'operations', run: () => one(runNode(join(root, 'tooling/operations.mjs'), ['--check']) === 0) },
    // The longest first, so that none is left alone at the end.
    {
      name: 'pack',
      shares: true,
      run: async (show) => {
        const { code, output } = await runShown(join(root, 'tooling/pack-test.mjs'), [], {}, show);
        const totals = totalsOf(output);
        return totals === undefined ? one(false, `exit code ${code}, without totals`) : counts(...totals);
      },
    },
    ...engines.flatMap((entry) => conformance(entry, long)),
  ];
}

/** The steps that arguments ask for, or what is wrong with the arguments. */
export function stepsFor(args) {
  let values;
  try {
    ({ values } = parseArgs({ args, options: { long: { type: 'boolean' }, only: { type: 'string' } } }));
  } catch (error) {
    return error.message.split(/\.\s/)[0];
  }
  const all = steps(values.long ?? false);
  if (values.only === undefined) return all;
  const words = values.only.split(',');
  const unknown = words.find((word) => word === '' || !all.some(({ name }) => name.startsWith(word)));
  if (unknown !== undefined) return `--only: no step '${unknown}'`;
  return all.filter(({ name }) => words.some((word) => name.startsWith(word)));
}

async function main(args) {
  const chosen = stepsFor(args);
  if (typeof chosen === 'string') {
    const names = steps(false).map(({ name }) => name);
    process.stderr.write(`${chosen}; options are --long and --only with steps of: ${names.join(', ')}\n`);
    return 2;
  }
  const rows = [];
  const perform = async ({ name, run }, show) => {
    const start = performance.now();
    const result = await run(show);
    rows.push({ name, seconds: (performance.now() - start) / 1000, ...result });
  };
  for (const step of chosen.filter(({ shares }) => !shares)) {
    say(`\n== ${step.name}`);
    await perform(step, (text) => process.stdout.write(text));
  }
  // What keeps one processor busy runs side by side; each shows its output when it is done.
  const queue = chosen.filter(({ shares }) => shares);
  const work = async () => {
    for (let step = queue.shift(); step !== undefined; step = queue.shift()) {
      const shown = [];
      await perform(step, (text) => shown.push(text));
      say(`\n== ${step.name}\n${shown.join('')}`);
    }
  };
  await Promise.all(Array.from({ length: Math.min(4, availableParallelism()) }, work));
  const total = (key) => rows.reduce((sum, row) => sum + row[key], 0);
  say('');
  for (const { name, seconds, passed, failed, skipped, note } of rows)
    say(
      `${failed > 0 ? 'FAIL' : 'ok  '} ${name.padEnd(40)} ${`${seconds.toFixed(1)} s`.padStart(8)}` +
        `  passed: ${passed}  failed: ${failed}  skipped: ${skipped}${note ? `  (${note})` : ''}`,
    );
  for (const failure of failures) say(`failed: ${failure}`);
  say(`\n${total('passed')} passed, ${total('failed')} failed, ${total('skipped')} skipped`);
  return total('failed') > 0 ? 1 : 0;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) process.exitCode = await main(process.argv.slice(2));
