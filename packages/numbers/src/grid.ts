/**
 * Grids: elements of any kind under a shape, and strided views of them. The same shapes, views and broadcasting as tensors have, on
 * JavaScript arrays.
 */
import { type Shape, ShapeError, showShape } from '@polygrad/core/functions';
import {
  broadcastShapes,
  broadcastsTo,
  expandView,
  formatRows,
  isRowMajor,
  permuteView,
  reshapeView,
  rowMajorStrides,
  sameShape,
  say,
  shownElements,
  sizeOf,
  type View,
} from '@polygrad/core/internals';

export interface Grid<T> {
  readonly shape: Shape;
  readonly view: View;
  /** Shared by views, never changed. */
  readonly data: readonly T[];
}

/** A grid of elements in row-major order. */
export function grid<T>(shape: Shape, data: readonly T[]): Grid<T> {
  return { shape, view: { strides: rowMajorStrides(shape), offset: 0 }, data };
}

/** The elements in row-major order; the grid's own array if it has that order. */
export function elements<T>({ shape, view, data }: Grid<T>): readonly T[] {
  const size = sizeOf(shape);
  if (view.offset === 0 && data.length === size && isRowMajor(shape, view)) return data;
  const out: T[] = [];
  const index = shape.map(() => 0);
  let at = view.offset;
  for (let i = 0; i < size; i++) {
    out.push(data[at]!);
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      const step = view.strides[axis]!;
      const next = index[axis]! + 1;
      if (next < shape[axis]!) {
        index[axis] = next;
        at += step;
        break;
      }
      at -= step * (next - 1);
      index[axis] = 0;
    }
  }
  return out;
}

/** Every element replaced. */
export function mapGrid<T, U>(x: Grid<T>, f: (value: T) => U): Grid<U> {
  return grid(x.shape, elements(x).map(f));
}

/** Pairs of elements, broadcast. */
export function zipGrids<T, U, V>(op: string, a: Grid<T>, b: Grid<U>, f: (a: T, b: U) => V): Grid<V> {
  const shape = broadcastShapes(op, a.shape, b.shape);
  const right = elements(stretch(op, b, shape));
  return grid(
    shape,
    elements(stretch(op, a, shape)).map((value, i) => f(value, right[i]!)),
  );
}

/** Stretched to a shape without a copy. Throws ShapeError. */
export function stretch<T>(op: string, x: Grid<T>, shape: Shape): Grid<T> {
  if (sameShape(x.shape, shape)) return x;
  if (!broadcastsTo(x.shape, shape)) {
    throw new ShapeError(
      op,
      say`shape ${showShape(x.shape)} does not stretch to ${showShape(shape)}: sizes must be equal or 1, counted from the last axis`,
      [x.shape, shape],
    );
  }
  const missing = shape.length - x.shape.length;
  const lifted = [...new Array<number>(missing).fill(1), ...x.shape];
  const view = { strides: [...new Array<number>(missing).fill(0), ...x.view.strides], offset: x.view.offset };
  return { shape, view: expandView(lifted, view, shape), data: x.data };
}

/** Another shape of the same size; without a copy where strides allow. */
export function reshaped<T>(x: Grid<T>, shape: Shape): Grid<T> {
  const view = reshapeView(x.shape, x.view, shape);
  return view === null ? grid(shape, elements(x)) : { shape, view, data: x.data };
}

/** Axes in another order. */
export function permuted<T>(x: Grid<T>, axes: readonly number[]): Grid<T> {
  return { shape: axes.map((axis) => x.shape[axis]!), view: permuteView(x.view, axes), data: x.data };
}

/** Elements as nested arrays; the element itself for shape []. */
export function nested<T>(x: Grid<T>): unknown {
  const list = elements(x);
  let at = 0;
  const build = (axis: number): unknown => {
    if (axis === x.shape.length) return list[at++];
    return Array.from({ length: x.shape[axis]! }, () => build(axis + 1));
  };
  return build(0);
}

/** Grids one after the other along an axis; their other sizes are equal. */
export function joined<T>(parts: readonly Grid<T>[], axis: number): Grid<T> {
  const { shape } = parts[0]!;
  // With the axis in front, the elements of the result are those of the parts in turn.
  const order = [axis, ...shape.map((_, i) => i).filter((i) => i !== axis)];
  const moved = parts.map((part) => permuted(part, order));
  const length = parts.reduce((n, part) => n + part.shape[axis]!, 0);
  const whole = grid(
    [length, ...moved[0]!.shape.slice(1)],
    moved.flatMap((part) => [...elements(part)]),
  );
  return permuted(
    whole,
    order.map((_, i) => order.indexOf(i)),
  );
}

// Grids as text: rows aligned, long axes shortened, as tensors are printed.

export function formatGrid<T>(x: Grid<T>, toText: (value: T) => string): string {
  const values = elements(x);
  const texts = new Map(shownElements(x.shape).map((at) => [at, toText(values[at]!)]));
  const width = [...texts.values()].reduce((most, text) => Math.max(most, text.length), 0);
  return formatRows(x.shape, (at) => texts.get(at)!.padStart(width));
}
