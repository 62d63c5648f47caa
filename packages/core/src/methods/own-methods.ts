/**
 * The types of all methods, and the methods that every Tensor has, whatever a bundle leaves out, beside those of the handle itself
 * (tensor/handle.ts): `backward`, and the four of arithmetic, in which formulas are read best and which hardly any program goes without.
 *
 * Importing this file puts them in place: a side effect (named in package.json). Every entry point does.
 */
import type * as operations from '../ops/operations.ts';
import { putHelp } from '#help';
import type { IEngine } from '../engine/engine.ts';
import { backward } from '../autodiff/backward.ts';
import { add, div, mul, sub } from '../ops/elementwise/arithmetic.ts';
import type { HistogramEdges, HistogramOptions, UniqueOptions, UniqueResult } from '../ops/order/searching.ts';
import type { SortIndices, SortOptions } from '../ops/order/sorting.ts';
import type { AdaptiveSettings, AdaptiveSize } from '../ops/pooling/adaptive-pooling.ts';
import type { PoolSettings, PoolWindow, WithIndices } from '../ops/pooling/pooling.ts';
import type { DType } from '@polygrad/compiler/shape/dtype';
import { TensorHandle } from '../tensor/handle.ts';
import type { NamedDType, PlainDType, Tensor } from '../tensor/types.ts';

// The operations that Tensors have as methods: `a.add(b)` is `add(a, b)`. Their types are those of the functions in ops/operations.ts, and
// editors show the functions' documentation with them.
//
// methods.ts puts the functions in place.

/** A function without its first parameter, which is the tensor. */
type AsMethod<Operation> = Operation extends (x: never, ...rest: infer Rest) => infer Result
  ? (...rest: Rest) => Result
  : never;

/** What a method of the same parameters cannot say: polygamma's tensor comes second. */
type Differing = 'polygamma';

/** Over all keys, with `as` for those left out: over a part of the keys a mapped type would lose the documentation. */
type Derived = {
  [Name in keyof typeof operations as Exclude<Name, Differing>]: AsMethod<(typeof operations)[Name]>;
};

/**
 * Methods by their functions. Written out are those that differ, generic ones, and those with overloads, of which TypeScript derives the last one only;
 * method-types.test.ts compares them with the functions.
 */
export interface TensorMethods extends Derived {
  /** The same value as a constant: no gradient flows through it. */
  detach(): Tensor;
  /** The same values on another engine, where what is computed from them is computed too. */
  to(engine: IEngine | string): Tensor;
  /** x in another dtype. Fractions are cut off for integers, which saturate, NaN becomes 0; bool is true where x is not 0. */
  cast<const D extends DType>(dtype: D): Tensor<NamedDType<D>>;
  /** Rows with a 1 at the index and 0 elsewhere; all zeros for indices outside. */
  oneHot<const D extends DType = PlainDType>(classes: number, options?: { readonly dtype?: D }): Tensor<NamedDType<D>>;
  /** The n-th derivative of digamma. */
  polygamma(order: number): Tensor;

  /** The elements in order along an axis; NaN is greater than every number. */
  sort(options: SortOptions & SortIndices): [Tensor, Tensor];
  sort(options?: number | SortOptions): Tensor;
  /** The different elements in increasing order. Asynchronous, because their number depends on data. */
  unique(options: UniqueOptions): Promise<UniqueResult>;
  unique(): Promise<Tensor>;
  /** How many elements fall into each of some intervals. */
  histogram(options: HistogramOptions & HistogramEdges): [Tensor, Tensor];
  histogram(options?: HistogramOptions): Tensor;
  /** The largest of every window along one axis; with returnIndices their places too. */
  maxPool1d(window: PoolWindow, settings: PoolSettings & WithIndices): [Tensor, Tensor];
  maxPool1d(window: PoolWindow, settings?: PoolSettings): Tensor;
  /** The largest of every window of an image; with returnIndices their places too. */
  maxPool2d(window: PoolWindow, settings: PoolSettings & WithIndices): [Tensor, Tensor];
  maxPool2d(window: PoolWindow, settings?: PoolSettings): Tensor;
  /** The largest of every window of a volume; with returnIndices their places too. */
  maxPool3d(window: PoolWindow, settings: PoolSettings & WithIndices): [Tensor, Tensor];
  maxPool3d(window: PoolWindow, settings?: PoolSettings): Tensor;
  /** The largest of windows that make a line of the size; with returnIndices their places too. */
  adaptiveMaxPool1d(size: AdaptiveSize, settings: AdaptiveSettings & WithIndices): [Tensor, Tensor];
  adaptiveMaxPool1d(size: AdaptiveSize, settings?: AdaptiveSettings): Tensor;
  /** The largest of windows that make a volume of the size; with returnIndices their places too. */
  adaptiveMaxPool3d(size: AdaptiveSize, settings: AdaptiveSettings & WithIndices): [Tensor, Tensor];
  adaptiveMaxPool3d(size: AdaptiveSize, settings?: AdaptiveSettings): Tensor;
  /** The largest of windows that make an image of the size; with returnIndices their places too. */
  adaptiveMaxPool2d(size: AdaptiveSize, settings: AdaptiveSettings & WithIndices): [Tensor, Tensor];
  adaptiveMaxPool2d(size: AdaptiveSize, settings?: AdaptiveSettings): Tensor;
}

/** The methods that are there, as `all`: methods/methods.ts fills it in. */
// biome-ignore lint/suspicious/noEmptyInterface: others add to it
export interface LoadedMethods {}

/** Arithmetic that every entry has as methods. */
export type OwnOperation = 'add' | 'sub' | 'mul' | 'div';

/** In the place of each method that is not there: one that nothing can call, so that the type checker says what to do. */
type MissingMethods = {
  readonly [Name in Exclude<keyof TensorMethods, OwnOperation>]: (
    this: `tensors of '@polygrad/core/functions' have no method ${Name}: call ${Name}(x, ...), or import '@polygrad/core' for methods`,
    ...inputs: unknown[]
  ) => never;
};

/** Operations as methods: all, if anything in the program imports '@polygrad/core', whose import puts them on Tensors. */
export type Operations = LoadedMethods extends { readonly all: infer All extends object } ? All : MissingMethods;

declare module '../tensor/types.ts' {
  interface TensorOperations extends Pick<TensorMethods, OwnOperation>, Operations {}
}

/** A function whose first parameter is the tensor that it is a method of. */
export type Operation = (x: Tensor, ...rest: never[]) => unknown;

/** Makes a function a method of all Tensors. */
export function putMethod(name: string, value: unknown): void {
  Object.defineProperty(TensorHandle.prototype, name, { value, configurable: true, writable: true });
}

/** Makes functions methods of all Tensors: what a method is called with follows its tensor. */
function putOnTensors(operations: Readonly<Record<string, Operation>>): void {
  for (const [name, operation] of Object.entries(operations)) {
    // Named, for stack traces.
    const { [name]: value } = {
      [name](this: Tensor, ...rest: never[]): unknown {
        return operation(this, ...rest);
      },
    };
    putMethod(name, value);
  }
}

/** The function that a method is made of. */
type FunctionOf<Method> = Method extends (...rest: infer Rest) => infer Result
  ? (x: Tensor, ...rest: Rest) => Result
  : never;

const own: { readonly [Name in 'backward' | OwnOperation]: FunctionOf<Tensor[Name]> } = {
  backward,
  add,
  sub,
  mul,
  div,
};

putHelp(TensorHandle.prototype);
putOnTensors(own);
