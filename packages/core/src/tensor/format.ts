/** `formatArray`: elements as text in NumPy's format, with its arguments checked. printed.ts does the layout. */
import { checkShape } from '@polygrad/compiler/shape/axes';
import { type DType, type TypedArray, checkDType } from '@polygrad/compiler/shape/dtype';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { floatsOf, getElement } from '@polygrad/compiler/shape/host';
import { say } from '@polygrad/compiler/shape/shown';
import { type Shape, sizeOf } from '@polygrad/compiler/shape/view';
import { textOf } from './printed.ts';

/**
 * Elements as text, as NumPy prints them. Columns are aligned. Floats have as many digits as their dtype needs, up to 8 after the point; all
 * have exponents or none. Of more than 1,000 elements, axes longer than 6 are shortened. Rows break at 75 columns. Booleans are `true` and `false`.
 *
 * @param data elements as `data()` gives them
 * @param shape their shape; a number by itself for []
 * @param dtype what the elements are
 * @throws ArgumentError unless data is a typed array; ShapeError if its length is not that of the shape
 * @see https://numpy.org/doc/stable/reference/generated/numpy.array2string.html
 *
 * @example
 * formatArray(new Float32Array([1, 2.5]), [2], 'float32'); // '[1.  2.5]'
 */
export function formatArray(data: TypedArray, shape: Shape, dtype: DType): string {
  checkDType('formatArray', dtype);
  checkShape('formatArray', shape);
  if (!ArrayBuffer.isView(data))
    throw new ArgumentError('formatArray', say`bad data: ${data}; must be a typed array, as data() gives them`);
  if (data?.length !== sizeOf(shape))
    throw new ShapeError(
      'formatArray',
      say`data has ${data?.length} elements: shape ${showShape(shape)} has ${sizeOf(shape)}`,
      [shape],
    );
  return textOf(shape, (i) => getElement(data, dtype, i), floatsOf(dtype));
}
