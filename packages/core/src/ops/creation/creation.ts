/** Tensors from data, from a single value, and of a pattern: ranges, identity, grids. Random numbers are in random.ts. */
import * as p from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import { broadcastTo, constant, scalar } from '../../graph/primitives.ts';
import { beginOp, compose, composingDepth, opName } from '../../graph/scope.ts';
import { checkAttached, checkNames, shown } from '../../shape/options.ts';
import { checkCount, checkList, checkShape } from '../../shape/axes.ts';
import {
  checkDType,
  type DType,
  dtypeInfo,
  isFloat,
  isInteger,
  type TypedArray,
  widenedFloat,
} from '../../shape/dtype.ts';
import { ArgumentError, DTypeError, ShapeError, showShape } from '../../shape/errors.ts';
import { hostArray, hostArrays, setElement } from '../../shape/host.ts';
import { eachNested, nestedShape } from '../../shape/nested.ts';
import { checkRange, checkWeak } from '../../shape/promotion.ts';
import { say } from '../../shape/shown.ts';
import { type Shape, sizeOf } from '../../shape/view.ts';
import { nodeOf, uploadNode, wrap } from '../../tensor/handle.ts';
import { weak, weakDefault } from '../../tensor/operand.ts';
import type { CreationOptions, NamedDType, NestedInput, PlainDType, Tensor } from '../../tensor/types.ts';
import { checkDiagonal, offsets } from '../products/matrices.ts';

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

/** Dtype a typed array stands for by itself. */
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
        say`element is no number: ${item instanceof Promise ? 'a promise (await it)' : shown(item)}; elements are numbers, booleans or bigints`,
      );
  }
}

/** Zeroed memory on the host for so many elements. Throws ShapeError if there is none. */
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

/** The elements of a typed array as those of another dtype. */
function converted(op: string, values: TypedArray, dtype: DType): TypedArray {
  const host = roomFor(op, dtype, [values.length]);
  const write = writer(op, host, dtype);
  for (let i = 0; i < values.length; i++) write(values[i] as number);
  return host;
}

/**
 * A tensor of the given data: a number, nested arrays of numbers, booleans or bigints, a typed array (which is copied), or one with its dtype and shape.
 *
 * @param data elements; nested arrays must be rectangular; `{ dtype, shape, data }` as @polygrad/data gives
 * @param options dtype: float32 for numbers, bool for booleans, int64 for bigints, a typed array's own unless given;
 *   16-bit floats are converted from numbers, but a Uint16Array is their bits, as `data()` gives them. shape: for flat data. requiresGrad: make a leaf for `backward()`
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
    // A Uint16Array for 16-bit floats is their bits, as data() gives them.
    const fits = typed instanceof hostArrays[dtype] || kindOf(typed) === kindOf(hostArray(dtype, 0));
    const direct = fits && (dtype !== 'bool' || options.dtype === undefined);
    host = direct ? typed : converted(opName('tensor'), typed, dtype);
  } else {
    [host, dtype, shape] = fromNested(opName('tensor'), data, options.dtype);
  }
  if (options.shape !== undefined) {
    checkShape(opName('tensor'), options.shape);
    if (sizeOf(options.shape) !== host.length) {
      throw new ShapeError(
        opName('tensor'),
        say`number of elements differs: ${host.length} given and ${sizeOf(options.shape)} in shape ${showShape(options.shape)}; they must be equal`,
        [options.shape],
      );
    }
    shape = [...options.shape];
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
  checkNames(op, options, 'dtype% requiresGrad?');
  const dtype = options.dtype ?? usual;
  checkShape(op, shape);
  return leaf(op, wrap(constant(value, dtype, [...shape])), options);
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

/** The same with a user's number, bound at each run. */
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
    checkShape(op, shape);
    if (dtype !== 'bool' || typeof value !== 'number') checkWeak(op, value, dtype);
    return leaf(op, wrap(broadcastTo(scalar(number, dtype), [...shape])), options);
  });
}

/**
 * Zeros of the shape and dtype of another tensor. Source: Array API `zeros_like`.
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

// Tensors of a pattern: ranges, identity, grids. They are computed where they are used and need no memory.

/** Number given by the user as a node; constants 0 and 1 need no binding. */
function numberNode(value: number, dtype: DType): Node {
  return value === 0 || value === 1 ? p.constant(value, dtype) : weak(value, dtype, true);
}

/**
 * Numbers from `start` in steps up to, but without, `stop`. Source: Array API `arange`.
 *
 * Called as arange(stop), arange(start, stop) or arange(start, stop, step), each with options at the end.
 *
 * @param options dtype (float32), requiresGrad
 *
 * @example
 * arange(3); // [0, 1, 2]
 * arange(1, 6, 2, { dtype: 'int32' }); // [1, 3, 5]
 */
export function arange<const D extends DType = PlainDType>(
  start: number,
  ...rest: readonly (number | CreationOptions<D>)[]
): Tensor<NamedDType<D>> {
  return compose('arange', () => {
    const last = rest.at(-1);
    const options = typeof last === 'number' ? {} : (last ?? {});
    checkCreation('arange', options);
    const numbers = rest.filter((value) => typeof value === 'number');
    const [from, to] = numbers.length === 0 ? [0, start] : [start, numbers[0]!];
    const step = numbers[1] ?? 1;
    if (step === 0 || !Number.isFinite(step) || !Number.isFinite(from) || !Number.isFinite(to)) {
      throw new ArgumentError(
        'arange',
        say`bad range: from ${from} to ${to} in steps of ${step}; numbers must be finite and the step not 0`,
      );
    }
    const dtype = options.dtype ?? 'float32';
    if (dtype === 'bool') throw new DTypeError('arange', 'dtype not accepted: bool; needs numbers', [dtype]);
    const wide = widenedFloat(dtype);
    const count = Math.max(0, Math.ceil((to - from) / step));
    const steps = p.cast(p.iota(checkCount('arange', 'number of elements', count)), wide);
    const scaled = step === 1 ? steps : p.mul(steps, numberNode(step, wide));
    return leaf('arange', wrap(p.cast(from === 0 ? scaled : p.add(scaled, numberNode(from, wide)), dtype)), options);
  });
}

/**
 * `count` numbers at equal distances from `start` to `stop`, both included. Source: Array API `linspace`.
 *
 * @param options dtype (float32), requiresGrad
 *
 * @example
 * linspace(0, 1, 5); // [0, 0.25, 0.5, 0.75, 1]
 */
export function linspace<const D extends DType = PlainDType>(
  start: number,
  stop: number,
  count: number,
  options: CreationOptions<D> = {},
): Tensor<NamedDType<D>> {
  checkCreation('linspace', options);
  return compose('linspace', () => {
    checkShape('linspace', [checkCount('linspace', 'count', count, 0, Number.MAX_SAFE_INTEGER)]);
    for (const end of [start, stop])
      if (typeof end !== 'number') throw new ArgumentError('linspace', say`bad limit: ${shown(end)}; must be a number`);
    const dtype = options.dtype ?? 'float32';
    if (!isFloat(dtype))
      throw new DTypeError('linspace', say`dtype not accepted: ${dtype}; needs a floating-point dtype`, [dtype]);
    const index = p.iota(count);
    const step = count > 1 ? (stop - start) / (count - 1) : 0;
    const wide = widenedFloat(dtype);
    const inner = p.add(p.mul(p.cast(index, wide), weak(step, wide, true)), weak(start, wide, true));
    // The last one exactly.
    const result =
      count > 1 ? p.where(p.eq(index, p.constant(count - 1, 'int32')), weak(stop, wide, true), inner) : inner;
    return leaf('linspace', wrap(p.cast(result, dtype)), options);
  });
}

/** The same for sizes that a user gives. */
function matrixOffsets(op: string, rows: number, columns: number): Node {
  checkCount(op, 'rows', rows);
  checkCount(op, 'columns', columns);
  checkShape(op, [rows, columns]);
  return offsets(rows, columns);
}

export interface EyeOptions<D extends DType = DType> extends CreationOptions<D> {
  /** Which diagonal: 0 the main one, positive above. */
  readonly diagonal?: number;
}

function checkEye(op: string, options: EyeOptions): void {
  checkNames(op, options, 'dtype% requiresGrad? diagonal#');
}

/**
 * Ones on a diagonal, zeros elsewhere. Source: Array API `eye`.
 *
 * @param columns as many as rows if left out
 * @param options diagonal (0), dtype (float32), requiresGrad
 *
 * @example
 * eye(2); // [[1, 0], [0, 1]]
 */
export function eye<const D extends DType = PlainDType>(
  rows: number,
  columns?: number | EyeOptions<D>,
  options?: EyeOptions<D>,
): Tensor<NamedDType<D>> {
  return compose('eye', () => {
    const settings = options ?? (typeof columns === 'number' ? {} : (columns ?? {}));
    checkEye('eye', settings);
    const width = typeof columns === 'number' ? columns : rows;
    const on = p.eq(
      matrixOffsets('eye', rows, width),
      p.constant(checkDiagonal('eye', 'diagonal', settings.diagonal ?? 0), 'int32'),
    );
    return leaf('eye', wrap(p.cast(on, settings.dtype ?? 'float32')), settings);
  });
}

/**
 * Ones on and below a diagonal, zeros above. Source: NumPy `tri`.
 *
 * @param columns as many as rows unless given
 * @param options diagonal (0: the main one), dtype (float32), requiresGrad
 *
 * @example
 * tri(2); // [[1, 0], [1, 1]]
 */
export function tri<const D extends DType = PlainDType>(
  rows: number,
  columns?: number | EyeOptions<D>,
  options?: EyeOptions<D>,
): Tensor<NamedDType<D>> {
  return compose('tri', () => {
    const settings = options ?? (typeof columns === 'number' ? {} : (columns ?? {}));
    checkEye('tri', settings);
    const width = typeof columns === 'number' ? columns : rows;
    const on = p.le(
      matrixOffsets('tri', rows, width),
      p.constant(checkDiagonal('tri', 'diagonal', settings.diagonal ?? 0), 'int32'),
    );
    return leaf('tri', wrap(p.cast(on, settings.dtype ?? 'float32')), settings);
  });
}

/**
 * Coordinates of a grid: each vector stretched along an axis of its own. Source: Array API `meshgrid`.
 *
 * @param vectors one per axis, shape [n] (scalars count as [1])
 * @param options indexing 'xy' (default: the first vector runs along the columns, the second along the rows) or 'ij' (the i-th
 *   vector runs along axis i)
 * @returns one tensor per vector, all of the shape of the grid, without copies
 * @throws ShapeError for matrices and more axes
 *
 * @example
 * meshgrid([tensor([1, 2]), tensor([3, 4])]); // [[1, 2], [1, 2]], [[3, 3], [4, 4]]
 */
export function meshgrid(vectors: readonly Tensor[], options: { readonly indexing?: 'xy' | 'ij' } = {}): Tensor[] {
  checkNames('meshgrid', options, 'indexing');
  return compose('meshgrid', () => {
    const { indexing = 'xy' } = options;
    if (indexing !== 'xy' && indexing !== 'ij')
      throw new ArgumentError('meshgrid', say`bad indexing: ${shown(indexing)}; must be 'xy' or 'ij'`);
    checkList('meshgrid', 'vectors', vectors, '[x, y]');
    if (vectors.length === 0) throw new ArgumentError('meshgrid', 'no vectors: the list is empty; give at least one');
    const nodes = vectors.map((vector) => nodeOf(vector));
    for (const { shape } of nodes) {
      if (shape.length > 1)
        throw new ShapeError('meshgrid', say`no vector: shape ${showShape(shape)}; needs one axis; use flatten()`, [
          shape,
        ]);
    }
    const sizes = nodes.map((node) => node.shape[0] ?? 1);
    const axisOf = (i: number): number => (indexing === 'xy' && sizes.length > 1 && i < 2 ? 1 - i : i);
    const grid = sizes.map((_, i) => sizes[axisOf(i)]!);
    return nodes.map((node, i) => {
      const own = grid.map((_, axis) => (axis === axisOf(i) ? sizes[i]! : 1));
      return wrap(p.expand(p.reshape(node, own), grid));
    });
  });
}
