/**
 * How one participant takes its samples, inside its own process: warm-up, the number of operations per sample, and the
 * samples of one round. The C and Python participants do the same in their languages.
 */
import type { ClockName } from '../peers/protocol.ts';
import type { Prepared } from '../runners/runner.ts';

/**
 * What samples are measured by, in nanoseconds: what passes, or what processors spend on this process. Other work of the machine adds to the first alone. Work
 * that measures a part of itself (`timed`) always takes the first.
 */
const clocks: Readonly<Record<ClockName, () => number>> = {
  wall: () => performance.now() * 1e6,
  processor: () => {
    const { user, system } = process.cpuUsage();
    return (user + system) * 1e3;
  },
};

/** A sample shorter than this would measure the clock. */
const sampleNs: Readonly<Record<ClockName, number>> = { wall: 200_000, processor: 1_000_000 };
/** Work that takes longer than this is not warmed up: it has warmed itself. */
const slowNs = 1e9;

/** Nanoseconds per operation of one sample. */
async function sample(prepared: Prepared, count: number, clock: ClockName): Promise<number> {
  if (prepared.timed) return (await prepared.timed(count)) / count;
  const now = clocks[clock];
  const start = now();
  await prepared.run(count);
  return (now() - start) / count;
}

export interface WarmUp {
  /** Operations per sample. */
  readonly count: number;
  readonly opNs: number;
}

/** Runs the work until compilers and caches have settled, or for `warmMs`. */
export async function warmUp(prepared: Prepared, warmMs: number, clock: ClockName = 'wall'): Promise<WarmUp> {
  const fixed = prepared.count;
  let opNs = await sample(prepared, fixed ?? 1, clock);
  if (opNs * (fixed ?? 1) > slowNs) return { count: fixed ?? 1, opNs };
  const end = performance.now() + warmMs;
  let count = fixed ?? 1;
  do {
    const latest = await sample(prepared, count, clock);
    opNs = Math.min(opNs, latest);
    count = fixed ?? Math.max(1, Math.min(100_000, Math.round(sampleNs[clock] / opNs)));
  } while (performance.now() < end);
  return { count, opNs };
}

/** Samples of one round: nanoseconds per operation each, at least one. */
export async function measureRound(
  prepared: Prepared,
  count: number,
  budgetMs: number,
  maxSamples: number,
  clock: ClockName = 'wall',
): Promise<number[]> {
  const samples: number[] = [];
  const now = clocks[clock];
  const end = now() + budgetMs * 1e6;
  do samples.push(await sample(prepared, count, clock));
  while (now() < end && samples.length < maxSamples);
  return samples;
}
