/** Runs of the conformance suite in one process (conformance-turns.mjs), and what became of each. */
import { join } from 'node:path';
import { counts, one, runShown, totalsOf } from './running.mjs';
import { root } from './workspace.mjs';

/**
 * Performs runs one after another in one process.
 *
 * @param runs arguments of the conformance command, a list for each run
 * @param show is given what is printed
 * @param env is added to the environment
 * @returns for each run its counts, `seconds`, and `failures`: the lines of cases that failed
 */
export async function conformanceRuns(runs, show, env = {}) {
  const script = join(root, 'tooling/conformance-turns.mjs');
  const texts = runs.map((args) => JSON.stringify(args));
  const { code, output } = await runShown(script, texts, show, { env });
  return runs.map((_, i) => resultOf(output, i, code));
}

/** The result of one program that ran the suite once: its exit code and what it printed. */
export function resultOfSuite(code, output) {
  const failures = [...output.matchAll(/^FAILED .*$/gm)].map(([line]) => line);
  const totals = totalsOf(output);
  if (totals === undefined) return { ...one(false, `exit code ${code}, without totals`), failures };
  const [passed, failed, skipped] = totals;
  const note = code === 0 && passed + failed === 0 ? 'engine not available here' : '';
  return { ...counts(passed, code !== 0 && failed === 0 ? 1 : failed, skipped, note), failures };
}

/** What became of run `i` in the output of all. One that does not end is a failure, and so are those after it, which do not begin. */
function resultOf(output, i, code) {
  const begins = output.indexOf(`run ${i} begins\n`);
  if (begins < 0) return { ...one(false, 'a run before it ended the process'), seconds: 0, failures: [] };
  const said = output.slice(begins);
  const end = new RegExp(`^run ${i} ends with (\\d+) after ([\\d.]+) s$`, 'm').exec(said);
  if (end === null) return { ...resultOfSuite(code, ''), seconds: 0, failures: [] };
  return { ...resultOfSuite(Number(end[1]), said.slice(0, end.index)), seconds: Number(end[2]) };
}
