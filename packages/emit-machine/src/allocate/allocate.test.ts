/** Every register holds what it should wherever it is read: random programs, with all registers and with few. */
import { legalize } from '@polygrad/core/kernel';
import { createReferenceEngine, randomProgram } from '@polygrad/testing';
import { describe, expect, it } from 'vitest';
import { Builder } from '../form/builder.ts';
import type { Assigned, FinalItem } from '../form/code.ts';
import { lowerProgram } from '../lower/program.ts';
import { machineOf } from '../machines.ts';
import type { MachineTarget } from '../target.ts';
import { writeCode } from '../write.ts';
import { verifyAssigned } from './verify.ts';

const computes = ['float32', 'float64', 'int32', 'uint32', 'int64', 'uint64', 'bool'] as const;
const { caps } = createReferenceEngine({ computes });
const few = { general: 6, vector: 6, mask: 4 } as const;

const targets: readonly MachineTarget[] = (
  [
    ['x64-v3', 16],
    ['x64-v3', 32],
    ['x64-v4', 64],
    ['arm64', 16],
  ] as const
).map(([isa, vectorBytes]) => ({ isa, vectorBytes, sharedBytes: 1 << 20, scalarOffset: 8192 }));

describe.each(targets)('$isa, vectors of $vectorBytes bytes', (target) => {
  it.each([undefined, few])('random programs keep their values, registers %j', (registers) => {
    let spilled = 0;
    for (let seed = 1; seed <= 60; seed++) {
      const program = legalize(randomProgram(seed).program, caps);
      const builder = lowerProgram(program, { ...target, ...(registers && { registers }) }, machineOf(target));
      const { assigned } = writeCode(builder, machineOf(target), false, true);
      spilled += assigned.spilled;
      // Registers of programs may be read before they are written, by what does not use what it reads.
      const mutable = new Set(builder.regs.filter((r) => r.mutable).map((r) => r.id));
      expect(
        verifyAssigned(assigned, (id) => mutable.has(id)),
        `seed ${seed}`,
      ).toBeNull();
    }
    if (registers !== undefined) expect(spilled).toBeGreaterThan(100);
  });
});

describe('the verifier', () => {
  const made = (): Assigned => {
    const machine = machineOf(targets[0]!);
    const b = new Builder(targets[0]!, machine);
    const base = b.parameter('args');
    const [x, y] = [1, 2].map((slot) => b.op('mov', 8, { base, index: null, scale: 1, offset: slot * 8 }));
    b.ins('mov:store', 8, { base, index: null, scale: 1, offset: 0 }, b.two('add', 8, x!, y!));
    return writeCode(b, machine, false, true).assigned;
  };

  it('accepts what is right', () => {
    expect(verifyAssigned(made())).toBeNull();
  });

  it('finds a value that was overwritten', () => {
    const assigned = made();
    const at = assigned.items.findIndex((i) => i.kind === 'ins' && i.row.name === 'add');
    const add = assigned.items[at] as FinalItem & { kind: 'ins' };
    // Something else is loaded into a register that the sum still needs.
    const [read] = add.reads;
    const other = { ...read!, reg: { ...read!.reg, id: 999 } as (typeof read & object)['reg'] };
    const loaded: FinalItem = { ...add, reads: [], writes: [other] };
    const items = [...assigned.items.slice(0, at), loaded, ...assigned.items.slice(at)];
    expect(verifyAssigned({ ...assigned, items })).toContain('does not hold');
  });
});
