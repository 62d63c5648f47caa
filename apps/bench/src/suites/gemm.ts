/**
 * float32 matrix products: against the same algorithm in C compiled to WebAssembly, and every size against the next multiple of
 * 64, because a user's sizes are seldom round.
 */
import type { BenchCase, GemmWork } from '../work/cases.ts';
import { geometricMean, speedRatio } from '../harness/stats.ts';
import { caseOf, entryOf, type Goal, metricRatio, type Suite, type SuiteResult, threadsOf } from '../harness/suite.ts';

type Size = readonly [m: number, n: number, k: number];

const square = (n: number): Size => [n, n, n];

const full: readonly Size[] = [
  ...[64, 128, 192, 256, 320, 384, 448, 512, 576, 640, 768, 896, 1024, 1280, 1536, 1792, 2048].map(square),
  ...[63, 65, 127, 129, 255, 257, 511, 513, 1023, 1025, 1535, 2047].map(square),
  ...[61, 131, 251, 509, 1021, 1531, 2039].map(square),
  ...thin([1024, 1000]),
];

const quick: readonly Size[] = [
  ...[64, 127, 257, 509, 1024].map(square),
  [1, 1000, 1000],
  [1000, 1, 1000],
  [1000, 1000, 4],
  [8, 1000, 8],
];

/** Products with one or two short sides, at round and other lengths of the long ones. */
function thin(lengths: readonly number[]): Size[] {
  return lengths.flatMap((l): Size[] => [
    [1, l, l],
    [l, 1, l],
    ...[1, 2, 3, 4, 5, 6, 7, 8].map((k): Size => [l, l, k]),
    [8, l, 8],
    [8, 8, l],
    [l, 8, 8],
    [8, l, l],
    [l, 8, l],
    [128, 10, l],
  ]);
}

/** Sides from 64 on rounded up to multiples of 64; short sides stay, or thin products would be compared with others. */
export function roundedUp(size: Size): Size {
  const up = (d: number): number => (d < 61 ? d : Math.ceil(d / 64) * 64);
  return [up(size[0]), up(size[1]), up(size[2])];
}

const nameOf = (size: Size): string => size.join('x');

/** Cases of these sizes, and of their round neighbours where they are not among them. */
export function gemmCases(sizes: readonly Size[]): BenchCase[] {
  const cases = new Map<string, BenchCase>();
  const add = (size: Size): void => {
    const [id, rounded] = [nameOf(size), nameOf(roundedUp(size))];
    const [m, n, k] = size;
    const work: GemmWork = { kind: 'gemm', m, n, k };
    if (!cases.has(id)) cases.set(id, { id, work, ...(rounded === id ? {} : { rounded }) });
  };
  for (const size of sizes) {
    // The neighbour first, right before: both are measured under about the same conditions.
    add(roundedUp(size));
    add(size);
  }
  return [...cases.values()];
}

function goals(result: SuiteResult): Goal[] {
  const found: Goal[] = [];
  for (const threads of threadsOf(result)) {
    const against: number[] = [];
    let worst: { readonly ratio: number; readonly id: string } | null = null;
    for (const one of result.cases) {
      const ours = entryOf(one, 'polygrad', threads);
      const baseline = entryOf(one, 'c-wasm', threads);
      if (!ours) continue;
      if (baseline) against.push(speedRatio(ours.rounds, baseline.rounds).best);
      const round = one.case.rounded === undefined ? undefined : caseOf(result, one.case.rounded);
      const rounded = entryOf(round, 'polygrad', threads);
      if (!rounded) continue;
      const ratio = metricRatio(ours, rounded).best;
      if (worst === null || ratio < worst.ratio) worst = { ratio, id: one.case.id };
    }
    const big = caseOf(result, '1024x1024x1024');
    const [ours, baseline] = [entryOf(big, 'polygrad', threads), entryOf(big, 'c-wasm', threads)];
    const goal = (text: string, value: number, limit: number): void =>
      void found.push({ text: `${text}, ${threads} thread(s)`, value, limit, met: value >= limit });
    if (ours && baseline)
      goal('1024 cubed against C in WebAssembly', speedRatio(ours.rounds, baseline.rounds).best, 0.9);
    if (against.length > 0) goal('all sizes against C in WebAssembly, geometric mean', geometricMean(against), 0.9);
    if (worst) goal(`every size against its round neighbour, worst (${worst.id})`, worst.ratio, 0.8);
  }
  return found;
}

export const gemm: Suite = {
  name: 'gemm',
  title: 'Matrix product MxNxK, float32, GFLOP/s',
  peers: ['c-wasm', 'c-wasm-relaxed', 'tfjs-wasm', 'jax-js', 'torch', 'clblast', 'cpu-engine'],
  cases: (isQuick) => gemmCases(isQuick ? quick : full),
  goals,
};
