/** Runs of the conformance suite in one process are what they are by themselves, and one that ends the process fails those after it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { conformanceRuns, resultOfSuite } from './conformance-runs.mjs';
import { engines, processOf } from './engines.mjs';
import { runShown, vitestTotals } from './running.mjs';
import { root } from './workspace.mjs';

const folder = mkdtempSync(join(tmpdir(), 'polygrad-runs-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const silent = () => undefined;
const counted = ({ passed, failed, skipped }) => [passed, failed, skipped];

it('counts each as the command does by itself, and tells which run ended the process', async () => {
  const fatal = join(folder, 'fatal.mjs');
  writeFileSync(fatal, 'export function createEngine() {\n  process.exit(3);\n}\n');
  const one = ['--engine', 'reference', '--filter', 'sinh / [130] / float32 / plain'];
  // What the limited engine does not hold it hands over to the CPU engine beside it.
  const limited = ['--engine', 'reference-limited', '--filter', 'sinh / [130]'];
  const [first, ...others] = await conformanceRuns(
    [one, ['--engine', 'none'], limited, ['--engine', fatal], one],
    silent,
  );
  expect(counted(first)).toEqual([1, 0, 0]);
  expect(others[0]).toMatchObject({ passed: 0, failed: 1 });
  const { code, output } = await runShown(join(root, 'packages/conformance/dist/cli.js'), limited, silent);
  const alone = resultOfSuite(code, output);
  expect(counted(others[1])).toEqual(counted(alone));
  expect(alone.passed).toBeGreaterThan(5);
  expect(others[2]).toMatchObject({ passed: 0, failed: 1, note: 'exit code 3, without totals' });
  expect(others[3]).toMatchObject({ passed: 0, failed: 1, note: 'a run before it ended the process' });
});

it('names cases that failed', () => {
  const output =
    'FAILED add / [3] / float32 / plain\n  value 1: 2 where 3 is expected\n4 passed, 1 failed, 0 skipped\n';
  expect(resultOfSuite(1, output)).toMatchObject({ failed: 1, failures: ['FAILED add / [3] / float32 / plain'] });
  // An engine that cannot be given back after its cases have passed.
  expect(resultOfSuite(1, '4 passed, 0 failed, 0 skipped\n')).toMatchObject({ passed: 4, failed: 1 });
});

it('names tests that failed, and those that took too long', () => {
  const report = join(folder, 'report.json');
  const failed = (fullName, message) => ({ status: 'failed', fullName, failureMessages: [message] });
  const assertionResults = [failed('a', 'Error: 1 is not 2\n  at a'), failed('b', 'Error: STACK_TRACE_ERROR\n  at b')];
  const testResults = [{ name: join(root, 'x.test.ts'), status: 'failed', message: '', assertionResults }];
  writeFileSync(
    report,
    JSON.stringify({ testResults, numPassedTests: 3, numFailedTests: 2, numPendingTests: 0, numTodoTests: 0 }),
  );
  expect(vitestTotals(report, 1)).toMatchObject({
    passed: 3,
    failed: 2,
    failures: ['x.test.ts: a: Error: 1 is not 2', 'x.test.ts: b: timed out'],
  });
});

it('keeps engines apart that have a CPU engine beside them from those that have none', () => {
  const inProcess = (name) => engines.filter((entry) => processOf(entry) === name).map(({ engine }) => engine);
  expect(new Set(inProcess('beside the CPU engine'))).toEqual(new Set(['cpu', 'reference-limited', 'webgpu']));
  expect(inProcess('alone')).toContain('reference');
  expect(engines.filter(({ browser }) => browser).map(processOf)).toEqual([null, null, null]);
});
