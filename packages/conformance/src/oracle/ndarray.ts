/**
 * The oracle's own arrays: row-major float64 numbers and a shape.
 *
 * Deliberately naive, and deliberately without a line of the library: what is checked here must not be checked by
 * itself. Every function walks plain index vectors.
 */

export interface NDArray {
  readonly shape: readonly number[];
  readonly data: readonly number[];
}

export function nd(shape: readonly number[], data: readonly number[]): NDArray {
  if (count(shape) !== data.length) throw new Error(`oracle: ${data.length} values for shape [${shape}]`);
  return { shape, data };
}

export function count(shape: readonly number[]): number {
  return shape.reduce((product, n) => product * n, 1);
}

/** All index vectors of a shape in row-major order. */
export function* indices(shape: readonly number[]): Generator<number[]> {
  const total = count(shape);
  for (let flat = 0; flat < total; flat++) yield unravel(flat, shape);
}

export function unravel(flat: number, shape: readonly number[]): number[] {
  const index = new Array<number>(shape.length);
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const n = shape[axis]!;
    index[axis] = flat % n;
    flat = Math.floor(flat / n);
  }
  return index;
}

export function ravel(index: readonly number[], shape: readonly number[]): number {
  let flat = 0;
  for (let axis = 0; axis < shape.length; axis++) flat = flat * shape[axis]! + index[axis]!;
  return flat;
}

export function at(a: NDArray, index: readonly number[]): number {
  return a.data[ravel(index, a.shape)]!;
}

/** An index into an array of a shape: as many numbers as the shape has, where that is known. */
type IndexOf<S extends readonly number[]> = { -readonly [K in keyof S]: number };

/** Builds an array by asking for the value at every index. */
export function build<const S extends readonly number[]>(shape: S, value: (index: IndexOf<S>) => number): NDArray {
  const data: number[] = [];
  for (const index of indices(shape)) data.push(value(index as IndexOf<S>));
  return { shape, data };
}

export function map(a: NDArray, f: (x: number) => number): NDArray {
  return { shape: a.shape, data: a.data.map((x) => f(x)) };
}

export function broadcastShapes(...shapes: (readonly number[])[]): number[] {
  const rank = Math.max(0, ...shapes.map((s) => s.length));
  const out = new Array<number>(rank).fill(1);
  for (const shape of shapes) {
    for (let i = 0; i < shape.length; i++) {
      const axis = rank - shape.length + i;
      const n = shape[i]!;
      if (n !== 1) out[axis] = n;
    }
  }
  return out;
}

export function broadcastTo(a: NDArray, shape: readonly number[]): NDArray {
  const lead = shape.length - a.shape.length;
  return build(shape, (index) =>
    at(
      a,
      a.shape.map((n, i) => (n === 1 ? 0 : index[lead + i]!)),
    ),
  );
}

export function zip(f: (...xs: number[]) => number, ...arrays: NDArray[]): NDArray {
  const shape = broadcastShapes(...arrays.map((a) => a.shape));
  const wide = arrays.map((a) => broadcastTo(a, shape));
  return build(shape, (index) => f(...wide.map((a) => at(a, index))));
}

export function permute(a: NDArray, axes: readonly number[]): NDArray {
  const shape = axes.map((axis) => a.shape[axis]!);
  return build(shape, (index) => {
    const source = new Array<number>(axes.length);
    axes.forEach((axis, i) => {
      source[axis] = index[i]!;
    });
    return at(a, source);
  });
}

export function reshape(a: NDArray, shape: readonly number[]): NDArray {
  return nd(shape, a.data);
}

export function flip(a: NDArray, axes: readonly number[]): NDArray {
  return build(a.shape, (index) =>
    at(
      a,
      index.map((i, axis) => (axes.includes(axis) ? a.shape[axis]! - 1 - i : i)),
    ),
  );
}

/** Folds `f` over `axes` (kept axes in order); the list of values of each result element is given at once. */
export function reduce(
  a: NDArray,
  axes: readonly number[],
  f: (values: number[]) => number,
  keepDims = false,
): NDArray {
  const kept = a.shape.map((_, i) => i).filter((i) => !axes.includes(i));
  const outShape = kept.map((i) => a.shape[i]!);
  const groups: number[][] = Array.from({ length: count(outShape) }, () => []);
  for (const index of indices(a.shape)) {
    (
      groups[
        ravel(
          kept.map((i) => index[i]!),
          outShape,
        )
      ] as number[]
    ).push(at(a, index));
  }
  const shape = keepDims ? a.shape.map((n, i) => (axes.includes(i) ? 1 : n)) : outShape;
  return nd(shape, groups.map(f));
}
