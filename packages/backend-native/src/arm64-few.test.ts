/** Machine code of arm64 with six registers of each kind, so that most values are spilled, run by an emulator. */
import type * as emitter from '@polygrad/emit-machine';
import { comparePrograms, randomProgram } from '@polygrad/testing';
import { expect, it, vi } from 'vitest';
import { createNativeEngine } from './create.ts';
import { emulatedAddon, whyNotEmulated } from './testing/emulated.ts';

const missing = whyNotEmulated();
const registers = { general: 6, vector: 6 } as const;
vi.mock('./addon.ts', () => ({ loadAddon: () => emulatedAddon() }));
vi.mock('@polygrad/emit-machine', async (original) => {
  const real = await original<typeof emitter>();
  const emitMachineCode: typeof emitter.emitMachineCode = (program, target, listing) =>
    real.emitMachineCode(program, { ...target, registers }, listing);
  return { ...real, emitMachineCode };
});

it.skipIf(missing !== null)('random programs give what the reference engine gives', async () => {
  const engine = createNativeEngine({ threads: 1 });
  const programs = Array.from({ length: 40 }, (_, i) => randomProgram(i + 101));
  expect(await comparePrograms(engine, programs)).toEqual([]);
  const [kernel] = engine.compile([programs[0]!.program]);
  expect((await engine.source(kernel!)).text).not.toMatch(/\bv(7|8|9|1\d|2\d|3\d)\./);
  engine.dispose();
});
