/** Contractions of the oracle: direct sums over index vectors, nothing clever. */
import { at, broadcastShapes, build, count, indices, nd, type NDArray, ravel } from './ndarray.ts';

/** NumPy's matmul, including 1-d operands and broadcast batches. */
export function matmul(a: NDArray, b: NDArray): NDArray {
  const a2 = a.shape.length === 1 ? { shape: [1, ...a.shape], data: a.data } : a;
  const b2 = b.shape.length === 1 ? { shape: [...b.shape, 1], data: b.data } : b;
  const batch = broadcastShapes(a2.shape.slice(0, -2), b2.shape.slice(0, -2));
  const [m, k] = a2.shape.slice(-2) as [number, number];
  const n = b2.shape[b2.shape.length - 1]!;
  /** Where the matrix of a place in the batch begins. */
  const begin = (x: NDArray, outer: readonly number[]): number => {
    const lead = x.shape.slice(0, -2);
    const index = lead.map((size, axis) => (size === 1 ? 0 : outer[outer.length - lead.length + axis]!));
    return ravel([...index, 0, 0], x.shape);
  };
  const full = build([...batch, m, n], (index) => {
    const outer = index.slice(0, -2);
    const row = begin(a2, outer) + index[index.length - 2]! * k;
    const column = begin(b2, outer) + index[index.length - 1]!;
    let sum = 0;
    for (let q = 0; q < k; q++) sum += a2.data[row + q]! * b2.data[column + q * n]!;
    return sum;
  });
  let shape = [...full.shape];
  if (a.shape.length === 1) shape = [...shape.slice(0, -2), shape[shape.length - 1]!];
  if (b.shape.length === 1) shape = shape.slice(0, -1);
  return { shape, data: full.data };
}

/** Einstein summation: `terms` name the axes of each operand and of the result letter by letter; axes of size 1 stretch. */
export function einsum(terms: readonly string[], output: string, arrays: readonly NDArray[]): NDArray {
  const sizes = new Map<string, number>();
  terms.forEach((names, i) => {
    [...names].forEach((name, axis) => {
      const size = arrays[i]!.shape[axis]!;
      if (size !== 1 || !sizes.has(name)) sizes.set(name, size);
    });
  });
  const names = [...sizes.keys()];
  const shape = [...output].map((name) => sizes.get(name) as number);
  const data = new Array<number>(count(shape)).fill(0);
  for (const index of indices([...sizes.values()])) {
    const place = (name: string): number => index[names.indexOf(name)]!;
    const product = arrays.reduce(
      (value, a, i) =>
        value *
        at(
          a,
          [...terms[i]!].map((name, axis) => (a.shape[axis] === 1 ? 0 : place(name))),
        ),
      1,
    );
    const flat = ravel([...output].map(place), shape);
    data[flat] = data[flat]! + product;
  }
  return nd(shape, data);
}
