/**
 * `npm run test:long`: what takes too long for every day, in named parts (long/parts.mjs), ending in `N passed, N failed, N skipped`.
 *
 *   -- --list                  only prints the parts, with the day on which each passed last
 *   -- --only NAME,...         those with these names, or that begin with these words (soak, fuzz programs)
 *   -- --rotate MINUTES        as many as fit: those that have waited longest
 *   -- --first NAME,...        with --rotate: these before the others
 *   -- --jobs N                N at a time, in place of one; what a part prints is then shown when it ends
 *   -- --by-commit             with --rotate: in turns from commit to commit and day to day, where the days are not committed
 *
 * A part that passes has its day in long/passed.json, to be committed; with --by-commit, or where CI is set, it is only printed.
 * POLYGRAD_REQUIRE names engines, and `browser`, that must be there.
 */
import { spawnSync } from 'node:child_process';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { parts } from './long/parts.mjs';
import { dayLines, family, resultLines, totalLine } from './long/report.mjs';
import { runParts } from './long/run.mjs';
import { byCommit, longestWaiting, notePassed, passedDays } from './long/turns.mjs';
import { root } from './workspace.mjs';

const say = (text) => process.stdout.write(`${text}\n`);

/** Parts with these names, all slices of them, or where there is none, those whose names begin so; throws where a word names none. */
function named(list, option) {
  const words = list.split(',').map((word) => word.trim());
  const found = words.flatMap((word) => {
    const own = parts.filter(({ name }) => name === word || family(name) === word);
    const those = own.length > 0 || word === '' ? own : parts.filter(({ name }) => name.startsWith(`${word} `));
    if (those.length === 0) throw new Error(`--${option}: no part '${word}'`);
    return those;
  });
  return parts.filter((part) => found.includes(part));
}

/** What arguments ask for: parts in their order, the minutes for them and how many at a time, or `list`. Throws an Error that says what is wrong. */
export function plan(args, { days, commit, day }) {
  const text = { type: 'string' };
  const flag = { type: 'boolean', default: false };
  const options = { list: flag, only: text, rotate: text, first: text, jobs: text, 'by-commit': flag };
  const { values } = parseArgs({ args, options });
  const chosen = values.only === undefined ? parts : named(values.only, 'only');
  const byTurns = values['by-commit'];
  const jobs = Number(values.jobs ?? 1);
  if (!Number.isInteger(jobs) || jobs < 1) throw new Error(`--jobs is '${values.jobs}'; give a whole number from 1 on`);
  if (values.rotate === undefined) {
    if (values.first !== undefined || byTurns) throw new Error('--first and --by-commit go with --rotate MINUTES');
    return { list: values.list, chosen, jobs, keep: true };
  }
  const minutes = Number(values.rotate);
  if (values.rotate.trim() === '' || !(minutes >= 0)) throw new Error(`--rotate is '${values.rotate}'; give minutes`);
  const first = values.first === undefined ? [] : named(values.first, 'first');
  const others = chosen.filter((part) => !first.includes(part));
  const turns = byTurns ? byCommit(others, commit, day) : longestWaiting(others, days);
  return { list: values.list, chosen: [...first, ...turns], minutes, jobs, keep: !byTurns };
}

async function main(args) {
  const commit = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' });
  const now = Date.now();
  const today = new Date(now).toISOString().slice(0, 10);
  let work;
  try {
    const day = Math.floor(now / 86_400_000);
    work = plan(args, { days: passedDays(), commit: commit.status === 0 ? commit.stdout : '', day });
  } catch (error) {
    process.stderr.write(`test:long: ${error.message.split(/\.\s/)[0]}; --list names the parts\n`);
    return 2;
  }
  say('last passed part');
  for (const line of dayLines(parts, passedDays())) say(line);
  say(totalLine(parts, passedDays()));
  if (work.list) return 0;
  const keep = work.keep && !process.env.CI;
  const names = parts.map(({ name }) => name);
  const { rows, left } = await runParts(work.chosen, {
    minutes: work.minutes,
    jobs: work.jobs,
    now: () => performance.now(),
    say,
    show: (text) => process.stdout.write(text),
    passed: (name) => keep && notePassed(name, today, names),
  });
  for (const line of resultLines(rows, left)) say(line);
  return rows.some(({ failed }) => failed > 0) ? 1 : 0;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) process.exitCode = await main(process.argv.slice(2));
