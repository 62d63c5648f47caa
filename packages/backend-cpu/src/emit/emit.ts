/**
 * The emitter's entry: programs in, the bytes of one WebAssembly module out. Pure; knows no engine and no thread.
 */
import { CompileError } from '@polygrad/core/engine';
import type { Program } from '@polygrad/core/kernel/ir';
import { assembleModule, type FunctionBody, type MemoryImport } from '../asm/module.ts';
import { listing } from '#listing';
import { lowerProgram } from './lower.ts';
import { printFunction } from './print.ts';
import { type EmitTarget, Refusal } from './target.ts';

/**
 * The function of one program; see lower.ts for its parameters.
 *
 * @throws CompileError for programs that this engine does not execute
 */
export function emitFunction(program: Program, target: EmitTarget): FunctionBody {
  try {
    return printFunction(lowerProgram(program, target), program.name);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw new CompileError('cpu', program.name, error.message, listing(program));
  }
}

/** A module with one exported function per program, in order. */
export function emitModule(
  programs: readonly Program[],
  target: EmitTarget,
  memory: MemoryImport,
): Uint8Array<ArrayBuffer> {
  return assembleModule(
    memory,
    programs.map((p) => emitFunction(p, target)),
  );
}
