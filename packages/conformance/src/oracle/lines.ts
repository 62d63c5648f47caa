/** Functions of whole lines: what an operation along one axis does, line by line. */
import { type NDArray, nd, permute } from './ndarray.ts';

/** Every line of `a` along an axis replaced by what `f` makes of it; a scalar is one line of one element. */
export function alongLines(a: NDArray, axis: number, f: (line: number[]) => number[]): NDArray {
  if (a.shape.length === 0) return nd([], f([...a.data]));
  const last = a.shape.length - 1;
  const toEnd = a.shape.map((_, i) => i).filter((i) => i !== axis);
  const moved = permute(a, [...toEnd, axis]);
  const n = a.shape[axis] as number;
  const lines: number[][] = [];
  for (let start = 0; n > 0 && start < moved.data.length; start += n) lines.push(f(moved.data.slice(start, start + n)));
  const size = n === 0 ? f([]).length : ((lines[0] ?? f(new Array<number>(n).fill(0))).length as number);
  const result = nd([...moved.shape.slice(0, last), size], lines.flat());
  const back = a.shape.map((_, i) => (i === axis ? last : toEnd.indexOf(i)));
  return permute(result, back);
}
