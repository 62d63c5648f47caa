/** Host arrays of graph-values.ts: elements by index, right-aligned broadcasting, and what a rule is. */
import type { Attrs, PrimitiveName } from '../graph/attrs.ts';
import { type Shape, rowMajorStrides, sizeOf } from '../shape/view.ts';

/** Elements in row-major order. */
export type Values = Float64Array;

export type Rule<P extends PrimitiveName> = (src: readonly Tensor[], attr: Attrs[P], shape: Shape) => Values;

export interface Tensor {
  readonly shape: Shape;
  readonly values: Values;
}

/** Calls `fn` with every index of the shape, in row-major order, and collects its results. */
export function build(shape: Shape, fn: (index: readonly number[]) => number): Values {
  const out = new Float64Array(sizeOf(shape));
  const index = shape.map(() => 0);
  for (let i = 0; i < out.length; i++) {
    out[i] = fn(index);
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      index[axis] = index[axis]! + 1;
      if (index[axis]! < shape[axis]!) break;
      index[axis] = 0;
    }
  }
  return out;
}

export function at(t: Tensor, index: readonly number[]): number {
  const strides = rowMajorStrides(t.shape);
  let flat = 0;
  for (let axis = 0; axis < t.shape.length; axis++) {
    const i = index[axis]!;
    if (i < 0 || i >= t.shape[axis]!) return 0;
    flat += i * strides[axis]!;
  }
  return t.values[flat]!;
}

/** NumPy's broadcasting: right-aligned, axes of size 1 stay at 0. */
export function spread(t: Tensor, index: readonly number[]): number {
  const skip = index.length - t.shape.length;
  return at(
    t,
    t.shape.map((n, axis) => (n === 1 ? 0 : index[axis + skip]!)),
  );
}
