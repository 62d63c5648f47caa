/**
 * The type Tensor: what users see of a tensor handle. Operations are methods only where the entry `@polygrad/core` is imported: methods/methods.ts
 * adds their types as it adds the methods, in the same import.
 *
 * This file has types only, so every module may import it.
 */
/// <reference lib="esnext.disposable" preserve="true" />
import type { Node } from '../graph/node.ts';
import type { DType, HostTypesOf, TypedArray } from '@polygrad/compiler/shape/dtype';
import type { Shape } from '@polygrad/compiler/shape/view';

/**
 * The dtype of a plain `Tensor`, where the type checker knows none. It is `any` because only that is assignable both ways: a plain Tensor
 * may be used for any dtype, and a Tensor of a known dtype for a plain one.
 */
// biome-ignore lint/suspicious/noExplicitAny: the one type that is assignable to every dtype and from every dtype
export type PlainDType = any;

/** What the type checker knows of a dtype that a call names: one or a few, or nothing (a plain `Tensor`) where it may be any. */
export type NamedDType<D extends DType> = DType extends D ? PlainDType : D;

/** The dtypes that a `Tensor<D>` may have: all for a plain one. */
export type KnownDType<D extends DType> = DType extends D ? DType : D;

/** Operations that Tensors have as methods: methods/own-methods.ts fills it in. */
// biome-ignore lint/suspicious/noEmptyInterface: others add to it
export interface TensorOperations {}

/**
 * An n-dimensional array of numbers of one dtype, computed when it is needed.
 *
 * Operations on Tensors are recorded and return at once; they run when a value is read, when a scope or an optimizer step
 * ends, at `flush()`, or at the limits of pending work (`setPendingLimits`). Shapes and dtypes are known (and checked) immediately.
 *
 * @template D the dtype where the type checker knows it, from a call that names it: `tensor` and its relatives with a dtype, and `cast`. It
 *   types what `data`, `array` and `item` give. A plain `Tensor` has any dtype; either may be used where the other is expected.
 *
 * @example
 * const x = tensor([[1, 2], [3, 4]]);
 * const y = x.mul(2).sum({ axis: 1 });
 * await y.data(); // Float32Array [6, 14]
 */
export interface Tensor<D extends DType = PlainDType> extends TensorOperations {
  /** The recorded node this handle names. For extensions; changes with `assign`. */
  node: Node;
  /** Sizes of the axes; [] for a scalar. */
  readonly shape: Shape;
  /** Number of axes. */
  readonly ndim: number;
  /** Number of elements. */
  readonly size: number;
  readonly dtype: KnownDType<D>;
  /** Name of the engine that holds the value, or will compute it. */
  readonly device: string;
  readonly disposed: boolean;
  /**
   * True if `backward()` can reach a leaf through this tensor. Setting it to true makes the tensor a leaf whose gradient
   * is accumulated in `grad`; setting it to false detaches the tensor from its history. Throws DTypeError for integers and bool.
   */
  requiresGrad: boolean;
  /**
   * Gradient accumulated by `backward()`; null before, and always null for tensors that are no leaf. Set to null to clear. Setting it throws
   * OperationError for a tensor that is no leaf.
   */
  grad: Tensor | null;

  /**
   * Elements in row-major order, once they are computed. bool is 0 and 1 in a Uint8Array; 16-bit floats are their bits in a Uint16Array
   * (`cast('float32')` or `array()` give numbers); 64-bit integers are a BigInt64Array or BigUint64Array.
   */
  data(): Promise<DataOf<D>>;
  /**
   * Elements as nested arrays; the element itself for a scalar. bool gives booleans, 64-bit integers bigints. Throws ShapeError for more than 2^26
   * elements, for which `data` is.
   */
  array(): Promise<NestedValues<ElementOf<D>>>;
  /**
   * The only element: 0 or 1 for bool, a bigint for 64-bit integers (`item<bigint>()` of a plain Tensor), else a number. Throws ShapeError
   * if there are more or none.
   */
  item<T extends ItemsOf<D> = ItemOf<D>>(): Promise<T>;
  // For unions of tensors, whose generic signatures differ.
  item(): Promise<ItemOf<D>>;
  /** Like `data`, at once. Throws on engines that cannot wait (WebGPU). */
  dataSync(): DataOf<D>;
  /** Like `array`, at once. */
  arraySync(): NestedValues<ElementOf<D>>;
  /** Like `item`, at once. */
  itemSync<T extends ItemsOf<D> = ItemOf<D>>(): T;
  itemSync(): ItemOf<D>;
  /** Writes the elements to the console, as NumPy does. */
  print(): Promise<void>;
  /** Shape and dtype as text; never reads the device. */
  toString(): string;

  /**
   * Makes this handle name the value of another tensor of the same shape and dtype; returns the handle.
   * Results computed from the old value stay. A leaf stays a leaf and keeps its gradient. If the next flush cannot compute the value, the
   * tensor goes back to the old one. So do all others assigned since the last flush; `onRollback` reports that.
   *
   * @throws ShapeError, DTypeError if they differ; OperationError for a value that depends on an example inside vmap, where this tensor
   *   was made outside
   */
  assign(value: Tensor): Tensor;
  /** Releases the tensor. Calling it again does nothing; using the tensor afterwards throws DisposedError. */
  dispose(): void;
  [Symbol.dispose](): void;

  /** Gradients of this tensor by all leaves it depends on, added to their `grad`. See `backward`. */
  backward(options?: BackwardOptions): void;
}

/** Options of `backward`. */
export interface BackwardOptions {
  /** Gradient to start from; ones for a scalar. */
  readonly gradient?: Tensor;
  /** Keep the graph, so that backward can be called again. Default: createGraph. */
  readonly retainGraph?: boolean;
  /** Build a graph of the gradients, for derivatives of higher order. Default false. */
  readonly createGraph?: boolean;
}

/** What operations accept as an operand: numbers take the dtype of the tensor they meet, bigints that of an integer tensor. */
export type TensorLike = Tensor | number | boolean | bigint;

/** The typed array that `data()` of a `Tensor<D>` gives. */
export type DataOf<D extends DType> = HostTypesOf[KnownDType<D>]['data'];

/** An element of what `array()` of a `Tensor<D>` gives. */
export type ElementOf<D extends DType> = HostTypesOf[KnownDType<D>]['element'];

/** All types that `item()` of a `Tensor<D>` may return. */
export type ItemsOf<D extends DType> = HostTypesOf[KnownDType<D>]['item'];

/** What `item()` of a `Tensor<D>` gives: a number where it may be either. */
export type ItemOf<D extends DType> = ItemsOf<D> extends bigint ? ItemsOf<D> : ItemsOf<D> & number;

/** Values as `array()` gives them. */
export type NestedValues<Element = number | boolean | bigint> = Element | NestedValues<Element>[];

/** Values as `tensor()` takes them. */
export type NestedInput = number | boolean | bigint | TypedArray | Uint8ClampedArray | readonly NestedInput[];

/** Options of functions that make tensors. */
export interface CreationOptions<D extends DType = DType> {
  /** Element type; float32 unless said otherwise. */
  readonly dtype?: D;
  /** Make a leaf for `backward()`. */
  readonly requiresGrad?: boolean;
}

/** Which axes an operation works along: one, several, or options with `keepDims`. */
export type AxisArgument = number | readonly number[] | AxisOptions;

/** One axis or several, by themselves or in options. */
export type AxesArgument = number | readonly number[] | { readonly axis?: number | readonly number[] | undefined };

/** Options of reductions. */
export interface AxisOptions {
  /** One axis or several, negative ones counted from the end; all axes if left out. */
  readonly axis?: number | readonly number[] | undefined;
  /** Leave axes of size 1 in place of the reduced ones. Default false. */
  readonly keepDims?: boolean | undefined;
}
