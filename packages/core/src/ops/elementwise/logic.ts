/**
 * Comparisons, logic, and operations on bits. Results of comparisons are bool; operands broadcast and meet in their common dtype. Numbers that an
 * integer dtype does not hold (too large, fractions, infinite, NaN) compare as mathematics says, as in NumPy 2.
 *
 * Nothing here has a gradient but `nanToNum`, which passes it where a number stays.
 */
import { binary, cast, constant, eq, makeNode, not } from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import { beginOp, compose } from '../../graph/scope.ts';
import { type DType, isFloat, isInteger } from '@polygrad/compiler/shape/dtype';
import { checkNames } from '@polygrad/compiler/shape/options';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { operand, operands, sideOf, weak } from '../../tensor/operand.ts';
import type { Tensor, TensorLike } from '../../tensor/types.ts';
import {
  type Arithmetic,
  binaryOp,
  closeness,
  type CloseOptions,
  tolerancesOf,
  truthOf,
  unaryOp,
  where,
} from './recording.ts';

/** Integers for bool, so that they can be ordered. */
function orderable(node: Node): Node {
  return node.dtype === 'bool' ? cast(node, 'int32') : node;
}

function ordered(op: string, primitive: 'lt' | 'le', a: TensorLike, b: TensorLike, swap: boolean): Tensor {
  beginOp(op);
  const [low, high] = swap ? [b, a] : [a, b];
  // No element equals a number that the dtype does not hold. So x < c is x <= c, and c < x is its negation.
  if (isUnrepresentable(low, high)) return wrap(atMost(low, high, false));
  if (isUnrepresentable(high, low)) return wrap(atMost(high, low, true));
  const [x, y] = operands(low, high);
  return wrap(makeNode(primitive, [orderable(x), orderable(y)], null));
}

/** True for an integer tensor and a number that its dtype does not hold. */
function isUnrepresentable(x: TensorLike, c: TensorLike): boolean {
  if (typeof x !== 'object' || typeof c === 'object') return false;
  const { dtype } = nodeOf(x);
  return sideOf(c, dtype) !== 0 || (typeof c === 'number' && isInteger(dtype) && !Number.isInteger(c));
}

/** x <= c for such a pair, or c <= x if `swapped`. Nothing is true of NaN. */
function atMost(x: TensorLike, c: TensorLike, swapped: boolean): Node {
  const node = nodeOf(x as Tensor);
  const side = sideOf(c, node.dtype);
  const number = Number(c);
  if (side !== 0 || Number.isNaN(number)) return constant(side === (swapped ? -1 : 1) ? 1 : 0, 'bool', node.shape);
  const result = binary('le', node, weak(Math.floor(number), node.dtype));
  return swapped ? not(result) : result;
}

/** Whether a == b as a node. */
function same(a: TensorLike, b: TensorLike): Node {
  const unrepresentable = isUnrepresentable(a, b) ? a : isUnrepresentable(b, a) ? b : null;
  return unrepresentable === null
    ? eq(...operands(a, b))
    : constant(0, 'bool', nodeOf(unrepresentable as Tensor).shape);
}

/**
 * a == b, element by element; false for NaN. Source: Array API `equal`.
 *
 * @returns bool, of the broadcast shape
 *
 * @example
 * equal(tensor([1, 2]), 2); // [false, true]
 */
export function equal(a: TensorLike, b: TensorLike): Tensor {
  beginOp('equal');
  return wrap(same(a, b));
}

/**
 * a != b, element by element; true for NaN. Source: Array API `not_equal`.
 *
 * @returns bool, of the broadcast shape
 *
 * @example
 * notEqual(tensor([1, 2]), 2); // [true, false]
 */
export function notEqual(a: TensorLike, b: TensorLike): Tensor {
  beginOp('notEqual');
  return wrap(not(same(a, b)));
}

/**
 * a < b. Source: Array API `less`.
 *
 * @returns bool, of the broadcast shape
 *
 * @example
 * less(tensor([1, 2]), 2); // [true, false]
 */
export function less(a: TensorLike, b: TensorLike): Tensor {
  return ordered('less', 'lt', a, b, false);
}

/**
 * a <= b. Source: Array API `less_equal`.
 *
 * @returns bool, of the broadcast shape
 *
 * @example
 * lessEqual(tensor([1, 3]), 2); // [true, false]
 */
export function lessEqual(a: TensorLike, b: TensorLike): Tensor {
  return ordered('lessEqual', 'le', a, b, false);
}

/**
 * a > b. Source: Array API `greater`.
 *
 * @returns bool, of the broadcast shape
 *
 * @example
 * greater(tensor([1, 3]), 2); // [false, true]
 */
export function greater(a: TensorLike, b: TensorLike): Tensor {
  return ordered('greater', 'lt', a, b, true);
}

/**
 * a >= b. Source: Array API `greater_equal`.
 *
 * @returns bool, of the broadcast shape
 *
 * @example
 * greaterEqual(tensor([1, 2]), 2); // [false, true]
 */
export function greaterEqual(a: TensorLike, b: TensorLike): Tensor {
  return ordered('greaterEqual', 'le', a, b, true);
}

/**
 * True where both are (a number counts as true unless it is 0). Source: Array API `logical_and`.
 *
 * @returns bool, of the broadcast shape
 *
 * @example
 * logicalAnd(tensor([true, true]), tensor([true, false])); // [true, false]
 */
export function logicalAnd(a: TensorLike, b: TensorLike): Tensor {
  beginOp('logicalAnd');
  return wrap(makeNode('and', [truthOf(a), truthOf(b)], null));
}

/**
 * True where at least one is. Source: Array API `logical_or`.
 *
 * @returns bool, of the broadcast shape
 *
 * @example
 * logicalOr(tensor([false, true]), tensor([false, false])); // [false, true]
 */
export function logicalOr(a: TensorLike, b: TensorLike): Tensor {
  beginOp('logicalOr');
  return wrap(makeNode('or', [truthOf(a), truthOf(b)], null));
}

/**
 * True where exactly one is. Source: Array API `logical_xor`.
 *
 * @returns bool, of the broadcast shape
 *
 * @example
 * logicalXor(tensor([true, true]), tensor([true, false])); // [false, true]
 */
export function logicalXor(a: TensorLike, b: TensorLike): Tensor {
  beginOp('logicalXor');
  return wrap(makeNode('xor', [truthOf(a), truthOf(b)], null));
}

/**
 * True where x is not (is 0). Source: Array API `logical_not`.
 *
 * @returns bool, of the shape of x
 *
 * @example
 * logicalNot(tensor([true, false])); // [false, true]
 */
export function logicalNot(x: TensorLike): Tensor {
  beginOp('logicalNot');
  return wrap(not(truthOf(x)));
}

/**
 * True where x is NaN; never for integers. Source: Array API `isnan`.
 *
 * @example
 * isNaN(tensor([1, NaN])); // [false, true]
 */
// biome-ignore lint/suspicious/noShadowRestrictedNames: the name of the Array API
export function isNaN(x: TensorLike): Tensor {
  beginOp('isNaN');
  const node = operand(x);
  return wrap(isFloat(node.dtype) ? makeNode('isNaN', [node], null) : constant(0, 'bool', node.shape));
}

/**
 * True where x is infinite. Source: Array API `isinf`.
 *
 * @returns bool, of the shape of x
 *
 * @example
 * isInf(tensor([1, -Infinity])); // [false, true]
 */
export function isInf(x: TensorLike): Tensor {
  beginOp('isInf');
  const node = operand(x);
  if (!isFloat(node.dtype)) return wrap(constant(0, 'bool', node.shape));
  return wrap(eq(makeNode('abs', [node], null), constant(Number.POSITIVE_INFINITY, node.dtype)));
}

/**
 * True where x is neither infinite nor NaN. Source: Array API `isfinite`.
 *
 * @example
 * isFinite(tensor([1, Infinity, NaN])); // [true, false, false]
 */
// biome-ignore lint/suspicious/noShadowRestrictedNames: the name of the Array API
export function isFinite(x: TensorLike): Tensor {
  beginOp('isFinite');
  const node = operand(x);
  if (!isFloat(node.dtype)) return wrap(constant(1, 'bool', node.shape));
  return wrap(makeNode('lt', [makeNode('abs', [node], null), constant(Number.POSITIVE_INFINITY, node.dtype)], null));
}

/** |a - b| of integers, exact: where the difference of signed ones wraps, its bits are still those of the unsigned distance. */
function integerDistance(x: Node, y: Node): Node {
  const [a, b] = x.dtype === 'bool' ? [cast(x, 'uint8'), cast(y, 'uint8')] : [x, y];
  const distance = binary('sub', binary('maximum', a, b), binary('minimum', a, b));
  return cast(distance, a.dtype.replace(/^int/, 'uint') as DType);
}

/**
 * True where |a - b| <= atol + rtol * |b|, or both are the same infinity. Source: NumPy `isclose`.
 *
 * @param options rtol 1e-5, atol 1e-8, equalNaN false
 * @returns bool, of the broadcast shape
 *
 * @example
 * isClose(tensor([1, 2]), tensor([1, 2.1])); // [true, false]
 */
export function isClose(a: TensorLike, b: TensorLike, options: CloseOptions = {}): Tensor {
  const tolerances = tolerancesOf('isClose', options);
  return compose('isClose', () => {
    beginOp('isClose');
    let [x, y] = operands(a, b);
    const same = eq(x, y);
    let distance: Node;
    if (isFloat(x.dtype)) distance = makeNode('abs', [makeNode('sub', [x, y], null)], null);
    else {
      distance = cast(integerDistance(x, y), 'float32');
      [x, y] = [cast(x, 'float32'), cast(y, 'float32')];
    }
    const arithmetic: Arithmetic<Node> = {
      number: (value) => constant(value, x.dtype),
      apply: (op, ...of) => makeNode(op, of, null),
    };
    const { close } = closeness(arithmetic, { x, y, distance, same }, tolerances);
    return wrap(close);
  });
}

/**
 * NaN and infinities replaced by numbers. Source: NumPy `nan_to_num`.
 *
 * @param options nan 0; posInf and negInf: the largest and smallest number of the dtype
 *
 * @example
 * nanToNum(tensor([NaN, 1]), { nan: 7 }); // [7, 1]
 */
export function nanToNum(
  x: Tensor,
  options: { readonly nan?: number; readonly posInf?: number; readonly negInf?: number } = {},
): Tensor {
  checkNames('nanToNum', options, 'nan# posInf# negInf#');
  return compose('nanToNum', () => {
    if (!isFloat(nodeOf(x).dtype)) return wrap(nodeOf(x));
    const limits: Readonly<Record<string, number>> = {
      float64: Number.MAX_VALUE,
      float32: 3.4028234663852886e38,
      float16: 65504,
      bfloat16: 3.3895313892515355e38,
    };
    const largest = limits[x.dtype]!;
    const high = where(equal(x, Number.POSITIVE_INFINITY), options.posInf ?? largest, x);
    const low = where(equal(x, Number.NEGATIVE_INFINITY), options.negInf ?? -largest, high);
    return where(isNaN(x), options.nan ?? 0, low);
  });
}

// Bitwise operations on integers (on bool they are the logical ones). No gradients. Floats are refused with DTypeError.

/**
 * Bits set in both. Source: Array API `bitwise_and`.
 *
 * @returns the broadcast shape, the common dtype
 * @throws DTypeError unless operands are integers or bool
 *
 * @example
 * bitwiseAnd(tensor([6], { dtype: 'int32' }), 3); // [2]
 */
export function bitwiseAnd(a: TensorLike, b: TensorLike): Tensor {
  return binaryOp('bitwiseAnd', 'and', a, b);
}

/**
 * Bits set in either. Source: Array API `bitwise_or`.
 *
 * @returns the broadcast shape, the common dtype
 * @throws DTypeError unless operands are integers or bool
 *
 * @example
 * bitwiseOr(tensor([6], { dtype: 'int32' }), 3); // [7]
 */
export function bitwiseOr(a: TensorLike, b: TensorLike): Tensor {
  return binaryOp('bitwiseOr', 'or', a, b);
}

/**
 * Bits set in exactly one. Source: Array API `bitwise_xor`.
 *
 * @returns the broadcast shape, the common dtype
 * @throws DTypeError unless operands are integers or bool
 *
 * @example
 * bitwiseXor(tensor([6], { dtype: 'int32' }), 3); // [5]
 */
export function bitwiseXor(a: TensorLike, b: TensorLike): Tensor {
  return binaryOp('bitwiseXor', 'xor', a, b);
}

/**
 * Bits moved b places up, zeros from below; b is 0 .. bits - 1. Source: Array API `bitwise_left_shift`.
 *
 * @returns the broadcast shape, the common dtype
 * @throws DTypeError unless operands are integers
 *
 * @example
 * leftShift(tensor([1], { dtype: 'int32' }), 4); // [16]
 */
export function leftShift(a: TensorLike, b: TensorLike): Tensor {
  return binaryOp('leftShift', 'shl', a, b);
}

/**
 * Bits moved b places down: copies of the sign come in for signed integers, zeros for unsigned ones. Source: Array API `bitwise_right_shift`.
 *
 * @returns the broadcast shape, the common dtype
 * @throws DTypeError unless operands are integers
 *
 * @example
 * rightShift(tensor([-8], { dtype: 'int32' }), 1); // [-4]
 */
export function rightShift(a: TensorLike, b: TensorLike): Tensor {
  return binaryOp('rightShift', 'shr', a, b);
}

/**
 * Every bit inverted. Source: Array API `bitwise_invert`.
 *
 * @returns of the shape and dtype of x
 * @throws DTypeError unless operands are integers or bool
 *
 * @example
 * bitwiseNot(tensor([0], { dtype: 'int32' })); // [-1]
 */
export function bitwiseNot(x: TensorLike): Tensor {
  return unaryOp('bitwiseNot', 'not', x);
}
