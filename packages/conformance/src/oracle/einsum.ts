/** Einstein summation by brute force: every combination of all indices, for the oracle. */
import { at, count, indices, type NDArray, nd, ravel } from './ndarray.ts';

/** `terms` name the axes of each operand and of the result letter by letter; axes of size 1 stretch. */
export function einsum(terms: readonly string[], output: string, arrays: readonly NDArray[]): NDArray {
  const sizes = new Map<string, number>();
  terms.forEach((names, i) => {
    [...names].forEach((name, axis) => {
      const size = arrays[i]?.shape[axis] as number;
      if (size !== 1 || !sizes.has(name)) sizes.set(name, size);
    });
  });
  const names = [...sizes.keys()];
  const shape = [...output].map((name) => sizes.get(name) as number);
  const data = new Array<number>(count(shape)).fill(0);
  for (const index of indices([...sizes.values()])) {
    const place = (name: string): number => index[names.indexOf(name)] as number;
    const product = arrays.reduce(
      (value, a, i) =>
        value *
        at(
          a,
          [...(terms[i] as string)].map((name, axis) => (a.shape[axis] === 1 ? 0 : place(name))),
        ),
      1,
    );
    const flat = ravel([...output].map(place), shape);
    data[flat] = (data[flat] as number) + product;
  }
  return nd(shape, data);
}
