/**
 * Runs a suite: every participant in its own process, all alive at once. They take turns within each round of each case (A/B/A/B), so that whatever
 * else the machine does hits them alike.
 */
import type { EngineName } from '../args.ts';
import { type BenchCase, metricOf } from '../work/cases.ts';
import { type Child, startChild } from '../peers/child.ts';
import { difference, expectedProbe, lossTolerance } from '../work/expected.ts';
import { commandOf, labelOf, type Participant } from '../peers/participants.ts';
import type { MeasureReply, PrepareReply } from '../peers/protocol.ts';
import { summarize } from './stats.ts';
import type { CaseResult, Entry, Pace } from './suite.ts';

export const fullPace: Pace = { rounds: 7, turnMs: 80, warmMs: 250, maxSamples: 60, caseMs: 6000 };
export const quickPace: Pace = { rounds: 3, turnMs: 40, warmMs: 150, maxSamples: 30, caseMs: 1200 };

const prepareTimeoutMs = 60_000;
const turnTimeoutMs = 30_000;
/** Large networks take seconds a step, and plan for seconds before the first. */
const networkTimes = 2;
/** Starts of one participant's process in one suite. */
const maxStarts = 3;

/** A participant and its process, started when needed. */
interface Seat {
  readonly participant: Participant;
  child: Child | null;
  starts: number;
  /** Why there will be no process any more. */
  missing: string | null;
}

export interface Meeting {
  readonly seats: readonly Seat[];
  /** Version and remark of every participant that came. */
  readonly attendance: () => readonly Attendance[];
  close(): Promise<void>;
}

export interface Attendance {
  readonly participant: Participant;
  readonly version?: string;
  readonly note?: string;
  readonly missing?: string;
}

/** Starts all participants. */
export async function openMeeting(participants: readonly Participant[], engine: EngineName): Promise<Meeting> {
  const seats = participants.map((participant): Seat => ({ participant, child: null, starts: 0, missing: null }));
  const seen = new Map<Seat, Attendance>();
  for (const seat of seats) {
    await sit(seat, engine);
    const ready = seat.child?.ready;
    seen.set(seat, {
      participant: seat.participant,
      ...(ready ? ready : { missing: seat.missing ?? 'did not start' }),
    });
  }
  return {
    seats,
    attendance: () => [...seen.values()],
    close: async () => {
      await Promise.all(seats.map((seat) => seat.child?.quit()));
    },
  };
}

/** Sees to it that the participant's process runs, if it can. */
async function sit(seat: Seat, engine: EngineName): Promise<Child | null> {
  if (seat.child?.alive()) return seat.child;
  seat.child = null;
  if (seat.missing !== null) return null;
  if (seat.starts++ >= maxStarts) {
    seat.missing = `ended ${maxStarts} times`;
    return null;
  }
  const command = commandOf(seat.participant, engine);
  if ('missing' in command) {
    seat.missing = command.missing;
    return null;
  }
  try {
    seat.child = await startChild(command);
  } catch (error) {
    seat.missing = messageOf(error);
  }
  return seat.child;
}

interface Turn {
  readonly seat: Seat;
  readonly child: Child;
  readonly prepared: PrepareReply;
  readonly rounds: number[][];
  readonly most: number;
}

/** Why there are no figures where a bounded suite ended before. */
export const timeOver = 'not run: the minutes of this suite were over';

/** A case that was not run. */
export function notRun(one: BenchCase, participants: readonly Participant[]): CaseResult {
  const absent = participants.map((participant) => ({ participant, reason: timeOver }));
  return { case: one, unit: metricOf(one.work).unit, entries: [], absent };
}

/** When a case of a bounded suite ends, by the clock of `performance`: no second round begins after its share, nothing at all after the end. */
export interface Bounds {
  readonly share: number;
  readonly end: number;
}

const unbounded: Bounds = { share: Number.POSITIVE_INFINITY, end: Number.POSITIVE_INFINITY };

/** Measures one case with everybody at the table. */
export async function measureCase(
  meeting: Meeting,
  one: BenchCase,
  pace: Pace,
  engine: EngineName,
  bounds: Bounds = unbounded,
): Promise<CaseResult> {
  const absent: { participant: Participant; reason: string }[] = [];
  const patience = one.work.kind === 'network' ? networkTimes : 1;
  const turns: Turn[] = [];
  for (const seat of meeting.seats) {
    if (performance.now() > bounds.end) {
      absent.push({ participant: seat.participant, reason: timeOver });
      continue;
    }
    const child = await sit(seat, engine);
    if (child === null) {
      absent.push({ participant: seat.participant, reason: seat.missing ?? 'is not there' });
      continue;
    }
    try {
      const request = { op: 'prepare', work: one.work, warmMs: pace.warmMs } as const;
      const reply = await child.ask<PrepareReply>(request, prepareTimeoutMs * patience);
      const problem = reply.unsupported ?? reply.error;
      if (problem !== undefined) absent.push({ participant: seat.participant, reason: problem });
      else {
        const turnNs = Math.max(reply.opNs * reply.count, 1);
        const most = Math.max(1, Math.min(pace.rounds, Math.floor((pace.caseMs * 1e6) / turnNs)));
        turns.push({
          seat,
          child,
          prepared: reply,
          rounds: reply.once ? [[reply.opNs]] : [],
          most: reply.once ? 0 : most,
        });
      }
    } catch (error) {
      absent.push({ participant: seat.participant, reason: messageOf(error) });
    }
  }
  const failed = new Set<Turn>();
  for (let round = 0; round < pace.rounds && (round === 0 || performance.now() < bounds.share); round++) {
    for (const turn of turns) {
      if (failed.has(turn) || round >= turn.most) continue;
      try {
        const request = { op: 'measure', budgetMs: pace.turnMs, maxSamples: pace.maxSamples } as const;
        const reply = await turn.child.ask<MeasureReply>(request, turnTimeoutMs * patience);
        if (reply.error !== undefined) throw new Error(reply.error);
        turn.rounds.push([...reply.samples]);
      } catch (error) {
        failed.add(turn);
        absent.push({ participant: turn.seat.participant, reason: messageOf(error) });
      }
    }
  }
  for (const turn of turns) {
    if (turn.child.alive()) await turn.child.ask({ op: 'finish' }, turnTimeoutMs).catch(() => undefined);
  }
  const metric = metricOf(one.work);
  const good = turns.filter((turn) => !failed.has(turn));
  const check = checker(one, good);
  const entries = good.map((turn): Entry => {
    const ns = summarize(turn.rounds.flat());
    const wrong = check(turn);
    const { peakBytes, leastBytes = one.leastBytes } = turn.prepared;
    const note = turn.prepared.once ? 'too slow to repeat: the first run' : turn.prepared.note;
    return {
      participant: turn.seat.participant,
      rounds: turn.rounds,
      count: turn.prepared.count,
      ...(peakBytes === undefined ? {} : { figures: memoryFigures(peakBytes, leastBytes) }),
      ns,
      value: { median: metric.value(ns.median), best: metric.value(ns.best) },
      ...(note === undefined ? {} : { note }),
      ...(wrong === null ? {} : { wrong }),
    };
  });
  return { case: one, unit: metric.unit, entries, absent };
}

/** Figures of a case that was measured twice, as those of one run. Who was there only once keeps those figures, and the reason of the other time. */
export function joined(first: CaseResult, second: CaseResult): CaseResult {
  const metric = metricOf(first.case.work);
  const others = new Map(second.entries.map((entry) => [labelOf(entry.participant), entry]));
  const entries = first.entries.map((entry): Entry => {
    const other = others.get(labelOf(entry.participant));
    if (other === undefined) return entry;
    others.delete(labelOf(entry.participant));
    const rounds = [...entry.rounds, ...other.rounds];
    const ns = summarize(rounds.flat());
    const wrong = entry.wrong ?? other.wrong;
    return {
      ...entry,
      rounds,
      ns,
      value: { median: metric.value(ns.median), best: metric.value(ns.best) },
      ...(wrong === undefined ? {} : { wrong }),
    };
  });
  const missing = new Map(
    [...first.absent, ...second.absent].map((one) => [`${labelOf(one.participant)} ${one.reason}`, one]),
  );
  return { ...first, entries: [...entries, ...others.values()], absent: [...missing.values()] };
}

function memoryFigures(peakBytes: number, leastBytes: number | undefined): Readonly<Record<string, number>> {
  return {
    'peak MB': peakBytes / 1e6,
    ...(leastBytes === undefined ? {} : { 'times the least': peakBytes / leastBytes }),
  };
}

/** Compares results with what they must be, or with the first participant that is not Polygrad. */
function checker(one: BenchCase, turns: readonly Turn[]): (turn: Turn) => string | null {
  const expected = expectedProbe(one.work);
  if (expected) return (turn) => difference(turn.prepared.probe, expected.values, expected.atol);
  const reference = turns.find((turn) => turn.seat.participant.name === 'torch') ?? turns.at(-1);
  if (!reference) return () => null;
  const values = reference.prepared.probe;
  const atol = lossTolerance * Math.max(...values.map(Math.abs));
  return (turn) => {
    const problem = difference(turn.prepared.probe, values, atol);
    return problem === null ? null : `loss: ${problem} (as ${labelOf(reference.seat.participant)})`;
  };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
