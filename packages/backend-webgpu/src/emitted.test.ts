/** Operations, casts and random programs against the interpreter: a sample; all of them in emitted.long.test.ts. */
import {
  castCases,
  comparePrograms,
  everyNth,
  groupCases,
  operationCases,
  randomGroups,
  randomProgram,
  threadCases,
  withoutDenormals,
} from '@polygrad/testing';
import { expect, it } from 'vitest';
import { testEngine } from './fixtures/device.ts';

const engine = await testEngine();

it.skipIf(engine === null)('programs give what the interpreter gives', async () => {
  const dtypes = [...engine!.caps.dtypes];
  const cases = [
    ...everyNth(operationCases(dtypes, [3]), 29),
    ...everyNth(castCases(dtypes, dtypes, [4]), 11),
    ...everyNth(threadCases(['float32', 'int32', 'bool']), 4),
    ...groupCases(engine!.caps),
    randomProgram(3, ['uint32']),
    ...[1, 3].map(randomGroups),
  ].map(withoutDenormals);
  expect(await comparePrograms(engine!, cases, { zeroSign: true, denormals: true })).toEqual([]);
  engine!.dispose();
});
