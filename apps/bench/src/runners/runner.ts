/** What a participant written in JavaScript provides: it makes work ready and does it a number of times. */
import type { SizesWork, Work } from '../work/cases.ts';
import type { Subject } from '../work/trial.ts';
import type { Tools } from '../work/tools.ts';

export interface RunnerOptions {
  readonly threads: number;
  /** Engine of Polygrad. */
  readonly engine: string;
  /** Folder with the peers' packages, or with files compiled for this participant. */
  readonly folder: string;
  readonly tools: Tools;
}

export interface Prepared {
  /** Does the work `count` times and waits until it is done. */
  run(count: number): Promise<void> | void;
  /** Used instead of `run` where only a part of the work counts: the nanoseconds of that part. */
  timed?(count: number): Promise<number> | number;
  /** Results to compare with those of others; called once, before anything is measured. */
  probe(): Promise<readonly number[]> | readonly number[];
  dispose(): void;
  /** Fixed number of operations per sample, where it cannot be chosen freely. */
  readonly count?: number;
  /** True where the work is repeated however long its results took. */
  readonly repeats?: boolean;
  /** Most bytes of buffers in use at any time, asked for after the first runs. */
  peakBytes?(): number;
  /** Bytes of operands and results, where no case names them. */
  leastBytes?(): number;
  /** A remark on how this work is done, for readers of the result. */
  readonly note?: string;
}

export interface Runner {
  readonly version: string;
  /** A remark for readers of the result. */
  readonly note?: string;
  /** Throws Unsupported where the participant has no way to do this work. */
  prepare(work: Work): Promise<Prepared> | Prepared;
  /** Draws inputs and returns what makes the network: only the latter is timed. */
  subject?(work: SizesWork): () => Promise<Subject> | Subject;
}

/** Modules that `worker.ts` loads export this. */
export interface RunnerModule {
  createRunner(options: RunnerOptions): Promise<Runner>;
}

/** Thrown (or any error with this name) for work that a participant cannot do: it is reported, not counted as a failure. */
export class Unsupported extends Error {
  override readonly name: string = 'Unsupported';
}
