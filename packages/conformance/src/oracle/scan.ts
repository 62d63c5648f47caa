/** Scans of arrays in JavaScript: the same function of arrays, one step after the other. */
import { count, type NDArray, nd, zip } from './ndarray.ts';

/** Slice t along the first axis. */
export function row(x: NDArray, t: number): NDArray {
  const shape = x.shape.slice(1);
  const size = count(shape);
  return nd(shape, x.data.slice(t * size, (t + 1) * size));
}

function stacked(rows: readonly NDArray[], shape: readonly number[]): NDArray {
  return nd(
    [rows.length, ...shape],
    rows.flatMap((part) => part.data),
  );
}

/** Element by element. */
export const add = (a: NDArray, b: NDArray): NDArray => zip((x, y) => x + y, a, b);

/**
 * The oracle's scan: the same function of arrays, one step after the other.
 *
 * @param shapes of what each step gives besides the carry
 */
export function scanned<C extends readonly NDArray[] | [], Y extends readonly NDArray[] | []>(
  step: (carry: C, t: number) => readonly [C, Y],
  init: C,
  length: number,
  shapes: readonly (readonly number[])[],
  reverse = false,
): readonly [C, Y] {
  let carry = init;
  const rows = shapes.map(() => new Array<NDArray>(length));
  for (let s = 0; s < length; s++) {
    const t = reverse ? length - 1 - s : s;
    const [next, ys] = step(carry, t);
    carry = next;
    for (const [i, y] of ys.entries()) rows[i]![t] = y;
  }
  const all: readonly NDArray[] = rows.map((parts, i) => stacked(parts, shapes[i]!));
  return [carry, all as Y];
}
