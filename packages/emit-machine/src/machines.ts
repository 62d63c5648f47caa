/** The machines by their names. */
import { arm64 } from './arm64/machine.ts';
import type { Machine } from './form/machine.ts';
import { type MachineTarget, refuse } from './target.ts';
import { x64v3, x64v4 } from './x64/machine.ts';

const machines: Readonly<Record<MachineTarget['isa'], Machine>> = { 'x64-v3': x64v3, 'x64-v4': x64v4, arm64 };

/** The machine of a target. */
export function machineOf({ isa, vectorBytes }: MachineTarget): Machine {
  if (isa === 'arm64' && vectorBytes !== 16) refuse(`vectors of arm64 have 16 bytes, not ${vectorBytes}`);
  return machines[isa];
}
