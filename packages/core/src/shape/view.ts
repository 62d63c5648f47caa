/**
 * Shapes and strided views: how an index of a tensor maps to an element of a buffer.
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

/** Number of elements of a shape; 1 for []. */
export function sizeOf(shape: Shape): number {
  let size = 1;
  for (const n of shape) size *= n;
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
