/** Random calls of products, convolutions, pooling and attention. */
import type { DType } from '@polygrad/core';
import { attend } from '../oracle/attention.ts';
import { einsum } from '../oracle/einsum.ts';
import { convolve, convolveTransposed, largest, poolWindows, sumOf } from '../oracle/images.ts';
import { matmul } from '../oracle/linear.ts';
import { build, count, type NDArray, reshape } from '../oracle/ndarray.ts';
import { drawn, operand, small, sums } from './operands.ts';
import { broadcast, isFloat, type Made, type Operation, type Pool, ref } from './pool.ts';
import type { Arg, Value } from './program.ts';

/** The least value of a dtype: the maximum of nothing. */
function leastOf(dtype: DType): number {
  if (isFloat(dtype)) return Number.NEGATIVE_INFINITY;
  return dtype.startsWith('u') ? 0 : -(2 ** (Number(/\d+$/.exec(dtype)?.[0]) - 1));
}

function product(pool: Pool): Made | null {
  const a = operand(pool, 1);
  if (a === null) return null;
  const k = a.shape.at(-1) as number;
  const fits = (v: Value): boolean =>
    v.dtype === a.dtype &&
    small(v) &&
    v.shape.length > 0 &&
    (v.shape.length === 1
      ? v.shape[0] === k
      : v.shape.at(-2) === k &&
        (a.shape.length < 3 || v.shape.length < 3 || broadcast(a.shape.slice(0, -2), v.shape.slice(0, -2)) !== null));
  const b = pool.c.nat(2) === 0 ? pool.pick(fits) : null;
  const n = pool.c.pick([3, 1, 8, 17, 0]);
  const other = b ?? drawn(pool, a.dtype, pool.c.seldom(4) ? [k] : [k, n]);
  return {
    args: [ref(a), ref(other)],
    dtype: a.dtype,
    formula: (x, y) => matmul(x as NDArray, y as NDArray),
    ...sums(a.dtype),
  };
}

const equations: readonly [string, readonly string[], string][] = [
  ['ij,jk->ik', ['ij', 'jk'], 'ik'],
  ['ij,kj->ik', ['ij', 'kj'], 'ik'],
  ['ij,ij->i', ['ij', 'ij'], 'i'],
  ['i,j->ji', ['i', 'j'], 'ji'],
  ['bij,bjk->bik', ['bij', 'bjk'], 'bik'],
  ['bij,bkj->ikb', ['bij', 'bkj'], 'ikb'],
  ['ij->ji', ['ij'], 'ji'],
  ['ij->', ['ij'], ''],
  ['ijk->kj', ['ijk'], 'kj'],
  ['ii->i', ['ii'], 'i'],
  ['ij,j,i->j', ['ij', 'j', 'i'], 'j'],
];

function equation(pool: Pool): Made | null {
  const [text, terms, output] = pool.c.pick(equations);
  const first = terms[0] as string;
  const a = operand(
    pool,
    first.length,
    first.length,
    (v) => isFloat(v.dtype) && (first !== 'ii' || v.shape[0] === v.shape[1]) && v.data.length < 600,
  );
  if (a === null) return null;
  const sizes = new Map([...first].map((name, i) => [name, a.shape[i] as number]));
  const operands = terms.slice(1).map((term) => {
    for (const name of term) if (!sizes.has(name)) sizes.set(name, pool.c.pick([3, 2, 1, 5]));
    const shape = [...term].map((name) => sizes.get(name) as number);
    return (
      pool.pick((v) => v.dtype === a.dtype && small(v) && v.shape.join() === shape.join()) ??
      drawn(pool, a.dtype, shape)
    );
  });
  return {
    args: [text, ref(a), ...operands.map(ref)],
    dtype: a.dtype,
    formula: (...xs) => einsum(terms, output, xs),
    ...sums(a.dtype),
  };
}

function outer(pool: Pool): Made | null {
  const a = operand(pool, 1, 1, (v) => v.data.length < 80);
  const b = a && operand(pool, 1, 1, (v) => v.dtype === a.dtype && v.data.length < 80);
  if (a === null || b === null) return null;
  return {
    args: [ref(a), ref(b)],
    dtype: a.dtype,
    formula: (x, y) => einsum(['i', 'j'], 'ij', [x as NDArray, y as NDArray]),
    noise: 'out',
  };
}

/** A new image, where no value is one. */
function fresh(pool: Pool, rank: number): Value | null {
  const dtype = pool.pick((v) => isFloat(v.dtype))?.dtype;
  if (dtype === undefined) return null;
  const spatial = Array.from({ length: rank }, () => pool.c.pick(rank > 2 ? [3, 2, 4] : [5, 3, 8, 4, 7]));
  return drawn(pool, dtype, [pool.c.pick([2, 1]), pool.c.pick([2, 1, 4, 3]), ...spatial]);
}

interface Window {
  readonly options: { readonly [key: string]: Arg };
  readonly kernel: number[];
}

/** Stride, padding, dilation and size of windows that fit an image. */
function windowFor(pool: Pool, spatial: readonly number[], pooling: boolean): Window | null {
  const kernel = spatial.map(() => pool.c.pick([2, 3, 1]));
  const stride = spatial.map(() => pool.c.pick([1, 2, 3]));
  const dilation = spatial.map(() => pool.c.pick([1, 1, 2]));
  const padding = spatial.map((_, i) => pool.c.nat(pooling ? Math.floor((kernel[i] as number) / 2) + 1 : 3));
  const fits = spatial.every(
    (n, i) => n + 2 * (padding[i] as number) >= ((kernel[i] as number) - 1) * (dilation[i] as number) + 1,
  );
  return fits && !spatial.includes(0) ? { kernel, options: { stride, padding, dilation } } : null;
}

function convolution(rank: number) {
  return (pool: Pool): Made | null => {
    const nhwc = pool.c.seldom(3);
    const x = operand(pool, rank + 2, rank + 2, (v) => isFloat(v.dtype) && v.data.length < 800) ?? fresh(pool, rank);
    if (x === null) return null;
    const channels = (nhwc ? x.shape.at(-1) : x.shape[1]) as number;
    const spatial = nhwc ? x.shape.slice(1, -1) : x.shape.slice(2);
    const window = windowFor(pool, spatial, false);
    if (window === null || channels === 0 || channels > 12) return null;
    const groups = pool.c.pick([1, 2, channels].filter((g) => channels % g === 0));
    const features = groups * pool.c.pick([1, 2, 3]);
    const w = drawn(pool, x.dtype, [features, channels / groups, ...window.kernel]);
    const options = {
      ...window.options,
      ...(groups > 1 ? { groups } : {}),
      ...(nhwc ? { layout: 'nhwc' as const } : {}),
    };
    return {
      op: `conv${rank}d`,
      args: [ref(x), ref(w), options],
      dtype: x.dtype,
      formula: (a, b) => convolve(a as NDArray, b as NDArray, options as never),
      ...sums(x.dtype),
    };
  };
}

function transposed(pool: Pool): Made | null {
  const x =
    operand(pool, 4, 4, (v) => isFloat(v.dtype) && v.data.length < 200 && !v.shape.includes(0)) ?? fresh(pool, 2);
  if (x === null) return null;
  const channels = x.shape[1] as number;
  const groups = pool.c.pick([1, channels]);
  const stride = [pool.c.pick([1, 2, 3]), pool.c.pick([2, 1])];
  const dilation = [pool.c.pick([1, 2]), 1];
  const kernel = [pool.c.pick([2, 3, 1]), pool.c.pick([3, 2])];
  const outputPadding = stride.map((s) => pool.c.nat(s));
  const w = drawn(pool, x.dtype, [channels, pool.c.pick([1, 2]), ...kernel]);
  const options = { stride, dilation, outputPadding, groups };
  return {
    args: [ref(x), ref(w), options],
    dtype: x.dtype,
    formula: (a, b) => convolveTransposed(a as NDArray, b as NDArray, options),
    ...sums(x.dtype),
  };
}

function pooling(kind: 'max' | 'avg', rank: number) {
  return (pool: Pool): Made | null => {
    const x =
      operand(pool, rank + 2, rank + 2, (v) => (kind === 'max' || isFloat(v.dtype)) && !v.shape.includes(0)) ??
      fresh(pool, rank);
    if (x === null) return null;
    const window = windowFor(pool, x.shape.slice(2), true);
    if (window === null) return null;
    const { dilation, ...rest } = window.options;
    const options = {
      ...rest,
      ...(kind === 'max' ? { dilation } : {}),
      ...(pool.c.seldom(3) ? { ceilMode: true } : {}),
    };
    const f =
      kind === 'max'
        ? // Dilated windows may have no element at all.
          (taps: { value: number; position: number }[]) => (taps.length === 0 ? leastOf(x.dtype) : largest(taps).value)
        : (taps: { value: number; position: number }[], padded: number) => sumOf(taps) / padded;
    return {
      op: `${kind}Pool${rank}d`,
      args: [ref(x), window.kernel, options as Arg],
      dtype: x.dtype,
      formula: (a) => poolWindows(a as NDArray, window.kernel, options as never, f),
      noise: kind === 'max' ? 'none' : 'all',
      ordered: kind === 'max',
    };
  };
}

function attention(pool: Pool): Made | null {
  const q = operand(
    pool,
    2,
    4,
    (v) =>
      (v.dtype === 'float32' || v.dtype === 'float64') && !v.shape.includes(0) && v.data.every((x) => Math.abs(x) < 20),
  );
  if (q === null) return null;
  const keys = pool.c.pick([3, 1, 6]);
  const lead = q.shape.slice(0, -2);
  const k = drawn(pool, q.dtype, [...lead, keys, q.shape.at(-1) as number]);
  const v = drawn(pool, q.dtype, [...lead, keys, pool.c.pick([2, 5])]);
  const causal = pool.c.seldom(3);
  return {
    args: [ref(q), ref(k), ref(v), ...(causal ? [{ causal }] : [])],
    dtype: q.dtype,
    formula: (a, b, c) => attend(a as NDArray, b as NDArray, c as NDArray, null, { causal }, false),
    ...sums(q.dtype),
  };
}

function cdist(pool: Pool): Made | null {
  const a = operand(pool, 2, 2, (v) => isFloat(v.dtype) && v.data.length < 200);
  if (a === null) return null;
  const b = drawn(pool, a.dtype, [pool.c.pick([3, 1]), a.shape[1] as number]);
  return {
    args: [ref(a), ref(b), { p: 1 }],
    dtype: a.dtype,
    formula: (x, y) =>
      build([a.shape[0] as number, b.shape[0] as number], ([i, j]) => {
        const n = a.shape[1] as number;
        let sum = 0;
        for (let q = 0; q < n; q++)
          sum += Math.abs(
            ((x as NDArray).data[(i as number) * n + q] as number) -
              ((y as NDArray).data[(j as number) * n + q] as number),
          );
        return sum;
      }),
    ...sums(a.dtype),
  };
}

function tensordot(pool: Pool): Made | null {
  const a = operand(pool, 1, 4, (v) => isFloat(v.dtype) && v.data.length < 600);
  if (a === null) return null;
  const over = pool.c.between(0, Math.min(2, a.shape.length));
  const shared = a.shape.slice(a.shape.length - over);
  const rest = [pool.c.pick([2, 1, 3])];
  const b = drawn(pool, a.dtype, [...shared, ...rest]);
  const lead = a.shape.slice(0, a.shape.length - over);
  return {
    args: [ref(a), ref(b), over],
    dtype: a.dtype,
    formula: (x, y) =>
      reshape(
        matmul(
          reshape(x as NDArray, [count(lead), count(shared)]),
          reshape(y as NDArray, [count(shared), count(rest)]),
        ),
        [...lead, ...rest],
      ),
    ...sums(a.dtype),
  };
}

function cross(pool: Pool): Made | null {
  const dtype = operand(pool, 0, 8, (v) => isFloat(v.dtype))?.dtype;
  if (dtype === undefined) return null;
  const a = operand(pool, 2, 2, (v) => v.dtype === dtype && v.shape[0] === 3) ?? drawn(pool, dtype, [3, 4]);
  const b = drawn(pool, a.dtype, a.shape);
  const n = a.shape[1] as number;
  const f = (x: NDArray, y: NDArray): NDArray => {
    const [p, q] = [
      (i: number, j: number) => x.data[(i % 3) * n + j] as number,
      (i: number, j: number) => y.data[(i % 3) * n + j] as number,
    ];
    return build(
      [3, n],
      ([i, j]) =>
        p((i as number) + 1, j as number) * q((i as number) + 2, j as number) -
        p((i as number) + 2, j as number) * q((i as number) + 1, j as number),
    );
  };
  return {
    args: [ref(a), ref(b), 0],
    dtype: a.dtype,
    formula: (x, y) => f(x as NDArray, y as NDArray),
    noise: 'all',
    ordered: false,
  };
}

export const contractions: readonly Operation[] = [
  { name: 'matmul', smooth: true, make: product },
  { name: 'matmul', smooth: true, make: product },
  { name: 'einsum', smooth: true, make: equation },
  { name: 'outer', smooth: true, make: outer },
  { name: 'tensordot', smooth: true, make: tensordot },
  { name: 'conv1d', smooth: true, make: convolution(1) },
  { name: 'conv2d', smooth: true, make: convolution(2) },
  { name: 'conv3d', smooth: true, make: convolution(3) },
  { name: 'convTranspose2d', smooth: true, make: transposed },
  { name: 'maxPool1d', smooth: true, make: pooling('max', 1) },
  { name: 'maxPool2d', smooth: true, make: pooling('max', 2) },
  { name: 'avgPool1d', smooth: true, make: pooling('avg', 1) },
  { name: 'avgPool2d', smooth: true, make: pooling('avg', 2) },
  { name: 'scaledDotProductAttention', smooth: true, make: attention },
  { name: 'cdist', smooth: true, make: cdist },
  { name: 'cross', smooth: true, make: cross },
];
