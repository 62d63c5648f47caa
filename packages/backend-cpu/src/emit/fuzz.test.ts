/** Random programs against the reference engine: nested blocks, registers, shared memory, gates, vectors, values used again. */
import { type KOp, printProgram } from '@polygrad/core/kernel';
import { createReferenceEngine, programDifference, randomProgram, runProgramCases } from '@polygrad/core/testing';
import { expect, it } from 'vitest';
import { createCpuEngine } from '../engine.ts';

it('random programs give what the reference engine gives', async () => {
  const cpu = createCpuEngine({ threads: 1 });
  const reference = createReferenceEngine();
  const ops = new Set<KOp>();
  for (let seed = 1; seed <= 120; seed++) {
    const random = randomProgram(seed);
    for (const n of random.program.body) ops.add(n.op);
    const [got, want] = [...(await runProgramCases(cpu, [random])), ...(await runProgramCases(reference, [random]))];
    const wrong = programDifference(random, got!, want!);
    if (wrong !== null) expect.fail(`seed ${seed}: ${wrong}\n${printProgram(random.program)}`);
  }
  expect(ops.size).toBeGreaterThan(25);
  cpu.dispose();
  reference.dispose();
});
