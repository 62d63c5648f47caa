/** Whole powers of the elements of a grid, by squaring. */
import { ArgumentError } from '@polygrad/core/functions';
import { type Grid, mapGrid } from './grid.ts';
import { need, type NumberType } from './number-type.ts';
import { say } from '@polygrad/core/internals';

/** Each element to a power; negative powers need div. */
export function powers<T>(x: Grid<T>, type: NumberType<T>, exponent: number | bigint): Grid<T> {
  if (typeof exponent === 'number' && !Number.isInteger(exponent))
    throw new ArgumentError('pow', say`exponent is no integer: ${exponent}; number types have whole powers only`);
  const times = BigInt(exponent);
  const { mul, one } = type;
  const raised = mapGrid(x, (a) => {
    let result = one;
    let square = a;
    for (let n = times < 0n ? -times : times; n > 0n; n >>= 1n) {
      if (n & 1n) result = mul(result, square);
      if (n > 1n) square = mul(square, square);
    }
    return result;
  });
  if (times >= 0n) return raised;
  const div = need('pow', type, 'div');
  return mapGrid(raised, (a) => div(one, a));
}
