/**
 * How one participant takes its samples, inside its own process: warm-up, the number of operations per sample, and the
 * samples of one round. The C and Python participants do the same in their languages.
 */
import type { Prepared } from '../runners/runner.ts';

/** A sample shorter than this would measure the clock. */
const sampleNs = 200_000;
/** Work that takes longer than this is not warmed up: it has warmed itself. */
const slowNs = 1e9;

/** Nanoseconds per operation of one sample. */
async function sample(prepared: Prepared, count: number): Promise<number> {
  if (prepared.timed) return (await prepared.timed(count)) / count;
  const start = performance.now();
  await prepared.run(count);
  return ((performance.now() - start) * 1e6) / count;
}

export interface WarmUp {
  /** Operations per sample. */
  readonly count: number;
  readonly opNs: number;
}

/** Runs the work until compilers and caches have settled, or for `warmMs`. */
export async function warmUp(prepared: Prepared, warmMs: number): Promise<WarmUp> {
  const fixed = prepared.count;
  let opNs = await sample(prepared, fixed ?? 1);
  if (opNs * (fixed ?? 1) > slowNs) return { count: fixed ?? 1, opNs };
  const end = performance.now() + warmMs;
  let count = fixed ?? 1;
  do {
    const latest = await sample(prepared, count);
    opNs = Math.min(opNs, latest);
    count = fixed ?? Math.max(1, Math.min(100_000, Math.round(sampleNs / opNs)));
  } while (performance.now() < end);
  return { count, opNs };
}

/** Samples of one round: nanoseconds per operation each, at least one. */
export async function measureRound(
  prepared: Prepared,
  count: number,
  budgetMs: number,
  maxSamples: number,
): Promise<number[]> {
  const samples: number[] = [];
  const end = performance.now() + budgetMs;
  do samples.push(await sample(prepared, count));
  while (performance.now() < end && samples.length < maxSamples);
  return samples;
}
