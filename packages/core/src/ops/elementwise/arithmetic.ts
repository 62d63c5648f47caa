/**
 * Arithmetic of one and two operands, and arithmetic made of several steps.
 *
 * Operands broadcast (trailing axes align, axes of size 1 stretch) and meet in their common dtype by the table of the Python
 * Array API; JavaScript numbers take the dtype of the tensor they meet. All functions here throw ShapeError where shapes do not
 * broadcast and DTypeError where dtypes have no common one.
 */
import { cast as castNode, makeNode, stopGradient } from '../../graph/primitives.ts';
import type { Node } from '../../graph/node.ts';
import { beginOp, compose } from '../../graph/scope.ts';
import { fmaPrimitive, fmodPrimitive, powPrimitive } from '../../primitives/elementary.ts';
import { type DType, dtypeInfo, isFloat, isInteger, checkDType } from '@polygrad/compiler/shape/dtype';
import { checkNames } from '@polygrad/compiler/shape/options';
import { promoteTypes } from '@polygrad/compiler/shape/promotion';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { given, operand, operands, sideOf } from '../../tensor/operand.ts';
import type { NamedDType, Tensor, TensorLike } from '../../tensor/types.ts';
import { fullLike, onesLike } from '../creation/creation.ts';
import { equal, greaterEqual, isInf, isNaN as areNaN, less, logicalAnd, logicalOr, notEqual } from './logic.ts';
import { binaryOp, floatBinaryOp, floatPair, floatUnaryOp, inFloat32, pair, unaryOp, where } from './recording.ts';

/**
 * a + b. Source: Array API `add`.
 *
 * @param a tensor or number, any dtype but bool
 * @param b tensor or number
 * @returns the broadcast shape, the common dtype
 *
 * @example
 * add(tensor([1, 2]), 10); // [11, 12]
 */
export function add(a: TensorLike, b: TensorLike): Tensor {
  return binaryOp('add', 'add', a, b);
}

/**
 * a - b. Source: Array API `subtract`. Unsigned integers wrap.
 *
 * @returns the broadcast shape, the common dtype
 *
 * @example
 * sub(tensor([5, 7]), tensor([1, 2])); // [4, 5]
 */
export function sub(a: TensorLike, b: TensorLike): Tensor {
  return binaryOp('sub', 'sub', a, b);
}

/**
 * a * b. Source: Array API `multiply`.
 *
 * @returns the broadcast shape, the common dtype
 *
 * @example
 * mul(tensor([1, 2]), tensor([[3], [4]])); // [[3, 6], [4, 8]]
 */
export function mul(a: TensorLike, b: TensorLike): Tensor {
  return binaryOp('mul', 'mul', a, b);
}

/**
 * a / b, as a floating-point number: integers become float32. Source: Array API `divide`.
 *
 * @returns the broadcast shape, the common dtype
 *
 * @example
 * div(tensor([1, 2]), 4); // [0.25, 0.5]
 */
export function div(a: TensorLike, b: TensorLike): Tensor {
  return floatBinaryOp('div', 'div', a, b);
}

/**
 * The largest integer not above a / b. Source: Array API `floor_divide`. Keeps the dtype; integer division by zero is 0.
 *
 * @example
 * floorDivide(tensor([7, -7]), 2); // [3, -4]
 */
export function floorDivide(a: TensorLike, b: TensorLike): Tensor {
  return compose('floorDivide', () => {
    const [x, y] = pair(a, b);
    if (!isInteger(x.dtype)) return floatFloorDivide(x, y);
    const quotient = binaryOp('floorDivide', 'idiv', x, y);
    if (x.dtype.startsWith('u')) return quotient;
    const rest = binaryOp('floorDivide', 'irem', x, y);
    return where(wrongSide(rest, y), sub(quotient, 1), quotient);
  });
}

/** The quotient may be rounded up to an integer above the true one. Then the remainder, whose sign is exact, has the wrong sign. */
function floatFloorDivide(a: Tensor, b: Tensor): Tensor {
  return inFloat32([a, b], (x, y) => {
    const rounded = unaryOp('floorDivide', 'floor', div(x, y));
    const product = wrap(makeNode(fmaPrimitive, [nodeOf(neg(rounded)), nodeOf(y), nodeOf(x)], null));
    // An infinite divisor leaves the whole dividend.
    const rest = where(isInf(y), x, product);
    const whole = where(wrongSide(rest, y), sub(rounded, 1), rounded);
    return unaryOp('floorDivide', 'floor', whole);
  });
}

/** True where a remainder other than 0 has not the sign of the divisor. */
function wrongSide(rest: Tensor, y: Tensor): Tensor {
  return logicalAnd(notEqual(rest, 0), notEqual(less(rest, 0), less(y, 0)));
}

/**
 * a - b * floor(a / b): the rest with the sign of b. Source: Array API `remainder`. Keeps the dtype.
 *
 * @example
 * remainder(tensor([7, -7]), 3); // [1, 2]
 */
export function remainder(a: TensorLike, b: TensorLike): Tensor {
  return compose('remainder', () => {
    const [x, y] = pair(a, b);
    const rest = binaryOp('remainder', isInteger(x.dtype) ? 'irem' : fmodPrimitive, x, y);
    if (x.dtype.startsWith('u')) return rest;
    const result = where(wrongSide(rest, y), add(rest, y), rest);
    if (isInteger(x.dtype)) return result;
    // A remainder of 0 takes the divisor's sign. It is written as a difference with a constant, so that the gradient stays.
    const still = wrap(stopGradient(nodeOf(rest)));
    return where(equal(rest, 0), where(less(y, 0), neg(sub(still, rest)), sub(rest, still)), result);
  });
}

/**
 * The rest of a / b with the sign of a. Source: C `fmod`, PyTorch `torch.fmod`. Keeps the dtype.
 *
 * @example
 * fmod(tensor([7, -7]), 3); // [1, -1]
 */
export function fmod(a: TensorLike, b: TensorLike): Tensor {
  beginOp('fmod');
  const [x, y] = operands(a, b);
  return wrap(makeNode(isInteger(x.dtype) ? 'irem' : fmodPrimitive, [x, y], null));
}

/**
 * a to the power b. Source: Array API `pow`, C `pow`: pow(x, 0) and pow(1, x) are 1 for every x.
 *
 * An exponent given as the number 0, 1, 2, 3, -1, 0.5 or -0.5 becomes a product, a root or a reciprocal. Integers are
 * multiplied and wrap; negative exponents of integers give 0 (or the base's sign for 1 and -1).
 *
 * @returns the broadcast shape, the common dtype
 *
 * @example
 * pow(tensor([1, 2, 3]), 2); // [1, 4, 9]
 */
export function pow(a: TensorLike, b: TensorLike): Tensor {
  return compose('pow', () => {
    if (typeof b === 'number' && typeof a === 'object' && nodeOf(a).dtype !== 'bool') {
      const easy = powOfNumber(a, b);
      if (easy !== null) return easy;
    }
    const [x, y] = pair(a, b);
    return isInteger(x.dtype) ? integerPow(x, y) : binaryOp('pow', powPrimitive, x, y);
  });
}

function powOfNumber(x: Tensor, exponent: number): Tensor | null {
  switch (exponent) {
    case 0:
      return onesLike(x);
    case 1:
      return wrap(nodeOf(x));
    case 2:
      return mul(x, x);
    case 3:
      return mul(mul(x, x), x);
    default:
  }
  if (!isFloat(nodeOf(x).dtype)) return null;
  switch (exponent) {
    case -1:
      return floatUnaryOp('pow', 'reciprocal', x);
    case 0.5:
      // C pow and sqrt differ at negative infinity, and at negative zero, which the sum makes positive.
      return where(
        equal(x, Number.NEGATIVE_INFINITY),
        Number.POSITIVE_INFINITY,
        floatUnaryOp('pow', 'sqrt', add(x, 0)),
      );
    case -0.5:
      return where(equal(x, Number.NEGATIVE_INFINITY), 0, floatUnaryOp('pow', 'rsqrt', add(x, 0)));
    default:
      return null;
  }
}

/** Squaring and multiplying, one step per bit of an exponent that is not negative. */
function integerPow(x: Tensor, y: Tensor): Tensor {
  let result = onesLike(add(x, y));
  let base = x;
  const { bytes, kind } = dtypeInfo[y.dtype];
  const bits = 8 * bytes - (kind === 'int' ? 1 : 0);
  for (let bit = 0; bit < bits; bit++) {
    const set = notEqual(binaryOp('pow', 'and', binaryOp('pow', 'shr', y, bit), 1), 0);
    result = where(set, mul(result, base), result);
    base = mul(base, base);
  }
  if (x.dtype.startsWith('u')) return result;
  const odd = notEqual(binaryOp('pow', 'and', y, 1), 0);
  const negative = where(equal(x, 1), 1, where(equal(x, -1), where(odd, fullLike(x, -1), 1), 0));
  return where(less(y, 0), negative, result);
}

/**
 * -x. Source: Array API `negative`. A separate operation, not 0 - x: the sign of zero changes.
 *
 * @returns of the shape and dtype of x
 *
 * @example
 * neg(tensor([1, -2])); // [-1, 2]
 */
export function neg(x: TensorLike): Tensor {
  return unaryOp('neg', 'neg', x);
}

/**
 * 1 / x. Integers become float32. Source: Array API `reciprocal`.
 *
 * @returns of the shape of x
 *
 * @example
 * reciprocal(tensor([2, 4])); // [0.5, 0.25]
 */
export function reciprocal(x: TensorLike): Tensor {
  return floatUnaryOp('reciprocal', 'reciprocal', x);
}

/**
 * The magnitude of x. Source: Array API `abs`. The gradient at 0 is 0.
 *
 * @returns of the shape and dtype of x
 *
 * @example
 * abs(tensor([-3, 3])); // [3, 3]
 */
export function abs(x: TensorLike): Tensor {
  return unaryOp('abs', 'abs', x);
}

/**
 * -1, 0 or 1; NaN for NaN. Source: Array API `sign`. The gradient is 0.
 *
 * @returns of the shape and dtype of x
 *
 * @example
 * sign(tensor([-3, 0, 2])); // [-1, 0, 1]
 */
export function sign(x: TensorLike): Tensor {
  return unaryOp('sign', 'sign', x);
}

/**
 * x * x. Source: Array API `square`.
 *
 * @example
 * square(tensor([1, -2])); // [1, 4]
 */
export function square(x: TensorLike): Tensor {
  beginOp('square');
  const node = operand(x);
  return wrap(makeNode('mul', [node, node], null));
}

/**
 * The larger of a and b; NaN if either is NaN. Source: Array API `maximum`. Equals share the gradient.
 *
 * @returns the broadcast shape, the common dtype
 *
 * @example
 * maximum(tensor([1, 5]), 3); // [3, 5]
 */
export function maximum(a: TensorLike, b: TensorLike): Tensor {
  return extreme('maximum', a, b, -1);
}

/**
 * The smaller of a and b; NaN if either is NaN. Source: Array API `minimum`. Equals share the gradient.
 *
 * @returns the broadcast shape, the common dtype
 *
 * @example
 * minimum(tensor([1, 5]), 3); // [1, 3]
 */
export function minimum(a: TensorLike, b: TensorLike): Tensor {
  return extreme('minimum', a, b, 1);
}

/** An integer tensor stays as it is beside a number outside its dtype's range that is never the result: one below for maximum, above for minimum. */
function extreme(op: 'maximum' | 'minimum', a: TensorLike, b: TensorLike, side: -1 | 1): Tensor {
  beginOp(op);
  for (const [x, c] of [
    [a, b],
    [b, a],
  ] as const)
    if (typeof x === 'object' && sideOf(c, nodeOf(x).dtype) === side) return wrap(nodeOf(x));
  return binaryOp(op, op, a, b);
}

/**
 * x in another dtype. Fractions are cut off for integers, which saturate, NaN becomes 0; bool is true where x is not 0. int32 and
 * uint32 wrap into each other. The gradient is cast back.
 *
 * @example
 * cast(tensor([1.7, -2.2]), 'int32'); // [1, -2]
 */
export function cast<const D extends DType>(x: Tensor, dtype: D): Tensor<NamedDType<D>> {
  beginOp('cast');
  checkDType('cast', dtype);
  return wrap(castNode(nodeOf(x), dtype));
}

// Arithmetic made of several steps: limits, interpolation, fused forms.

/** `beyond`, or true where a bound that may be NaN is. */
function orNaN(given: TensorLike, bound: Tensor, beyond: Tensor): Tensor {
  const known = typeof given === 'number' && !Number.isNaN(given);
  return known || !isFloat(bound.dtype) ? beyond : logicalOr(beyond, areNaN(bound));
}

/**
 * x limited to low .. high; NaN, of x or of a bound, stays. Source: Array API `clip`. The gradient at a bound is that of x.
 *
 * @param low smallest result; none if null (the default), or below all numbers of an integer dtype
 * @param high largest result; none if null (the default), or above all numbers of an integer dtype
 *
 * @example
 * clip(tensor([-5, 0.5, 5]), -1, 1); // [-1, 0.5, 1]
 */
export function clip(x: TensorLike, low: TensorLike | null = null, high: TensorLike | null = null): Tensor {
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
  const far = logicalOr(isInf(x), isInf(y));
  // Scale by the larger side, but not by infinity, and not by so little that a part of it is below the normal numbers: slopes on the way are
  // such parts. The scale cancels, so it carries no gradient.
  const node = nodeOf(where(far, 1, maximum(large, p.dtype === 'float64' ? 2 ** -960 : 2 ** -110)));
  const scale = wrap(makeNode('stopGradient', [node], null));
  // Squares need no magnitudes, whose slope at 0 would cut off second derivatives.
  const u = div(where(far, 0, p), scale);
  const v = div(where(far, 0, q), scale);
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
    // 1 / -0 is -infinity: that distinguishes the zeros.
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
 * @returns the broadcast shape, the common dtype
 * @throws ArgumentError for other options
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
 * @returns the broadcast shape, the common dtype of floats
 * @throws DTypeError for integers, ArgumentError for other options
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
    const zero = nodeOf(x).dtype === 'bool' ? false : 0;
    const step = where(greaterEqual(x, zero), onesLike(x), zero);
    return where(equal(x, zero), at, where(notEqual(x, x), x, step));
  });
}
