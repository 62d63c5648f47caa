/** Operations, casts and threads, assembled for every target. All of them: assembled.long.test.ts. */
import {
  castCases,
  everyNth,
  groupCases,
  operationCases,
  randomGroups,
  randomProgram,
  threadCases,
} from '@polygrad/testing';
import { expect, it } from 'vitest';
import { assemble, ptxas, sampledTargets } from './fixtures/ptxas.ts';
import { createSimulatedEngine } from './fixtures/simulated-engine.ts';
import { emitPtx } from './index.ts';

it.skipIf(ptxas() === null).each(sampledTargets)('texts are assembled for sm_$computeCapability', (target) => {
  const { caps } = createSimulatedEngine(target);
  const dtypes = [...caps.dtypes];
  const cases = [
    ...everyNth(operationCases(dtypes, [1, 4]), 37),
    ...everyNth(castCases(dtypes, dtypes, [3]), 23),
    ...everyNth(threadCases(dtypes), 2),
    ...everyNth(groupCases(caps), 3),
    ...[1, 3, 7, 27].flatMap((seed) => [randomGroups(seed), randomProgram(seed)]),
  ];
  const kernels = cases.map(({ program }) => emitPtx(program, target));
  for (const [i, { registers, sharedBytes }] of assemble(kernels, target).entries()) {
    expect(registers).toBeGreaterThan(0);
    expect(sharedBytes).toBeGreaterThanOrEqual(kernels[i]!.sharedBytes - kernels[i]!.dynamicSharedBytes);
  }
});
