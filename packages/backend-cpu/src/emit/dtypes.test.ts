/** Every operation on every dtype, every cast between two, in scalars and vectors, against the interpreter, which computes in all of them. */
import type { Program } from '@polygrad/core/kernel';
import { castCases, comparePrograms, operationCases } from '@polygrad/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { createCpuEngine } from '../engine.ts';

type DType = Program['scalars'][number];
// biome-ignore format: a list
const dtypes: readonly DType[] = [
  'float32', 'float64', 'float16', 'bfloat16', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64', 'bool',
];
const lanes = [1, 2, 4, 8, 16];
const cpu = createCpuEngine({ threads: 1 });
afterAll(() => cpu.dispose());

describe('casts', () => {
  it.each(dtypes)('from %s', async (from) => {
    expect(await comparePrograms(cpu, [...castCases([from], dtypes, lanes)])).toEqual([]);
  });
});

describe('operations', () => {
  it.each(dtypes)('on %s', async (dtype) => {
    expect(await comparePrograms(cpu, [...operationCases([dtype], lanes)])).toEqual([]);
  });
});
