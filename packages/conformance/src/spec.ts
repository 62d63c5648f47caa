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

/** What an operation of N inputs takes; of `2 | 3` the third may be missing. */
export type Inputs<N extends number, T> = N extends 1
  ? [T]
  : N extends 2
    ? [T, T]
    : N extends 3
      ? [T, T, T]
      : N extends 4
        ? [T, T, T, T]
        : N extends 5
          ? [T, T, T, T, T]
          : T[];

/** Of an operation that takes N inputs. Its functions are methods, so that specs of any N are specs. */
export interface OpSpec<out N extends number = number> {
  readonly name: string;
  readonly dtypes: readonly DType[];
  /** Instances: a label and the inputs it draws. */
  readonly instances: readonly Instance<N>[];
  /** Dtype of the inputs that do not follow the case's dtype, by position (indices, masks). */
  readonly inputDTypes?: Readonly<Record<number, DType>>;
  run(inputs: Inputs<N, Tensor>, options: Options): Tensor;
  oracle(inputs: Inputs<N, NDArray>, options: Options): NDArray;
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
  terms?(inputs: Inputs<N, NDArray>, options: Options): number;
}

/** A spec within a list of others, of so many inputs: `spec<2>({ ... })`. */
export const spec = <N extends number>(described: OpSpec<N>): OpSpec<N> => described;

export type Options = Readonly<Record<string, unknown>>;

export interface Instance<out N extends number = number> {
  readonly label: string;
  draw(random: Random): Inputs<N, NDArray>;
  readonly options?: Options;
  /** Small enough for finite differences element by element. */
  readonly small?: boolean;
}

/** Dtype of the result for inputs of a dtype. */
export function resultOf({ result }: OpSpec, dtype: DType): DType {
  return typeof result === 'function' ? result(dtype) : (result ?? dtype);
}
