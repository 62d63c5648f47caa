/** Every operation on every dtype, every cast between two, in scalars and vectors, against the interpreter, which computes in all of them. */
import {
  castCases,
  createReferenceEngine,
  operationCases,
  type ProgramCase,
  programDifference,
  runProgramCases,
} from '@polygrad/core/testing';
import { printProgram, type Program } from '@polygrad/core/kernel';
import { afterAll, describe, expect, it } from 'vitest';
import { createCpuEngine } from '../engine.ts';

type DType = Program['scalars'][number];
// biome-ignore format: a list
const dtypes: readonly DType[] = [
  'float32', 'float64', 'float16', 'bfloat16', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64', 'bool',
];
const lanes = [1, 2, 4, 8, 16];
const cpu = createCpuEngine({ threads: 1 });
const reference = createReferenceEngine();
afterAll(() => {
  cpu.dispose();
  reference.dispose();
});

async function check(cases: readonly ProgramCase[]): Promise<void> {
  const results = await runProgramCases(cpu, cases);
  const known = cases.filter((c) => c.expected === undefined);
  const wanted = new Map(known.map((c, i) => [c, i]));
  const expected = await runProgramCases(reference, known);
  for (const [i, c] of cases.entries()) {
    const want = c.expected ?? expected[wanted.get(c)!]!;
    const wrong = programDifference(c, results[i]!, want);
    if (wrong !== null) expect.fail(`${c.name}: ${wrong}\n${printProgram(c.program)}`);
  }
}

describe('casts', () => {
  it.each(dtypes)('from %s', async (from) => {
    await check([...castCases([from], dtypes, lanes)]);
  });
});

describe('operations', () => {
  it.each(dtypes)('on %s', async (dtype) => {
    await check([...operationCases([dtype], lanes)]);
  });
});
