/**
 * Tensors from data and from a single value. Data is copied to the engine at once; a single value takes no memory. Tensors of a pattern are in
 * patterns.ts, random numbers in random.ts.
 */
import { broadcastTo, constant, scalar } from '../../graph/primitives.ts';
import { beginOp, compose, composingDepth, opName } from '../../graph/scope.ts';
import { checkAttached, checkNames, shown } from '@polygrad/compiler/shape/options';
import { checkShape } from '@polygrad/compiler/shape/axes';
import {
  type DType,
  dtypeInfo,
  isFloat,
  isInteger,
  type TypedArray,
  checkDType,
  DTypeError,
} from '@polygrad/compiler/shape/dtype';
import { ArgumentError, ShapeError, showShape } from '@polygrad/compiler/shape/errors';
import { hostArray, hostArrays, setElement } from '@polygrad/compiler/shape/host';
import { eachNested, nestedShape } from '@polygrad/compiler/shape/nested';
import { checkRange, checkWeak } from '@polygrad/compiler/shape/promotion';
import { say } from '@polygrad/compiler/shape/shown';
import { type Shape, sizeOf } from '@polygrad/compiler/shape/view';
import { isTensor, nodeOf, uploadNode, wrap } from '../../tensor/handle.ts';
import { weakDefault } from '../../tensor/operand.ts';
import type { CreationOptions, NamedDType, NestedInput, PlainDType, Tensor } from '../../tensor/types.ts';

/** Options of `tensor`. */
export interface TensorOptions<D extends DType = DType> extends CreationOptions<D> {
  /** Shape to give flat data, or to check nested data against. */
  readonly shape?: Shape;
}

/** An array in host memory with what its elements are: as data sets, files of weights and `features.encode` of @polygrad/data give it. */
export interface HostTensor<D extends DType = DType> {
  readonly dtype: D;
  readonly shape: Shape;
  readonly data: TypedArray;
}

/** Kind of an array, the same in all frames of a page and contexts of Node, which `instanceof` is not. */
const kindOf = (data: ArrayBufferView): string => (data as Uint8Array)[Symbol.toStringTag];

/** Default dtype of a typed array. */
function dtypeOfArray(data: ArrayBufferView): DType {
  // A Float16Array, which only newer environments have, is read as numbers.
  const name = kindOf(data)
    .replace(/^Big|(Clamped)?Array$/g, '')
    .toLowerCase();
  if (Object.hasOwn(dtypeInfo, name)) return name as DType;
  throw new ArgumentError(
    opName('tensor'),
    say`data is a ${kindOf(data)}: not an array of numbers; pass a typed array or nested arrays`,
  );
}

/** What an element of nested data is by itself; throws for what is no number. */
function kindOfElement(op: string, item: unknown): DType {
  switch (typeof item) {
    case 'number':
      return 'float32';
    case 'boolean':
      return 'bool';
    case 'bigint':
      return 'int64';
    default:
      throw new ArgumentError(
        op,
        say`element is no number: ${shown(item)}; elements are numbers, booleans or bigints${isTensor(item) ? ', and stack() makes one tensor of several' : ''}`,
      );
  }
}

/** A zeroed host array for a shape. Throws ShapeError if there is no memory for it. */
function roomFor(op: string, dtype: DType, shape: Shape): TypedArray {
  try {
    return hostArray(dtype, sizeOf(shape));
  } catch {
    throw new ShapeError(
      op,
      say`no memory for the elements of shape ${showShape(shape)} as ${dtype}; make parts of it`,
      [shape],
    );
  }
}

/** Writes numbers as elements of a dtype, from the first position on. Throws DTypeError for numbers that an integer dtype does not hold. */
function writer(op: string, host: TypedArray, dtype: DType): (value: number | boolean | bigint) => void {
  let at = 0;
  const whole = isInteger(dtype);
  const plain = dtype === 'float32' || dtype === 'float64' || dtype === 'int32' || dtype === 'uint32';
  return (value) => {
    if (whole) checkRange(op, typeof value === 'boolean' ? Number(value) : value, dtype);
    if (plain) host[at++] = Number(value);
    else setElement(host, dtype, at++, value);
  };
}

/** Nested arrays as elements in order. Values have one type unless a dtype is given. */
function fromNested(op: string, data: unknown, wanted: DType | undefined): [TypedArray, DType, number[]] {
  const shape = nestedShape(op, data);
  let dtype = wanted;
  let host: TypedArray | null = null;
  let kind: DType | null = null;
  let write: (value: number | boolean | bigint) => void = () => undefined;
  eachNested(op, data, shape, (item) => {
    const own = kindOfElement(op, item);
    if (host === null) {
      dtype ??= own;
      host = roomFor(op, dtype, shape);
      write = writer(op, host, dtype);
    } else if (wanted === undefined && own !== kind) {
      const kinds = [kind as unknown as DType, own] as const;
      throw new DTypeError(op, say`values of different types: ${kinds[0]} and ${own}; give all values one type`, kinds);
    }
    kind = own;
    write(item as number);
  });
  dtype ??= 'float32';
  return [host ?? hostArray(dtype, 0), dtype, shape];
}

/** The elements of a list as those of a dtype. */
function converted(op: string, values: ArrayLike<number | bigint>, dtype: DType): TypedArray {
  const host = roomFor(op, dtype, [values.length]);
  const write = writer(op, host, dtype);
  for (let i = 0; i < values.length; i++) write(values[i]!);
  return host;
}

/** The typed array itself where it has the form of a dtype, else its elements as those. */
function fitting(op: string, data: ArrayLike<number | bigint>, dtype: DType, bitsOfBool: boolean): TypedArray {
  const typed = data as TypedArray;
  // A Uint16Array for 16-bit floats is their bits, as data() gives them.
  const fits = typed instanceof hostArrays[dtype] || kindOf(typed) === kindOf(hostArray(dtype, 0));
  return fits && (dtype !== 'bool' || bitsOfBool) ? typed : converted(op, data, dtype);
}

/**
 * What `tensor` makes of flat data of this shape and dtype, for packages that make tensors from host memory only: pages that call nothing else do
 * without what reads nested arrays. The caller has checked that there are as many numbers as the shape needs.
 *
 * @throws DTypeError for numbers that an integer dtype does not hold; ArgumentError for what is no dtype, and for a view whose ArrayBuffer was detached or shrunk
 * @example
 * import '@polygrad/backend-cpu';
 * import { uploaded } from '@polygrad/core/engine';
 * console.log(await uploaded(new Float32Array([1, 2]), [1, 2], 'float32').array()); //=> [ [ 1, 2 ] ]
 */
export function uploaded(data: ArrayLike<number | bigint>, shape: Shape, dtype: DType): Tensor {
  beginOp('tensor');
  const op = opName('tensor');
  checkDType(op, dtype);
  if (ArrayBuffer.isView(data)) checkAttached(op, 'data', data);
  return wrap(uploadNode(fitting(op, data, dtype, false), shape, dtype));
}

/**
 * A tensor of the given data: a number, nested arrays of numbers, booleans or bigints, a typed array (which is copied), or one with its dtype and shape.
 *
 * @param data elements; nested arrays must be rectangular; `{ dtype, shape, data }` as @polygrad/data gives
 * @param options dtype: float32 for numbers, bool for booleans, int64 for bigints, a typed array's own unless given;
 *   16-bit floats are converted from numbers. A Uint16Array is their bits, as `data()` gives them. shape: for flat data. requiresGrad: make a leaf for `backward()`
 * @returns a tensor of the data's shape, or of `shape`
 * @throws ShapeError for ragged arrays and shapes that do not fit; DTypeError for mixed values, and for numbers that an integer dtype does
 *   not hold: outside of its range, NaN or infinite. Fractions are cut off. (`cast()` saturates instead.) ArgumentError for a view whose
 *   ArrayBuffer was detached or shrunk
 *
 * @example
 * const x = tensor([[1, 2], [3, 4]]);
 * const i = tensor([0, 1, 2], { dtype: 'int32' });
 * const m = tensor(new Float32Array(6), { shape: [2, 3] });
 * tensor({ dtype: 'float32', shape: [1, 2], data: new Float32Array([1, 2]) }); // [[1, 2]]
 */
export function tensor<const D extends DType = PlainDType>(
  data: NestedInput | HostTensor<D>,
  options?: TensorOptions<D>,
): Tensor<NamedDType<D>>;
export function tensor(data: NestedInput | HostTensor, options: TensorOptions = {}): Tensor {
  const given = data as HostTensor | null;
  if (ArrayBuffer.isView(given?.data))
    return tensor(given.data, { dtype: given.dtype, shape: given.shape, ...options });
  checkNames('tensor', options, 'dtype% shape requiresGrad?');
  beginOp('tensor');
  let shape: Shape;
  let host: TypedArray;
  let dtype: DType;
  if (ArrayBuffer.isView(data)) {
    const typed = data as TypedArray;
    checkAttached(opName('tensor'), 'data', typed);
    dtype = options.dtype ?? dtypeOfArray(typed);
    shape = [typed.length];
    host = fitting(opName('tensor'), typed, dtype, options.dtype === undefined);
  } else {
    [host, dtype, shape] = fromNested(opName('tensor'), data, options.dtype);
  }
  if (options.shape !== undefined) {
    shape = checkShape(opName('tensor'), options.shape);
    if (sizeOf(shape) !== host.length) {
      throw new ShapeError(
        opName('tensor'),
        say`number of elements differs: ${host.length} given and ${sizeOf(shape)} in shape ${showShape(shape)}; they must be equal`,
        [shape],
      );
    }
  }
  return leaf('tensor', wrap(uploadNode(host, shape, dtype)), options);
}

/** Throws ArgumentError unless options are those of functions that make tensors. */
export function checkCreation(op: string, options: CreationOptions): void {
  checkNames(op, options, 'dtype% requiresGrad?');
}

/** Makes a new tensor a leaf for backward() if the options ask for it. */
export function leaf(op: string, t: Tensor, options: CreationOptions): Tensor {
  if (!options.requiresGrad) return t;
  const { dtype } = t;
  if (!isFloat(dtype)) {
    t.dispose();
    throw new DTypeError(
      opName(op),
      say`dtype ${dtype} and requiresGrad: only floating-point tensors have gradients; choose another dtype`,
      [dtype],
    );
  }
  t.requiresGrad = true;
  return t;
}

function filled(op: string, shape: Shape, value: number | bigint, usual: DType, options: CreationOptions): Tensor {
  beginOp(op);
  // The shape first: a size too many, as in zeros(2, 3), stands where the options should be.
  const sizes = checkShape(op, shape);
  checkNames(op, options, 'dtype% requiresGrad?');
  const dtype = options.dtype ?? usual;
  return leaf(op, wrap(constant(value, dtype, sizes)), options);
}

/**
 * Zeros. Source: Array API `zeros`.
 *
 * @param shape sizes of the axes
 * @param options dtype (float32), requiresGrad
 *
 * @example
 * zeros([2, 3]); // [[0, 0, 0], [0, 0, 0]]
 */
export function zeros<const D extends DType = PlainDType>(
  shape: Shape,
  options: CreationOptions<D> = {},
): Tensor<NamedDType<D>> {
  return filled('zeros', shape, 0, 'float32', options);
}

/**
 * Ones. Source: Array API `ones`.
 *
 * @param shape sizes of the axes
 * @param options dtype (float32), requiresGrad
 *
 * @example
 * ones([2]); // [1, 1]
 */
export function ones<const D extends DType = PlainDType>(
  shape: Shape,
  options: CreationOptions<D> = {},
): Tensor<NamedDType<D>> {
  return filled('ones', shape, 1, 'float32', options);
}

/**
 * A tensor whose elements do not matter. They are zeros here. Source: Array API `empty`.
 *
 * @param shape sizes of the axes
 * @param options dtype (float32), requiresGrad
 *
 * @example
 * empty([2, 2]).shape; // [2, 2]
 */
export function empty<const D extends DType = PlainDType>(
  shape: Shape,
  options: CreationOptions<D> = {},
): Tensor<NamedDType<D>> {
  return filled('empty', shape, 0, 'float32', options);
}

/**
 * A tensor of one value. Source: Array API `full`.
 *
 * @param shape sizes of the axes
 * @param value a number, a bigint for integer dtypes, or a boolean for dtype bool
 * @param options dtype (float32, int64 for bigints, bool for booleans), requiresGrad
 *
 * @example
 * full([2], 7); // [7, 7]
 */
export function full<const D extends DType = PlainDType>(
  shape: Shape,
  value: number | boolean | bigint,
  options: CreationOptions<D> = {},
): Tensor<NamedDType<D>> {
  return filledBy('full', shape, value, weakDefault(value), options);
}

/** As `filled`, with a number given by the user: a scalar, bound at each run. */
function filledBy(
  op: string,
  shape: Shape,
  value: number | boolean | bigint,
  usual: DType,
  options: CreationOptions,
): Tensor {
  if (typeof value !== 'number' && typeof value !== 'boolean' && typeof value !== 'bigint')
    throw new ArgumentError(op, say`bad value: ${value}; must be a number, boolean or bigint`);
  const number = typeof value === 'bigint' ? value : Number(value);
  if (composingDepth() > 0) return filled(op, shape, number, usual, options);
  checkNames(op, options, 'dtype% requiresGrad?');
  const dtype = options.dtype ?? usual;
  return compose(op, () => {
    const sizes = checkShape(op, shape);
    if (dtype !== 'bool' || typeof value !== 'number') checkWeak(op, value, dtype);
    return leaf(op, wrap(broadcastTo(scalar(number, dtype), sizes)), options);
  });
}

/**
 * Zeros of the shape and dtype of another tensor. Source: Array API `zeros_like`.
 *
 * @param options dtype (that of x), requiresGrad
 *
 * @example
 * zerosLike(ones([2])); // [0, 0]
 */
export function zerosLike<const D extends DType = PlainDType>(
  x: Tensor,
  options: CreationOptions<D> = {},
): Tensor<NamedDType<D>> {
  const node = nodeOf(x, 'zerosLike');
  return filled('zerosLike', node.shape, 0, node.dtype, options);
}

/**
 * Ones of the shape and dtype of another tensor. Source: Array API `ones_like`.
 *
 * @param options dtype (that of x), requiresGrad
 *
 * @example
 * onesLike(zeros([2])); // [1, 1]
 */
export function onesLike<const D extends DType = PlainDType>(
  x: Tensor,
  options: CreationOptions<D> = {},
): Tensor<NamedDType<D>> {
  const node = nodeOf(x, 'onesLike');
  return filled('onesLike', node.shape, 1, node.dtype, options);
}

/**
 * A tensor of one value in the shape and dtype of another. Source: Array API `full_like`.
 *
 * @param value a number, a bigint for integer dtypes, or a boolean for dtype bool
 * @param options dtype (that of x), requiresGrad
 *
 * @example
 * fullLike(zeros([2]), 3); // [3, 3]
 */
export function fullLike<const D extends DType = PlainDType>(
  x: Tensor,
  value: number | boolean | bigint,
  options: CreationOptions<D> = {},
): Tensor<NamedDType<D>> {
  const node = nodeOf(x, 'fullLike');
  return filledBy('fullLike', node.shape, value, node.dtype, options);
}

/** Throws unless the dtype is a float. */
export function needFloat(op: string, dtype: DType): void {
  checkDType(op, dtype);
  if (!isFloat(dtype))
    throw new DTypeError(op, say`dtype not accepted: ${dtype}; needs a floating-point dtype; convert with cast()`, [
      dtype,
    ]);
}
