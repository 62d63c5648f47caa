/**
 * Runs a suite whose work is done once in a process. For every case each participant starts anew, in turns, and in further rounds as long as there is
 * time and its figures differ. Every case has its first round before one has its second.
 */
import type { EngineName } from '../args.ts';
import { type Child, startChild } from '../peers/child.ts';
import { commandOf, labelOf, type Participant } from '../peers/participants.ts';
import { difference, lossTolerance } from '../work/expected.ts';
import type { TrialReply } from '../work/trial.ts';
import { type Attendance, timeOver } from './measure.ts';
import { scatter, summarize } from './stats.ts';
import type { CaseResult, Entry, TrialCase } from './suite.ts';

/** What is gathered of a participant in a case. */
interface Place {
  readonly participant: Participant;
  readonly replies: TrialReply[];
  reason: string | null;
}

/** Starting, drawing inputs, ending: what a process may take beside the limit of its work. */
const besideMs = 60_000;

/** How often work is done. */
export interface TrialPace {
  readonly rounds: number;
  /** From this many rounds on, a case whose figures agree has no more. Absent: every case has all rounds. */
  readonly fewest?: number;
  /** No round but the first begins that is not expected to end by then. */
  readonly aimMs: number;
  /** The same for the first rounds: cases that would begin later are not run. */
  readonly mostMs: number;
}

/** Pace without a number of rounds that was asked for: cases that vary little need few. */
const steadyRounds = 3;
const aimMs = 180_000;

/** The pace of a suite of some minutes at most; `asked`: the rounds that each case is to have. */
export function trialPace(usual: number, asked: number | null, minutes: number): TrialPace {
  const mostMs = minutes * 60_000;
  if (asked !== null) return { rounds: asked, aimMs: mostMs, mostMs };
  return { rounds: usual, fewest: steadyRounds, aimMs: Math.min(aimMs, mostMs), mostMs };
}

/** Half of a participant's figures lie within this part of their median: then further rounds tell little. */
const steadyScatter = 0.05;

export interface Trials {
  readonly attendance: readonly Attendance[];
  readonly cases: readonly CaseResult[];
}

/**
 * @param told called with the attendance, and with a line before each case
 */
export async function runTrials(
  participants: readonly Participant[],
  cases: readonly TrialCase[],
  pace: TrialPace,
  engine: EngineName,
  told: { attendance(found: readonly Attendance[]): void; progress(line: string): void },
): Promise<Trials> {
  const started = performance.now();
  const [aim, end] = [started + pace.aimMs, started + pace.mostMs];
  const attendance = await roll(participants, engine);
  told.attendance(attendance);
  const present = attendance.filter(({ missing }) => missing === undefined).map(({ participant }) => participant);
  const tables = cases.map((one) => ({
    one,
    places: present.map((participant): Place => ({ participant, replies: [], reason: null })),
    expectedMs: 0,
  }));
  for (let round = 0; round < pace.rounds; round++)
    for (const table of tables) {
      const { one, places } = table;
      if (
        isOver(
          pace,
          round,
          places.map(({ replies }) => replies.map((reply) => one.ns(reply)!)),
        )
      )
        continue;
      const start = performance.now();
      if (round === 0 ? start > end : start + table.expectedMs > aim) {
        if (round === 0) for (const place of places) place.reason = timeOver;
        continue;
      }
      told.progress(`round ${round + 1} ${one.id}`);
      // In opposite orders by turns: who starts first is slower on some machines.
      for (const place of round % 2 === 0 ? places : places.toReversed()) {
        if (place.reason !== null) continue;
        if (round === 0 && performance.now() > end) place.reason = timeOver;
        else await attend(place, one, engine);
      }
      table.expectedMs = performance.now() - start;
    }
  return { attendance, cases: tables.map(({ one, places }) => resultOf(one, places, attendance)) };
}

/** True if a case has had its rounds: as many as there are, or fewer and the figures of each participant agree. */
export function isOver(
  { rounds, fewest = rounds }: TrialPace,
  done: number,
  figures: readonly (readonly number[])[],
): boolean {
  return done >= rounds || (done >= fewest && figures.every((one) => scatter(one) <= steadyScatter));
}

/** Who comes: each is started once. */
async function roll(participants: readonly Participant[], engine: EngineName): Promise<Attendance[]> {
  const found: Attendance[] = [];
  for (const participant of participants) {
    try {
      const child = await started(participant, engine);
      found.push({ participant, ...child.ready });
      await child.quit();
    } catch (error) {
      found.push({ participant, missing: messageOf(error) });
    }
  }
  return found;
}

async function started(participant: Participant, engine: EngineName): Promise<Child> {
  const command = commandOf(participant, engine);
  if ('missing' in command) throw new Error(command.missing);
  return startChild(command);
}

/** A turn of a participant, in a process of its own. */
async function attend(place: Place, one: TrialCase, engine: EngineName): Promise<void> {
  try {
    const child = await started(place.participant, engine);
    try {
      const request = { op: 'trial', work: one.work } as const;
      const reply = await child.ask<TrialReply>(request, one.work.limitMs + besideMs);
      const problem = reply.unsupported ?? reply.error;
      if (problem !== undefined) place.reason = problem;
      // A checkout from before there was such work.
      else if (!Array.isArray(reply.times)) place.reason = 'does not know this work';
      else if (one.ns(reply) === null) place.reason = stoppedAfter(one, reply);
      else place.replies.push(reply);
    } finally {
      await child.quit();
    }
  } catch (error) {
    place.reason = messageOf(error);
  }
}

function stoppedAfter({ work }: TrialCase, { times }: TrialReply): string {
  return `over ${work.limitMs / 1000} s after ${times.length} of ${work.sizes.length}`;
}

/** A reply as if it had ended after so many uses. */
function upTo(count: number, reply: TrialReply, { work }: TrialCase): TrialReply {
  const again = work.again.filter((at) => at < count).length;
  return { ...reply, times: reply.times.slice(0, count), again: reply.again.slice(0, again) };
}

function resultOf(one: TrialCase, places: readonly Place[], attendance: readonly Attendance[]): CaseResult {
  const good = places.filter(({ replies }) => replies.length > 0);
  const reference = good.find(({ participant }) => participant.name === 'torch') ?? good.at(-1);
  // Who was stopped met only the first sizes: all are compared by those.
  const shortest = Math.min(...good.flatMap(({ replies }) => replies.map(({ times }) => times.length)));
  const absent = [
    ...attendance.flatMap(({ participant, missing }) =>
      missing === undefined ? [] : [{ participant, reason: missing }],
    ),
    ...places.flatMap(({ participant, reason }) => (reason === null ? [] : [{ participant, reason }])),
  ];
  return {
    case: { id: one.id, work: one.work },
    unit: one.unit,
    entries: good.map((place) => entryOf(one, place, reference as Place, shortest)),
    absent,
  };
}

function entryOf(one: TrialCase, { participant, replies: whole }: Place, reference: Place, shortest: number): Entry {
  const replies = whole.map((reply) => upTo(shortest, reply, one));
  const rounds = replies.map((reply) => [one.ns(reply) as number]);
  const ns = summarize(rounds.flat());
  const [first] = replies as [TrialReply];
  const expected = reference.replies[0]!.probe.slice(0, first.probe.length);
  const wrong = difference(
    first.probe.slice(0, expected.length),
    expected,
    lossTolerance * Math.max(...expected.map(Math.abs)),
  );
  const figures: Record<string, number> = {};
  const found = replies.map((reply) => one.figures(reply));
  for (const name of Object.keys(found[0] ?? {}))
    figures[name] = summarize(found.flatMap((one) => one[name] ?? [])).median;
  const stopped = whole.find(({ times }) => times.length < one.work.sizes.length);
  const note = stopped === undefined ? first.note : stoppedAfter(one, stopped);
  return {
    participant,
    rounds,
    count: one.work.sizes.length,
    ns,
    value: { median: one.value(ns.median), best: one.value(ns.best) },
    figures,
    ...(note === undefined ? {} : { note }),
    ...(wrong === null ? {} : { wrong: `value: ${wrong} (as ${labelOf(reference.participant)})` }),
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
