/** Programs that compute an expression of whole arrays, some lanes at a time, and the numbers at which operations on floats go wrong. */
import type { DType } from '@polygrad/core/functions';
import { type KNode, type Program, ProgramBuilder } from '@polygrad/core/kernel';

/** Zeros, halves, neighbours of the ends of integer dtypes, numbers near the ends of float32, infinities and NaN. */
// biome-ignore format: a list
export const edgeFloats: readonly number[] = [
  0, -0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7, -3.7, 1e10, -1e10, 1e-40, 3e38, Infinity, -Infinity, NaN, 2147483648, 4294967296,
  123456.789,
];

/** What a program over arrays is made of. */
export interface LaneProgram {
  readonly name: string;
  /** Dtypes of the arrays it reads, in slots from 0 on. */
  readonly inputs: readonly DType[];
  /** Dtype of the array it writes, in the slot behind them. */
  readonly out: DType;
  /** Elements of each array, a multiple of the lanes. */
  readonly count: number;
  readonly lanes: number;
  /** The value of some lanes, of theirs in each input. */
  make(b: ProgramBuilder, xs: readonly KNode[]): KNode;
}

/**
 * The program.
 *
 * @example
 * const make = (b: ProgramBuilder, [x, y]: readonly KNode[]): KNode => b.e.add(x!, y!);
 * laneProgram({ name: 'sum', inputs: ['int32', 'int32'], out: 'int32', count: 8, lanes: 4, make }).params.length; // 3
 */
export function laneProgram({ name, inputs, out, count, lanes, make }: LaneProgram): Program {
  const b = new ProgramBuilder();
  const params = inputs.map((dtype, i) => b.e.param(i, dtype, 'read', count));
  const result = b.e.param(inputs.length, out, 'write', count);
  b.loop(count / lanes, (i) => {
    const at = b.e.mul(i, b.e.i32(lanes));
    const xs = params.map((p) => b.load(p, at, lanes));
    b.store(result, at, make(b, xs));
  });
  return b.build({ name, params: [...params, result] });
}
