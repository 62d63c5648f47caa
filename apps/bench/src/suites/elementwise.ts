/** Elementwise work and sums over arrays that no cache holds: against C loops, at the memory's bandwidth. */
import { speedRatio } from '../harness/stats.ts';
import { entryOf, type Goal, type Suite, type SuiteResult, threadsOf } from '../harness/suite.ts';

const elements = 2 ** 24;
/** "At the bandwidth of the C loop", with room for noise. */
const limit = 0.95;

function goals(result: SuiteResult): Goal[] {
  return result.cases.flatMap((one) =>
    threadsOf(result).flatMap((threads): Goal[] => {
      const [ours, loop] = [entryOf(one, 'polygrad', threads), entryOf(one, 'c-native', threads)];
      if (!ours || !loop || one.case.id === 'add') return [];
      const value = speedRatio(ours.rounds, loop.rounds).best;
      return [{ text: `${one.case.id} against a C loop, ${threads} thread(s)`, value, limit, met: value >= limit }];
    }),
  );
}

export const elementwise: Suite = {
  name: 'elementwise',
  title: 'Elementwise and sum over 16M float32, GB/s of the memory traffic that is needed at least',
  peers: ['c-native', 'tfjs-wasm', 'jax-js', 'torch', 'cpu-engine'],
  cases: () => [
    { id: 'add', work: { kind: 'add', n: elements } },
    { id: 'chain', work: { kind: 'chain', n: elements } },
    { id: 'sum', work: { kind: 'sum', n: elements } },
  ],
  goals,
};
