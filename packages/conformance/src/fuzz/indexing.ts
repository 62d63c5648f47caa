/** Random calls that pick and put elements by index, and of random numbers. */
import { at, build, count, type NDArray, nd, ravel, unravel } from '../oracle/ndarray.ts';
import { threefry } from '../oracle/threefry.ts';
import { picked, withElements } from './operands.ts';
import { isFloat, isNumber, type Made, type Operation, type Pool, ref } from './pool.ts';
import type { Arg, Value } from './program.ts';

function take(pool: Pool): Made | null {
  const found = withElements(pool);
  if (found === null) return null;
  const { x, axis, written, n } = found;
  const shape = pool.c.pick([[3], [1], [2, 2], [0], [5]]);
  if (x.shape.length + shape.length > 9) return null;
  const index = pool.indices(shape, 0, n - 1);
  const out = [...x.shape.slice(0, axis), ...shape, ...x.shape.slice(axis + 1)];
  return {
    args: [ref(x), ref(index), written],
    dtype: x.dtype,
    formula: (a, i) =>
      build(out, (position) => {
        const from = at(i as NDArray, position.slice(axis, axis + shape.length));
        return at(a as NDArray, [...position.slice(0, axis), from, ...position.slice(axis + shape.length)]);
      }),
  };
}

/** A value like `x` in dtype and shape, but along `axis`. */
function alike(pool: Pool, x: Value, axis: number): Value | null {
  return pool.pick(
    (v) =>
      v.dtype === x.dtype &&
      v.shape.length === x.shape.length &&
      v.shape.every((size, i) => i === axis || size === x.shape[i]),
  );
}

type Combine = (old: number, update: number) => number;

/**
 * Updates at their own position, but for one axis, where an index says where: one for every update, or for every whole slice
 * (`slices`). `mode` goes before the axis, which is an option then.
 */
function scatter(
  combine: Combine,
  {
    sums = false,
    slices = false,
    mode,
  }: { readonly sums?: boolean; readonly slices?: boolean; readonly mode?: string },
) {
  return (pool: Pool): Made | null => {
    const found = withElements(pool, isNumber);
    if (found === null) return null;
    const { x, axis, written, n } = found;
    const updates = alike(pool, x, axis);
    if (updates === null || (!slices && updates.shape[axis] === 0)) return null;
    const index = pool.indices(slices ? [updates.shape[axis] as number] : updates.shape, 0, n - 1);
    const place: Arg[] = mode === undefined ? [written] : [mode, { axis: written }];
    return {
      args: [ref(x), ref(index), ref(updates), ...place],
      dtype: x.dtype,
      formula: (a, i, u) => {
        const data = [...(a as NDArray).data];
        (u as NDArray).data.forEach((value, flat) => {
          const position = unravel(flat, updates.shape);
          position[axis] = (i as NDArray).data[slices ? (position[axis] as number) : flat] as number;
          const to = ravel(position, x.shape);
          data[to] = combine(data[to] as number, value);
        });
        return nd(x.shape, data);
      },
      noise: sums ? 'all' : 'none',
      ordered: !(sums && isFloat(x.dtype)),
    };
  };
}

function oneHot(pool: Pool): Made | null {
  const classes = pool.c.pick([3, 1, 5]);
  const shape = pool.c.pick([[4], [], [2, 3]]);
  const index = pool.indices(shape, 0, classes);
  return {
    args: [ref(index), classes],
    dtype: 'float32',
    formula: (i) => build([...shape, classes], (p) => (at(i as NDArray, p.slice(0, -1)) === p.at(-1) ? 1 : 0)),
  };
}

function gatherNd(pool: Pool): Made | null {
  const x = pool.pick((v) => v.shape.length > 0 && v.shape.length < 7 && count(v.shape) > 0);
  if (x === null) return null;
  const depth = pool.c.between(1, Math.min(3, x.shape.length));
  const least = Math.min(...x.shape.slice(0, depth));
  const rows = pool.c.pick([3, 1, 0]);
  const index = pool.indices([rows, depth], 0, least - 1);
  return {
    args: [ref(x), ref(index)],
    dtype: x.dtype,
    formula: (a, i) =>
      build([rows, ...x.shape.slice(depth)], ([row, ...rest]) =>
        at(a as NDArray, [...Array.from({ length: depth }, (_, k) => at(i as NDArray, [row as number, k])), ...rest]),
      ),
  };
}

function rand(pool: Pool): Made {
  const key: [number, number] = [pool.c.nat(7), pool.c.nat(1000)];
  const shape = pool.c.pick([[4], [2, 3], [], [0, 2], [5, 7, 3]]);
  return {
    args: [shape, { key }],
    dtype: 'float32',
    formula: () =>
      nd(
        shape,
        Array.from({ length: count(shape) }, (_, i) => (threefry(key, [i, 0])[0] >>> 8) * 2 ** -24),
      ),
  };
}

function dropout(pool: Pool): Made | null {
  const x = pool.pick((v) => isFloat(v.dtype));
  if (x === null) return null;
  const key: [number, number] = [pool.c.nat(7), pool.c.nat(1000)];
  const p = pool.c.pick([0.5, 0.25, 0]);
  return {
    args: [ref(x), { p, key }],
    dtype: x.dtype,
    formula: (a) =>
      nd(
        x.shape,
        (a as NDArray).data.map((v, i) =>
          p === 0 ? v : threefry(key, [i, 0])[0] < (1 - p) * 2 ** 32 ? v / (1 - p) : 0,
        ),
      ),
    noise: 'out',
  };
}

export const indexing: readonly Operation[] = [
  { name: 'take', smooth: true, make: take },
  { name: 'takeAlongAxis', smooth: true, make: picked((_, size) => size) },
  { name: 'scatterAdd', smooth: true, make: scatter((a, b) => a + b, { sums: true }) },
  { name: 'scatter', smooth: true, make: scatter((_, b) => b, {}) },
  { name: 'scatterReduce', smooth: true, make: scatter(Math.max, { mode: 'max' }) },
  { name: 'indexAdd', smooth: true, make: scatter((a, b) => a + b, { slices: true, sums: true }) },
  { name: 'indexCopy', smooth: true, make: scatter((_, b) => b, { slices: true }) },
  { name: 'oneHot', make: oneHot },
  { name: 'gatherNd', smooth: true, make: gatherNd },
  { name: 'rand', make: rand },
  { name: 'dropout', smooth: true, make: dropout },
];
