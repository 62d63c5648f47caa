/** Functions of whole lines: what an operation along one axis does, line by line. */
import { at, build, count, nd, type NDArray, permute } from './ndarray.ts';

/** Every line of `a` along an axis replaced by what `f` makes of it; a scalar is one line of one element. */
export function alongLines(a: NDArray, axis: number, f: (line: number[]) => number[]): NDArray {
  if (a.shape.length === 0) return nd([], f([...a.data]));
  const last = a.shape.length - 1;
  const toEnd = a.shape.map((_, i) => i).filter((i) => i !== axis);
  const moved = permute(a, [...toEnd, axis]);
  const n = a.shape[axis]!;
  const lines: number[][] = [];
  for (let start = 0; n > 0 && start < moved.data.length; start += n) lines.push(f(moved.data.slice(start, start + n)));
  const size = n === 0 ? f([]).length : (lines[0] ?? f(new Array<number>(n).fill(0))).length;
  const result = nd([...moved.shape.slice(0, last), size], lines.flat());
  const back = a.shape.map((_, i) => (i === axis ? last : toEnd.indexOf(i)));
  return permute(result, back);
}

/** Lines of another size: `alongLines` keeps that of the axis where there are none. */
export function linesOf(x: NDArray, axis: number, size: number, f: (line: number[]) => number[]): NDArray {
  const last = x.shape.length - 1;
  const toEnd = [...x.shape.map((_, i) => i).filter((i) => i !== axis), axis];
  const moved = permute(x, toEnd);
  const n = x.shape[axis]!;
  const rows = count(moved.shape.slice(0, last));
  const data = Array.from({ length: rows }, (_, r) => f(moved.data.slice(r * n, (r + 1) * n))).flat();
  const back = x.shape.map((_, i) => toEnd.indexOf(i));
  return permute(nd([...moved.shape.slice(0, last), size], data), back);
}

/** Elements whose index is that of the result, changed along one axis. */
export function along(x: NDArray, axis: number, size: number, from: (i: number) => number | null, fill = 0): NDArray {
  return build(
    x.shape.map((n, i) => (i === axis ? size : n)),
    (index) => {
      const source = from(index[axis]!);
      return source === null
        ? fill
        : at(
            x,
            index.map((i, a) => (a === axis ? source : i)),
          );
    },
  );
}
