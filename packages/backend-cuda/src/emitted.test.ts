/** Operations, casts and random programs against the interpreter: a sample, because devices compile slowly; all of them in emitted.long.test.ts. */
import type { Program } from '@polygrad/core/kernel';
import {
  castCases,
  comparePrograms,
  everyNth,
  operationCases,
  randomGroups,
  randomProgram,
  threadCases,
} from '@polygrad/testing';
import { expect, it } from 'vitest';
import { createCudaEngine } from './engine.ts';
import { hasDevice } from './testing/device.ts';

type DType = Program['scalars'][number];
const dtypes: readonly DType[] = ['float32', 'int32', 'uint8', 'int64', 'float16', 'bool'];

it.skipIf(!hasDevice())('programs give what the interpreter gives', async () => {
  const engine = createCudaEngine();
  const cases = [
    ...everyNth(operationCases(dtypes, [8]), 23),
    ...everyNth(castCases(dtypes, dtypes, [3]), 11),
    ...everyNth(threadCases(['float32', 'int32', 'bool']), 2),
    randomProgram(3),
    ...[1, 3, 7, 27].map(randomGroups),
  ];
  expect(await comparePrograms(engine, cases)).toEqual([]);
  engine.dispose();
});
