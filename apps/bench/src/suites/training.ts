/** Whole training steps: forward, backward, update. */
import type { SuiteName } from '../args.ts';
import type { BenchCase } from '../work/cases.ts';
import { caseOf, entryOf, type Goal, type Suite, type SuiteResult, threadsOf } from '../harness/suite.ts';

/** A goal for the case `id`, at the highest thread count measured: the promise is for the whole machine. */
function stepGoals(result: SuiteResult, id: string, limit: number): Goal[] {
  const threads = threadsOf(result).at(-1) ?? 1;
  const value = entryOf(caseOf(result, id), 'polygrad', threads)?.value.median;
  if (value === undefined) return [];
  return [{ text: `training step ${id} in ms, ${threads} thread(s)`, value, limit, met: value <= limit }];
}

function trainingSuite(name: SuiteName, title: string, cases: readonly BenchCase[], limit: number): Suite {
  return {
    name,
    title,
    peers: ['tfjs-wasm', 'jax-js', 'torch', 'cpu-engine'],
    cases: () => cases,
    goals: (result) => cases.flatMap(({ id }) => stepGoals(result, id, limit)),
  };
}

export const mlp: Suite = trainingSuite(
  'mlp',
  'Training step of an MLP 784-128-10, batch 128, ms; lower is better',
  [
    { id: 'mlp-sgd', work: { kind: 'mlp', batch: 128, optimizer: 'sgd' } },
    { id: 'mlp-adam', work: { kind: 'mlp', batch: 128, optimizer: 'adam' } },
  ],
  2,
);

export const cnn: Suite = trainingSuite(
  'cnn',
  'Training step of a CNN conv8-pool-conv16-pool-linear on 28x28, batch 64, ms; lower is better',
  [{ id: 'cnn-adam', work: { kind: 'cnn', batch: 64, optimizer: 'adam' } }],
  6,
);
