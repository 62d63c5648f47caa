/**
 * `npm test`: everything that must hold, as a list of steps, ending in `N passed, N failed, N skipped`.
 *
 * `--only a,b` runs only the named steps. POLYGRAD_REQUIRE names engines, and `browser` for Chromium (comma-separated), that must be
 * there: their absence is then a failure instead of a skip. A step that checks one thing counts as one test. Conformance runs, the check of
 * packages and the table of operations, which leave a processor idle much of the time, share the processors at the end.
 */
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { checkImports } from './check-imports.mjs';
import { deviceEnvironment } from './devices/environment.mjs';
import { checkExamples } from './doc-examples.mjs';
import { conformanceCommand, conformanceName, engines, isThere, required } from './engines.mjs';
import { closingLine, counts, one, runShown, sideBySide, totalsOf, vitestTotals } from './running.mjs';
import { build, root, runNode } from './workspace.mjs';

const bin = (path) => join(root, 'node_modules', path);
const say = (text) => process.stdout.write(`${text}\n`);
/** Names of tests that failed, said once more at the end, where a reader looks first. */
const failures = [];

/** Runs the unit tests and reads their totals. */
function unitTests() {
  const report = join(root, '.cache', 'vitest-unit.json');
  mkdirSync(join(root, '.cache'), { recursive: true });
  rmSync(report, { force: true });
  const args = ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`, '--silent=passed-only'];
  const code = runNode(bin('vitest/vitest.mjs'), args, { env: { POLYGRAD_TESTS: 'unit' } });
  const { failures: broken, ...totals } = vitestTotals(report, code);
  failures.push(...broken);
  return totals;
}

/** A sample of the conformance suite on an engine. */
function conformance(entry) {
  const { browser, sample } = entry;
  const name = conformanceName(entry);
  const run = async (show) => {
    const { script, args } = conformanceCommand(entry);
    const cli = join(root, script);
    if (!existsSync(cli)) return one(false, 'the conformance command is not there');
    if (sample !== undefined) args.push('--sample', String(sample));
    const env = {
      ...(browser === undefined ? deviceEnvironment() : {}),
      POLYGRAD_REQUIRE: [...required].join(','),
    };
    const { code, output } = await runShown(cli, args, show, { env });
    const totals = totalsOf(output);
    for (const [line] of output.matchAll(/^FAILED .*$/gm)) failures.push(`${name}: ${line}`);
    if (totals !== undefined) {
      const [passed, failed, skipped] = totals;
      const note = code === 0 && passed + failed === 0 ? 'engine not available here' : '';
      return counts(passed, code !== 0 && failed === 0 ? 1 : failed, skipped, note);
    }
    return one(false, `exit code ${code}, without totals`);
  };
  return { name, run, shares: true };
}

function steps() {
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
    { name: 'unit', run: unitTests },
    {
      name: 'examples',
      run: async () => {
        if (build() !== 0) return one(false, 'the build failed');
        const { failures: found, ...totals } = await checkExamples(say);
        failures.push(...found.map((text) => `examples: ${text}`));
        return totals;
      },
    },
    // The longest first, so that none is left alone at the end.
    {
      name: 'pack',
      shares: true,
      run: async (show) => {
        const { code, output } = await runShown(join(root, 'tooling/pack-test.mjs'), [], show);
        const totals = totalsOf(output);
        return totals === undefined ? one(false, `exit code ${code}, without totals`) : counts(...totals);
      },
    },
    {
      name: 'operations',
      shares: true,
      run: async (show) => one((await runShown(join(root, 'tooling/operations.mjs'), ['--check'], show)).code === 0),
    },
    ...engines.filter(isThere).map(conformance),
  ];
}

/** The steps that arguments ask for, or what is wrong with the arguments. */
export function stepsFor(args) {
  let values;
  try {
    ({ values } = parseArgs({ args, options: { only: { type: 'string' } } }));
  } catch (error) {
    return error.message.split(/\.\s/)[0];
  }
  const all = steps();
  if (values.only === undefined) return all;
  const words = values.only.split(',');
  const unknown = words.find((word) => word === '' || !all.some(({ name }) => name.startsWith(word)));
  if (unknown !== undefined) return `--only: no step '${unknown}'`;
  return all.filter(({ name }) => words.some((word) => name.startsWith(word)));
}

async function main(args) {
  const chosen = stepsFor(args);
  if (typeof chosen === 'string') {
    const names = steps().map(({ name }) => name);
    process.stderr.write(`${chosen}; the option is --only with steps of: ${names.join(', ')}\n`);
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
  const sharing = chosen.filter(({ shares }) => shares);
  const tasks = sharing.map((step) => async () => {
    const shown = [];
    await perform(step, (text) => shown.push(text));
    say(`\n== ${step.name}\n${shown.join('')}`);
  });
  // One more than there are processors: packages are installed, and devices waited for.
  await sideBySide(tasks, Math.min(4, availableParallelism() + 1));
  const total = (key) => rows.reduce((sum, row) => sum + row[key], 0);
  say('');
  for (const { name, seconds, passed, failed, skipped, note } of rows)
    say(
      `${failed > 0 ? 'FAIL' : 'ok  '} ${name.padEnd(40)} ${`${seconds.toFixed(1)} s`.padStart(8)}` +
        `  passed: ${passed}  failed: ${failed}  skipped: ${skipped}${note ? `  (${note})` : ''}`,
    );
  for (const failure of failures) say(`failed: ${failure}`);
  say(`\n${closingLine({ passed: total('passed'), failed: total('failed'), skipped: total('skipped') })}`);
  return total('failed') > 0 ? 1 : 0;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) process.exitCode = await main(process.argv.slice(2));
