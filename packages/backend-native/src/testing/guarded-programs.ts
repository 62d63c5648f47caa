/** Random programs between closed pages, with all registers and with six, checked and not: all give the same. */
import type { MachineTarget } from '@polygrad/emit-machine';
import { randomProgram } from '@polygrad/testing';
import { createNativeEngine } from '../create.ts';
import type { NativeEngineOptions } from '../options.ts';
import { GuardedMemory } from './guards.ts';

const six = { general: 6, vector: 6, mask: 6 } as const;

/** Runs the programs of these seeds; texts about those that differ. */
export function guardedDifferences(
  { isa, vectorBytes }: Required<Pick<NativeEngineOptions, 'isa' | 'vectorBytes'>>,
  seeds: readonly number[],
): readonly string[] {
  const memory = new GuardedMemory();
  const engine = createNativeEngine({ threads: 1, isa, vectorBytes });
  const differences: string[] = [];
  const plain: MachineTarget = { isa, vectorBytes, sharedBytes: 1 << 20, scalarOffset: 8192 };
  const ways = [
    ['at the end', plain, 'end'],
    ['with six registers', { ...plain, registers: six }, 'end'],
    ['with six registers, checked', { ...plain, registers: six, checked: true }, 'start'],
  ] as const;
  for (const seed of seeds) {
    const c = randomProgram(seed);
    const want = memory.run(engine, c, plain, 'start');
    for (const [name, target, placement] of ways)
      if (!Buffer.from(want).equals(memory.run(engine, c, target, placement))) differences.push(`seed ${seed} ${name}`);
  }
  engine.dispose();
  memory.dispose();
  return differences;
}
