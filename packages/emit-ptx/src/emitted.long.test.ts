/** Every operation and cast on every dtype, in scalars and vectors, threads, and random programs, against the reference. */
import {
  castCases,
  comparePrograms,
  groupCases,
  operationCases,
  randomGroups,
  randomProgram,
  threadCases,
} from '@polygrad/testing';
import { describe, expect, it } from 'vitest';
import { ptxRun } from './fixtures/ptx-run.ts';
import { createSimulatedEngine } from './fixtures/simulated-engine.ts';

describe.skipIf(ptxRun() === null).each([
  [75, '6.3'],
  [80, '7.0'],
])('the programs for sm_%i', (computeCapability, isa) => {
  const engine = createSimulatedEngine({ computeCapability, isa });
  const dtypes = [...engine.caps.dtypes];
  it.each(dtypes)('of operations on %s', async (dtype) => {
    expect(await comparePrograms(engine, [...operationCases([dtype], [1, 3, 4, 16])])).toEqual([]);
  });
  it.each(dtypes)('of casts from %s', async (from) => {
    expect(await comparePrograms(engine, [...castCases([from], dtypes, [1, 3, 16])])).toEqual([]);
  });
  it('of several threads', async () => {
    expect(await comparePrograms(engine, [...threadCases(dtypes), ...groupCases(engine.caps)])).toEqual([]);
  });
  it('of random parts that groups take turns in', async () => {
    const programs = Array.from({ length: 30 }, (_, i) => randomGroups(i + 1));
    expect(await comparePrograms(engine, programs)).toEqual([]);
  });
  it('of random code', async () => {
    const programs = Array.from({ length: 60 }, (_, i) => randomProgram(i + 1));
    expect(await comparePrograms(engine, programs)).toEqual([]);
  });
});
