/**
 * How an operation is described to the suite: data, the library call, the oracle, and how many orders of derivative hold.
 *
 * `expand.ts` turns each spec into cases over dtypes, shapes and layouts.
 */
import type { DType, Tensor } from '@polygrad/core';
import type { NDArray } from './oracle/ndarray.ts';
import type { Random } from './oracle/random.ts';

/** Dtypes that most operations of floats are checked in; others follow (`OpSpec.more`). */
export const floats: readonly DType[] = ['float32', 'float64'];
/** The same of operations of all numbers. */
export const numeric: readonly DType[] = ['float32', 'float64', 'int32'];

export interface OpSpec {
  readonly name: string;
  readonly dtypes: readonly DType[];
  /** Instances: a label and the inputs it draws. */
  readonly instances: readonly Instance[];
  /** Dtype of the inputs that do not follow the case's dtype, by position (indices, masks). */
  readonly inputDTypes?: Readonly<Record<number, DType>>;
  readonly run: (inputs: Tensor[], options: Options) => Tensor;
  readonly oracle: (inputs: NDArray[], options: Options) => NDArray;
  /** Dtype of the result, or how it follows from the case's dtype; that one if left out. */
  readonly result?: DType | ((dtype: DType) => DType);
  /**
   * Other dtypes, checked on a few instances and plain data only. Left out: the 16-bit floats where float32 is among `dtypes`, the
   * other integers where int32 is (unsigned ones where no input is negative).
   */
  readonly more?: readonly DType[];
  /** Positions of inputs to differentiate, and to which order (0, 1 or 2). */
  readonly gradient?: { readonly of: readonly number[]; readonly order: 1 | 2 };
  /** Number of terms each result element sums, for the gamma_K allowance of float32. */
  readonly terms?: (inputs: NDArray[], options: Options) => number;
}

export type Options = Readonly<Record<string, unknown>>;

export interface Instance {
  readonly label: string;
  readonly draw: (random: Random) => NDArray[];
  readonly options?: Options;
  /** Small enough for finite differences element by element. */
  readonly small?: boolean;
}

/** Dtype of the result for inputs of a dtype. */
export function resultOf({ result }: OpSpec, dtype: DType): DType {
  return typeof result === 'function' ? result(dtype) : (result ?? dtype);
}
