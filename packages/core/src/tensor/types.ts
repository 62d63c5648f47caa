/**
 * The type Tensor: what users see of a tensor handle. Operations are methods only where the entry `@polygrad/core` is imported: methods/methods.ts
 * adds their types as it adds the methods, in the same import.
 *
 * This file has types only, so every module may import it.
 */
/// <reference lib="esnext.disposable" preserve="true" />
import type { Node } from '../graph/node.ts';
import type { DType, TypedArray } from '../shape/dtype.ts';
import type { Shape } from '../shape/view.ts';

/** Operations that Tensors have as methods: methods/own-methods.ts fills it in. */
// biome-ignore lint/suspicious/noEmptyInterface: others add to it
export interface TensorOperations {}

/**
 * An n-dimensional array of numbers of one dtype, computed when it is needed.
 *
 * Operations on Tensors are recorded and return at once; they run when a value is read, when a scope or an optimizer step
 * ends, at `flush()`, or when much is waiting. Shapes and dtypes are known (and checked) immediately.
 *
 * @example
 * const x = tensor([[1, 2], [3, 4]]);
 * const y = x.mul(2).sum({ axis: 1 });
 * await y.data(); // Float32Array [6, 14]
 */
export interface Tensor extends TensorOperations {
  /** The recorded node this handle names. For extensions; changes with `assign`. */
  node: Node;
  /** Sizes of the axes; [] for a scalar. */
  readonly shape: Shape;
  /** Number of axes. */
  readonly ndim: number;
  /** Number of elements. */
  readonly size: number;
  readonly dtype: DType;
  /** Name of the engine that holds the value, or will compute it. */
  readonly device: string;
  readonly disposed: boolean;
  /**
   * True if `backward()` can reach a leaf through this tensor. Setting it to true makes the tensor a leaf whose gradient
   * is accumulated in `grad`; setting it to false detaches the tensor from its history. Throws DTypeError for integers and bool.
   */
  requiresGrad: boolean;
  /** Gradient accumulated by `backward()`; null before, and always null for tensors that are no leaf. Set to null to clear. */
  grad: Tensor | null;

  /**
   * Elements in row-major order, once they are computed. bool is 0 and 1 in a Uint8Array; 16-bit floats are their bits in a Uint16Array
   * (`cast('float32')` or `array()` give numbers); 64-bit integers are a BigInt64Array or BigUint64Array.
   */
  data(): Promise<TypedArray>;
  /** Elements as nested arrays; the element itself for a scalar. bool gives booleans, 64-bit integers bigints. */
  array(): Promise<NestedValues>;
  /**
   * The only element: 0 or 1 for bool, a bigint for 64-bit integers (write `item<bigint>()`), else a number. Throws ShapeError if there
   * are more or none.
   */
  item<T extends number | bigint = number>(): Promise<T>;
  /** Like `data`, at once. Throws on engines that cannot wait (WebGPU). */
  dataSync(): TypedArray;
  /** Like `array`, at once. */
  arraySync(): NestedValues;
  /** Like `item`, at once. */
  itemSync<T extends number | bigint = number>(): T;
  /** Writes the elements to the console, as NumPy does. */
  print(): Promise<void>;
  /** Shape and dtype as text; never reads the device. */
  toString(): string;

  /**
   * Lets this handle stand for the value of another tensor of the same shape and dtype from now on; returns the handle.
   * What was computed from the old value stays. A leaf stays a leaf and keeps its gradient. If the next flush cannot compute the value, the
   * tensor goes back to the old one, and so do all others assigned since the last flush; `onRollback` tells.
   *
   * @throws ShapeError, DTypeError if they differ; OperationError for a value that depends on an example inside vmap, where this tensor
   *   was made outside
   */
  assign(value: Tensor): Tensor;
  /** Gives the tensor up. Calling it again does nothing; using the tensor afterwards throws DisposedError. */
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

/** Values as `array()` gives them. */
export type NestedValues = number | boolean | bigint | NestedValues[];

/** Values as `tensor()` takes them. */
export type NestedInput = number | boolean | bigint | TypedArray | Uint8ClampedArray | readonly NestedInput[];

/** Options of functions that make tensors. */
export interface CreationOptions {
  /** Element type; float32 unless said otherwise. */
  readonly dtype?: DType;
  /** Make a leaf for `backward()`. */
  readonly requiresGrad?: boolean;
}

/** Which axes an operation works along: one, several, or options with `keepDims`. */
export type AxisArgument = number | readonly number[] | AxisOptions;

export interface AxisOptions {
  /** One axis or several, negative ones counted from the end; all axes if left out. */
  readonly axis?: number | readonly number[] | undefined;
  /** Leave axes of size 1 in place of the reduced ones. Default false. */
  readonly keepDims?: boolean | undefined;
}
