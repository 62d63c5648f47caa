/** Where the blocks of a program end. Apart from uses.ts, as pages with WebGPU alone do without. */
import { blocksOf } from './uses.ts';
import type { Program } from './ir.ts';

/**
 * For the position of each LOOP and IF, that of its end; 0 for all other nodes.
 *
 * @throws Error where a block does not end, or what ends did not begin
 * @example
 * const p = new ProgramBuilder();
 * const y = p.e.param(0, 'int32', 'write', 4);
 * p.loop(4, (i) => p.store(y, i, i));
 * console.log([...endsOf(p.build({ name: 'count' }))]); //=> [ 0, 0, 4, 0, 0 ]
 */
export function endsOf(program: Program): Int32Array {
  const around = blocksOf(program);
  const ends = new Int32Array(around.length);
  // What comes last in a block is its end.
  for (let at = 0; at < around.length; at++) {
    const open = around[at]!;
    if (open >= 0) ends[open] = at;
  }
  return ends;
}
