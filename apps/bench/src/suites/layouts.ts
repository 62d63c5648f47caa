/** Broadcast, strided and transposed work and reductions over each axis, beyond the caches: against C loops. */
import { speedRatio } from '../harness/stats.ts';
import type { LayoutWork } from '../work/cases.ts';
import { entryOf, type Goal, type Suite, type SuiteResult, threadsOf } from '../harness/suite.ts';

/** A power of 2 and of 8: a square of 4096, a cube of 256. */
const elements = 2 ** 24;
const limit = 0.8;

function goals(result: SuiteResult): Goal[] {
  return result.cases.flatMap((one) =>
    threadsOf(result).flatMap((threads): Goal[] => {
      const [ours, loop] = [entryOf(one, 'polygrad', threads), entryOf(one, 'c-native', threads)];
      if (!ours || !loop) return [];
      const value = speedRatio(ours.rounds, loop.rounds).best;
      return [{ text: `${one.case.id} against a C loop, ${threads} thread(s)`, value, limit, met: value >= limit }];
    }),
  );
}

const kinds: readonly LayoutWork['kind'][] = [
  'add-row',
  'add-column',
  'add-transposed',
  'add-strided',
  'add-flipped',
  'sum-rows',
  'max-rows',
  'sum-columns',
  'max-columns',
  'sum-middle',
  'softmax',
  'layer-norm',
  'gelu',
];

export const layouts: Suite = {
  name: 'layouts',
  title:
    'Layouts and axes of 16M float32 (4096 x 4096, or 256 cubed), GB/s of the memory traffic that is needed at least',
  peers: ['c-native', 'torch', 'cpu-engine'],
  cases: () => kinds.map((kind) => ({ id: kind, work: { kind, n: elements } })),
  goals,
};
