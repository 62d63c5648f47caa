/** Runs parts of the long tests, one or several at a time, within the time there is, and says what became of each. */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { poclCache, trimPoclCache } from '../devices/pocl-cache.mjs';
import { counts, one, runShown, sideBySide, totalsOf, vitestTotals } from '../running.mjs';
import { root } from '../workspace.mjs';

/** Seconds after which a part hangs: it takes a small part of that on any machine. */
const hangs = ({ minutes }) => (5 * minutes + 20) * 60;

/** The program of a part: its script, arguments, environment, and how its totals are read. */
function commandOf(part) {
  if (part.kind === 'program') return { ...part, result: ofOutput };
  const folder = join(root, '.cache');
  // Of its own: parts run side by side.
  const report = join(folder, `vitest-part-${part.name.replace(/\W+/g, '-')}.json`);
  mkdirSync(folder, { recursive: true });
  rmSync(report, { force: true });
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`, '--silent=passed-only'];
  const only = part.only === undefined ? [] : ['--testNamePattern', escaped(part.only)];
  return {
    script: join(root, 'node_modules/vitest/vitest.mjs'),
    args: ['run', ...part.files, ...only, ...reporters],
    env: { POLYGRAD_TESTS: 'long', POLYGRAD_BUILT: '1' },
    result({ code, cut }) {
      const totals = vitestTotals(report, cut ? 0 : code);
      // Tests that the name leaves out are other parts, not skipped.
      return part.only !== undefined && totals.passed + totals.failed > 0 ? { ...totals, skipped: 0 } : totals;
    },
  };
}

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** The totals of a program's output; what it says of failures, also where it was ended before its last line. */
function ofOutput({ code, signal, output }) {
  const failures = [...output.matchAll(/^FAILED .*$/gm)].map(([line]) => line);
  const totals = totalsOf(output);
  // What says nothing of a failure has at least an end.
  const end = signal ? `ended by ${signal}` : `exit code ${code}`;
  if (code !== 0 && failures.length === 0) failures.push(totals === undefined ? `${end}, without totals` : end);
  if (totals === undefined) return { ...(failures.length > 0 ? counts(0, failures.length) : one(true)), failures };
  const [passed, failed, skipped] = totals;
  return { ...counts(passed, code !== 0 && failed === 0 ? 1 : failed, skipped), failures };
}

/**
 * Runs one part.
 *
 * @param seconds what is left of the time for all parts
 * @returns counts, `failures` as lines, and `cut`: why it is left out, if the time for all was over before its end
 */
export async function runPart(part, seconds, show) {
  const { script, args, env, result } = commandOf(part);
  trimPoclCache(poclCache({ ...process.env, ...env }));
  const limit = Math.min(seconds, hangs(part));
  const ended = await runShown(script, args, show, { env, seconds: Number.isFinite(limit) ? limit : hangs(part) });
  if (!ended.cut) return result(ended);
  const { failed, failures } = result({ ...ended, code: 0, signal: null });
  // What had failed by then has failed.
  const seen = failed > 0 ? { ...counts(0, failed), failures } : null;
  if (limit < hangs(part))
    return { ...(seen ?? { ...counts(0, 0), failures: [] }), cut: 'the time was over before its end' };
  const late = `no end within ${hangs(part) / 60} minutes`;
  return { ...counts(0, failed + 1, 0, late), failures: [...failures, late] };
}

/**
 * Runs parts in their order, those that fit.
 *
 * @param options `minutes` for all of them; `jobs`, how many run at a time: what one prints is shown at its end then, not as it comes; `now`,
 * milliseconds; `run`, in place of runPart; `say`, lines; `passed`, told the names of parts that passed
 * @returns `rows` of what was run, and `left`: names of what was not, and why; both in the order of the parts
 */
export async function runParts(parts, options) {
  const { minutes = Number.POSITIVE_INFINITY, jobs = 1, now, run = runPart, say, show, passed } = options;
  const start = now();
  const rows = [];
  const left = [];
  const tasks = parts.map((part, i) => async () => {
    const remaining = minutes * 60 - (now() - start) / 1000;
    if (part.minutes * 60 > remaining) {
      left[i] = { name: part.name, why: `takes about ${part.minutes} min` };
      return;
    }
    const title = `\n== ${part.name}`;
    const texts = [];
    if (jobs === 1) say(title);
    const began = now();
    const { cut, ...result } = await run(part, remaining, jobs === 1 ? show : (text) => texts.push(text));
    if (jobs > 1) {
      say(title);
      show(texts.join(''));
    }
    if (cut !== undefined) left[i] = { name: part.name, why: cut };
    if (cut === undefined || result.failed > 0)
      rows[i] = { name: part.name, seconds: (now() - began) / 1000, ...result };
    if (cut === undefined && result.failed === 0 && result.passed > 0) passed(part.name);
  });
  await sideBySide(tasks, jobs);
  return { rows: rows.filter(Boolean), left: left.filter(Boolean) };
}
