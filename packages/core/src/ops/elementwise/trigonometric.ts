/** Trigonometric and hyperbolic functions, and the error function. Angles are radians; integer operands become float32. */
import { compose } from '../../graph/scope.ts';
import { coshPrimitive, erfPrimitive, sinhPrimitive, tanhPrimitive } from '../../primitives/exponential.ts';
import {
  acosPrimitive,
  asinPrimitive,
  atan2Primitive,
  atanPrimitive,
  cosPrimitive,
  sinPrimitive,
  tanPrimitive,
} from '../../primitives/trigonometric.ts';
import { wrap } from '../../tensor/handle.ts';
import { floatOperand } from '../../tensor/operand.ts';
import type { Tensor, TensorLike } from '../../tensor/types.ts';
import { abs, add, div, mul, reciprocal, square, sub } from './arithmetic.ts';
import { copysign } from './compound.ts';
import { log, log1p, rsqrt, sqrt } from './exponential.ts';
import { greater, less } from './logic.ts';
import { where } from './where.ts';
import { floatBinaryOp, floatUnaryOp, inFloat32 } from './recording.ts';
import { specialFunction } from '../special/special-form.ts';

/**
 * The sine. Source: Array API `sin`.
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
 * @example
 * cos(tensor([0])); // [1]
 */
export function cos(x: TensorLike): Tensor {
  return floatUnaryOp('cos', cosPrimitive, x);
}

/**
 * The tangent. Source: Array API `tan`.
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
 * @example
 * asin(tensor([1])); // [1.5707964]
 */
export function asin(x: TensorLike): Tensor {
  return floatUnaryOp('asin', asinPrimitive, x);
}

/**
 * The arc cosine, in 0 .. pi. Source: Array API `acos`.
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
 * @example
 * atan(tensor([0])); // [0]
 */
export function atan(x: TensorLike): Tensor {
  return floatUnaryOp('atan', atanPrimitive, x);
}

/**
 * The hyperbolic sine. Source: Array API `sinh`.
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
 * @example
 * cosh(tensor([0])); // [1]
 */
export function cosh(x: TensorLike): Tensor {
  return floatUnaryOp('cosh', coshPrimitive, x);
}

/**
 * The hyperbolic tangent; 1 and -1 for large arguments. Source: Array API `tanh`.
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
 * @example
 * erf(tensor([0])); // [0]
 */
export function erf(x: TensorLike): Tensor {
  return floatUnaryOp('erf', erfPrimitive, x);
}

/**
 * The angle of the point (x, y) = (b, a), in -pi .. pi. Source: Array API `atan2`.
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
 * @example
 * acosh(tensor([1])); // [0]
 */
export function acosh(x: TensorLike): Tensor {
  return specialFunction(
    'acosh',
    x,
    (t) => {
      const large = greater(t, 1e8);
      // Far below 1 the root takes s back, or more than that.
      const s = sub(where(large, 2, where(less(t, 1), Number.NaN, t)), 1);
      const near = log1p(add(s, sqrt(add(mul(s, 2), mul(s, s)))));
      return where(large, add(log(where(large, t, 1)), Math.LN2), near);
    },
    // Of two roots, so that nothing below 1 has a slope.
    (t) => mul(rsqrt(sub(t, 1)), rsqrt(add(t, 1))),
  );
}

/**
 * The inverse hyperbolic tangent, of x in -1 .. 1. Source: Array API `atanh`.
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
    (t) => reciprocal(mul(sub(1, t), add(t, 1))),
  );
}

/**
 * sin(pi x) / (pi x), and 1 at 0. Source: NumPy `sinc`.
 *
 * @example
 * sinc(tensor([0])); // [1]
 */
export function sinc(x: TensorLike): Tensor {
  return compose('sinc', () =>
    inFloat32([wrap(floatOperand(x))], (t) => {
      const near = less(abs(t), 0.16);
      const angle = mul(where(near, 1, t), Math.PI);
      // By its series near 0, where derivatives of the quotient would cancel: the first term left out is below 1e-19.
      const z = square(mul(where(near, t, 0), Math.PI));
      let series: TensorLike = 1;
      for (let k = 7; k >= 1; k--) series = sub(1, mul(mul(z, 1 / (2 * k * (2 * k + 1))), series));
      return where(near, series, div(sin(angle), angle));
    }),
  );
}
