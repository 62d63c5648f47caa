/** Random programs against the reference engine: nested blocks, registers, shared memory, gates, vectors, values used again. */
import { legalize, packProgram, unpackProgram } from '@polygrad/core/kernel';
import { comparePrograms, randomProgram } from '@polygrad/testing';
import { expect, it } from 'vitest';
import { createCpuEngine } from '../engine.ts';
import { plainTarget } from '../testing/harness.ts';
import { emitFunction } from './emit.ts';

it('random programs give what the reference engine gives', async () => {
  const cpu = createCpuEngine({ threads: 1 });
  const programs = Array.from({ length: 120 }, (_, i) => randomProgram(i + 1));
  expect(new Set(programs.flatMap((p) => p.program.body.map((n) => n.op))).size).toBeGreaterThan(25);
  expect(await comparePrograms(cpu, programs)).toEqual([]);
  cpu.dispose();
});

it('programs that were packed give the same code', () => {
  const cpu = createCpuEngine({ threads: 1 });
  for (let seed = 1; seed <= 20; seed++) {
    const program = legalize(randomProgram(seed).program, cpu.caps);
    expect(emitFunction(unpackProgram(packProgram(program)), plainTarget)).toEqual(emitFunction(program, plainTarget));
  }
  cpu.dispose();
});
