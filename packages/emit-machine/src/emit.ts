/** The emitter's entry: a program in, machine code out. Pure; knows no engine and no thread. */
import type { Program } from '@polygrad/core/kernel';
import { lowerProgram } from './lower/program.ts';
import type { MachineTarget } from './target.ts';
import { type MachineCode, writeCode } from './write.ts';

/**
 * The function of one program; see lower/program.ts for its parameters. It follows the calling convention of System V and may be placed anywhere.
 *
 * @throws Refusal for programs that this engine does not execute
 */
export function emitMachineCode(program: Program, target: MachineTarget, listing = false): MachineCode {
  return writeCode(lowerProgram(program, target), listing);
}
