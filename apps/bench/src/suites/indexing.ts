/** Running results, sorting, selecting and indexing of 1M float32: against the C++ standard library and plain loops, on one thread. */
import type { OrderWork } from '../work/cases.ts';
import { speedRatio } from '../harness/stats.ts';
import { entryOf, type Goal, type Suite, type SuiteResult } from '../harness/suite.ts';

/** Also a square of 1024. */
const elements = 2 ** 20;
/** Half the speed of C++. */
const limit = 0.5;

function goals(result: SuiteResult): Goal[] {
  return result.cases.flatMap((one): Goal[] => {
    const [ours, theirs] = [entryOf(one, 'polygrad', 1), entryOf(one, 'cpp-native', 1)];
    if (!ours || !theirs) return [];
    const value = speedRatio(ours.rounds, theirs.rounds).best;
    return [{ text: `${one.case.id} against C++, 1 thread`, value, limit, met: value >= limit }];
  });
}

const kinds: readonly OrderWork['kind'][] = [
  'cum-sum',
  'cum-sum-rows',
  'cum-sum-columns',
  'cum-max',
  'cum-max-rows',
  'sort',
  'sort-rows',
  'arg-sort',
  'top-10',
  'top-10-rows',
  'top-1000',
  'scatter',
  'scatter-add',
  'take',
];

export const indexing: Suite = {
  name: 'indexing',
  title: 'Running results, sorting and indexing of 1M float32 (1024 x 1024), millions of elements per second',
  peers: ['cpp-native', 'cpu-engine'],
  cases: () => kinds.map((kind) => ({ id: kind, work: { kind, n: elements } })),
  goals,
};
