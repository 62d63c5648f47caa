/** What a suite is made of, and what comes out of measuring it. */
import type { EngineName, PeerName, SuiteName } from '../args.ts';
import type { BenchCase, SizesWork } from '../work/cases.ts';
import type { TrialReply } from '../work/trial.ts';
import type { Participant } from '../peers/participants.ts';
import type { Ratio, Summary } from './stats.ts';

export interface Pace {
  readonly rounds: number;
  /** Time for one participant's turn; at least one sample is taken. */
  readonly turnMs: number;
  readonly warmMs: number;
  readonly maxSamples: number;
  /** A participant whose turns would take longer than this together gets fewer of them. */
  readonly caseMs: number;
}

export interface Suite {
  readonly name: SuiteName;
  readonly title: string;
  /** Peers that have something to say in this suite, in the order of columns. */
  readonly peers: readonly PeerName[];
  cases(quick: boolean): readonly BenchCase[];
  /** Measured at the first thread count alone. */
  readonly oneThread?: boolean;
  /** Where samples are to be fewer or shorter than elsewhere: many cases. */
  readonly pace?: Partial<Pace>;
  /** Bounded in minutes; a case may take longer than elsewhere. */
  readonly bounded?: boolean;
  /** Cases whose work is done once in a process: all that the suite has, if any. */
  trials?(quick: boolean): readonly TrialCase[];
  /** What the project promises of the results. */
  goals(result: SuiteResult, engine: EngineName): readonly Goal[];
}

/** One participant's figures in one case. */
export interface Entry {
  readonly participant: Participant;
  /** Nanoseconds per operation: the samples of every round. */
  readonly rounds: readonly (readonly number[])[];
  /** Operations per sample. */
  readonly count: number;
  /** Other figures of this case, by name, lower is better. */
  readonly figures?: Readonly<Record<string, number>>;
  readonly ns: Summary;
  /** The metric of the case: at the median and at the best time. */
  readonly value: { readonly median: number; readonly best: number };
  readonly note?: string;
  /** Why the results are not what they should be. */
  readonly wrong?: string;
}

export interface CaseResult {
  readonly case: BenchCase;
  readonly unit: string;
  readonly entries: readonly Entry[];
  /** Participants that gave no figures, and why. */
  readonly absent: readonly { readonly participant: Participant; readonly reason: string }[];
}

export interface SuiteResult {
  readonly suite: SuiteName;
  readonly cases: readonly CaseResult[];
}

export interface Goal {
  readonly text: string;
  readonly value: number;
  readonly limit: number;
  readonly met: boolean;
}

/** A case of uses at one size after the other, done once in a process. */
export interface TrialCase extends BenchCase {
  readonly work: SizesWork;
  readonly unit: string;
  /** The case's figure: of a step, or of all of them (null where they were not all done), in nanoseconds. */
  ns(reply: TrialReply): number | null;
  /** In `unit`. */
  value(ns: number): number;
  /** Further figures. */
  figures(reply: TrialReply): Readonly<Record<string, number>>;
}

/** The entry of a participant, if it gave figures. */
export function entryOf(result: CaseResult | undefined, name: Participant['name'], threads: number): Entry | undefined {
  return result?.entries.find((entry) => entry.participant.name === name && entry.participant.threads === threads);
}

export function caseOf(result: SuiteResult, id: string): CaseResult | undefined {
  return result.cases.find((found) => found.case.id === id);
}

/** Thread counts at which Polygrad has figures. */
export function threadsOf(result: SuiteResult): number[] {
  const found = new Set<number>();
  for (const { entries } of result.cases) {
    for (const { participant } of entries) if (participant.name === 'polygrad') found.add(participant.threads);
  }
  return [...found].sort((a, b) => a - b);
}

/** Speed of `ours` as a part of the speed of `theirs`, of different cases: rounds do not pair, metrics do. */
export function metricRatio(ours: Entry, theirs: Entry): Ratio {
  return { median: ours.value.median / theirs.value.median, best: ours.value.best / theirs.value.best };
}
