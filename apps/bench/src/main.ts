/**
 * `npm run bench -- --suite NAME [--engine NAME] [--quick] [--json FILE]`: measures Polygrad and its peers in one run.
 *
 * Exit code 0 if Polygrad gave right results everywhere, 1 if it did not, 2 for bad arguments.
 */
import { accessSync, constants, statSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { ArgumentError, type Options, readArgs, usage, threadedEngines } from './args.ts';
import { describeMachine, describeRevision, load } from './reports/machine.ts';
import {
  type Attendance,
  fullPace,
  joined,
  measureCase,
  notRun,
  openMeeting,
  quickPace,
  timeOver,
} from './harness/measure.ts';
import { labelOf, meets, type Participant, participantsOf } from './peers/participants.ts';
import { attendanceLines, comparisonLines, figureTables, goalLines, remarks, suiteTables } from './reports/report.ts';
import type { CaseResult, Goal, Pace, Suite, SuiteResult } from './harness/suite.ts';
import type { BenchCase } from './work/cases.ts';
import { runTrials, trialPace, type Trials } from './harness/trials.ts';
import { elementwise } from './suites/elementwise.ts';
import { gemm } from './suites/gemm.ts';
import { indexing } from './suites/indexing.ts';
import { layouts } from './suites/layouts.ts';
import { latency } from './suites/latency.ts';
import { native } from './suites/native.ts';
import { networks } from './suites/networks.ts';
import { operations } from './suites/operations.ts';
import { sizes } from './suites/sizes.ts';
import { cnn, mlp } from './suites/training.ts';

const suites: Readonly<Record<Suite['name'], Suite>> = {
  gemm,
  elementwise,
  layouts,
  indexing,
  operations,
  latency,
  mlp,
  cnn,
  networks,
  sizes,
  native,
};

/** Milliseconds of turns that a participant has in a case of a bounded suite. */
const boundedCaseMs = 12_000;

interface SuiteRecord extends SuiteResult {
  readonly seconds: number;
  readonly load: { readonly before: number; readonly after: number };
  readonly attendance: readonly Attendance[];
  readonly goals: readonly Goal[];
}

function print(...lines: readonly string[]): void {
  for (const line of lines) process.stdout.write(`${line}\n`);
}

type Measure = (
  suite: Suite,
  participants: readonly Participant[],
  wanted: (one: { readonly id: string }) => boolean,
  options: Options,
  pace: Pace,
) => Promise<Trials>;

function progress(line: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${line}`);
}

/**
 * Everybody at one table for the whole suite. Beside another checkout the table is set twice, the second time in the opposite order, for half of the
 * rounds each: the process that starts first is up to a tenth slower on large memory, whatever its code.
 */
const inTurns: Measure = async (suite, participants, wanted, options, pace) => {
  const end = suite.bounded ? performance.now() + options.minutes * 60_000 : Number.POSITIVE_INFINITY;
  const cases = suite.cases(options.quick).filter(wanted);
  const whole = suite.bounded ? { ...pace, caseMs: boundedCaseMs } : pace;
  if (options.against === null) return oneSitting(suite, participants, cases, options, whole, end);
  const half = { ...whole, rounds: Math.ceil(whole.rounds / 2), caseMs: whole.caseMs / 2 };
  const now = performance.now();
  const first = await oneSitting(suite, participants, cases, options, half, now + (end - now) / 2);
  const second = await oneSitting(suite, participants.toReversed(), cases, options, half, end);
  return { attendance: first.attendance, cases: first.cases.map((one, at) => joined(one, second.cases[at]!)) };
};

async function oneSitting(
  suite: Suite,
  participants: readonly Participant[],
  cases: readonly BenchCase[],
  options: Options,
  pace: Pace,
  end: number,
): Promise<Trials> {
  const meeting = await openMeeting(participants, options.engine);
  const attendance = meeting.attendance();
  print(...attendanceLines(attendance));
  const results: CaseResult[] = [];
  try {
    for (const [at, one] of cases.entries()) {
      progress(`${suite.name} ${at + 1}/${cases.length} ${one.id}`);
      const now = performance.now();
      // Twice its share of what is left: most cases take less.
      const share = now + (2 * (end - now)) / (cases.length - at + 1);
      results.push(
        now > end ? notRun(one, participants) : await measureCase(meeting, one, pace, options.engine, { share, end }),
      );
    }
  } finally {
    progress('');
    await meeting.close();
  }
  return { attendance, cases: results };
}

/** Each piece of work in a process of its own. */
const inTrials: Measure = async (suite, participants, wanted, options, pace) => {
  const cases = suite.trials?.(options.quick).filter(wanted) ?? [];
  const asked = options.rounds ?? (options.quick ? 1 : null);
  const told = { attendance: (found: readonly Attendance[]) => print(...attendanceLines(found)), progress };
  try {
    return await runTrials(participants, cases, trialPace(pace.rounds, asked, options.minutes), options.engine, told);
  } finally {
    progress('');
  }
};

async function runSuite(suite: Suite, options: Options, threads: readonly number[], pace: Pace): Promise<SuiteRecord> {
  const started = performance.now();
  const before = load();
  const wanted = ({ id }: { readonly id: string }): boolean => options.filter === null || id.includes(options.filter);
  const peers = suite.peers.filter((peer) => options.peers.includes(peer) && meets(peer, options.engine));
  const participants = participantsOf(
    peers,
    suite.oneThread ? threads.slice(0, 1) : threads,
    // npm runs scripts in the root folder; what the person typed is relative to where they are.
    options.against === null ? null : resolve(process.env.INIT_CWD ?? '.', options.against),
    options.processor ? 'processor' : 'wall',
  );
  print('', `== ${suite.name}: ${suite.title}`);
  const measure = suite.trials === undefined ? inTurns : inTrials;
  const { attendance, cases: results } = await measure(suite, participants, wanted, options, pace);
  const result: SuiteResult = { suite: suite.name, cases: results };
  const goals = suite.goals(result, options.engine);
  const seconds = (performance.now() - started) / 1000;
  for (const table of suiteTables(suite, result, participants)) print('', table);
  for (const table of figureTables(result)) print('', table);
  const compared = comparisonLines(result, participants);
  if (compared.length > 0) print('', ...compared);
  const remarked = remarks(result);
  if (remarked.length > 0) print('', 'Remarks', ...remarked);
  if (goals.length > 0) print('', 'Goals of the project', ...goalLines(goals));
  print('', `${suite.name} took ${seconds.toFixed(0)} s`);
  return { ...result, seconds: Math.round(seconds), load: { before, after: load() }, attendance, goals };
}

/** Samples with as many digits as the clock has. */
function rounded(_key: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isInteger(value) ? Number(value.toPrecision(6)) : value;
}

function checkWritable(file: string): void {
  try {
    accessSync(dirname(file), constants.W_OK);
  } catch {
    throw new ArgumentError(`--json is '${file}'; its folder is not there or cannot be written to`);
  }
  if (statSync(file, { throwIfNoEntry: false })?.isDirectory()) {
    throw new ArgumentError(`--json is '${file}'; that is a folder, give a file name`);
  }
}

async function main(argv: readonly string[]): Promise<number> {
  const options = readArgs(argv);
  if (options.help) {
    print(usage);
    return 0;
  }
  // npm runs scripts in the root folder; what the person typed is relative to where they are.
  const file = options.json === null ? null : resolve(process.env.INIT_CWD ?? '.', options.json);
  if (file !== null) checkWritable(file);
  const machine = describeMachine();
  const revision = describeRevision();
  const pace = options.quick ? quickPace : fullPace;
  const asked = options.rounds === null ? {} : { rounds: options.rounds };
  const wanted = threadedEngines.has(options.engine) ? options.threads : [1];
  const threads = wanted.filter((count) => count <= machine.cores);
  print(
    `Polygrad, engine ${options.engine}, commit ${revision.commit?.slice(0, 10) ?? 'unknown'}${revision.modified ? ' with changes' : ''}`,
  );
  print(`${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB, ${machine.platform}, Node ${machine.node}`);
  for (const count of wanted) {
    if (count > machine.cores) print(`SKIPPED ${count} threads: this machine has ${machine.cores} cores`);
  }
  const head = {
    schema: 1,
    date: new Date().toISOString(),
    command: `npm run bench -- ${argv.join(' ')}`,
    machine,
    revision,
    engine: options.engine,
    quick: options.quick,
    pace: { ...pace, ...asked },
  };
  const records: SuiteRecord[] = [];
  for (const name of options.suites) {
    records.push(await runSuite(suites[name], options, threads, { ...pace, ...suites[name].pace, ...asked }));
    if (file !== null) writeFileSync(file, `${JSON.stringify({ ...head, suites: records }, rounded)}\n`);
  }
  if (file !== null) print('', `Raw figures are in ${file}`);
  const ours = records.flatMap(({ cases }) => cases.flatMap(({ entries }) => entries)).filter(isOurs);
  const failed = records
    .flatMap(({ cases }) => cases.flatMap(({ absent }) => absent))
    .filter((one) => isOurs(one) && one.reason !== timeOver);
  const wrong = ours.filter((entry) => entry.wrong !== undefined);
  if (failed.length + wrong.length > 0) {
    print(`Polygrad gave no figures in ${failed.length} cases and wrong results in ${wrong.length}`);
    for (const label of new Set(failed.map(({ participant, reason }) => `${labelOf(participant)}: ${reason}`)))
      print(`  ${label}`);
    return 1;
  }
  return 0;
}

function isOurs(one: { readonly participant: { readonly name: string } }): boolean {
  return one.participant.name === 'polygrad';
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof ArgumentError)) throw error;
  process.stderr.write(`bench: ${error.message}\n`);
  process.exitCode = 2;
}
