/** The result of a MATRIX: the fragments of 32 threads are assembled, multiplied, and distributed again. */
import { elementOf, fragmentLanes, matrixThreads, type MatrixTile, stepsOf } from '../ir/matrix.ts';
import type { DType } from '../shape/dtype.ts';
import type { Value } from './values.ts';

const word = new DataView(new ArrayBuffer(4));

/** A float32 as TF32: ten binary digits behind the point, ties away from zero. */
export function toTf32(x: number): number {
  if (!Number.isFinite(x)) return x;
  word.setFloat32(0, x);
  word.setInt32(0, (word.getInt32(0) + 0x1000) & ~0x1fff);
  return word.getFloat32(0);
}

/** Where a, b, c and the result are among the threads' values. */
export interface MatrixPlaces {
  readonly tile: MatrixTile;
  readonly dtype: DType;
  readonly a: number;
  readonly b: number;
  readonly c: number;
  readonly to: number;
}

/** Multiplies for 32 threads, whose values are given in order. Products are exact; sums go step by step, each rounded. */
export function multiply({ tile, dtype, a, b, c, to }: MatrixPlaces, threads: readonly Value[][]): void {
  const steps = stepsOf(tile);
  const [x, y] = [new Float64Array(16 * steps), new Float64Array(steps * 8)];
  const read = dtype === 'float32' ? toTf32 : (v: number): number => v;
  for (let t = 0; t < matrixThreads; t++) {
    const values = threads[t]!;
    for (let i = 0; i < fragmentLanes('a', tile); i++) {
      const [row, step] = elementOf('a', dtype, t, i);
      x[row * steps + step] = read(values[a + i] as number);
    }
    for (let i = 0; i < fragmentLanes('b', tile); i++) {
      const [step, column] = elementOf('b', dtype, t, i);
      y[step * 8 + column] = read(values[b + i] as number);
    }
  }
  for (let t = 0; t < matrixThreads; t++) {
    const values = threads[t]!;
    for (let i = 0; i < 4; i++) {
      const [row, column] = elementOf('c', dtype, t, i);
      let sum = values[c + i] as number;
      for (let k = 0; k < steps; k++) sum = Math.fround(sum + x[row * steps + k]! * y[k * 8 + column]!);
      values[to + i] = sum;
    }
  }
}
