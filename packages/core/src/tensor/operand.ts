/**
 * Operands: how the arguments of an operation - tensors and JavaScript numbers - become nodes of one dtype.
 *
 * A number is weak: it takes the dtype of the tensor beside it. Numbers of users become scalars bound at each run, so that a
 * changing learning rate makes no new kernel; numbers written inside the library become constants of the kernel.
 */
import type { Node } from '../graph/node.ts';
import { cast, constant, scalar } from '../graph/primitives.ts';
import { beginOp, composingDepth, opName } from '../graph/scope.ts';
import { graph } from '../graph/state.ts';
import { type DType, highest, isInteger, lowest } from '@polygrad/compiler/shape/dtype';
import { checkFunction, checkNames } from '@polygrad/compiler/shape/options';
import { checkWeak, floatFor, promoteTypes } from '@polygrad/compiler/shape/promotion';
import { nodeOf, wrap } from './handle.ts';
import type { Tensor, TensorLike } from './types.ts';

/** Dtype of a number without a tensor beside it. */
export function weakDefault(value: number | boolean | bigint): DType {
  if (typeof value === 'bigint') return 'int64';
  return typeof value === 'boolean' ? 'bool' : 'float32';
}

/** A number as a node of `dtype`: a scalar if the user gave it, else a constant. Throws DTypeError if the dtype cannot hold its kind of number. */
export function weak(value: number | boolean | bigint, dtype: DType, fromUser: boolean = composingDepth() === 0): Node {
  checkWeak(opName('number'), value, dtype);
  const number = typeof value === 'bigint' ? value : Number(value);
  return fromUser ? scalar(number, dtype) : constant(number, dtype);
}

/**
 * Whether a number is outside the range of an integer dtype: 1 above, -1 below. It is 0 inside, for NaN, and for anything but numbers
 * beside integers.
 */
export function sideOf(value: TensorLike, dtype: DType): -1 | 0 | 1 {
  if ((typeof value !== 'number' && typeof value !== 'bigint') || !isInteger(dtype)) return 0;
  return value > highest(dtype) ? 1 : value < lowest(dtype) ? -1 : 0;
}

/** Node of a single operand. */
export function operand(value: TensorLike): Node {
  return typeof value === 'object' ? nodeOf(value) : weak(value, weakDefault(value));
}

/** Node of a tensor or number as a floating-point operand: integers and bool become float32. */
export function floatOperand(value: TensorLike): Node {
  const node = operand(value);
  return cast(node, floatFor(node.dtype));
}

/** Nodes of two operands in their common dtype. Throws DTypeError where there is none. */
export function operands(a: TensorLike, b: TensorLike): [Node, Node] {
  if (typeof a === 'object') {
    const x = nodeOf(a);
    if (typeof b !== 'object') return [x, weak(b, x.dtype)];
    const y = nodeOf(b);
    if (x.dtype === y.dtype) return [x, y];
    const dtype = promoteTypes(opName('promote'), x.dtype, y.dtype);
    return [cast(x, dtype), cast(y, dtype)];
  }
  if (typeof b === 'object') {
    const y = nodeOf(b);
    return [weak(a, y.dtype), y];
  }
  const dtype = weakDefault(a);
  return [weak(a, dtype), weak(b, dtype)];
}

/** Nodes of two operands in a common floating-point dtype. A number beside an integer tensor becomes a float. */
export function floatOperands(a: TensorLike, b: TensorLike): [Node, Node] {
  if (typeof a === 'object' && typeof b === 'object') {
    const [x, y] = operands(a, b);
    const dtype = floatFor(x.dtype);
    return [cast(x, dtype), cast(y, dtype)];
  }
  if (typeof a === 'object') {
    const x = floatOperand(a);
    return [x, weak(b as number, x.dtype)];
  }
  const y = floatOperand(b);
  return [weak(a, y.dtype), y];
}

/**
 * Inside a composite: a user's argument as a tensor in the dtype of `x`. A number of the user stays
 * a scalar, although numbers of the composite itself are constants.
 */
export function given(value: TensorLike, x: Tensor): Tensor {
  if (typeof value !== 'object') return wrap(weak(value, nodeOf(x).dtype, composingDepth() <= 1));
  nodeOf(value);
  return value;
}

/**
 * A tensor of shape [] holding a number of JavaScript that a function of `compile` reads at every call, such as a changing learning rate.
 * Elsewhere it is `full([], read())`.
 *
 * @param read called for the number, now and at every replay
 * @param options dtype (float32)
 * @throws ArgumentError if `read` is no function
 *
 * @example
 * let rate = 0.5;
 * const step = compile((x: Tensor) => x.mul(hostNumber(() => rate)));
 * step(tensor([3])); // [1.5]
 */
export function hostNumber(read: () => number, options: { readonly dtype?: DType } = {}): Tensor {
  checkNames('hostNumber', options, 'dtype%');
  checkFunction('hostNumber', read);
  beginOp('hostNumber');
  const node = weak(read(), options.dtype ?? 'float32', true);
  graph.observer?.number(node, read);
  return wrap(node);
}
