/** A few random programs of each kind, the same ones every time. `npm run fuzz` runs others, on other engines, for longer. */
import { createCpuEngine } from '@polygrad/backend-cpu';
import { setEngine, tensor } from '@polygrad/core';
import { createReferenceEngine } from '@polygrad/core/testing';
import { describe, expect, it } from 'vitest';
import { check, leavingNothing } from './check.ts';
import { fuzz } from './fixtures/run.ts';
import { type Program, printProgram, Ref } from './program.ts';

describe('random programs', () => {
  it('give what their formulas say, on the CPU engine', async () => {
    await fuzz(await createCpuEngine({ threads: 1 }), { kind: 'programs', seed: 1, programs: 20 });
  });

  it('have derivatives that agree', async () => {
    await fuzz(await createCpuEngine({ threads: 1 }), { kind: 'gradients', seed: 2, programs: 3 });
  });

  it('are refused in the words of the library where an argument is wrong', async () => {
    await fuzz(createReferenceEngine(), { kind: 'errors', seed: 3, programs: 25 });
  });
});

describe('the check itself', () => {
  const program = (result: number): Program => ({
    steps: [
      { kind: 'input', id: 0, dtype: 'float32', shape: [2], data: [1, 2] },
      {
        kind: 'call',
        id: 1,
        op: 'square',
        args: [new Ref(0)],
        dtype: 'float32',
        formula: () => ({ shape: [2], data: [1, result] }),
        noise: 'out',
        ordered: true,
      },
    ],
    outputs: [1],
    scoped: false,
  });

  it('finds a value that is not what the formula says, and prints the program', async () => {
    await setEngine(createReferenceEngine());
    await check(program(4), { exact: true });
    await expect(check(program(4.5), { exact: true })).rejects.toThrow(
      /t1: element 1 of \[2\] float32 is 4 where 4.5 is expected/,
    );
    expect(printProgram(program(4))).toContain('const t1 = pg.square(t0);\nt0.dispose();');
  });

  it('finds a tensor that is left', async () => {
    await setEngine(createReferenceEngine());
    let left = tensor([0]);
    left.dispose();
    await expect(
      leavingNothing(async () => {
        left = tensor([1]);
      }),
    ).rejects.toThrow(/1 buffers and 1 tensors where 0 buffers and 0 tensors/);
    left.dispose();
  });
});
