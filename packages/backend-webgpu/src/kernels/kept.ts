/**
 * Shaders as what files of plans keep of them, and read from that.
 *
 * What the interface of a program says is not kept a second time. Of the rest the browser validates the text, and this file the numbers.
 */
import { CompileError, type KeptCode } from '@polygrad/core/engine';
import type { Program } from '@polygrad/core/engine/planned';
import { needsPieces } from './pieces.ts';
import { type Shader, shaderFrom } from './shader.ts';

/** A shader as what a file of plans keeps. */
export function keptFrom({ source, entryPoint, uniformBytes }: Shader): KeptCode {
  return { source, entry: entryPoint, numbers: [uniformBytes] };
}

/** The shader that was kept for a program. Throws CompileError where it is not one of such a program. */
export function shaderKept(program: Program, { source, entry, numbers }: KeptCode): Shader {
  const { name, scalars } = program;
  const [scalarBytes] = (numbers ?? []) as readonly number[];
  const least = 4 * (scalars.length + (needsPieces(program) ? 3 : 0));
  // The numbers, and the zero that keeps roundings.
  const fits = scalarBytes === least || scalarBytes === least + 4;
  if (typeof source === 'string' && typeof entry === 'string' && fits)
    return shaderFrom(program, { source, entry, scalarBytes });
  throw new CompileError('webgpu', name, 'the code that was kept for it is that of another program', '');
}
