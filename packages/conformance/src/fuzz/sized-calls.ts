/** Calls that programs of a changing size are full of: products in every role of that size, groups of axes, numbers that follow from it. */
import { einsum } from '../oracle/linear.ts';
import { build, type NDArray, nd, permute, reshape } from '../oracle/ndarray.ts';
import { randCall } from '../operations/creation/random.ts';
import { drawn, plain, small, sums } from '../programs/operands.ts';
import { isFloat, type Made, type Pool, type RandomCall, ref } from '../programs/pool.ts';
import type { Value } from '../programs/program.ts';

/** A random call and the operation it is of. */
export interface NamedCall extends RandomCall {
  readonly name: string;
}

/** A value whose first axis is the size. */
const rowsOf = (pool: Pool, n: number, rank: number, fits: (v: Value) => boolean = () => true): Value | null =>
  pool.pick((v) => v.shape.length >= rank && v.shape[0] === n && small(v) && !v.shape.includes(0) && fits(v));

const few = (pool: Pool): number => pool.c.pick([3, 4, 1, 7, 8, 16, 5, 17, 12]);

/** A product with weights (rows), of two values of the size (summed), or of each of the size with another (batches). */
function product(pool: Pool, n: number): Made | null {
  const role = pool.c.pick(['rows', 'summed', 'batches', 'rows', 'both'] as const);
  const x = rowsOf(pool, n, 2, (v) => plain(v) && v.shape.length <= 3);
  if (x === null) return null;
  const deep = x.shape.length === 3;
  const left = deep ? 'nab' : 'nb';
  const [, ...inner] = x.shape as [number, ...number[]];
  const last = inner[inner.length - 1]!;
  const other = (): Value => pool.pick((v) => plain(v) && v.shape.join() === x.shape.join()) ?? x;
  const made = (text: string, y: Value): Made => {
    const [terms, out] = [text.split('->')[0]!.split(','), text.split('->')[1]!];
    return {
      args: [text, ref(x), ref(y)],
      dtype: x.dtype,
      formula: (...xs) => einsum(terms, out, xs),
      ...sums(x.dtype),
    };
  };
  if (x.data.length > 400 && role === 'both') return null;
  if (role === 'rows') return made(`${left},bc->${left.slice(0, -1)}c`, drawn(pool, x.dtype, [last, few(pool)]));
  const y = other();
  if (y.dtype !== x.dtype) return null;
  if (role === 'summed') return made(deep ? 'nab,ncd->abcd' : 'nb,nc->bc', y);
  if (role === 'both') return made(deep ? 'nab,mab->nm' : 'nb,mb->nm', y);
  return made(deep ? 'nab,ncb->nac' : 'nb,nb->n', y);
}

/** Two axes as one, one as two, with the size in front of the others or behind. */
function grouped(pool: Pool, n: number): Made | null {
  const x = pool.pick((v) => v.shape.includes(n) && v.data.length < 3000 && !v.shape.includes(0));
  if (x === null) return null;
  const rest = x.data.length / n;
  const inner = [1, 2, 3, 4, 5].filter((d) => rest % d === 0);
  const d = pool.c.pick(inner);
  const shape = pool.c.pick([
    [x.data.length],
    [n, rest],
    [n * d, rest / d],
    [n, d, rest / d],
    [n, 1, rest],
    [d, rest / d, n],
  ]);
  return { args: [ref(x), shape], dtype: x.dtype, formula: (a) => reshape(a, shape) };
}

/** All but the first axis in another order, or the first one last. */
function turned(pool: Pool, n: number): Made | null {
  const x = rowsOf(pool, n, 2);
  if (x === null) return null;
  const inner = x.shape.slice(1).map((_, i) => i + 1);
  const axes = pool.c.pick([
    [0, ...inner.toReversed()],
    [...inner, 0],
    [inner[0]!, 0, ...inner.slice(1)],
  ]);
  return { args: [ref(x), axes], dtype: x.dtype, formula: (a) => permute(a, axes) };
}

/** The product with a number that follows from the size. */
function scaled(pool: Pool, n: number): Made | null {
  const x = pool.pick((v) => isFloat(v.dtype) && v.data.length < 4000);
  if (x === null) return null;
  const by = pool.c.pick([1 / n, n / 4, Math.sqrt(n), Math.floor(n / 8), 1 / (n - 1), n === 5 ? 1 : 0.5]);
  return {
    args: [ref(x), by],
    dtype: x.dtype,
    formula: (a) => ({ shape: a.shape, data: a.data.map((v) => v * (x.dtype === 'float32' ? Math.fround(by) : by)) }),
    noise: 'all',
  };
}

const counted = (pool: Pool, n: number): Made => {
  const by = pool.c.pick([1, 2, 3]);
  return {
    args: [0, n * by, by, { dtype: 'int32' }],
    dtype: 'int32',
    formula: () =>
      nd(
        [n],
        Array.from({ length: n }, (_, i) => i * by),
      ),
  };
};

const seen = (pool: Pool, n: number): Made => randCall(pool, [[n], [n, 3], [n, 2, 2], [3, n]]);

function elementOf(a: NDArray, at: readonly number[]): number {
  let flat = 0;
  for (const [i, k] of at.entries()) flat = flat * a.shape[i]! + k;
  return a.data[flat]!;
}

/** Rows beside each other, put together along an axis that is not the size, or along it: in either order, several parts, and parts of the size. */
function joined(pool: Pool, n: number): Made | null {
  const x = rowsOf(pool, n, 1);
  if (x === null) return null;
  const axis = pool.c.pick([0, x.shape.length - 1, 0, Math.min(1, x.shape.length - 1)]);
  const other = (): Value => {
    const shape = x.shape.map((m, i) => (i === axis ? few(pool) : m));
    const fits = (v: Value): boolean =>
      v.dtype === x.dtype && v.shape.length === shape.length && v.shape.every((m, i) => i === axis || m === shape[i]);
    return (pool.c.nat(2) === 0 ? pool.pick((v) => fits(v) && small(v)) : null) ?? drawn(pool, x.dtype, shape);
  };
  const order = pool.c.pick(['x+', '+x', 'x+', '+x+', 'x+x+']);
  const parts = [...order].map((one) => (one === 'x' ? x : other()));
  const lengths = parts.map(({ shape }) => shape[axis]!);
  const whole = x.shape.map((m, i) => (i === axis ? lengths.reduce((a, b) => a + b, 0) : m));
  return {
    args: [parts.map((part) => ref(part)), axis],
    dtype: x.dtype,
    formula: (...all) =>
      build(whole, (at) => {
        let [part, place] = [0, at[axis]!];
        for (; place >= lengths[part]!; part++) place -= lengths[part]!;
        return elementOf(
          all[part]!,
          at.map((k, i) => (i === axis ? place : k)),
        );
      }),
  };
}

/** Elements that stand `start` places behind those of the result along an axis. */
function cutOf(shape: readonly number[], axis: number, start: number): Made['formula'] {
  return (a) =>
    build(shape, (at) =>
      elementOf(
        a,
        at.map((k, i) => (i === axis ? k + start : k)),
      ),
    );
}

/** As many rows as the size out of more, from a place that counts from the beginning or from the end. */
function cut(pool: Pool, n: number): Made | null {
  const x = pool.pick((v) => v.shape.some((m) => m > n) && v.data.length < 3000 && !v.shape.includes(0));
  if (x === null) return null;
  const axis = pool.c.pick(x.shape.map((_, i) => i).filter((i) => x.shape[i]! > n));
  const more = x.shape[axis]! - n;
  const start = pool.c.pick([0, more, Math.min(1, more), Math.max(0, more - 1), Math.min(n, more)]);
  const ranges = x.shape.map((_, i) => (i === axis ? { start, stop: start + n } : null));
  const shape = x.shape.map((m, i) => (i === axis ? n : m));
  return {
    args: [ref(x), ranges],
    dtype: x.dtype,
    formula: cutOf(shape, axis, start),
  };
}

/** A few rows before the end of an axis that is the size, or from its beginning. */
function ended(pool: Pool, n: number): Made | null {
  const x = pool.pick((v) => v.shape.includes(n) && v.data.length < 3000 && !v.shape.includes(0));
  if (x === null) return null;
  const axes = x.shape.map((_, i) => i).filter((i) => x.shape[i] === n);
  const axis = pool.c.pick(axes);
  const [length, behind] = [pool.c.pick([1, 2, 3]), pool.c.pick([0, 0, 1, 2, -1, -2])];
  const start = behind < 0 ? -1 - behind : n - length - behind;
  if (start < 0 || start + length > n) return null;
  const ranges = x.shape.map((_, i) => (i === axis ? { start, stop: start + length } : null));
  const shape = x.shape.map((m, i) => (i === axis ? length : m));
  return {
    args: [ref(x), ranges],
    dtype: x.dtype,
    formula: cutOf(shape, axis, start),
  };
}

/** Zeros before a few rows or behind them, so many that it is the size; or a few around what is the size. */
function filled(pool: Pool, n: number): Made | null {
  const around = pool.c.nat(3) === 0;
  const x = pool.pick(
    (v) =>
      v.shape.length > 0 &&
      !v.shape.includes(0) &&
      v.shape.includes(n) === around &&
      v.data.length < (around ? 2000 : 100),
  );
  if (x === null) return null;
  const axis = around ? x.shape.indexOf(n) : pool.c.nat(x.shape.length);
  const m = x.shape[axis]!;
  const few = pool.c.pick([0, 0, 1, 2]);
  const rest = around ? pool.c.pick([1, 2, 3]) : n - m - few;
  if (rest < 0) return null;
  const [low, high] = pool.c.pick([
    [rest, few],
    [rest, few],
    [few, rest],
  ]);
  const widths = x.shape.map((_, i) => (i === axis ? [low, high] : [0, 0]));
  const shape = x.shape.map((k, i) => (i === axis ? low + m + high : k));
  return {
    args: [ref(x), widths],
    dtype: x.dtype,
    formula: (a) =>
      build(shape, (at) => {
        const inside = at[axis]! - low;
        return inside < 0 || inside >= m
          ? 0
          : elementOf(
              a,
              at.map((k, i) => (i === axis ? inside : k)),
            );
      }),
  };
}

/** Calls for a program of which `n` is the size. */
export function sizedCalls(n: number): readonly NamedCall[] {
  const named = (name: string, make: (pool: Pool, n: number) => Made | null, smooth = true): NamedCall => {
    return { name, smooth, make: (pool) => make(pool, n) };
  };
  return [
    named('einsum', product),
    named('reshape', grouped),
    named('einsum', product),
    named('permute', turned),
    named('mul', scaled),
    named('concat', joined),
    named('concat', joined),
    named('slice', ended),
    named('slice', cut),
    named('pad', filled),
    named('arange', counted, false),
    named('rand', seen, false),
  ];
}
