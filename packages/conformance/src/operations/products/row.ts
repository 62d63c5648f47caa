/** How products of vectors and matrices are described, and their specs. */
import type { Tensor } from '@polygrad/core';
import { count, type NDArray } from '../../oracle/ndarray.ts';
import { type Random, sample, uniform } from '../../oracle/random.ts';
import { total } from '../../oracle/sums.ts';
import { floats, type OpSpec } from '../../spec.ts';

const any = uniform(-1, 1);
export type Shape = readonly number[];

export interface Product {
  readonly name: string;
  readonly shapes: readonly (readonly Shape[])[];
  readonly run: (xs: Tensor[]) => Tensor;
  readonly f: (xs: NDArray[]) => NDArray;
  /** Terms that each element of the result sums. */
  readonly terms?: (xs: NDArray[]) => number;
}

export function productSpecs(products: readonly Product[]): OpSpec[] {
  return products.map(
    ({ name, shapes, run, f, terms }): OpSpec => ({
      name,
      dtypes: floats,
      instances: shapes.map((each) => ({
        label: each.map((shape) => `[${shape}]`).join(' '),
        small: total(each.map(count)) <= 64,
        draw: (r: Random) => each.map((shape) => sample(r, shape, any)),
      })),
      run,
      oracle: f,
      ...(terms ? { terms } : {}),
      gradient: { of: (shapes[0] as readonly Shape[]).map((_, i) => i), order: 2 },
    }),
  );
}
