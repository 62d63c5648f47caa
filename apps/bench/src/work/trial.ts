/** Uses of a network at one size after the other, timed each: the loop that participants written in JavaScript share. */
import type { SizesWork } from './cases.ts';

/** A network that can be used at any size. */
export interface Subject {
  /** One use, the `at`-th, and the number that is read at its end. */
  use(size: number, at: number): Promise<number> | number;
  /** A remark on how it is done, for readers of the result. */
  readonly note?: string;
  /** Plans made so far, and milliseconds spent making them, where the participant knows. */
  planning?(): { readonly plans: number; readonly ms?: number };
}

/** What came out; times are nanoseconds. */
export interface TrialReply {
  /** Making the network. */
  readonly make: number;
  /** Of each use; fewer than there are sizes if the limit was reached. */
  readonly times: readonly number[];
  /** Of the second uses, one for each position in `again` that was reached. */
  readonly again: readonly number[];
  /** What the first uses gave, to be compared. */
  readonly probe: readonly number[];
  readonly plans?: number;
  readonly planningMs?: number;
  readonly note?: string;
}

/** Uses whose numbers are compared. */
export const probed = 4;

export async function runTrial(work: SizesWork, makeSubject: () => Promise<Subject> | Subject): Promise<TrialReply> {
  const ns = async <T>(f: () => Promise<T> | T): Promise<readonly [T, number]> => {
    const start = performance.now();
    const result = await f();
    return [result, (performance.now() - start) * 1e6];
  };
  const start = performance.now();
  const [subject, make] = await ns(makeSubject);
  const repeated = new Set(work.again);
  const [times, again, probe]: [number[], number[], number[]] = [[], [], []];
  for (const [at, size] of work.sizes.entries()) {
    if (performance.now() - start > work.limitMs) break;
    const [value, time] = await ns(() => subject.use(size, at));
    times.push(time);
    if (probe.length < probed) probe.push(value);
    if (repeated.has(at)) again.push((await ns(() => subject.use(size, at)))[1]);
  }
  const planning = subject.planning?.();
  return {
    make,
    times,
    again,
    probe,
    ...(subject.note === undefined ? {} : { note: subject.note }),
    ...(planning === undefined ? {} : { plans: planning.plans }),
    ...(planning?.ms === undefined ? {} : { planningMs: planning.ms }),
  };
}
