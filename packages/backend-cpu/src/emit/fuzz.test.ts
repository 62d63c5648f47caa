/** Random programs against the reference engine: nested blocks, registers, shared memory, gates, vectors, values used again. */
import { comparePrograms, randomProgram } from '@polygrad/core/testing';
import { expect, it } from 'vitest';
import { createCpuEngine } from '../engine.ts';

it('random programs give what the reference engine gives', async () => {
  const cpu = createCpuEngine({ threads: 1 });
  const programs = Array.from({ length: 120 }, (_, i) => randomProgram(i + 1));
  expect(new Set(programs.flatMap((p) => p.program.body.map((n) => n.op))).size).toBeGreaterThan(25);
  expect(await comparePrograms(cpu, programs)).toEqual([]);
  cpu.dispose();
}, 120_000);
