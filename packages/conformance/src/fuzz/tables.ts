/** Random calls that look rows up, turn and gate them, and count. */
import { bag, radialBasis, rotate, rowsOf } from '../oracle/attention.ts';
import { at, build, count, map, type NDArray, nd } from '../oracle/ndarray.ts';
import { vectors } from './losses.ts';
import { drawn, sums } from './operands.ts';
import { isFloat, type Made, type Operation, type Pool, ref } from './pool.ts';

/** Rows of a table: as they are, or pooled. */
function embedding(pool: Pool): Made | null {
  const table = vectors(pool, 2, 3);
  if (table === null) return null;
  const index = pool.indices(pool.c.pick([[3], [2, 2], [], [0]]), 0, (table.shape[0] as number) - 1);
  return {
    args: [ref(index), ref(table)],
    dtype: table.dtype,
    formula: (i, t) => rowsOf(t as NDArray, i as NDArray),
  };
}

function embeddingBag(pool: Pool): Made | null {
  const table = vectors(pool, 2, 2);
  if (table === null) return null;
  const mode = pool.c.pick(['mean', 'sum', 'max'] as const);
  const offsets = pool.c.pick([null, [0, 2, 2, 5], [0]] as const);
  const shape = offsets === null ? [pool.c.pick([3, 1]), pool.c.pick([4, 1])] : [7];
  const index = pool.indices(shape, 0, (table.shape[0] as number) - 1);
  return {
    args: [ref(index), ref(table), { mode, ...(offsets ? { offsets } : {}) }],
    dtype: table.dtype,
    formula: (i, t) => {
      const all = [...(i as NDArray).data];
      const starts = offsets ?? Array.from({ length: shape[0] as number }, (_, r) => r * (shape[1] as number));
      const bags = starts.map((from, b) =>
        all.slice(from, starts[b + 1] ?? all.length).map((r) => [r, 1] as [number, number]),
      );
      return bag(t as NDArray, bags, mode);
    },
    ...(mode === 'max' ? {} : sums(table.dtype)),
  };
}

function rotaryEmbedding(pool: Pool): Made | null {
  const x = vectors(
    pool,
    2,
    4,
    (v) => (v.shape.at(-1) as number) % 2 === 0 && v.dtype !== 'float16' && v.dtype !== 'bfloat16',
  );
  if (x === null) return null;
  const width = x.shape.at(-1) as number;
  const options = {
    offset: pool.c.pick([0, 3]),
    style: pool.c.pick(['interleaved', 'half']),
    dims: pool.c.pick([width, 2]),
    base: 100,
  };
  return {
    args: [ref(x), options],
    dtype: x.dtype,
    formula: (a) => rotate(a as NDArray, (index) => (index.at(-1) as number) + options.offset, options),
    ...sums(x.dtype),
  };
}

function rbfKernel(pool: Pool): Made | null {
  const x = vectors(pool, 2, 2, (v) => v.data.length < 300);
  if (x === null) return null;
  const y = drawn(pool, x.dtype, [pool.c.pick([3, 1, 5]), x.shape[1] as number]);
  return {
    args: [ref(x), ref(y), { gamma: 0.25 }],
    dtype: x.dtype,
    formula: (a, b) => radialBasis(a as NDArray, b as NDArray, 0.25),
    ...sums(x.dtype),
  };
}

function glu(pool: Pool): Made | null {
  const x = vectors(pool, 1, 4, (v) => v.shape.some((n) => n % 2 === 0));
  if (x === null) return null;
  const axis = pool.c.pick(x.shape.flatMap((n, i) => (n % 2 === 0 ? [i] : [])));
  const half = (x.shape[axis] as number) / 2;
  const shape = x.shape.map((n, i) => (i === axis ? half : n));
  return {
    args: [ref(x), { axis }],
    dtype: x.dtype,
    formula: (a) =>
      build(shape, (index) => {
        const gate = at(
          a as NDArray,
          index.map((k, i) => (i === axis ? k + half : k)),
        );
        return at(a as NDArray, index) / (1 + Math.exp(-gate));
      }),
    ...sums(x.dtype),
  };
}

/** Counts between even edges; elements are eighths and edges sixteenths, so that none lies on an edge. */
function histogram(pool: Pool): Made | null {
  const x = pool.pick((v) => v.dtype === 'float32' || v.dtype === 'float64' || v.dtype === 'int32');
  if (x === null) return null;
  const bins = pool.c.pick([4, 1, 8, 32]);
  const [low, high] = [-2.0625, 1.9375];
  const whole = map(x, (v) =>
    Math.abs(((v - low) / (high - low)) * bins - Math.round(((v - low) / (high - low)) * bins)),
  );
  if (whole.data.some((d) => d < 1e-3)) return null;
  return {
    args: [ref(x), { bins, range: [low, high] }],
    dtype: isFloat(x.dtype) ? x.dtype : 'float32',
    formula: (a) => {
      const counts = new Array<number>(bins).fill(0);
      for (const v of (a as NDArray).data) {
        const bin = Math.floor(((v - low) / (high - low)) * bins);
        if (v >= low && v <= high) counts[bin] = (counts[bin] as number) + 1;
      }
      return nd([bins], counts);
    },
  };
}

function bucketize(pool: Pool): Made | null {
  const x = pool.pick((v) => v.dtype !== 'bool' && count(v.shape) > 0);
  if (x === null) return null;
  const right = pool.c.nat(2) === 0;
  const n = pool.c.pick([3, 1, 17, 0]);
  const edges = pool.input(
    x.dtype,
    [n],
    Array.from({ length: n }, (_, i) => Math.floor(i / 2)),
  );
  return {
    args: [ref(x), ref(edges), ...(right ? [{ right }] : [])],
    dtype: 'int32',
    formula: (a, e) =>
      map(a as NDArray, (v) =>
        Number.isNaN(v) ? n : (e as NDArray).data.filter((b) => (right ? b <= v : b < v)).length,
      ),
  };
}

export const tables: readonly Operation[] = [
  { name: 'embedding', smooth: true, make: embedding },
  { name: 'embeddingBag', smooth: true, make: embeddingBag },
  { name: 'rotaryEmbedding', smooth: true, make: rotaryEmbedding },
  { name: 'rbfKernel', smooth: true, make: rbfKernel },
  { name: 'glu', smooth: true, make: glu },
  { name: 'histogram', make: histogram },
  { name: 'bucketize', make: bucketize },
];
