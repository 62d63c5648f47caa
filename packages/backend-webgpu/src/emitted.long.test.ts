/** Every operation and cast on every dtype, in scalars and vectors, and random programs, against the interpreter. */
import {
  castCases,
  comparePrograms,
  groupCases,
  operationCases,
  randomGroups,
  randomProgram,
  threadCases,
  withoutDenormals,
} from '@polygrad/testing';
import { describe, expect, it } from 'vitest';
import { testEngine } from './fixtures/device.ts';

const engine = await testEngine();
/** What WGSL does not promise. */
const tolerance = { zeroSign: true, denormals: true };

describe.skipIf(engine === null)('the printed programs', () => {
  const dtypes = [...(engine?.caps.dtypes ?? [])];
  it.each(dtypes)('of operations on %s', async (dtype) => {
    const cases = [...operationCases([dtype], [1, 2, 3, 4, 8])].map(withoutDenormals);
    expect(await comparePrograms(engine!, cases, tolerance)).toEqual([]);
  });
  it.each(dtypes)('of casts from %s', async (from) => {
    const cases = [...castCases([from], dtypes, [1, 2, 3, 4, 8])].map(withoutDenormals);
    expect(await comparePrograms(engine!, cases, tolerance)).toEqual([]);
  });
  it('of several threads', async () => {
    expect(await comparePrograms(engine!, [...threadCases(dtypes), ...groupCases(engine!.caps)], tolerance)).toEqual(
      [],
    );
  });
  it('of random parts that groups take turns in', async () => {
    const programs = Array.from({ length: 30 }, (_, i) => randomGroups(i + 1));
    expect(await comparePrograms(engine!, programs, tolerance)).toEqual([]);
  });
  it('of random code', async () => {
    // lavapipe takes minutes to compile some of the later ones.
    const programs = Array.from({ length: 12 }, (_, i) => randomProgram(i + 1, ['uint32'])).map(withoutDenormals);
    expect(await comparePrograms(engine!, programs, tolerance)).toEqual([]);
    engine!.dispose();
  });
});
