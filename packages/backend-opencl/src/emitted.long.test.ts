/** Every operation and cast on every dtype, in scalars and vectors, and random programs, against the interpreter. */
import {
  castCases,
  comparePrograms,
  operationCases,
  randomGroups,
  randomProgram,
  threadCases,
} from '@polygrad/testing';
import { describe, expect, it } from 'vitest';
import { createOpenClEngine } from './engine.ts';
import { hasDevice } from './fixtures/device.ts';

describe.skipIf(!hasDevice())('the printed programs', () => {
  const engine = hasDevice() ? createOpenClEngine({ cache: false }) : null;
  const dtypes = [...(engine?.caps.dtypes ?? [])];
  it.each(dtypes)('of operations on %s', async (dtype) => {
    expect(await comparePrograms(engine!, [...operationCases([dtype], [1, 3, 16])])).toEqual([]);
  });
  it.each(dtypes)('of casts from %s', async (from) => {
    expect(await comparePrograms(engine!, [...castCases([from], dtypes, [1, 3, 16])])).toEqual([]);
  });
  it('of several threads', async () => {
    expect(await comparePrograms(engine!, [...threadCases(dtypes)])).toEqual([]);
  });
  it('of random parts that groups take turns in', async () => {
    const programs = Array.from({ length: 30 }, (_, i) => randomGroups(i + 1));
    expect(await comparePrograms(engine!, programs)).toEqual([]);
  });
  it('of random code', async () => {
    const programs = Array.from({ length: 60 }, (_, i) => randomProgram(i + 1));
    expect(await comparePrograms(engine!, programs)).toEqual([]);
    engine!.dispose();
  });
});
