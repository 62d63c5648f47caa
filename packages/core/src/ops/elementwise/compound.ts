/** Arithmetic made of several steps: limits, interpolation, fused forms. Operands broadcast as in arithmetic.ts. */
import { makeNode } from '../../graph/build.ts';
import type { Node } from '../../graph/node.ts';
import { compose } from '../../graph/scope.ts';
import { fmaPrimitive } from '../../primitives/rounding.ts';
import { isFloat } from '../../shape/dtype.ts';
import { promoteTypes } from '../../shape/promotion.ts';
import { checkNames } from '../../shape/options.ts';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { given, operand, operands, sideOf } from '../../tensor/operand.ts';
import type { Tensor, TensorLike } from '../../tensor/types.ts';
import { abs, add, cast, div, maximum, mul, neg, reciprocal, sub } from './arithmetic.ts';
import { floatPair, floatUnaryOp, inFloat32, pair } from './recording.ts';
import { onesLike } from '../creation/creation.ts';
import { equal, greaterEqual, isInf, isNaN as areNaN, less, logicalAnd, logicalOr, notEqual } from './logic.ts';
import { where } from './where.ts';

/** `beyond`, or true where a bound that may be NaN is. */
function orNaN(given: TensorLike, bound: Tensor, beyond: Tensor): Tensor {
  const known = typeof given === 'number' && !Number.isNaN(given);
  return known || !isFloat(bound.dtype) ? beyond : logicalOr(beyond, areNaN(bound));
}

/**
 * x limited to low .. high; NaN, of x or of a bound, stays. Source: Array API `clip`. The gradient at a bound is that of x.
 *
 * @param low smallest result; none if null, or below all numbers of an integer dtype
 * @param high largest result; none if null, or above all numbers of an integer dtype
 *
 * @example
 * clip(tensor([-5, 0.5, 5]), -1, 1); // [-1, 0.5, 1]
 */
export function clip(x: TensorLike, low: TensorLike | null, high: TensorLike | null): Tensor {
  return compose('clip', () => {
    let result = wrap(operand(x));
    // A bound beyond all numbers of the dtype is none.
    if (low !== null && sideOf(low, result.dtype) >= 0) {
      const bound = given(low, result);
      result = where(orNaN(low, bound, less(result, bound)), bound, result);
    }
    if (high !== null && sideOf(high, result.dtype) <= 0) {
      const bound = given(high, result);
      result = where(orNaN(high, bound, less(bound, result)), bound, result);
    }
    return result;
  });
}

/**
 * a + weight * (b - a): a at weight 0, b at weight 1. Source: PyTorch `torch.lerp`.
 *
 * @example
 * lerp(tensor([0, 10]), tensor([10, 20]), 0.5); // [5, 15]
 */
export function lerp(a: TensorLike, b: TensorLike, weight: TensorLike): Tensor {
  return compose('lerp', () => {
    const ends = pair(a, b);
    return inFloat32([...ends, given(weight, ends[0])], (x, y, w) => {
      const way = sub(y, x);
      // From the nearer end: exact at both.
      return where(less(w, 0.5), add(x, mul(w, way)), sub(y, mul(sub(1, w), way)));
    });
  });
}

/**
 * The length of the hypotenuse, without overflow on the way. Source: C `hypot`: infinite if either side is.
 *
 * @example
 * hypot(tensor([3]), 4); // [5]
 */
export function hypot(a: TensorLike, b: TensorLike): Tensor {
  return compose('hypot', () => inFloat32(floatPair(a, b), hypotOf));
}

function hypotOf(p: Tensor, q: Tensor): Tensor {
  const x = abs(p);
  const y = abs(q);
  const large = maximum(x, y);
  // Scale by the larger side, but not by 0 or infinity. The scale cancels, so it carries no gradient.
  const usable = logicalAnd(notEqual(large, 0), less(large, Number.POSITIVE_INFINITY));
  const node = nodeOf(where(usable, large, 1));
  const scale = wrap(makeNode('stopGradient', [node], null));
  // Squares need no magnitudes, whose slope at 0 would cut off second derivatives.
  const u = div(p, scale);
  const v = div(q, scale);
  const squares = add(mul(u, u), mul(v, v));
  const zero = equal(squares, 0);
  const root = where(zero, 0, mul(scale, floatUnaryOp('hypot', 'sqrt', where(zero, 1, squares))));
  // An infinite side wins over NaN.
  return where(isInf(x), x, where(isInf(y), y, root));
}

/**
 * The magnitude of a with the sign of b, the sign of zero included. Source: IEEE 754 `copySign`.
 *
 * @example
 * copysign(tensor([1, 2]), tensor([-1, 1])); // [-1, 2]
 */
export function copysign(a: TensorLike, b: TensorLike): Tensor {
  return compose('copysign', () => {
    const [x, y] = pair(a, b);
    const size = abs(x);
    // 1 / -0 is -infinity: that tells the zeros apart.
    const negative = where(equal(y, 0), less(reciprocal(y), 0), less(y, 0));
    return where(negative, neg(size), size);
  });
}

/**
 * a * b + c, rounded once. Source: IEEE 754 `fusedMultiplyAdd`. Integers are multiplied and added, and wrap.
 *
 * Engines without such an instruction compute it from parts: then ties, and numbers near the ends of the format, may be rounded
 * twice in float64, and in float32 where there is no float64.
 *
 * @returns the broadcast shape, the common dtype
 *
 * @example
 * fma(tensor([2]), tensor([3]), tensor([4])); // [10]
 */
export function fma(a: TensorLike, b: TensorLike, c: TensorLike): Tensor {
  return compose('fma', () => {
    const [x, y, z] = together(a, b, c);
    return isFloat(x.dtype) ? wrap(makeNode(fmaPrimitive, [x, y, z], null)) : add(mul(wrap(x), wrap(y)), wrap(z));
  });
}

/** Three operands in their common dtype. */
function together(a: TensorLike, b: TensorLike, c: TensorLike): [Node, Node, Node] {
  const all = [a, b, c];
  const tensors = all.filter((value) => typeof value === 'object');
  if (tensors.length === 0) return all.map((value) => operand(value)) as [Node, Node, Node];
  const dtype = tensors.map((t) => nodeOf(t).dtype).reduce((p, q) => promoteTypes('fma', p, q));
  const model = cast(tensors[0]!, dtype);
  return all.map((value) => operands(given(value, model), model)[0]) as [Node, Node, Node];
}

/**
 * input + value * a * b. Source: PyTorch `torch.addcmul`.
 *
 * @param options value (1); all operands broadcast
 *
 * @example
 * addcmul(tensor([1]), tensor([2]), tensor([3]), { value: 10 }); // [61]
 */
export function addcmul(
  input: Tensor,
  a: TensorLike,
  b: TensorLike,
  options: { readonly value?: TensorLike } = {},
): Tensor {
  checkNames('addcmul', options, 'value');
  return compose('addcmul', () => {
    const factor = options.value === undefined ? [] : [given(options.value, input)];
    return inFloat32([input, given(a, input), given(b, input), ...factor], (x, y, z, value) => {
      const product = mul(y, z);
      return add(x, value === undefined ? product : mul(value, product));
    });
  });
}

/**
 * input + value * a / b. Source: PyTorch `torch.addcdiv`.
 *
 * @param options value (1); all operands broadcast
 *
 * @example
 * addcdiv(tensor([1]), tensor([6]), tensor([3]), { value: 10 }); // [21]
 */
export function addcdiv(
  input: Tensor,
  a: TensorLike,
  b: TensorLike,
  options: { readonly value?: TensorLike } = {},
): Tensor {
  checkNames('addcdiv', options, 'value');
  return compose('addcdiv', () => {
    const factor = options.value === undefined ? [] : [given(options.value, input)];
    return inFloat32([input, given(a, input), given(b, input), ...factor], (x, y, z, value) => {
      const quotient = div(y, z);
      return add(x, value === undefined ? quotient : mul(value, quotient));
    });
  });
}

/**
 * 0 below zero, `value` at zero, 1 above. Source: NumPy `heaviside`.
 *
 * @example
 * heaviside(tensor([-1, 0, 2]), 0.5); // [0, 0.5, 1]
 */
export function heaviside(x: Tensor, value: TensorLike): Tensor {
  return compose('heaviside', () => {
    const at = given(value, x);
    const step = where(greaterEqual(x, 0), onesLike(x), 0);
    return where(equal(x, 0), at, where(notEqual(x, x), x, step));
  });
}
