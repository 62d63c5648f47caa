/** Tensors written as their numbers, and results compared with numbers: what the cases of this folder and of special.ts are made of. */
import * as pg from '@polygrad/core';
import type { Tensor } from '@polygrad/core';
import { assertClose } from '../../compare.ts';
import { arrayOf } from '../../host.ts';
import { nd } from '../../oracle/ndarray.ts';

export const exact = { rtol: 0, atol: 0 };

export const t = (...data: number[]): Tensor => pg.tensor(data);
export const i32 = (...data: number[]): Tensor => pg.tensor(data, { dtype: 'int32' });
export const gradientOf = (f: (x: Tensor) => Tensor, x: Tensor): Tensor => pg.grad((v: Tensor) => pg.sum(f(v)))(x);

export interface Expected {
  readonly expected: readonly number[];
  /** One axis with all of them if left out. */
  readonly shape?: readonly number[];
  /** To the last bit if left out. */
  readonly tolerance?: { readonly rtol: number; readonly atol: number };
}

/** Compares, and disposes the result. */
export async function compared(result: Tensor, wanted: Expected): Promise<void> {
  const { expected, shape, tolerance } = wanted;
  const actual = await arrayOf(result);
  assertClose('value', actual.data, actual.shape, nd(shape ?? [expected.length], expected), tolerance ?? exact);
}
