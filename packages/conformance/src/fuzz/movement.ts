/** Random calls that move elements: other shapes, parts, borders, repetition, tensors put together. */
import { at, build, broadcastTo, count, flip, permute, reshape } from '../oracle/ndarray.ts';
import { alike, along, concatenated, type Move, moved, padCall, sliceCall } from './parts.ts';
import { type Made, type Operation, type Pool, ref } from './pool.ts';
import type { Value } from './program.ts';

interface Row {
  readonly name: string;
  readonly rank?: number;
  readonly most?: number;
  readonly make: (pool: Pool, x: Value) => Made | null;
}

/** Factors of a size in some order, as a shape. */
function factors(pool: Pool, size: number): number[] {
  const found: number[] = [];
  let rest = size;
  for (const p of [2, 3, 5, 7, 11, 13]) {
    while (rest > 1 && rest % p === 0 && found.length < 6) {
      found.push(p);
      rest /= p;
    }
  }
  if (rest !== 1) found.push(rest);
  const shape: number[] = [];
  for (const f of pool.c.shuffled(found)) {
    if (shape.length > 0 && pool.c.nat(3) === 0) shape[shape.length - 1] = (shape[shape.length - 1] as number) * f;
    else shape.push(f);
  }
  if (shape.length < 8 && pool.c.seldom(3)) shape.splice(pool.c.nat(shape.length + 1), 0, 1);
  return shape;
}

const inserted = (shape: readonly number[], axis: number, n: number): number[] => [
  ...shape.slice(0, axis),
  n,
  ...shape.slice(axis),
];
const without = (shape: readonly number[], axis: number): number[] => shape.filter((_, i) => i !== axis);

const rows: readonly Row[] = [
  {
    name: 'reshape',
    make: (pool, x) => {
      const shape = factors(pool, count(x.shape));
      return moved(x, [shape], (a) => reshape(a, shape));
    },
  },
  {
    name: 'permute',
    rank: 1,
    make: (pool, x) => {
      const axes = pool.c.shuffled(x.shape.map((_, i) => i)).reverse();
      return moved(x, [axes], (a) => permute(a, axes));
    },
  },
  {
    name: 'transpose',
    rank: 2,
    make: (_, x) => {
      const axes = x.shape.map((_n, i) => i);
      axes.push(...axes.splice(-2).reverse());
      return moved(x, [], (a) => permute(a, axes));
    },
  },
  {
    name: 'flip',
    rank: 1,
    make: (pool, x) => {
      const axes = pool.c.some(
        x.shape.map((_, i) => i),
        1,
      );
      return moved(x, [axes], (a) => flip(a, axes));
    },
  },
  { name: 'slice', rank: 1, make: sliceCall },
  { name: 'pad', rank: 1, make: padCall },
  {
    name: 'narrow',
    rank: 1,
    make: (pool, x) => {
      const [axis, written] = pool.axis(x.shape.length);
      const n = x.shape[axis] as number;
      const start = pool.c.nat(n + 1);
      const length = pool.c.nat(n - start + 1);
      return moved(x, [written, start, length], (a) => along(a, axis, length, (i) => i + start));
    },
  },
  {
    name: 'select',
    rank: 1,
    make: (pool, x) => {
      const [axis, written] = pool.axis(x.shape.length);
      const n = x.shape[axis] as number;
      if (n === 0) return null;
      const at = pool.c.between(-n, n - 1);
      return moved(x, [written, at], (a) =>
        reshape(
          along(a, axis, 1, () => (at < 0 ? at + n : at)),
          without(a.shape, axis),
        ),
      );
    },
  },
  {
    name: 'roll',
    rank: 1,
    make: (pool, x) => {
      const [axis, written] = pool.axis(x.shape.length);
      const n = x.shape[axis] as number;
      const by = pool.c.between(-5, 5);
      return moved(x, [by, written], (a) => along(a, axis, n, (i) => (((i - by) % n) + n) % n));
    },
  },
  {
    name: 'broadcastTo',
    most: 7,
    make: (pool, x) => {
      const shape = x.shape.map((n) => (n === 1 && pool.c.nat(2) === 0 ? pool.c.pick([3, 2, 5]) : n));
      if (x.shape.length < 5) for (let i = pool.c.nat(3); i > 0; i--) shape.unshift(pool.c.pick([2, 1, 3]));
      return moved(x, [shape], (a) => broadcastTo(a, shape));
    },
  },
  {
    name: 'tile',
    rank: 1,
    make: (pool, x) => {
      const by = x.shape.map(() => pool.c.pick([1, 2, 3]));
      return moved(x, [by], (a) =>
        by.reduce(
          (y, k, axis) => along(y, axis, k * (a.shape[axis] as number), (i) => i % (a.shape[axis] as number)),
          a,
        ),
      );
    },
  },
  {
    name: 'repeatInterleave',
    rank: 1,
    make: (pool, x) => {
      const [axis, written] = pool.axis(x.shape.length);
      const k = pool.c.pick([2, 1, 3]);
      return moved(x, [k, { axis: written }], (a) =>
        along(a, axis, k * (a.shape[axis] as number), (i) => Math.floor(i / k)),
      );
    },
  },
  {
    name: 'unsqueeze',
    most: 7,
    make: (pool, x) => {
      const axis = pool.c.nat(x.shape.length + 1);
      return moved(x, [axis], (a) => reshape(a, inserted(a.shape, axis, 1)));
    },
  },
  {
    name: 'squeeze',
    make: (_, x) =>
      moved(x, [], (a) =>
        reshape(
          a,
          a.shape.filter((n) => n !== 1),
        ),
      ),
  },
  { name: 'flatten', make: (_, x) => moved(x, [], (a) => reshape(a, [count(a.shape)])) },
  { name: 'contiguous', make: (_, x) => moved(x, [], (a) => a) },
  {
    name: 'moveAxis',
    rank: 2,
    make: (pool, x) => {
      const [from, to] = [pool.c.nat(x.shape.length), pool.c.nat(x.shape.length)];
      const axes = x.shape.map((_, i) => i).filter((i) => i !== from);
      axes.splice(to, 0, from);
      return moved(x, [from, to], (a) => permute(a, axes));
    },
  },
  ...(['tril', 'triu'] as const).map(
    (name): Row => ({
      name,
      rank: 2,
      make: (pool, x) => {
        const diagonal = pool.c.pick([0, 1, -1, 2, -3]);
        return moved(x, [{ diagonal }], (a) =>
          build(a.shape, (index) => {
            const [i, j] = index.slice(-2) as [number, number];
            return (name === 'tril' ? j - i <= diagonal : j - i >= diagonal) ? at(a, index) : 0;
          }),
        );
      },
    }),
  ),
  {
    name: 'diagonal',
    rank: 2,
    make: (pool, x) => {
      const offset = pool.c.pick([0, 1, -1]);
      const [r, k] = x.shape.slice(-2) as [number, number];
      const size = Math.max(0, Math.min(r + Math.min(0, offset), k - Math.max(0, offset)));
      return moved(x, [{ offset, axis1: -2, axis2: -1 }], (a) =>
        build([...a.shape.slice(0, -2), size], (index) => {
          const i = index[index.length - 1] as number;
          return at(a, [...index.slice(0, -1), i - Math.min(0, offset), i + Math.max(0, offset)]);
        }),
      );
    },
  },
  {
    name: 'diagEmbed',
    rank: 1,
    most: 7,
    make: (pool, x) => {
      const offset = pool.c.pick([0, 1, -2]);
      const size = (x.shape.at(-1) as number) + Math.abs(offset);
      return moved(x, [{ offset }], (a) =>
        build([...a.shape.slice(0, -1), size, size], (index) => {
          const [i, j] = index.slice(-2) as [number, number];
          return j - i === offset ? at(a, [...index.slice(0, -2), Math.min(i, j)]) : 0;
        }),
      );
    },
  },
  {
    name: 'split',
    rank: 1,
    make: (pool, x) => {
      const [axis, written] = pool.axis(x.shape.length);
      const n = x.shape[axis] as number;
      if (n === 0) return null;
      const size = pool.c.between(1, n);
      const part = pool.c.nat(Math.ceil(n / size));
      return moved(
        x,
        [size, written],
        (a) => along(a, axis, Math.min(size, n - part * size), (i) => i + part * size),
        part,
      );
    },
  },
  {
    name: 'unbind',
    rank: 1,
    make: (pool, x) => {
      const [axis, written] = pool.axis(x.shape.length);
      const n = x.shape[axis] as number;
      if (n === 0 || n > 20) return null;
      const part = pool.c.nat(n);
      return moved(
        x,
        [written],
        (a) =>
          reshape(
            along(a, axis, 1, () => part),
            without(a.shape, axis),
          ),
        part,
      );
    },
  },
  {
    name: 'concat',
    rank: 1,
    make: (pool, x) => {
      const [axis, written] = pool.axis(x.shape.length);
      const xs = alike(pool, x, axis);
      return { args: [xs.map(ref), written], dtype: x.dtype, formula: (...as) => concatenated(as, axis) };
    },
  },
  {
    name: 'stack',
    most: 7,
    make: (pool, x) => {
      const [axis, written] = pool.axis(x.shape.length + 1);
      const xs = alike(pool, x, null);
      return {
        args: [xs.map(ref), written],
        dtype: x.dtype,
        formula: (...as) =>
          concatenated(
            as.map((a) => reshape(a, inserted(a.shape, axis, 1))),
            axis,
          ),
      };
    },
  },
  {
    name: 'rot90',
    rank: 2,
    make: (pool, x) => {
      const turns = pool.c.between(-1, 3);
      let f: Move = (a) => a;
      for (let i = 0; i < ((turns % 4) + 4) % 4; i++) {
        const g = f;
        f = (a) => {
          const b = g(a);
          return flip(permute(b, [1, 0, ...b.shape.map((_, k) => k).slice(2)]), [0]);
        };
      }
      return moved(x, [turns], f);
    },
  },
];

/** Elements beyond which a movement makes no larger ones. */
const large = 4000;

export const movement: readonly Operation[] = rows.map(({ name, rank = 0, most = 8, make }) => ({
  name,
  smooth: true,
  make: (pool) => {
    const x = pool.pick(
      (v) =>
        v.shape.length >= rank &&
        v.shape.length <= most &&
        (v.data.length < large || ['slice', 'permute', 'reshape', 'flip', 'narrow', 'transpose'].includes(name)),
    );
    return x === null ? null : make(pool, x);
  },
}));
