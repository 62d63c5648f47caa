/** Reductions, running results and products of grids: everything that combines many elements into one. */
import { ArgumentError, type Shape, ShapeError, showShape } from '@polygrad/core/functions';
import { broadcastShapes, dropAxes, keepAxes, say, sizeOf } from '@polygrad/core/internals';
import { elements, type Grid, grid, mapGrid, permuted, reshaped, stretch } from './grid.ts';
import { need, type NumberType } from './number-type.ts';

/** Which axes go, and whether they leave axes of size 1. */
export interface FoldAxes {
  readonly axes: readonly number[];
  readonly keepDims: boolean;
}

/** One result for the elements along the axes, in row-major order. */
export function fold<T, U>(x: Grid<T>, { axes, keepDims }: FoldAxes, f: (row: readonly T[]) => U): Grid<U> {
  const rest = x.shape.map((_, axis) => axis).filter((axis) => !axes.includes(axis));
  const list = elements(permuted(x, [...rest, ...axes]));
  const count = axes.reduce((n, axis) => n * x.shape[axis]!, 1);
  const shape = dropAxes(x.shape, axes);
  const out = Array.from({ length: sizeOf(shape) }, (_, i) => f(list.slice(i * count, (i + 1) * count)));
  return grid(keepDims ? keepAxes(x.shape, axes) : shape, out);
}

/** The running result along an axis. */
export function scan<T>(x: Grid<T>, axis: number, f: (before: T, value: T) => T): Grid<T> {
  const last = x.shape.length - 1;
  const order = x.shape.map((_, i) => i).filter((i) => i !== axis);
  order.push(axis);
  const moved = permuted(x, order);
  const n = x.shape[axis]!;
  const out: T[] = [];
  elements(moved).forEach((value, i) => {
    out.push(i % n === 0 ? value : f(out[i - 1]!, value));
  });
  const back = order.map((_, i) => order.indexOf(i));
  return permuted(grid(moved.shape, out), last < 0 ? [] : back);
}

/** The better of two by `compare`; what has no order with itself (NaN) wins. */
export function better<T>(compare: (a: T, b: T) => number, sign: 1 | -1): (a: T, b: T) => T {
  return (a, b) => {
    const order = compare(a, b);
    if (Number.isNaN(order)) return compare(a, a) === 0 ? b : a;
    return order * sign < 0 ? b : a;
  };
}

/** Position of the first winner. */
export function winner<T>(row: readonly T[], choose: (a: T, b: T) => T): number {
  let best = 0;
  for (let i = 1; i < row.length; i++) if (!Object.is(choose(row[best]!, row[i]!), row[best])) best = i;
  return best;
}

/** Throws unless there is something to choose from. */
export function checkNotEmpty(op: string, shape: Shape, axes: readonly number[]): void {
  if (axes.some((axis) => shape[axis] === 0))
    throw new ShapeError(
      op,
      say`no elements along axes ${showShape(axes)} of shape ${showShape(shape)}; needs at least one`,
      [shape],
    );
}

function inner<T>({ zero, add, mul }: NumberType<T>, a: readonly T[], b: readonly T[]): T {
  let sum = zero;
  a.forEach((value, i) => {
    const product = mul(value, b[i]!);
    sum = i === 0 ? product : add(sum, product);
  });
  return sum;
}

/** The matrix product as NumPy's matmul: vectors are rows on the left and columns on the right, leading axes broadcast. */
export function product<T>(op: string, type: NumberType<T>, a: Grid<T>, b: Grid<T>): Grid<T> {
  const fail = (what: string): never => {
    throw new ShapeError(op, say`${what}: ${showShape(a.shape)} and ${showShape(b.shape)}`, [a.shape, b.shape]);
  };
  if (a.shape.length === 0 || b.shape.length === 0) fail('scalars have no rows; use mul()');
  const left = a.shape.length === 1 ? reshaped(a, [1, ...a.shape]) : a;
  const right = b.shape.length === 1 ? reshaped(b, [...b.shape, 1]) : b;
  const [m, k] = left.shape.slice(-2) as [number, number];
  const [k2, n] = right.shape.slice(-2) as [number, number];
  if (k !== k2) fail('inner sizes differ');
  const batch = broadcastShapes(op, left.shape.slice(0, -2), right.shape.slice(0, -2));
  const count = sizeOf(batch);
  const rows = elements(stretch(op, left, [...batch, m, k]));
  const whole = stretch(op, right, [...batch, k, n]);
  const axes = batch.map((_, i) => i);
  const columns = elements(permuted(whole, [...axes, axes.length + 1, axes.length]));
  const out: T[] = [];
  for (let p = 0; p < count; p++) {
    for (let i = 0; i < m; i++) {
      const row = rows.slice((p * m + i) * k, (p * m + i + 1) * k);
      for (let j = 0; j < n; j++) out.push(inner(type, row, columns.slice((p * n + j) * k, (p * n + j + 1) * k)));
    }
  }
  const shape = [...batch, ...(a.shape.length === 1 ? [] : [m]), ...(b.shape.length === 1 ? [] : [n])];
  return grid(shape, out);
}

// Whole powers of the elements of a grid, by squaring.

/** Each element to a power; negative powers need div. */
export function powers<T>(x: Grid<T>, type: NumberType<T>, exponent: number | bigint): Grid<T> {
  if (typeof exponent === 'number' && !Number.isInteger(exponent))
    throw new ArgumentError('pow', say`exponent is no integer: ${exponent}; number types have whole powers only`);
  const times = BigInt(exponent);
  const { mul, one } = type;
  const raised = mapGrid(x, (a) => {
    let result = one;
    let square = a;
    for (let n = times < 0n ? -times : times; n > 0n; n >>= 1n) {
      if (n & 1n) result = mul(result, square);
      if (n > 1n) square = mul(square, square);
    }
    return result;
  });
  if (times >= 0n) return raised;
  const div = need('pow', type, 'div');
  return mapGrid(raised, (a) => div(one, a));
}
