/**
 * Shapes, strided views and their movements: how an index of a tensor maps to an element of a buffer.
 *
 * Pure arithmetic on number arrays. A View is strides and an offset in elements; stride 0 is a broadcast axis, negative
 * strides are flips. Nothing here knows buffers, dtypes or devices.
 */

/** Sizes of the axes; [] is a scalar. */
export type Shape = readonly number[];

/** Strided mapping of a shape onto a flat buffer, in elements. */
export interface View {
  readonly strides: readonly number[];
  readonly offset: number;
}

/**
 * The same number, as engines of JavaScript keep small integers. What was reckoned with fractions, or by powers, they keep as a double though it is
 * whole. A list with one such number makes all of its numbers doubles: each that is read is a new object.
 */
export function whole(n: number): number {
  const small = n | 0;
  return small === n ? small : n;
}

/** Number of elements of a shape; 1 for []. */
export function sizeOf(shape: Shape): number {
  let size = 1;
  for (let axis = 0; axis < shape.length; axis++) size *= shape[axis]!;
  return size;
}

/** Row-major strides of a shape. */
export function rowMajorStrides(shape: Shape): number[] {
  const strides = new Array<number>(shape.length);
  let step = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = step;
    step *= shape[axis]!;
  }
  return strides;
}

/** True if the view visits the buffer in row-major order without gaps (axes of size 0 or 1 do not matter). */
export function isRowMajor(shape: Shape, view: View): boolean {
  let step = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const n = shape[axis]!;
    if (n !== 1) {
      if (n !== 0 && view.strides[axis] !== step) return false;
      step *= n;
    }
  }
  return true;
}

// Movement of strided views: what reshape, permute, expand and slice do to strides and offset.
//
// Used to give a realised tensor another shape without a kernel. A null answer means: strides cannot express it.

/** View of the same elements in row-major order under another shape, or null. */
export function reshapeView(from: Shape, view: View, to: Shape): View | null {
  if (sizeOf(from) === 0) return { strides: new Array<number>(to.length).fill(0), offset: view.offset };
  // Axes of size 1 do not matter; the others are matched in groups of equal products.
  const sizes: number[] = [];
  const steps: number[] = [];
  for (let i = 0; i < from.length; i++) {
    if (from[i] === 1) continue;
    sizes.push(from[i]!);
    steps.push(view.strides[i]!);
  }
  const strides = new Array<number>(to.length).fill(0);
  let low = 0;
  let axis = 0;
  while (low < sizes.length) {
    let high = low + 1;
    let have = sizes[low]!;
    const start = axis;
    let want = 1;
    while (want !== have) {
      if (want < have) want *= to[axis++]!;
      else have *= sizes[high++]!;
    }
    for (let i = low; i + 1 < high; i++) {
      if (steps[i] !== steps[i + 1]! * sizes[i + 1]!) return null;
    }
    let step = steps[high - 1]!;
    for (let i = axis - 1; i >= start; i--) {
      strides[i] = step;
      step *= to[i]!;
    }
    low = high;
  }
  return { strides, offset: view.offset };
}

/** View with reordered axes: result axis i is source axis axes[i]. */
export function permuteView(view: View, axes: readonly number[]): View {
  return { strides: axes.map((axis) => view.strides[axis]!), offset: view.offset };
}

/** View with axes of size 1 stretched to `to` (same rank). */
export function expandView(from: Shape, view: View, to: Shape): View {
  return { strides: view.strides.map((step, i) => (from[i] === to[i] ? step : 0)), offset: view.offset };
}

/** View of start, start + step, ... along every axis. */
export function sliceView(view: View, start: readonly number[], step: readonly number[]): View {
  let offset = view.offset;
  for (let i = 0; i < start.length; i++) offset += start[i]! * view.strides[i]!;
  return { strides: view.strides.map((s, i) => s * step[i]!), offset };
}

/** True if both shapes have the same sizes. */
export function sameShape(a: Shape, b: Shape): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
