/** Programs as WGSL for this engine: the shared printer's text, and where a dispatch's arguments go. */
import { CompileError } from '@polygrad/core/engine';
import { printProgram, type Program } from '@polygrad/core/kernel';
import { type PrintedScalar, PrintError, printWgsl } from '@polygrad/emit-c';
import { needsPieces, type Piece, piecesOf } from './pieces.ts';

/** A program as WGSL, and where its arguments go. */
export interface Shader {
  readonly source: string;
  readonly entryPoint: string;
  /** By binding number: the PARAM slot, and how it is bound. */
  readonly bindings: readonly { readonly slot: number; readonly access: 'read' | 'readwrite' }[];
  /** Bytes of the uniform block. 0: there is none. */
  readonly uniformBytes: number;
  readonly scalars: readonly PrintedScalar[];
  /** Byte offset in the uniform block of the number of the first group (three words); -1: groups count from 0. */
  readonly groupAt: number;
  /** The dispatches it takes. */
  readonly pieces: readonly Piece[];
}

/** Throws CompileError for programs that WGSL cannot express. */
export function shaderOf(program: Program, device: GPUDevice): Shader {
  try {
    const cut = needsPieces(program);
    const printed = printWgsl(program, { f16: device.features.has('shader-f16'), pieces: cut, sized: true });
    const whole: Piece[] = program.grid.includes(0) ? [] : [{ first: [0, 0, 0], count: printed.dispatch }];
    return {
      source: printed.source,
      entryPoint: printed.entry,
      bindings: printed.params.map(({ slot, access }) => ({ slot, access: access === 'read' ? access : 'readwrite' })),
      uniformBytes: printed.scalarBytes,
      scalars: printed.scalars,
      groupAt: printed.groupAt,
      pieces: cut ? piecesOf(program) : whole,
    };
  } catch (error) {
    if (!(error instanceof PrintError)) throw error;
    throw new CompileError('webgpu', program.name, error.message, printProgram(program), { cause: error });
  }
}
