/** NumberTensors made: from nested arrays, filled, put together, and from and to ordinary tensors. */
import {
  ArgumentError,
  type DType,
  type Shape,
  ShapeError,
  showShape,
  tensor,
  type Tensor,
} from '@polygrad/core/functions';
import {
  checkCount,
  checkList,
  checkRange,
  checkShape,
  eachNested,
  isInteger,
  isList,
  mostOnHost,
  nestedShape,
  nodeOf,
  readAxis,
  sameShape,
  say,
} from '@polygrad/core/internals';
import { checkNames, shown } from '@polygrad/core/engine';
import { type Grid, grid, joined } from './grid.ts';
import { checkType, elementOf, need, type NumberLike, type NumberType, NumberTypeError } from './number-type.ts';
import { NumberTensor } from './number-tensor.ts';
import type { OneAxis } from './shaped-numbers.ts';

/** T where something else has to say what it is: NoInfer, which TypeScript has from 5.4 on. */
type Told<T> = [T][T extends unknown ? 0 : never];

/** Values as numberTensor takes them: nested arrays of elements, or of what the type's `from` takes. */
export type NestedNumbers<T> = NumberLike<T> | readonly NestedNumbers<T>[];

/**
 * A NumberTensor of nested arrays. An array that is an element itself (of a type whose `zero` is an array) is taken as one.
 *
 * @param values an element, or nested arrays
 * @param type the number type
 * @throws ShapeError if rows differ in length; NumberTypeError for values that are no elements
 *
 * @example
 * numberTensor([['1', 2n], [3, 4]], bigintType).sum().item(); // 10n
 */
export function numberTensor<T>(values: NestedNumbers<Told<T>>, type: NumberType<T>): NumberTensor<T> {
  checkType('numberTensor', type);
  const row = (value: unknown): boolean => isList(value) && !type.is(value);
  const shape = nestedShape('numberTensor', values, row);
  const data: T[] = [];
  eachNested('numberTensor', values, shape, (value) => data.push(elementOf('numberTensor', type, value)), row);
  return new NumberTensor(type, grid(shape, data));
}

/**
 * A NumberTensor with one value everywhere.
 *
 * @throws ArgumentError for a type or a shape that is none, ShapeError for too many elements
 * @example
 * numberFull([2], 7, bigintType).prod().item(); // 49n
 */
export function numberFull<T>(shape: Shape, value: NumberLike<T>, type: NumberType<T>): NumberTensor<T> {
  checkType('numberFull', type);
  checkShape('numberFull', shape);
  const element = elementOf('numberFull', type, value);
  const view = { strides: shape.map(() => 0), offset: 0 };
  return new NumberTensor(type, { shape: [...shape], view, data: [element] });
}

/**
 * The identity matrix of a number type.
 *
 * @throws ArgumentError for a type or a number of rows that is none, ShapeError for too many elements
 * @example
 * numberEye(2, bigintType).shape; // [2, 2]
 */
export function numberEye<T>(n: number, type: NumberType<T>): NumberTensor<T> {
  checkType('numberEye', type);
  checkShape('numberEye', [n, n]);
  checkCount('numberEye', 'number of elements', n * n, 0, mostOnHost);
  const { zero, one } = type;
  return new NumberTensor(
    type,
    grid(
      [n, n],
      Array.from({ length: n * n }, (_, i) => (i % (n + 1) === 0 ? one : zero)),
    ),
  );
}

function gridsOf<T>(op: string, parts: readonly NumberTensor<T>[]): [NumberTensor<T>, Grid<T>[]] {
  checkList(op, 'parts', parts, '[a, b]');
  const [first] = parts;
  if (parts.length > 0) for (const part of parts) checkNumbers(op, part);
  if (first === undefined) throw new ArgumentError(op, 'no parts: the list is empty; give at least one');
  for (const { type } of parts)
    if (type !== first.type)
      throw new NumberTypeError(
        op,
        say`number types differ: '${first.type.name}' and '${type.name}'; convert one with map()`,
      );
  return [first, parts.map((part) => part.grid)];
}

/** Throws unless a value is a NumberTensor: one of another copy of this library will do. */
function checkNumbers<T>(op: string, x: NumberTensor<T>): void {
  if (x?.grid === undefined)
    throw new ArgumentError(op, say`not a NumberTensor: ${shown(x)}; make one with numberTensor()`);
}

/**
 * NumberTensors one after the other along an axis; all other sizes are equal.
 *
 * @throws ShapeError where other axes differ, NumberTypeError for parts of several types, ArgumentError for an empty list
 * @example
 * concatNumbers([numberFull([2], 1, bigintType), numberFull([1], 2, bigintType)]).shape; // [3]
 */
export function concatNumbers<T>(parts: readonly NumberTensor<T>[], axis: OneAxis = 0): NumberTensor<T> {
  const [first, grids] = gridsOf('concatNumbers', parts);
  const at = readAxis('concatNumbers', axis, 0, first.ndim);
  for (const { shape } of grids) {
    if (shape.length !== first.ndim || shape.some((n, i) => i !== at && n !== first.shape[i])) {
      throw new ShapeError(
        'concatNumbers',
        say`shapes do not fit: ${showShape(first.shape)} and ${showShape(shape)}; sizes other than axis ${at} must be equal`,
        [first.shape, shape],
      );
    }
  }
  return new NumberTensor(first.type, joined(grids, at));
}

/**
 * NumberTensors of one shape side by side along a new axis.
 *
 * @throws ShapeError where shapes differ, NumberTypeError for parts of several types, ArgumentError for an empty list
 * @example
 * stackNumbers([numberFull([2], 1, bigintType), numberFull([2], 2, bigintType)], 1).shape; // [2, 2]
 */
export function stackNumbers<T>(parts: readonly NumberTensor<T>[], axis: OneAxis = 0): NumberTensor<T> {
  const [first, grids] = gridsOf('stackNumbers', parts);
  for (const { shape } of grids) {
    if (!sameShape(shape, first.shape))
      throw new ShapeError(
        'stackNumbers',
        say`shapes differ: ${showShape(first.shape)} and ${showShape(shape)}; all must be equal`,
        [first.shape, shape],
      );
  }
  const at = readAxis('stackNumbers', axis, 0, first.ndim + 1);
  return concatNumbers(
    parts.map((part) => part.unsqueeze(at)),
    at,
  );
}

/**
 * The elements of an ordinary tensor as a NumberTensor, exactly as far as the type's `from` is exact.
 *
 * @throws OperationError for what is no tensor, ArgumentError for what is no number type
 * @example
 * (await fromTensor(tensor([1, 2]), bigintType)).sum().item(); // 3n
 */
export async function fromTensor<T>(t: Tensor, type: NumberType<T>): Promise<NumberTensor<T>> {
  nodeOf(t, 'fromTensor');
  checkType('fromTensor', type);
  need('fromTensor', type, 'from');
  const { shape } = t;
  const flat: unknown = await t.array();
  const list = isList(flat) ? (flat as unknown[]).flat(Number.POSITIVE_INFINITY) : [flat];
  return new NumberTensor(
    type,
    grid(
      [...shape],
      list.map((value) => elementOf('fromTensor', type, value)),
    ),
  );
}

/**
 * An ordinary tensor of the elements, by the type's `toNumber`: rounded to what the dtype holds.
 *
 * @param options dtype: float64 if left out
 * @throws DTypeError if a whole number does not fit an integer dtype
 *
 * @example
 * toTensor(numberTensor([1, 2], bigintType), { dtype: 'int32' }); // [1, 2]
 */
export function toTensor<T>(x: NumberTensor<T>, options: { readonly dtype?: DType } = {}): Tensor {
  checkNames('toTensor', options, 'dtype%');
  checkNumbers('toTensor', x);
  const { dtype = 'float64' } = options;
  const toNumber = need('toTensor', x.type, 'toNumber');
  const wide = dtype === 'int64' || dtype === 'uint64';
  const values = x.data().map((value) => {
    const number = toNumber(value);
    if (typeof number === 'bigint' && isInteger(dtype)) checkRange('toTensor', number, dtype);
    if (dtype === 'bool') return number !== 0 && number !== 0n;
    return wide && typeof number === 'number' ? BigInt(Math.trunc(number)) : wide ? number : Number(number);
  });
  return tensor(values as number[], { dtype, shape: x.shape });
}
