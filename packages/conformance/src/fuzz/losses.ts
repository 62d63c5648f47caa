import { at, build, type NDArray, nd, reduce, zip } from '../oracle/ndarray.ts';
import { alongLines } from '../oracle/lines.ts';
import { drawn, parts, plain, sums } from './operands.ts';
import { isFloat, type Made, type Operation, type Pool, ref } from './pool.ts';
import type { Arg, Value } from './program.ts';
import { average, total } from '../oracle/sums.ts';
import { logSum } from './reductions.ts';
import { softplus } from '../oracle/special.ts';

/** All losses, their sum or their mean. */
function reduced(pool: Pool): { written: { readonly reduction?: string }; f: (losses: NDArray) => NDArray } {
  const reduction = pool.c.pick(['mean', 'sum', 'none']);
  return {
    written: reduction === 'mean' ? {} : { reduction },
    f: (losses) =>
      reduction === 'none' ? losses : nd([], [(reduction === 'sum' ? total : average)([...losses.data])]),
  };
}

/** A value of moderate floats that is not empty. */
export const vectors = (
  pool: Pool,
  rank: number,
  most: number,
  fits: (v: Value) => boolean = () => true,
): Value | null =>
  pool.pick((v) => v.shape.length >= rank && v.shape.length <= most && plain(v) && !v.shape.includes(0) && fits(v));

/** Another of the same shape and dtype. */
const mate = (pool: Pool, x: Value): Value =>
  (pool.c.nat(2) === 0
    ? pool.pick((v) => v.dtype === x.dtype && v.shape.join() === x.shape.join() && plain(v))
    : null) ?? drawn(pool, x.dtype, x.shape);

interface Pair {
  readonly name: string;
  readonly f: (x: number, y: number) => number;
  readonly options?: { readonly [key: string]: Arg };
  /** Targets are probabilities. */
  readonly chances?: boolean;
  readonly domain?: (x: number) => boolean;
}

const pairs: readonly Pair[] = [
  { name: 'mseLoss', f: (x, y) => (x - y) ** 2 },
  { name: 'l1Loss', f: (x, y) => Math.abs(x - y) },
  {
    name: 'huberLoss',
    f: (x, y) => (Math.abs(x - y) < 0.7 ? (x - y) ** 2 / 2 : 0.7 * (Math.abs(x - y) - 0.35)),
    options: { delta: 0.7 },
  },
  {
    name: 'smoothL1Loss',
    f: (x, y) => (Math.abs(x - y) < 0.7 ? (x - y) ** 2 / 1.4 : Math.abs(x - y) - 0.35),
    options: { beta: 0.7 },
  },
  { name: 'hingeLoss', f: (x, y) => Math.max(0, 0.5 - x * y), options: { margin: 0.5 } },
  {
    name: 'binaryCrossEntropy',
    f: (x, y) => -(y * Math.log(x) + (1 - y) * Math.log(1 - x)),
    chances: true,
    domain: (x) => x > 0.01 && x < 0.99,
  },
  { name: 'binaryCrossEntropyWithLogits', f: (x, y) => softplus(x) - x * y, chances: true },
  { name: 'klDiv', f: (x, y) => y * (Math.log(y) - x), chances: true },
  { name: 'klDiv', f: (x, y) => Math.exp(y) * (y - x), options: { logTarget: true } },
];

const pairLoss =
  ({ name, f, options = {}, chances = false, domain }: Pair) =>
  (pool: Pool): Made | null => {
    const found = vectors(pool, 0, 4, (v) => domain === undefined || v.data.every(domain));
    if (found === null && domain === undefined) return null;
    const dtype = pool.pick((v) => isFloat(v.dtype))?.dtype;
    if (dtype === undefined) return null;
    const x = found ?? parts(pool, dtype, pool.c.pick([[5], [3, 4], []]));
    const y = chances ? parts(pool, x.dtype, x.shape) : mate(pool, x);
    const way = reduced(pool);
    return {
      op: name,
      args: [ref(x), ref(y), { ...options, ...way.written }],
      dtype: x.dtype,
      formula: (a, b) => way.f(zip(f as (...xs: number[]) => number, a as NDArray, b as NDArray)),
      ...sums(x.dtype),
    };
  };

/** Class numbers against scores or log-probabilities [N, C, ...], with weights, smoothing and a class that does not count. */
const classLoss =
  (name: 'crossEntropy' | 'nllLoss') =>
  (pool: Pool): Made | null => {
    const x = vectors(pool, 2, 4);
    if (x === null || (x.shape[1] as number) > 30) return null;
    const classes = x.shape[1] as number;
    const target = pool.indices([x.shape[0] as number, ...x.shape.slice(2)], 0, classes - 1);
    const weight = pool.c.seldom(3) ? parts(pool, x.dtype, [classes]) : null;
    const smoothing = name === 'crossEntropy' ? pool.c.pick([0, 0.2]) : 0;
    const ignored = pool.c.seldom(3) ? 0 : null;
    if (ignored !== null && target.data.every((t) => t === ignored)) return null;
    const reduction = pool.c.pick(['mean', 'sum', 'none']);
    return {
      op: name,
      args: [
        ref(x),
        ref(target),
        {
          reduction,
          ...(weight ? { weight: ref(weight) } : {}),
          ...(smoothing > 0 ? { labelSmoothing: smoothing } : {}),
          ...(ignored === null ? {} : { ignoreIndex: ignored }),
        },
      ],
      dtype: x.dtype,
      formula: (a, t, w) => {
        const logs =
          name === 'nllLoss'
            ? (a as NDArray)
            : alongLines(a as NDArray, 1, (line) => line.map((v) => v - logSum([...line])));
        const factor = (c: number): number => (w === undefined ? 1 : (w.data[c] as number));
        const log = (index: readonly number[], c: number): number =>
          at(logs, [index[0] as number, c, ...index.slice(1)]);
        const losses = build((t as NDArray).shape, (index) => {
          const own = at(t as NDArray, index);
          if (own === ignored) return 0;
          let spread = 0;
          for (let c = 0; c < classes; c++) spread -= factor(c) * log(index, c);
          return -(1 - smoothing) * factor(own) * log(index, own) + (smoothing / classes) * spread;
        });
        if (reduction === 'none') return losses;
        const sum = total([...losses.data]);
        const weights = total((t as NDArray).data.map((own) => (own === ignored ? 0 : factor(own))));
        return nd([], [reduction === 'sum' ? sum : sum / weights]);
      },
      ...sums(x.dtype),
    };
  };

function gaussianNllLoss(pool: Pool): Made | null {
  const x = vectors(pool, 1, 3);
  if (x === null) return null;
  const y = mate(pool, x);
  const wide = pool.c.nat(2) === 0;
  const variance = parts(pool, x.dtype, wide ? x.shape : [...x.shape.slice(0, -1), 1]);
  const way = reduced(pool);
  return {
    args: [ref(x), ref(y), ref(variance), way.written],
    dtype: x.dtype,
    formula: (a, b, v) =>
      way.f(
        zip(
          (p, q, s) => (Math.log(s as number) + ((p as number) - (q as number)) ** 2 / (s as number)) / 2,
          a as NDArray,
          b as NDArray,
          v as NDArray,
        ),
      ),
    ...sums(x.dtype),
  };
}

const norm2 = (v: readonly number[]): number => Math.hypot(...v);
const rowOf = (a: NDArray, r: number): number[] => {
  const width = a.shape.at(-1) as number;
  return a.data.slice(r * width, (r + 1) * width) as number[];
};
const away = (v: Value): boolean => v.data.every((x) => Math.abs(x) > 0.05);

function tripletMarginLoss(pool: Pool): Made | null {
  const x = vectors(pool, 1, 2, (v) => v.data.length < 300);
  if (x === null) return null;
  const [near, far] = [drawn(pool, x.dtype, x.shape), drawn(pool, x.dtype, x.shape)];
  const swap = pool.c.seldom(3);
  const way = reduced(pool);
  return {
    args: [ref(x), ref(near), ref(far), { margin: 2, eps: 0.125, ...(swap ? { swap } : {}), ...way.written }],
    dtype: x.dtype,
    formula: (...xs) => {
      const d = (p: readonly number[], q: readonly number[]): number =>
        norm2(p.map((v, i) => v - (q[i] as number) + 0.125));
      return way.f(
        build(x.shape.slice(0, -1), ([r = 0]) => {
          const [a, b, c] = xs.map((t) => rowOf(t, r)) as [number[], number[], number[]];
          const other = swap ? Math.min(d(a, c), d(b, c)) : d(a, c);
          return Math.max(0, d(a, b) - other + 2);
        }),
      );
    },
    ...sums(x.dtype),
  };
}

function cosineEmbeddingLoss(pool: Pool): Made | null {
  const x = vectors(pool, 2, 2, (v) => v.data.length < 300 && away(v));
  if (x === null) return null;
  const y = parts(pool, x.dtype, x.shape);
  const rows = x.shape[0] as number;
  const target = pool.input(
    x.dtype,
    [rows],
    Array.from({ length: rows }, (_, i) => (i % 2 === 0 ? 1 : -1)),
  );
  const way = reduced(pool);
  return {
    args: [ref(x), ref(y), ref(target), { margin: 0.25, ...way.written }],
    dtype: x.dtype,
    formula: (a, b, t) =>
      way.f(
        build([rows], ([r]) => {
          const [p, q] = [rowOf(a as NDArray, r as number), rowOf(b as NDArray, r as number)];
          const cosine = total(p.map((v, i) => v * (q[i] as number))) / (norm2(p) * norm2(q));
          return ((t as NDArray).data[r as number] as number) > 0 ? 1 - cosine : Math.max(0, cosine - 0.25);
        }),
      ),
    ...sums(x.dtype),
  };
}

function cosineSimilarity(pool: Pool): Made | null {
  const x = vectors(pool, 1, 4, away);
  if (x === null) return null;
  const y = parts(pool, x.dtype, x.shape);
  const [axis, written] = pool.axis(x.shape.length);
  return {
    args: [ref(x), ref(y), { axis: written }],
    dtype: x.dtype,
    formula: (a, b) => {
      const sum = (t: NDArray): NDArray => reduce(t, [axis], total, false);
      const product = (p: NDArray, q: NDArray): NDArray => sum(zip((v, w) => (v as number) * (w as number), p, q));
      const [p, q] = [a as NDArray, b as NDArray];
      return zip(
        (d, m, n) => (d as number) / Math.sqrt((m as number) * (n as number)),
        product(p, q),
        product(p, p),
        product(q, q),
      );
    },
    ...sums(x.dtype),
  };
}

export const losses: readonly Operation[] = [
  ...pairs.map((pair): Operation => ({ name: pair.name, smooth: true, make: pairLoss(pair) })),
  { name: 'crossEntropy', smooth: true, make: classLoss('crossEntropy') },
  { name: 'nllLoss', smooth: true, make: classLoss('nllLoss') },
  { name: 'gaussianNllLoss', smooth: true, make: gaussianNllLoss },
  { name: 'tripletMarginLoss', smooth: true, make: tripletMarginLoss },
  { name: 'cosineEmbeddingLoss', smooth: true, make: cosineEmbeddingLoss },
  { name: 'cosineSimilarity', smooth: true, make: cosineSimilarity },
];
