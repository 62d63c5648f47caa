/** Operations, casts, threads and random programs, run by the interpreter of PTX, against the reference: a sample; all in emitted.long.test.ts. */
import {
  castCases,
  comparePrograms,
  everyNth,
  groupCases,
  operationCases,
  randomGroups,
  randomProgram,
  threadCases,
} from '@polygrad/testing';
import { expect, it } from 'vitest';
import { ptxRun } from './fixtures/ptx-run.ts';
import { createSimulatedEngine } from './fixtures/simulated-engine.ts';
import { sampled } from '@polygrad/compiler/fixtures/everyday';

// From sm_80 on the instructions are the same.
const cards: readonly (readonly [number, string])[] = [
  [80, '7.0'],
  [75, '6.3'],
];

it.skipIf(ptxRun() === null).each(sampled(cards, 2))(
  'programs for sm_%i give what the reference gives',
  async (computeCapability, isa) => {
    const engine = createSimulatedEngine({ computeCapability, isa });
    const dtypes = [...engine.caps.dtypes];
    const cases = [
      ...everyNth(operationCases(dtypes, [1, 4]), 29),
      ...everyNth(castCases(dtypes, dtypes, [3]), 13),
      ...everyNth(threadCases(dtypes), 3),
      ...everyNth(groupCases(engine.caps), 5),
      ...[1, 3, 7, 27].flatMap((seed) => [randomGroups(seed), randomProgram(seed)]),
    ];
    expect(await comparePrograms(engine, cases)).toEqual([]);
  },
);
