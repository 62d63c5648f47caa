/** Every operation and cast on every dtype, in scalars and vectors, threads and random programs, assembled for every target. */
import {
  castCases,
  groupCases,
  operationCases,
  type ProgramCase,
  randomGroups,
  randomProgram,
  threadCases,
} from '@polygrad/testing';
import { describe, expect, it } from 'vitest';
import { assemble, ptxas, targets } from './fixtures/ptxas.ts';
import { createSimulatedEngine } from './fixtures/simulated-engine.ts';
import { emitPtx } from './index.ts';

/** Kernels that are assembled together. */
const batch = 100;

describe.skipIf(ptxas() === null).each(targets)('for sm_$computeCapability', (target) => {
  const { caps } = createSimulatedEngine(target);
  const dtypes = [...caps.dtypes];
  const check = (cases: readonly ProgramCase[]): void => {
    const kernels = cases.map(({ program }) => emitPtx(program, target));
    for (let at = 0; at < kernels.length; at += batch)
      for (const { registers } of assemble(kernels.slice(at, at + batch), target)) expect(registers).toBeGreaterThan(0);
  };
  it.each(dtypes)('operations on %s are assembled', (dtype) => check([...operationCases([dtype], [1, 3, 4, 16])]));
  it.each(dtypes)('casts from %s are assembled', (from) => check([...castCases([from], dtypes, [1, 3, 16])]));
  it('programs of several threads are assembled', () => check([...threadCases(dtypes), ...groupCases(caps)]));
  it('random code is assembled', () =>
    check(Array.from({ length: 40 }, (_, i) => [randomGroups(i + 1), randomProgram(i + 1)]).flat()));
});
