/**
 * Exponentials, logarithms and roots, trigonometric and hyperbolic functions, and the error function. Integer operands become float32; every
 * function works element by element.
 */
import { compose } from '../../graph/scope.ts';
import {
  acosPrimitive,
  asinPrimitive,
  atan2Primitive,
  atanPrimitive,
  coshPrimitive,
  cosPrimitive,
  erfPrimitive,
  exp2Primitive,
  expm1Primitive,
  log10Primitive,
  log1pPrimitive,
  log2Primitive,
  roundPrimitive,
  sinhPrimitive,
  sinPrimitive,
  tanhPrimitive,
  tanPrimitive,
} from '../../primitives/elementary.ts';
import { wrap } from '../../tensor/handle.ts';
import { floatOperand, floatOperands } from '../../tensor/operand.ts';
import type { Tensor, TensorLike } from '../../tensor/types.ts';
import { specialFunction } from '../special/special-form.ts';
import { abs, add, copysign, div, mul, neg, reciprocal, square, sub } from './arithmetic.ts';
import { equal, greater, isInf, less, lessEqual, logicalAnd, logicalOr, notEqual } from './logic.ts';
import { floatBinaryOp, floatUnaryOp, inFloat32, where } from './recording.ts';

/**
 * The square root; NaN below zero. Source: Array API `sqrt`. The gradient at 0 is infinite.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * sqrt(tensor([4, 9])); // [2, 3]
 */
export function sqrt(x: TensorLike): Tensor {
  return floatUnaryOp('sqrt', 'sqrt', x);
}

/**
 * 1 / sqrt(x). Source: PyTorch `torch.rsqrt`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * rsqrt(tensor([4])); // [0.5]
 */
export function rsqrt(x: TensorLike): Tensor {
  return floatUnaryOp('rsqrt', 'rsqrt', x);
}

/**
 * The cube root, of negative numbers too. The gradient at 0 is infinite. Source: C `cbrt`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * cbrt(tensor([8, -27])); // [2, -3]
 */
export function cbrt(x: TensorLike): Tensor {
  return specialFunction(
    'cbrt',
    x,
    (t) => {
      const size = abs(t);
      // One Newton step takes exp(log(x) / 3) to full accuracy; 0, infinity and NaN stay what they are.
      const plain = equal(mul(size, 0), 0);
      const safe = where(equal(size, 0), 1, where(plain, size, 1));
      const first = exp(mul(log(safe), 1 / 3));
      const root = sub(first, mul(sub(first, div(safe, mul(first, first))), 1 / 3));
      const signed = where(less(t, 0), neg(root), root);
      return where(equal(size, 0), t, where(plain, signed, t));
    },
    cbrtSlope,
  );
}

/** s = 1 / (3 y^2), y the root of x. The derivative of the formula would be a product of 0 and infinity at both ends, so it is -2/3 s / x. */
function cbrtSlope(x: Tensor, y: Tensor): Tensor {
  return specialFunction(
    'cbrt',
    x,
    () => reciprocal(mul(square(y), 3)),
    (t, s) => mul(div(s, t), -2 / 3),
  );
}

/**
 * e to the power x. Source: Array API `exp`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * exp(tensor([0, 1])); // [1, 2.7182817]
 */
export function exp(x: TensorLike): Tensor {
  return floatUnaryOp('exp', 'exp', x);
}

/**
 * 2 to the power x. Source: C `exp2`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * exp2(tensor([3])); // [8]
 */
export function exp2(x: TensorLike): Tensor {
  return floatUnaryOp('exp2', exp2Primitive, x);
}

/**
 * exp(x) - 1, accurate near zero. Source: Array API `expm1`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * expm1(tensor([0])); // [0]
 */
export function expm1(x: TensorLike): Tensor {
  return floatUnaryOp('expm1', expm1Primitive, x);
}

/**
 * The natural logarithm. Source: Array API `log`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * log(tensor([1])); // [0]
 */
export function log(x: TensorLike): Tensor {
  return floatUnaryOp('log', 'log', x);
}

/**
 * The logarithm to base 2. Source: Array API `log2`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * log2(tensor([8])); // [3]
 */
export function log2(x: TensorLike): Tensor {
  return floatUnaryOp('log2', log2Primitive, x);
}

/**
 * log(1 + x), accurate near zero. Source: Array API `log1p`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * log1p(tensor([0])); // [0]
 */
export function log1p(x: TensorLike): Tensor {
  return floatUnaryOp('log1p', log1pPrimitive, x);
}

/**
 * The logarithm to base 10. Source: Array API `log10`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * log10(tensor([100])); // [2]
 */
export function log10(x: TensorLike): Tensor {
  return floatUnaryOp('log10', log10Primitive, x);
}

/**
 * log(exp(a) + exp(b)) without overflow. Source: Array API `logaddexp`.
 *
 * @example
 * logAddExp(tensor([0]), tensor([0])); // [0.6931472]
 */
export function logAddExp(a: TensorLike, b: TensorLike): Tensor {
  return compose('logAddExp', () => {
    const [p, q] = floatOperands(a, b);
    return inFloat32([wrap(p), wrap(q)], logAddExpOf);
  });
}

function logAddExpOf(x: Tensor, y: Tensor): Tensor {
  // The larger operand is chosen, not computed by maximum and abs: their slopes at equality would cut off second derivatives.
  const other = less(x, y);
  const result = add(where(other, y, x), log1p(exp(where(other, sub(x, y), sub(y, x)))));
  // Equal infinities: their distance is NaN.
  return where(logicalAnd(equal(x, y), isInf(x)), mul(add(x, y), 0.5), result);
}

/**
 * x * log(y), and 0 where x is 0, whatever y is but NaN. There, the slope by x is log(y) for finite y above 0, and otherwise 0. Source: SciPy `xlogy`.
 *
 * @example
 * xlogy(tensor([0, 1]), tensor([0, 1])); // [0, 0]
 */
export function xlogy(a: TensorLike, b: TensorLike): Tensor {
  return compose('xlogy', () => {
    const [p, q] = floatOperands(a, b);
    const [x, y] = [wrap(p), wrap(q)];
    // Where x is 0 and log(y) is not finite, the product would be NaN: there y is replaced by 1.
    const useless = logicalAnd(equal(x, 0), logicalOr(lessEqual(y, 0), equal(y, Number.POSITIVE_INFINITY)));
    return mul(x, log(where(useless, 1, y)));
  });
}

// Trigonometric and hyperbolic functions, and the error function. Angles are radians; integer operands become float32.

/**
 * The sine. Source: Array API `sin`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * sin(tensor([0])); // [0]
 */
export function sin(x: TensorLike): Tensor {
  return floatUnaryOp('sin', sinPrimitive, x);
}

/**
 * The cosine. Source: Array API `cos`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * cos(tensor([0])); // [1]
 */
export function cos(x: TensorLike): Tensor {
  return floatUnaryOp('cos', cosPrimitive, x);
}

/**
 * The tangent. Source: Array API `tan`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * tan(tensor([0])); // [0]
 */
export function tan(x: TensorLike): Tensor {
  return floatUnaryOp('tan', tanPrimitive, x);
}

/**
 * The arc sine, in -pi/2 .. pi/2. Source: Array API `asin`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * asin(tensor([1])); // [1.5707964]
 */
export function asin(x: TensorLike): Tensor {
  return floatUnaryOp('asin', asinPrimitive, x);
}

/**
 * The arc cosine, in 0 .. pi. Source: Array API `acos`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * acos(tensor([1])); // [0]
 */
export function acos(x: TensorLike): Tensor {
  return floatUnaryOp('acos', acosPrimitive, x);
}

/**
 * The arc tangent, in -pi/2 .. pi/2. Source: Array API `atan`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * atan(tensor([0])); // [0]
 */
export function atan(x: TensorLike): Tensor {
  return floatUnaryOp('atan', atanPrimitive, x);
}

/**
 * The hyperbolic sine. Source: Array API `sinh`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * sinh(tensor([0])); // [0]
 */
export function sinh(x: TensorLike): Tensor {
  return floatUnaryOp('sinh', sinhPrimitive, x);
}

/**
 * The hyperbolic cosine. Source: Array API `cosh`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * cosh(tensor([0])); // [1]
 */
export function cosh(x: TensorLike): Tensor {
  return floatUnaryOp('cosh', coshPrimitive, x);
}

/**
 * The hyperbolic tangent; 1 and -1 for large arguments. Source: Array API `tanh`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * tanh(tensor([0])); // [0]
 */
export function tanh(x: TensorLike): Tensor {
  return floatUnaryOp('tanh', tanhPrimitive, x);
}

/**
 * The error function 2 / sqrt(pi) * integral of exp(-t^2) from 0 to x. Source: C `erf`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * erf(tensor([0])); // [0]
 */
export function erf(x: TensorLike): Tensor {
  return floatUnaryOp('erf', erfPrimitive, x);
}

/**
 * The angle of the point (x, y) = (b, a), in -pi .. pi. Source: Array API `atan2`.
 *
 * @returns the broadcast shape, the common dtype; integers become float32
 *
 * @example
 * atan2(tensor([1]), tensor([1])); // [0.7853982]
 */
export function atan2(a: TensorLike, b: TensorLike): Tensor {
  return floatBinaryOp('atan2', atan2Primitive, a, b);
}

/**
 * The inverse hyperbolic sine. Source: Array API `asinh`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * asinh(tensor([0])); // [0]
 */
export function asinh(x: TensorLike): Tensor {
  return specialFunction(
    'asinh',
    x,
    (t) => {
      const size = abs(t);
      // log1p(s + s^2 / (1 + sqrt(1 + s^2))) near zero; log(s) + log(2) where the square would overflow.
      const large = greater(size, 1e8);
      const s = where(large, 1, size);
      const squared = mul(s, s);
      const near = log1p(add(s, div(squared, add(1, sqrt(add(squared, 1))))));
      const far = add(log(where(large, size, 1)), Math.LN2);
      return copysign(where(large, far, near), t);
    },
    (t) => {
      const large = greater(abs(t), 1e8);
      return where(large, reciprocal(abs(where(large, t, 1))), rsqrt(add(square(where(large, 1, t)), 1)));
    },
  );
}

/**
 * The inverse hyperbolic cosine, of x >= 1. The gradient at 1 is infinite. Source: Array API `acosh`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * acosh(tensor([1])); // [0]
 */
export function acosh(x: TensorLike): Tensor {
  return specialFunction(
    'acosh',
    x,
    (t) => {
      const large = greater(t, 1e8);
      // Below 1 there is no value, but the formula gives numbers far below: so it gets NaN.
      const s = sub(where(large, 2, where(less(t, 1), Number.NaN, t)), 1);
      const near = log1p(add(s, sqrt(add(mul(s, 2), mul(s, s)))));
      return where(large, add(log(where(large, t, 1)), Math.LN2), near);
    },
    // A product of two roots, not the root of x^2 - 1, which would be a number below -1.
    (t) => mul(rsqrt(sub(t, 1)), rsqrt(add(t, 1))),
  );
}

/**
 * The inverse hyperbolic tangent, of x in -1 .. 1. Source: Array API `atanh`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * atanh(tensor([0])); // [0]
 */
export function atanh(x: TensorLike): Tensor {
  return specialFunction(
    'atanh',
    x,
    (t) => {
      const size = abs(t);
      return copysign(mul(log1p(div(mul(size, 2), sub(1, size))), 0.5), t);
    },
    atanhSlope,
  );
}

/** y = 1 / (1 - x^2). The derivative of the product would be a difference of infinities at 1, so it is 2 x y^2. */
function atanhSlope(x: Tensor): Tensor {
  return specialFunction(
    'atanh',
    x,
    (t) => reciprocal(mul(sub(1, t), add(t, 1))),
    (t, y) => mul(mul(t, 2), square(y)),
  );
}

/**
 * sin(pi x) / (pi x), and 1 at 0. Source: NumPy `sinc`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * sinc(tensor([0])); // [1]
 */
export function sinc(x: TensorLike): Tensor {
  return compose('sinc', () =>
    inFloat32([wrap(floatOperand(x))], (t) => {
      const near = less(abs(t), 0.16);
      // sin(pi t) depends on the distance from the nearest integer, and on whether that is odd: so no angle is too large, and no digit lost.
      const far = where(near, 1, t);
      const nearest = floatUnaryOp('sinc', roundPrimitive, far);
      const half = mul(nearest, 0.5);
      const odd = notEqual(half, floatUnaryOp('sinc', 'floor', half));
      const sine = mul(sin(mul(where(isInf(far), 0, sub(far, nearest)), Math.PI)), 1 / Math.PI);
      // By its series near 0, where derivatives of the quotient would cancel: the first term left out is below 1e-19.
      const z = square(mul(where(near, t, 0), Math.PI));
      let series: TensorLike = 1;
      for (let k = 7; k >= 1; k--) series = sub(1, mul(mul(z, 1 / (2 * k * (2 * k + 1))), series));
      return where(near, series, div(where(odd, neg(sine), sine), far));
    }),
  );
}
