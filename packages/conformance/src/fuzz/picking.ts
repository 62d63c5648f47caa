/** Random calls that pick and put whole rows, or elements, by their numbers; and what finds an axis for them. */
import { at, build, count, type NDArray, nd } from '../oracle/ndarray.ts';
import { picked, small, sums, withElements } from './operands.ts';
import { along } from './parts.ts';
import { isNumber, type Made, type Operation, type Pool, ref } from './pool.ts';

function indexSelect(pool: Pool): Made | null {
  const found = withElements(pool);
  if (found === null) return null;
  const { x, axis, written, n } = found;
  const size = pool.c.pick([3, 1, 0, 17]);
  const index = pool.indices([size], 0, n - 1);
  return {
    args: [ref(x), ref(index), pool.c.seldom(3) ? { axis: written } : written],
    dtype: x.dtype,
    formula: (a, i) => along(a as NDArray, axis, size, (k) => (i as NDArray).data[k] as number),
  };
}

function indexFill(pool: Pool): Made | null {
  const found = withElements(pool, isNumber);
  if (found === null) return null;
  const { x, axis, written, n } = found;
  const index = pool.indices([pool.c.pick([2, 1, 0])], 0, n - 1);
  const value = pool.c.pick([0, 1, 7]);
  return {
    args: [ref(x), ref(index), value, written],
    dtype: x.dtype,
    formula: (a, i) =>
      build(x.shape, (p) => ((i as NDArray).data.includes(p[axis] as number) ? value : at(a as NDArray, p))),
  };
}

function scatterNd(pool: Pool): Made | null {
  const updates = pool.pick((v) => v.shape.length > 0 && v.shape.length < 6 && isNumber(v) && small(v));
  if (updates === null) return null;
  const depth = pool.c.between(1, 2);
  const rest = updates.shape.slice(1);
  const shape = [...Array.from({ length: depth }, () => pool.c.pick([3, 2, 5])), ...rest];
  const rows = updates.shape[0] as number;
  const index = pool.indices([rows, depth], 0, Math.min(...shape.slice(0, depth)) - 1);
  return {
    args: [ref(index), ref(updates), shape],
    dtype: updates.dtype,
    formula: (i, u) => {
      const [data, width] = [new Array<number>(count(shape)).fill(0), count(rest)];
      for (let r = 0; r < rows; r++) {
        const to = Array.from({ length: depth }, (_, k) => at(i as NDArray, [r, k])).reduce(
          (flat, k, axis) => flat * (shape[axis] as number) + k,
          0,
        );
        for (let k = 0; k < width; k++)
          data[to * width + k] = (data[to * width + k] as number) + ((u as NDArray).data[r * width + k] as number);
      }
      return nd(shape, data);
    },
    ...sums(updates.dtype),
  };
}

export const picking: readonly Operation[] = [
  { name: 'indexSelect', smooth: true, make: indexSelect },
  { name: 'gather', smooth: true, make: picked((pool, size) => pool.c.between(1, size)) },
  { name: 'indexFill', smooth: true, make: indexFill },
  { name: 'scatterNd', smooth: true, make: scatterNd },
];
