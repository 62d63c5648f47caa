/** Random calls of the products by their other names, of attention with masks, of quantiles, and of tensors made from nothing. */
import type { DType } from '@polygrad/core';
import { attend } from '../oracle/attention.ts';
import { matmul } from '../oracle/linear.ts';
import { broadcastTo, build, count, map, type NDArray, nd, permute, reduce, reshape, zip } from '../oracle/ndarray.ts';
import { drawn, operand, plain, sums } from './operands.ts';
import { isFloat, isNumber, type Made, type Operation, type Pool, ref } from './pool.ts';
import type { Arg, Value } from './program.ts';

const turned = (a: NDArray): NDArray =>
  permute(a, [...a.shape.slice(0, -2).keys(), a.shape.length - 1, a.shape.length - 2]);
const floats = (v: Value): boolean => isFloat(v.dtype);
const reversed = (shape: readonly number[]): number[] => [...shape].reverse();
/** Sizes next to those that kernels are cut by. */
const edges = [3, 1, 8, 17, 4, 16, 33, 64, 5];

function gemm(pool: Pool): Made | null {
  const a = operand(pool, 2, 3, floats);
  if (a === null) return null;
  const [transA, transB] = [pool.c.nat(2) === 1, pool.c.nat(2) === 1];
  const [rows, k] = (transA ? reversed(a.shape.slice(-2)) : a.shape.slice(-2)) as [number, number];
  const n = pool.c.pick(edges);
  const b = drawn(pool, a.dtype, transB ? [n, k] : [k, n]);
  const addend = pool.c.pick(['none', 'row', 'full'] as const);
  const c = addend === 'none' ? null : drawn(pool, a.dtype, addend === 'row' ? [n] : [rows, n]);
  const [alpha, beta] = [pool.c.pick([1, 0.5, -2]), pool.c.pick([1, 2, 0])];
  return {
    args: [
      ref(a),
      ref(b),
      {
        ...(transA ? { transA } : {}),
        ...(transB ? { transB } : {}),
        ...(alpha === 1 ? {} : { alpha }),
        ...(c ? { c: ref(c), beta } : {}),
      },
    ],
    dtype: a.dtype,
    formula: (x, y, z) => {
      const product = matmul(
        transA ? turned(x as NDArray) : (x as NDArray),
        transB ? turned(y as NDArray) : (y as NDArray),
      );
      const scaled = map(product, (v) => alpha * v);
      return z === undefined || beta === 0 ? scaled : zip((v, w) => (v as number) + beta * (w as number), scaled, z);
    },
    ...sums(a.dtype),
  };
}

function gemv(pool: Pool): Made | null {
  const a = operand(pool, 2, 2, floats);
  if (a === null) return null;
  const transA = pool.c.nat(2) === 1;
  const x = drawn(pool, a.dtype, [a.shape[transA ? 0 : 1] as number]);
  const y = pool.c.nat(2) === 0 ? null : drawn(pool, a.dtype, [a.shape[transA ? 1 : 0] as number]);
  return {
    args: [ref(a), ref(x), { alpha: 2, ...(transA ? { transA } : {}), ...(y ? { y: ref(y), beta: 0.5 } : {}) }],
    dtype: a.dtype,
    formula: (p, q, r) => {
      const product = map(matmul(transA ? turned(p as NDArray) : (p as NDArray), q as NDArray), (v) => 2 * v);
      return r === undefined ? product : zip((v, w) => (v as number) + 0.5 * (w as number), product, r);
    },
    ...sums(a.dtype),
  };
}

/** Sums of products over the last axis of both. */
function inner(pool: Pool): Made | null {
  const a = operand(pool, 1, 3);
  if (a === null) return null;
  const k = a.shape.at(-1) as number;
  const b = drawn(pool, a.dtype, pool.c.nat(2) === 0 ? [k] : [pool.c.pick(edges), k]);
  return {
    args: [ref(a), ref(b)],
    dtype: a.dtype,
    formula: (x, y) => matmul(x as NDArray, b.shape.length === 1 ? (y as NDArray) : turned(y as NDArray)),
    ...sums(a.dtype),
  };
}

function dot(pool: Pool): Made | null {
  const a = operand(pool, 0, 3);
  if (a === null) return null;
  const k = a.shape.at(-1);
  const b = drawn(pool, a.dtype, k === undefined ? [3] : pool.c.nat(2) === 0 ? [k] : [k, pool.c.pick(edges)]);
  return {
    args: [ref(a), ref(b)],
    dtype: a.dtype,
    formula: (x, y) =>
      k === undefined
        ? zip((v, w) => (v as number) * (w as number), x as NDArray, y as NDArray)
        : matmul(x as NDArray, y as NDArray),
    ...sums(a.dtype),
  };
}

function vdot(pool: Pool): Made | null {
  const a = operand(pool, 1, 4);
  if (a === null) return null;
  const b = drawn(pool, a.dtype, reversed(a.shape));
  return {
    args: [ref(a), ref(b)],
    dtype: a.dtype,
    formula: (x, y) => nd([], [(x as NDArray).data.reduce((s, v, i) => s + v * ((y as NDArray).data[i] as number), 0)]),
    ...sums(a.dtype),
  };
}

function bilinear(pool: Pool): Made | null {
  const x = operand(pool, 1, 3, (v) => plain(v) && v.data.length < 200 && !v.shape.includes(0));
  if (x === null) return null;
  const [m, n, o] = [x.shape.at(-1) as number, pool.c.pick([3, 1]), pool.c.pick([2, 1, 4])];
  const lead = x.shape.slice(0, -1);
  const y = drawn(pool, x.dtype, [...lead, n]);
  const w = drawn(pool, x.dtype, [o, m, n]);
  const bias = pool.c.nat(2) === 0 ? null : drawn(pool, x.dtype, [o]);
  return {
    args: [ref(x), ref(y), ref(w), ...(bias ? [ref(bias)] : [])],
    dtype: x.dtype,
    formula: (p, q, r, b) => {
      const rows = count(lead);
      const result = build([rows, o], ([row, k]) => {
        let sum = b === undefined ? 0 : (b.data[k as number] as number);
        for (let i = 0; i < m; i++)
          for (let j = 0; j < n; j++)
            sum +=
              ((p as NDArray).data[(row as number) * m + i] as number) *
              ((q as NDArray).data[(row as number) * n + j] as number) *
              ((r as NDArray).data[((k as number) * m + i) * n + j] as number);
        return sum;
      });
      return reshape(result, [...lead, o]);
    },
    ...sums(x.dtype),
  };
}

/** Queries, keys and values with a mask: of numbers or of truths, for all heads or for each. */
function masked(pool: Pool): Made | null {
  const q = operand(
    pool,
    2,
    4,
    (v) => (v.dtype === 'float32' || v.dtype === 'float64') && plain(v) && !v.shape.includes(0),
  );
  if (q === null) return null;
  const lead = q.shape.slice(0, -2);
  const [rows, depth] = q.shape.slice(-2) as [number, number];
  const keys = pool.c.pick([3, 1, 6, 17]);
  const k = drawn(pool, q.dtype, [...lead, keys, depth]);
  const v = drawn(pool, q.dtype, [...lead, keys, pool.c.pick([2, 5])]);
  const bool = pool.c.nat(2) === 0;
  const shape = pool.c.pick([[rows, keys], [keys], [...lead, rows, keys], [rows, 1]]);
  const truths = Array.from({ length: count(shape) }, (_, i) => ((i * 7 + 3) % 5 < 3 ? 1 : 0));
  const mask = bool ? pool.input('bool', shape, truths) : drawn(pool, q.dtype, shape);
  const options = { ...(pool.c.nat(2) === 0 ? { scale: 0.25 } : {}), ...(pool.c.seldom(3) ? { causal: true } : {}) };
  const form = pool.c.pick(['auto', 'whole', 'blocks']);
  return {
    op: 'scaledDotProductAttention',
    args: [ref(q), ref(k), ref(v), { mask: ref(mask), ...options, ...(form === 'auto' ? {} : { form }) }],
    dtype: q.dtype,
    formula: (a, b, c, m) => attend(a as NDArray, b as NDArray, c as NDArray, m as NDArray, options, bool),
    ...sums(q.dtype),
  };
}

function quantile(pool: Pool): Made | null {
  const x = pool.pick(
    (v) => isFloat(v.dtype) && v.shape.length > 0 && v.data.every(Number.isFinite) && v.data.length < 2000,
  );
  if (x === null || x.shape.includes(0)) return null;
  const [axis, written] = pool.axis(x.shape.length);
  const q = pool.c.pick([0.5, 0, 1, 0.25, 0.3]);
  const interpolation = pool.c.pick(['linear', 'lower', 'higher', 'midpoint']);
  return {
    args: [ref(x), q, { axis: written, ...(interpolation === 'linear' ? {} : { interpolation }) }],
    dtype: x.dtype,
    formula: (a) =>
      reduce(
        a as NDArray,
        [axis],
        (line) => {
          const s = [...line].sort((u, v) => u - v);
          const at = q * (s.length - 1);
          const [low, high] = [s[Math.floor(at)] as number, s[Math.ceil(at)] as number];
          if (interpolation === 'lower') return low;
          if (interpolation === 'higher') return high;
          return interpolation === 'midpoint' ? (low + high) / 2 : low + (high - low) * (at - Math.floor(at));
        },
        false,
      ),
    noise: 'all',
    ordered: false,
  };
}

/** Tensors that no value goes into: numbers, ranges, diagonals. */
const made = (
  name: string,
  draw: (pool: Pool, dtype: DType) => { args: readonly Arg[]; value: NDArray } | null,
): Operation => ({
  name,
  make: (pool) => {
    const dtype = pool.pick(isNumber)?.dtype;
    const found = dtype === undefined ? null : draw(pool, dtype);
    if (found === null || dtype === undefined) return null;
    return { args: [...found.args, { dtype }], dtype, formula: () => found.value, noise: 'out' };
  },
});

const shapes: readonly (readonly number[])[] = [[3], [], [2, 4], [0, 3], [2, 1, 5], [130]];
const filled = (shape: readonly number[], value: number): NDArray => broadcastTo(nd([], [value]), shape);

const creations: readonly Operation[] = [
  made('zeros', (pool) => {
    const shape = pool.c.pick(shapes);
    return { args: [shape], value: filled(shape, 0) };
  }),
  made('ones', (pool) => {
    const shape = pool.c.pick(shapes);
    return { args: [shape], value: filled(shape, 1) };
  }),
  made('full', (pool) => {
    const shape = pool.c.pick(shapes);
    return { args: [shape, 7], value: filled(shape, 7) };
  }),
  made('arange', (pool) => {
    const [from, step, n] = [pool.c.pick([0, 2, 5]), pool.c.pick([1, 2, 3]), pool.c.pick([4, 1, 0, 17])];
    return {
      args: [from, from + step * n, step],
      value: nd(
        [n],
        Array.from({ length: n }, (_, i) => from + step * i),
      ),
    };
  }),
  made('eye', (pool) => {
    const [rows, columns] = [pool.c.pick([3, 1, 5]), pool.c.pick([3, 2, 7])];
    return { args: [rows, columns], value: build([rows, columns], ([i, j]) => (i === j ? 1 : 0)) };
  }),
  made('tri', (pool) => {
    const [rows, columns] = [pool.c.pick([3, 1, 5]), pool.c.pick([3, 2, 7])];
    return {
      args: [rows, columns],
      value: build([rows, columns], ([i, j]) => ((j as number) <= (i as number) ? 1 : 0)),
    };
  }),
  made('linspace', (pool, dtype) => {
    if (!isFloat(dtype)) return null;
    const n = pool.c.pick([5, 2, 9]);
    return {
      args: [-1, 3, n],
      value: nd(
        [n],
        Array.from({ length: n }, (_, i) => -1 + (4 * i) / (n - 1)),
      ),
    };
  }),
  ...(['zerosLike', 'onesLike', 'fullLike'] as const).map(
    (name): Operation => ({
      name,
      make: (pool) => {
        const x = pool.pick(isNumber);
        const value = name === 'zerosLike' ? 0 : name === 'onesLike' ? 1 : 3;
        if (x === null) return null;
        return {
          args: [ref(x), ...(name === 'fullLike' ? [value] : [])],
          dtype: x.dtype,
          formula: () => filled(x.shape, value),
        };
      },
    }),
  ),
];

/** What is computed is a constant to derivatives, and to those who come after. */
const detach: Operation = {
  name: 'detach',
  make: (pool) => {
    const x = pool.pick();
    return x === null ? null : { args: [ref(x)], dtype: x.dtype, formula: (a) => a as NDArray };
  },
};

export const products: readonly Operation[] = [
  { name: 'gemm', smooth: true, make: gemm },
  { name: 'gemv', smooth: true, make: gemv },
  { name: 'inner', smooth: true, make: inner },
  { name: 'dot', smooth: true, make: dot },
  { name: 'vdot', smooth: true, make: vdot },
  { name: 'bilinear', smooth: true, make: bilinear },
  { name: 'masked', smooth: true, make: masked },
  { name: 'quantile', smooth: true, make: quantile },
];
export const creation: readonly Operation[] = [...creations, detach];
