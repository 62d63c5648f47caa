/**
 * `npm test`: everything that must hold, as a list of steps, ending in `N passed, N failed, N skipped`.
 *
 * `--only a,b` runs only the named steps. POLYGRAD_REQUIRE names engines, and `browser` for Chromium (comma-separated), that must be
 * there: their absence is then a failure instead of a skip. A step that checks one thing counts as one test. Conformance runs, the check of
 * packages and the table of operations leave a processor idle much of the time. They share the processors at the end.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { checkImports } from './check-imports.mjs';
import { deviceEnvironment } from './devices/environment.mjs';
import { poclCache, trimPoclCache } from './devices/pocl-cache.mjs';
import { checkExamples } from './doc-examples.mjs';
import { conformanceRuns, resultOfSuite } from './conformance-runs.mjs';
import { conformanceCommand, conformanceName, engines, isThere, processOf, required } from './engines.mjs';
import { closingLine, counts, one, runShown, sideBySide, totalsOf, vitestTotals } from './running.mjs';
import { build, root, runNode } from './workspace.mjs';

const bin = (path) => join(root, 'node_modules', path);
const say = (text) => process.stdout.write(`${text}\n`);
/** Names of tests that failed, said once more at the end, where a reader looks first. */
const failures = [];

/** Undefined until the workspace was compiled. */
let compiled;

/** True where the workspace is compiled: by the step `types`, or now. */
function isBuilt() {
  compiled ??= build() === 0;
  return compiled;
}

function types() {
  const good = build('tsconfig.json') === 0;
  if (good) compiled = true;
  return one(good);
}

/** Runs the unit tests, on compiled modules, and reads their totals. */
function unitTests() {
  if (!isBuilt()) return one(false, 'the build failed');
  const report = join(root, '.cache', 'vitest-unit.json');
  mkdirSync(join(root, '.cache'), { recursive: true });
  rmSync(report, { force: true });
  const args = ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`, '--silent=passed-only'];
  const code = runNode(bin('vitest/vitest.mjs'), args, { env: { POLYGRAD_TESTS: 'unit', POLYGRAD_BUILT: '1' } });
  return vitestTotals(report, code);
}

/** A sample of the conformance suite on an engine: as a step of its own in Chromium, and otherwise with those of its process (`turns`). */
function conformance(entry) {
  const { sample } = entry;
  const name = conformanceName(entry);
  const { script, args } = conformanceCommand(entry);
  if (sample !== undefined) args.push('--sample', String(sample));
  const turns = processOf(entry);
  if (turns !== null) return { name, args, turns, shares: true };
  const run = async (show) => {
    const { code, output } = await runShown(join(root, script), args, show, { env: requiredEngines });
    return resultOfSuite(code, output);
  };
  return { name, run, shares: true };
}

/** Engines whose absence is a failure. */
const requiredEngines = { POLYGRAD_REQUIRE: [...required].join(',') };

function steps() {
  return [
    { name: 'types', run: types },
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
      run: async () => (isBuilt() ? await checkExamples(say) : one(false, 'the build failed')),
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

/** Steps in groups: those of one process together, where the first of them stands; each other by itself. */
function inTurns(steps) {
  const first = (step) => (step.turns === undefined ? step : steps.find(({ turns }) => turns === step.turns));
  return steps.filter((step) => first(step) === step).map((step) => steps.filter((other) => first(other) === step));
}

async function main(args) {
  const chosen = stepsFor(args);
  if (typeof chosen === 'string') {
    const names = steps().map(({ name }) => name);
    process.stderr.write(`${chosen}; the option is --only with steps of: ${names.join(', ')}\n`);
    return 2;
  }
  trimPoclCache(poclCache());
  const rows = [];
  const note = (name, { failures: found = [], ...row }) => {
    rows.push({ name, ...row });
    failures.push(...found.map((text) => `${name}: ${text}`));
  };
  const perform = async ({ name, run }, show) => {
    const start = performance.now();
    const result = await run(show);
    note(name, { seconds: (performance.now() - start) / 1000, ...result });
  };
  for (const step of chosen.filter(({ shares }) => !shares)) {
    say(`\n== ${step.name}`);
    await perform(step, (text) => process.stdout.write(text));
  }
  // What keeps one processor busy runs side by side; each shows its output when it is done.
  const sharing = chosen.filter(({ shares }) => shares);
  const tasks = inTurns(sharing).map((group) => async () => {
    const shown = [];
    const show = (text) => shown.push(text);
    if (group[0].run !== undefined) await perform(group[0], show);
    else {
      const env = { ...deviceEnvironment(), ...requiredEngines };
      const results = await conformanceRuns(
        group.map(({ args }) => args),
        show,
        env,
      );
      for (const [i, { name }] of group.entries()) note(name, results[i]);
    }
    say(`\n== ${group.map(({ name }) => name).join(', ')}\n${shown.join('')}`);
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
