/** Parts, borders and joins of random calls: slices, padding, concatenation. */
import { at, build, type NDArray, reshape } from '../oracle/ndarray.ts';
import { type Made, type Pool, ref } from './pool.ts';
import type { Arg, Value } from './program.ts';

export type Move = (x: NDArray) => NDArray;
export const moved = (x: Value, args: readonly Arg[], formula: Move, part?: number): Made => ({
  args: [ref(x), ...args],
  dtype: x.dtype,
  formula: (a) => formula(a as NDArray),
  ...(part === undefined ? {} : { part }),
});

/** Elements whose index is that of the result, changed along one axis. */
export function along(x: NDArray, axis: number, size: number, from: (i: number) => number | null, fill = 0): NDArray {
  return build(
    x.shape.map((n, i) => (i === axis ? size : n)),
    (index) => {
      const source = from(index[axis] as number);
      return source === null
        ? fill
        : at(
            x,
            index.map((i, a) => (a === axis ? source : i)),
          );
    },
  );
}

/** Python's meaning of a range: positions it takes. */
function positions(n: number, start: number | null, stop: number | null, step: number): number[] {
  const cut = (v: number | null, other: number): number => {
    if (v === null) return other;
    const p = v < 0 ? v + n : v;
    return step > 0 ? Math.min(Math.max(p, 0), n) : Math.min(Math.max(p, -1), n - 1);
  };
  const from = cut(start, step > 0 ? 0 : n - 1);
  const to = cut(stop, step > 0 ? n : -1);
  const found: number[] = [];
  for (let i = from; step > 0 ? i < to : i > to; i += step) found.push(i);
  return found;
}

const end = (pool: Pool, n: number): number | null => (pool.c.nat(2) === 0 ? null : pool.c.between(-n - 1, n + 1));

export function sliceCall(pool: Pool, x: Value): Made {
  const specs: Arg[] = [];
  const taken: number[][] = [];
  const dropped: number[] = [];
  for (const [axis, n] of x.shape.entries()) {
    const what = pool.c.nat(5);
    if (what === 4 && n > 0) {
      const i = pool.c.between(-n, n - 1);
      specs.push(i);
      taken.push([i < 0 ? i + n : i]);
      dropped.push(axis);
    } else if (what === 0) {
      specs.push(null);
      taken.push(Array.from({ length: n }, (_, i) => i));
    } else {
      const [start, stop] = [end(pool, n), end(pool, n)];
      const step = pool.c.pick([1, 2, -1, 3, -2, -3]);
      specs.push({ start, stop, step });
      taken.push(positions(n, start, stop, step));
    }
  }
  const kept = x.shape.map((_, i) => i).filter((i) => !dropped.includes(i));
  return moved(x, [specs], (a) => {
    const full = build(
      taken.map((t) => t.length),
      (index) =>
        at(
          a,
          index.map((i, axis) => taken[axis]?.[i] as number),
        ),
    );
    return reshape(
      full,
      kept.map((i) => full.shape[i] as number),
    );
  });
}

/** Position in an axis of n that a position beyond its ends stands for; null outside. */
function bordered(mode: string, i: number, n: number): number | null {
  if (i >= 0 && i < n) return i;
  if (mode === 'constant') return null;
  if (mode === 'replicate') return i < 0 ? 0 : n - 1;
  if (mode === 'circular') return ((i % n) + n) % n;
  if (mode === 'reflect') return i < 0 ? -i : 2 * (n - 1) - i;
  return i < 0 ? -i - 1 : 2 * n - 1 - i;
}

export function padCall(pool: Pool, x: Value): Made | null {
  const mode = pool.c.pick(['constant', 'constant', 'reflect', 'replicate', 'circular', 'symmetric']);
  const most = (n: number): number => (mode === 'reflect' ? n - 1 : mode === 'constant' ? 3 : n);
  const widths = x.shape.map((n) => [pool.c.nat(Math.min(3, most(n)) + 1), pool.c.nat(Math.min(3, most(n)) + 1)]);
  if (mode !== 'constant' && x.shape.includes(0)) return null;
  if (mode === 'constant' && pool.c.seldom(4))
    widths.forEach((w, i) => {
      if ((x.shape[i] as number) > 1) w[0] = -1;
    });
  const value = mode !== 'constant' ? 0 : x.dtype.includes('int') ? pool.c.pick([0, 1, 7]) : pool.c.pick([0, 0.5, -2]);
  if (x.dtype === 'bool' && value !== 0) return null;
  const options: Arg = mode === 'constant' ? { value } : { mode };
  return moved(x, x.dtype === 'bool' && mode === 'constant' ? [widths] : [widths, options], (a) =>
    widths.reduce(
      (y, [low, high], axis) =>
        along(
          y,
          axis,
          (x.shape[axis] as number) + (low as number) + (high as number),
          (i) => bordered(mode, i - (low as number), x.shape[axis] as number),
          value,
        ),
      a,
    ),
  );
}

/** Others of the same shape but for one axis, at most three in all. */
export function alike(pool: Pool, x: Value, axis: number | null): Value[] {
  const found = [x];
  const same = (v: Value): boolean =>
    v.dtype === x.dtype && v.shape.length === x.shape.length && v.shape.every((n, i) => i === axis || n === x.shape[i]);
  for (let i = pool.c.nat(3); i >= 0; i--) found.push(pool.pick(same) ?? x);
  return found;
}

export const concatenated = (xs: readonly NDArray[], axis: number): NDArray => {
  const sizes = xs.map((x) => x.shape[axis] as number);
  const first = xs[0] as NDArray;
  return build(
    first.shape.map((n, i) => (i === axis ? sizes.reduce((a, b) => a + b, 0) : n)),
    (index) => {
      let i = index[axis] as number;
      let which = 0;
      while (i >= (sizes[which] as number)) i -= sizes[which++] as number;
      return at(
        xs[which] as NDArray,
        index.map((j, a) => (a === axis ? i : j)),
      );
    },
  );
};
