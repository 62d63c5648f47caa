/** What `print` writes, in a module of its own: pages load it when something is printed, and reach format.ts by no other way. */
import type { DType, TypedArray } from '../shape/dtype.ts';
import type { Shape } from '../shape/view.ts';
import { formatArray } from './format.ts';

export function print(data: TypedArray, shape: Shape, dtype: DType): void {
  console.log(formatArray(data, shape, dtype));
}
