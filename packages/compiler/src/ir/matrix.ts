/**
 * Products of small matrices by 32 threads as one: which tiles there are, and which thread holds which element of them. The threads are 32
 * neighbours of a group, by their numbers; `thread` counts within them.
 *
 * The layouts are those of `mma.sync` (PTX ISA, "Matrix fragments for mma"), so that targets which have the instruction move nothing.
 */
import type { DType } from '../shape/dtype.ts';

/** Rows, columns and steps of the sum: [m, n, k] in a word. */
export type MatrixTile = 'm16n8k8' | 'm16n8k16';

/** A tile for factors of a dtype. Sums are float32. float32 is rounded to TF32: ten binary digits behind the point, ties away from zero. */
export interface MatrixForm {
  readonly dtype: 'float16' | 'bfloat16' | 'float32';
  readonly tile: MatrixTile;
}

/** a is m x k, b is k x n, c is m x n. */
export type MatrixPart = 'a' | 'b' | 'c';

/** Threads that hold a tile together. */
export const matrixThreads = 32;

/** Steps of the sum that a tile takes. */
export function stepsOf(tile: MatrixTile): 8 | 16 {
  return tile === 'm16n8k16' ? 16 : 8;
}

/** True if there is such a tile. */
export function isMatrixForm(dtype: DType | 'void', tile: MatrixTile): boolean {
  return dtype === 'float16' || (tile === 'm16n8k16' ? dtype === 'bfloat16' : dtype === 'float32');
}

/** Elements that a thread holds. */
export function fragmentLanes(part: MatrixPart, tile: MatrixTile): number {
  if (part === 'c') return 4;
  return (stepsOf(tile) * (part === 'a' ? 16 : 8)) / matrixThreads;
}

/** Row and column in the part of what a thread holds in a lane; of b the row is the step of the sum. Lane 2 of c of thread 5 is at [9, 2]. */
export function elementOf(
  part: MatrixPart,
  dtype: DType | 'void',
  thread: number,
  lane: number,
): readonly [row: number, column: number] {
  const [g, t] = [thread >> 2, thread & 3];
  if (part === 'c') return [g + 8 * (lane >> 1), 2 * t + (lane & 1)];
  // Elements of 16 bits come in pairs along the sum.
  const pairs = dtype !== 'float32';
  const word = pairs ? lane >> 1 : lane;
  const step = (quarter: number): number => (pairs ? 2 * t + (lane & 1) + 8 * quarter : t + 4 * quarter);
  return part === 'a' ? [g + 8 * (word & 1), step(word >> 1)] : [step(word), g];
}
