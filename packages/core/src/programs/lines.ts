/**
 * How programs written with the builder address tensors: as lines along one axis.
 *
 * A line is what remains when all indices but the axis's own are fixed. Lines are counted in row-major order of those.
 */
import type { Exprs } from '../ir/expr.ts';
import type { KNode } from '../ir/ir.ts';
import type { DType } from '../shape/dtype.ts';
import { rowMajorStrides, type Shape } from '../shape/view.ts';

/** A tensor in memory: element `index` is at `shift` + sum of index * strides. */
export interface TensorView {
  readonly dtype: DType;
  readonly shape: Shape;
  readonly strides: readonly number[];
  readonly shift: number;
  /** Elements a program may touch, counted from the start of its binding. */
  readonly span: number;
}

/** A row-major tensor that starts at its binding. */
export function rowMajor(dtype: DType, shape: Shape): TensorView {
  const span = shape.reduce((n, size) => n * size, 1);
  return { dtype, shape, strides: rowMajorStrides(shape), shift: 0, span };
}

/** `length` elements of an axis from `start`. */
export function narrowed(view: TensorView, axis: number, start: number, length: number): TensorView {
  return {
    ...view,
    shape: view.shape.map((n, i) => (i === axis ? length : n)),
    shift: view.shift + start * view.strides[axis]!,
  };
}

/** The same memory with one axis left out, at its first position. */
export function without(view: TensorView, axis: number): TensorView {
  const rest = <T>(list: readonly T[]): T[] => list.filter((_, i) => i !== axis);
  return { ...view, shape: rest(view.shape), strides: rest(view.strides) };
}

/** Number of lines along the axis. */
export function linesOf(shape: Shape, axis: number): number {
  return shape.reduce((n, size, i) => (i === axis ? n : n * size), 1);
}

/** Position in memory of the first element of a line. */
export function lineStart(e: Exprs, view: TensorView, axis: number, line: KNode): KNode {
  return positionOf(e, without(view, axis), line);
}

/** Position in memory of the element at a row-major position. */
export function positionOf(e: Exprs, { shape, strides, shift }: TensorView, flat: KNode): KNode {
  let at: KNode = e.i32(shift);
  let rest = flat;
  const outermost = shape.findIndex((n) => n !== 1);
  // Axes that lie behind each other in memory are one.
  let axis = shape.length - 1;
  while (axis >= 0) {
    let n = shape[axis]!;
    const stride = strides[axis]!;
    axis--;
    while (axis >= 0 && (shape[axis] === 1 || strides[axis] === stride * n)) {
      n *= shape[axis]!;
      axis--;
    }
    if (n === 1) continue;
    const last = axis < outermost;
    at = e.add(at, e.mul(last ? rest : e.irem(rest, n), stride));
    if (!last) rest = e.idiv(rest, n);
  }
  return at;
}
