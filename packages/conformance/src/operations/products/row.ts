/** How products of vectors and matrices are described, and their specs. */
import type { Tensor } from '@polygrad/core';
import { count, type NDArray } from '../../oracle/ndarray.ts';
import { type Random, sample, uniform } from '../../oracle/random.ts';
import { total } from '../../oracle/sums.ts';
import { floats, type Inputs, type OpSpec } from '../../spec.ts';

const any = uniform(-1, 1);
export type Shape = readonly number[];

/** Of N factors. */
export interface Product<out N extends number = number> {
  readonly name: string;
  readonly shapes: readonly Readonly<Inputs<N, Shape>>[];
  run(xs: Inputs<N, Tensor>): Tensor;
  f(xs: Inputs<N, NDArray>): NDArray;
  /** Terms that each element of the result sums. */
  terms?(xs: Inputs<N, NDArray>): number;
}

/** A product within a list of others, of so many factors. */
export const ofFactors = <N extends number>(described: Product<N>): Product<N> => described;

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
      gradient: { of: shapes[0]!.map((_, i) => i), order: 2 },
    }),
  );
}
