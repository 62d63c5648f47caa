/** The machines by their names. */
import type { Machine } from './machine.ts';
import type { MachineTarget } from './target.ts';
import { x64v3, x64v4 } from './x64/machine.ts';

const machines: Readonly<Record<MachineTarget['isa'], Machine>> = { 'x64-v3': x64v3, 'x64-v4': x64v4 };

/** What a target writes with. */
export function machineOf({ isa }: MachineTarget): Machine {
  return machines[isa];
}
