/** The emitter's entry: a program in, machine code out. Pure; knows no engine and no thread. */
import type { Program } from '@polygrad/core/kernel';
import { lowerProgram } from './lower/program.ts';
import { machineOf } from './machines.ts';
import type { MachineTarget } from './target.ts';
import { writeCode } from './write.ts';

/** A function as bytes, constants behind it. */
export interface MachineCode {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Its instructions in the assembler's syntax, if requested. */
  readonly text: string;
}

/**
 * The function of one program; lower/program.ts describes its parameters. It follows the calling convention of System V, on arm64 the procedure call standard, and is position-independent.
 *
 * @param listing true to write the instructions as text too
 * @throws MachineCodeError for unsupported programs: dtypes that are not legalized, groups of several threads, atomics
 * @example
 * const { program } = randomProgram(1);
 * const legal = legalize(program, createReferenceEngine({ computes: ['float32', 'int32', 'uint32', 'bool'] }).caps);
 * const { bytes } = emitMachineCode(legal, { isa: 'x64-v3', vectorBytes: 32, sharedBytes: 65536, scalarOffset: 8192 });
 * bytes.length > 0; // true
 */
export function emitMachineCode(program: Program, target: MachineTarget, listing = false): MachineCode {
  const machine = machineOf(target);
  const { bytes, text } = writeCode(lowerProgram(program, target, machine), machine, listing);
  return { bytes, text };
}
