/** Statistics of timings: robust ones only, because a busy machine gives long tails and never a negative error. */

export interface Summary {
  readonly median: number;
  /** The smallest value: what the code can do when nothing disturbs it. */
  readonly best: number;
  /** First and third quartile; their distance says how noisy the run was. */
  readonly q1: number;
  readonly q3: number;
  readonly count: number;
}

/** The q-quantile (0..1) of numbers sorted in ascending order, interpolated between neighbours. NaN if there are none. */
export function quantileSorted(sorted: readonly number[], q: number): number {
  if (sorted.length === 0) return Number.NaN;
  const at = (sorted.length - 1) * q;
  const low = Math.floor(at);
  const a = sorted[low]!;
  const b = sorted[Math.min(low + 1, sorted.length - 1)]!;
  return a + (b - a) * (at - low);
}

export function median(values: readonly number[]): number {
  return quantileSorted(ascending(values), 0.5);
}

export function summarize(values: readonly number[]): Summary {
  const sorted = ascending(values);
  return {
    median: quantileSorted(sorted, 0.5),
    best: quantileSorted(sorted, 0),
    q1: quantileSorted(sorted, 0.25),
    q3: quantileSorted(sorted, 0.75),
    count: sorted.length,
  };
}

/** Within which part of the median half of the values lie; 0 for less than two values. */
export function scatter(values: readonly number[]): number {
  if (values.length < 2) return 0;
  const middle = median(values);
  return median(values.map((value) => Math.abs(value - middle))) / middle;
}

/** How many times as fast `ours` is as `theirs`, both times per operation in rounds that were measured in turns. */
export interface Ratio {
  /** Median over rounds of theirs / ours: what drifts slowly during the run falls out. */
  readonly median: number;
  /** Best of theirs over best of ours. */
  readonly best: number;
}

/** Compares two participants. Rounds that one of them did not take part in do not count in the median. */
export function speedRatio(ours: readonly (readonly number[])[], theirs: readonly (readonly number[])[]): Ratio {
  const perRound: number[] = [];
  for (let round = 0; round < Math.min(ours.length, theirs.length); round++) {
    const a = ours[round]!;
    const b = theirs[round]!;
    if (a.length > 0 && b.length > 0) perRound.push(median(b) / median(a));
  }
  return { median: median(perRound), best: summarize(theirs.flat()).best / summarize(ours.flat()).best };
}

/** Geometric mean of ratios; NaN if there are none. */
export function geometricMean(values: readonly number[]): number {
  if (values.length === 0) return Number.NaN;
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
}

function ascending(values: readonly number[]): number[] {
  return [...values].sort((a, b) => a - b);
}
