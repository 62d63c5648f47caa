/**
 * Classes of contractions that get the same tile: extents rounded to one and a half binary digits, how both factors lie in memory.
 */
import { sizeOf } from '../../ir/free-ranges.ts';
import type { CodegenCaps } from '../../codegen/lowering.ts';
import { vectorLanes } from '../../codegen/linearize/vector.ts';
import { linearAccess } from '../access.ts';
import type { Contraction } from '../contraction.ts';
import { flatProblem, type Side } from './problem.ts';

/** Changes whenever tiles, their names or these classes do: what was measured before is then forgotten. */
export const tilesVersion = 3;

/** The nearest of 1, 2, 3, 4, 6, 8, 12 ... */
export function rounded(n: number): number {
  const power = 2 ** Math.floor(Math.log2(Math.max(1, n)));
  const steps = [power, power * 1.5, power * 2].filter(Number.isInteger);
  return steps.reduce((best, x) => (Math.abs(Math.log(x / n)) < Math.abs(Math.log(best / n)) ? x : best));
}

/** c: neighbours lie side by side in memory, k: steps of the sum do; g: read under conditions or through other arithmetic. */
function layoutOf({ factor, consecutive, alongSum }: Side): string {
  const plain = linearAccess(factor.value) === null ? 'g' : '';
  return `${consecutive ? 'c' : ''}${alongSum ? 'k' : ''}${plain}` || '-';
}

/** The class of a contraction on an engine, as a key. */
export function classOf(c: Contraction, caps: CodegenCaps): string {
  const { rows, columns, outer, depth } = flatProblem(c);
  const sizes = [rows.extent, columns.extent, depth, sizeOf(outer)].map(rounded).join('x');
  const ragged = columns.extent % Math.max(1, vectorLanes(c.kernel.stores, caps)) === 0 ? '' : ' ragged';
  return `${c.reduce.dtype} ${sizes} ${layoutOf(rows)}.${layoutOf(columns)} ${c.k.length}${ragged}`;
}
