/**
 * The choice between two tensors by a condition, and how elementwise operations are recorded. With one operand, two operands, floating-point operands,
 * or as an activation: public operations are one call of these functions, or a composite of such. Composites of 16-bit floats compute in
 * float32. Also the rule of what is close to what, and integers as int32.
 */
import { binary, cast, constant, makeNode, where as whereNode } from '../../graph/primitives.ts';
import type { BinaryOperation, UnaryOperation } from '../../graph/definition.ts';
import type { Node } from '../../graph/node.ts';
import { beginOp, compose, opName } from '../../graph/scope.ts';
import { type DType, dtypeInfo, isSmallFloat } from '@polygrad/compiler/shape/dtype';
import { checkNames } from '@polygrad/compiler/shape/options';
import { promoteTypes } from '@polygrad/compiler/shape/promotion';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { floatOperand, floatOperands, given, operand, operands, weak } from '../../tensor/operand.ts';
import type { Tensor, TensorLike } from '../../tensor/types.ts';

/**
 * Runs a composite in float32 if the common dtype of its operands is a 16-bit float, and rounds its result once. Differences of rounded numbers, as
 * 1 + erf(x) in gelu, would lose all digits. Throws DTypeError where there is no common dtype.
 */
export function inFloat32(args: readonly Tensor[], body: (...args: Tensor[]) => Tensor): Tensor {
  const dtype = args.map((t) => t.dtype).reduce((a, b) => promoteTypes(opName('promote'), a, b));
  if (!isSmallFloat(dtype)) return body(...args);
  const wide = body(...args.map((t) => wrap(cast(nodeOf(t), 'float32'))));
  return wrap(cast(nodeOf(wide), dtype));
}

/** float32 for 16-bit floats, anything else as it is. */
export function widened(x: Node): Node {
  return isSmallFloat(x.dtype) ? cast(x, 'float32') : x;
}

/** Integers as int32; those beyond its range become its ends, where a cast would wrap them to numbers in range. */
export function saturated(index: Node): Node {
  const { dtype } = index;
  const { bytes, kind } = dtypeInfo[dtype];
  let within = index;
  if (bytes === 8 || dtype === 'uint32') within = binary('minimum', within, constant(2 ** 31 - 1, dtype));
  if (bytes === 8 && kind === 'int') within = binary('maximum', within, constant(-(2 ** 31), dtype));
  return cast(within, 'int32');
}

/** Dtype sums and products are taken in: bool and small integers grow to 32 bits, 16-bit floats stay (kernels accumulate in float32). */
export function sumDType(dtype: DType): DType {
  const { kind, bytes } = dtypeInfo[dtype];
  if (kind === 'bool' || (kind === 'int' && bytes < 4)) return 'int32';
  return kind === 'uint' && bytes < 4 ? 'uint32' : dtype;
}

/** One operand of any dtype the primitive takes. */
export function unaryOp(op: string, primitive: UnaryOperation, x: TensorLike): Tensor {
  beginOp(op);
  return wrap(makeNode(primitive, [operand(x)], null));
}

/** One operand that becomes float32 if it is no float. */
export function floatUnaryOp(op: string, primitive: UnaryOperation, x: TensorLike): Tensor {
  beginOp(op);
  return wrap(makeNode(primitive, [floatOperand(x)], null));
}

/** Two operands that meet in their common dtype. */
export function binaryOp(op: string, primitive: BinaryOperation, a: TensorLike, b: TensorLike): Tensor {
  beginOp(op);
  return wrap(makeNode(primitive, operands(a, b), null));
}

/** Two operands that meet in their common dtype, or float32 if that is no float. */
export function floatBinaryOp(op: string, primitive: BinaryOperation, a: TensorLike, b: TensorLike): Tensor {
  beginOp(op);
  return wrap(makeNode(primitive, floatOperands(a, b), null));
}

/** Runs an activation on its argument as a floating-point tensor. 16-bit floats are rounded once, at the end. */
export function activation(op: string, x: TensorLike, body: (x: Tensor) => Tensor): Tensor {
  return compose(op, () => inFloat32([wrap(floatOperand(x))], body));
}

/** Both arguments as tensors of their common dtype. */
export function pair(a: TensorLike, b: TensorLike): [Tensor, Tensor] {
  if (typeof a === 'object' && typeof b === 'object') {
    const [x, y] = operands(a, b);
    return [wrap(x), wrap(y)];
  }
  if (typeof a === 'object') return [a, given(b, a)];
  if (typeof b === 'object') return [given(a, b), b];
  return [wrap(operand(a)), wrap(operand(b))];
}

/** Both arguments as floating-point tensors of their common dtype. */
export function floatPair(a: TensorLike, b: TensorLike): [Tensor, Tensor] {
  if (typeof a === 'object' && typeof b === 'object') {
    const [x, y] = floatOperands(a, b);
    return [wrap(x), wrap(y)];
  }
  return pair(typeof a === 'object' ? wrap(floatOperand(a)) : a, typeof b === 'object' ? wrap(floatOperand(b)) : b);
}

// The choice between two tensors by a condition. The gradient goes to the side taken.

/** Node of an operand as bool: true where the element is not 0. */
export function truthOf(value: TensorLike): Node {
  return typeof value === 'object' ? cast(nodeOf(value), 'bool') : weak(value !== 0 && value !== false, 'bool');
}

/**
 * Elements of a where the condition is true, else of b. Source: Array API `where`. The side not taken leaves no trace, NaN and
 * infinite slopes of elementwise functions included.
 *
 * @param condition bool (numbers count as true unless they are 0); broadcasts with a and b
 * @returns the broadcast shape, the common dtype of a and b
 *
 * @example
 * where(tensor([true, false]), tensor([1, 2]), 0); // [1, 0]
 */
export function where(condition: TensorLike, a: TensorLike, b: TensorLike): Tensor {
  beginOp('where');
  const [x, y] = operands(a, b);
  return wrap(whereNode(truthOf(condition), x, y));
}

// What is close to what: one rule, for `isClose` in graphs and for matchers on the host.

/** Tolerances of `isClose` and `allClose`. */
export interface CloseOptions {
  /** Tolerance times the magnitude of the second operand. Default 1e-5. */
  readonly rtol?: number;
  /** Tolerance whatever the magnitude. Default 1e-8. */
  readonly atol?: number;
  /** Whether NaN is close to NaN. Default false. */
  readonly equalNaN?: boolean;
}

export type Tolerances = Required<CloseOptions>;

/** The options of the function `op`, checked, with their defaults. */
export function tolerancesOf(op: string, options: CloseOptions): Tolerances {
  checkNames(op, options, 'rtol# atol# equalNaN?');
  const { rtol = 1e-5, atol = 1e-8, equalNaN = false } = options;
  return { rtol, atol, equalNaN };
}

/** What the rule is computed with: nodes of a graph, or numbers. Conditions are 1 and 0. */
export interface Arithmetic<V> {
  readonly number: (value: number) => V;
  readonly apply: (op: 'abs' | 'add' | 'mul' | 'lt' | 'le' | 'and' | 'or' | 'isNaN', ...operands: V[]) => V;
}

/** What is compared: |x - y| and x == y come from the caller, who knows how to compute them exactly. */
export interface Compared<V> {
  readonly x: V;
  readonly y: V;
  readonly distance: V;
  readonly same: V;
}

/** Whether x is close to y, and the largest distance allowed. Source: NumPy `isclose`. */
export function closeness<V>(
  { number, apply }: Arithmetic<V>,
  { x, y, distance, same }: Compared<V>,
  { rtol, atol, equalNaN }: Tolerances,
): { readonly close: V; readonly allowed: V } {
  const size = apply('abs', y);
  const allowed = apply('add', number(atol), apply('mul', number(rtol), size));
  const near = apply('and', apply('lt', size, number(Number.POSITIVE_INFINITY)), apply('le', distance, allowed));
  const close = apply('or', near, same);
  return { close: equalNaN ? apply('or', close, apply('and', apply('isNaN', x), apply('isNaN', y))) : close, allowed };
}
