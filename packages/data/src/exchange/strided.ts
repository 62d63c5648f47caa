/** Elements that lie in memory in another order than row by row, brought to that order. */
import {
  allocateHost,
  HOST_BYTES,
  type HostDType,
  type HostTypedArray,
  LITTLE_ENDIAN,
  sizeOf,
  swapBytes,
  viewHost,
} from '../arrays.ts';

/** A part of a file: elements of a dtype, end to end. */
export interface Elements {
  readonly dtype: HostDType;
  readonly bytes: Uint8Array;
  readonly littleEndian: boolean;
}

/** The last element that a view of a shape with these strides reads, counted from its first; -1 where it has none. */
export function lastOf(shape: readonly number[], strides: readonly number[]): number {
  if (shape.includes(0)) return -1;
  return shape.reduce((sum, extent, axis) => sum + (extent - 1) * strides[axis]!, 0);
}

/** Strides of elements row by row. */
export function rowMajorStrides(shape: readonly number[]): number[] {
  const strides: number[] = [];
  let step = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides.unshift(step);
    step *= shape[axis]!;
  }
  return strides;
}

/** True if elements lie row by row; the stride of an axis of one element says nothing. */
function isRowMajor(shape: readonly number[], strides: readonly number[]): boolean {
  return rowMajorStrides(shape).every((stride, axis) => shape[axis] === 1 || stride === strides[axis]);
}

/** A copy of the elements of a view, row by row. Its elements must be there. */
export function rowMajor(
  { dtype, bytes, littleEndian }: Elements,
  offset: number,
  shape: readonly number[],
  strides: readonly number[],
): HostTypedArray {
  const width = HOST_BYTES[dtype];
  const last = lastOf(shape, strides);
  // Not `slice`: that of Node's Buffer is a view.
  const span = new Uint8Array(bytes.subarray(offset * width, (offset + last + 1) * width));
  if (littleEndian !== LITTLE_ENDIAN) swapBytes(span, width);
  const lying = viewHost(dtype, span.buffer, 0, last + 1);
  if (last < 0 || isRowMajor(shape, strides)) return lying;
  const out = allocateHost(dtype, sizeOf(shape));
  // Both are of one kind, and bigints move as numbers do.
  gather(lying as Float64Array, out as Float64Array, shape, strides);
  return out;
}

function gather(lying: Float64Array, out: Float64Array, shape: readonly number[], strides: readonly number[]): void {
  const axes = shape.length - 1; // the last axis is the inner loop
  const at = new Array<number>(axes).fill(0);
  const [inner, step] = [shape[axes]!, strides[axes]!];
  let from = 0;
  for (let to = 0; to < out.length; ) {
    for (let i = 0; i < inner; i++) out[to++] = lying[from + i * step]!;
    for (let axis = axes - 1; axis >= 0; axis--) {
      at[axis]!++;
      from += strides[axis]!;
      if (at[axis]! < shape[axis]!) break;
      from -= at[axis]! * strides[axis]!;
      at[axis] = 0;
    }
  }
}
