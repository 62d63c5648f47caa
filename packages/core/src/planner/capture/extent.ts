/** Which elements of a buffer a strided view touches. */

/** First element of the buffer that a view of this shape touches. */
export function viewBase(shape: readonly number[], strides: readonly number[], offset: number): number {
  let base = offset;
  for (let axis = 0; axis < shape.length; axis++) {
    const stride = strides[axis] as number;
    if (stride < 0) base += stride * ((shape[axis] as number) - 1);
  }
  return base;
}

/** Elements from the first to the last one that a view of this shape touches; 0 for shapes without elements. */
export function viewSpan(shape: readonly number[], strides: readonly number[]): number {
  let span = 1;
  for (let axis = 0; axis < shape.length; axis++) {
    const n = shape[axis] as number;
    if (n === 0) return 0;
    span += Math.abs(strides[axis] as number) * (n - 1);
  }
  return span;
}
