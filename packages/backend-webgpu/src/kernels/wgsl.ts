/** Programs as WGSL for this engine: the shared printer's text. Where a dispatch's arguments go is in shader.ts. */
import { CompileError } from '@polygrad/core/engine';
import { printProgram, type Program } from '@polygrad/core/kernel';
import { PrintError, printWgsl } from '@polygrad/emit-c';
import { needsPieces } from './pieces.ts';
import { type Shader, shaderFrom } from './shader.ts';

/** Throws CompileError for programs that WGSL cannot express. */
export function shaderOf(program: Program, f16: boolean): Shader {
  try {
    return shaderFrom(program, printWgsl(program, { f16, pieces: needsPieces(program), sized: true }));
  } catch (error) {
    if (!(error instanceof PrintError)) throw error;
    throw new CompileError('webgpu', program.name, error.message, printProgram(program), { cause: error });
  }
}
