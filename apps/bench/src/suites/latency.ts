/** What an operation costs before any arithmetic: recording, finding the plan, starting kernels, reading back. */
import type { EngineName } from '../args.ts';
import { caseOf, entryOf, type Goal, type Suite, type SuiteResult, threadsOf } from '../harness/suite.ts';

const n = 16;

/** Most microseconds for a small addition computed at once: on OpenCL (under PoCL) what a driver takes for one kernel alone is in it. */
const smallAdd: Partial<Record<EngineName, number>> = { cpu: 2, opencl: 15 };

function goals(result: SuiteResult, engine: EngineName): Goal[] {
  return threadsOf(result).flatMap((threads) => {
    const most = (id: string, text: string, limit: number | undefined): Goal[] => {
      const value = entryOf(caseOf(result, id), 'polygrad', threads)?.value.median;
      return value === undefined || limit === undefined
        ? []
        : [{ text: `${text}, ${threads} thread(s)`, value, limit, met: value <= limit }];
    };
    return [
      ...most('small-add', 'eager small add in us', smallAdd[engine]),
      ...most('record', 'recording one operation in ns', 200),
    ];
  });
}

export const latency: Suite = {
  name: 'latency',
  title: 'Cost of small operations (16 elements); lower is better',
  peers: ['tfjs-wasm', 'jax-js', 'torch', 'cpu-engine'],
  cases: () => [
    { id: 'small-add', work: { kind: 'small-add', n, ops: 1 } },
    { id: 'round-trip', work: { kind: 'round-trip', n, ops: 1 } },
    { id: 'record', work: { kind: 'record', n, ops: 1000 } },
    { id: 'plan-hit-1', work: { kind: 'plan-hit', n, ops: 1 } },
    { id: 'plan-hit-10', work: { kind: 'plan-hit', n, ops: 10 } },
    { id: 'plan-hit-100', work: { kind: 'plan-hit', n, ops: 100 } },
  ],
  goals,
};
