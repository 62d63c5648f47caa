/** A program as WGSL, and where its arguments go: what its text does not say follows from its interface. */
import type { Program } from '@polygrad/core/engine/planned';
import type { PrintedKernel, PrintedScalar } from '@polygrad/emit-c';
import { foldGrid, wgslScalars } from '@polygrad/emit-c/wgsl-facts';
import { mostGroups } from '../constants.ts';
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

/** What the interface of a program does not say. */
export type Printed = Pick<PrintedKernel, 'source' | 'entry' | 'scalarBytes'>;

/** The shader of a program. */
export function shaderFrom(program: Program, { source, entry, scalarBytes }: Printed): Shader {
  const { params, scalars, grid } = program;
  const cut = needsPieces(program);
  const folded = cut || grid.includes(0) ? null : foldGrid(grid, mostGroups);
  return {
    source,
    entryPoint: entry,
    bindings: params.map(({ arg: { slot, access } }) => ({ slot, access: access === 'read' ? access : 'readwrite' })),
    uniformBytes: scalarBytes,
    scalars: wgslScalars(scalars),
    groupAt: cut ? 4 * scalars.length : -1,
    pieces: cut ? piecesOf(program) : folded === null ? [] : [{ first: [0, 0, 0], count: folded.dispatch }],
  };
}
