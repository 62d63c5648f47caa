/** What the commands of tests share: programs run with their output shown, and totals read from it. */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { root } from './workspace.mjs';

/** Totals as the commands that tests call print them last: `N passed, N failed, N skipped`. */
export function totalsOf(output) {
  const totals = [...output.matchAll(/^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?\s*$/gm)].at(-1);
  return totals?.slice(1).map((n) => Number(n ?? 0));
}

export const counts = (passed, failed, skipped = 0, note = '') => ({ passed, failed, skipped, note });
export const one = (good, note) => counts(good ? 1 : 0, good ? 0 : 1, 0, note);

/** The last line of every command of tests. */
export const closingLine = ({ passed, failed, skipped }) => `${passed} passed, ${failed} failed, ${skipped} skipped`;

/** Performs functions side by side, so many at a time at most, in their order; resolves when all are done. */
export async function sideBySide(tasks, most) {
  const queue = [...tasks];
  const work = async () => {
    for (let task = queue.shift(); task !== undefined; task = queue.shift()) await task();
  };
  await Promise.all(Array.from({ length: most }, work));
}

/** Ends a program and all that it started: asks first, and kills what is still there after some seconds. */
function end(child) {
  const signal = (name) => {
    try {
      process.kill(-child.pid, name);
    } catch {
      // Gone already.
    }
  };
  signal('SIGTERM');
  setTimeout(() => signal('SIGKILL'), 10_000).unref();
}

/**
 * Runs a Node program, its output given to `show`.
 *
 * @param options `env` is added to the environment; after `seconds` the program is ended, with all that it started
 * @returns its exit code, the signal that ended it or null, what it wrote to stdout, and whether it was ended by the limit
 */
export function runShown(script, args, show, { env = {}, seconds } = {}) {
  return new Promise((resolve) => {
    const limited = seconds !== undefined;
    const child = spawn(process.execPath, [script, ...args], {
      cwd: root,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
      // A group of its own can be ended as a whole; who ends this process is told about by hand then.
      detached: limited,
    });
    let cut = false;
    const stop = () => end(child);
    const timer = limited
      ? setTimeout(() => {
          cut = true;
          stop();
        }, seconds * 1000)
      : undefined;
    const pass = () => {
      stop();
      child.once('close', () => process.exit(143));
    };
    if (limited) for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, pass);
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      output += text;
      show(text);
    });
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.off(name, pass);
      resolve({ code: code ?? 1, signal, output, cut });
    });
  });
}

/** The first line of a failure. Where a test took too long, vitest's says only that it is an error. */
const reason = (message) => (message.startsWith('Error: STACK_TRACE_ERROR') ? 'timed out' : message.split('\n')[0]);

/** Totals of a report that vitest wrote as JSON, and what failed. */
export function vitestTotals(report, code) {
  if (!existsSync(report)) return { ...one(code === 0, 'no report'), failures: [] };
  const { testResults, ...totals } = JSON.parse(readFileSync(report, 'utf8'));
  const { numPassedTests, numFailedTests, numPendingTests, numTodoTests } = totals;
  const failures = [];
  for (const { name, status, message, assertionResults } of testResults) {
    const broken = assertionResults.filter((test) => test.status === 'failed');
    const file = relative(root, name);
    for (const { fullName, failureMessages } of broken)
      failures.push(`${file}: ${fullName}: ${reason(failureMessages[0] ?? '')}`);
    if (status === 'failed' && broken.length === 0) failures.push(`${file}: ${message.split('\n')[0]}`);
  }
  const failed = code !== 0 && numFailedTests === 0 ? 1 : numFailedTests;
  return { ...counts(numPassedTests, failed, numPendingTests + numTodoTests), failures };
}
