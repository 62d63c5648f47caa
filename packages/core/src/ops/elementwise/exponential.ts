/**
 * Exponentials, logarithms and roots. Integer operands become float32; every function works element by element.
 */
import { compose } from '../../graph/scope.ts';
import {
  exp2Primitive,
  expm1Primitive,
  log10Primitive,
  log1pPrimitive,
  log2Primitive,
} from '../../primitives/exponential.ts';
import { wrap } from '../../tensor/handle.ts';
import { floatOperands } from '../../tensor/operand.ts';
import type { Tensor, TensorLike } from '../../tensor/types.ts';
import { abs, add, div, mul, neg, reciprocal, sub } from './arithmetic.ts';
import { equal, isInf, less, lessEqual, logicalAnd, logicalOr } from './logic.ts';
import { where } from './where.ts';
import { floatUnaryOp, inFloat32 } from './recording.ts';
import { specialFunction } from '../special/special-form.ts';

/**
 * The square root; NaN below zero. Source: Array API `sqrt`. The gradient at 0 is infinite.
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
 * @example
 * rsqrt(tensor([4])); // [0.5]
 */
export function rsqrt(x: TensorLike): Tensor {
  return floatUnaryOp('rsqrt', 'rsqrt', x);
}

/**
 * The cube root, of negative numbers too. The gradient at 0 is infinite. Source: C `cbrt`.
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
    (_, y) => reciprocal(mul(mul(y, y), 3)),
  );
}

/**
 * e to the power x. Source: Array API `exp`.
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
 * @example
 * exp2(tensor([3])); // [8]
 */
export function exp2(x: TensorLike): Tensor {
  return floatUnaryOp('exp2', exp2Primitive, x);
}

/**
 * exp(x) - 1, accurate near zero. Source: Array API `expm1`.
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
 * @example
 * log(tensor([1])); // [0]
 */
export function log(x: TensorLike): Tensor {
  return floatUnaryOp('log', 'log', x);
}

/**
 * The logarithm to base 2. Source: Array API `log2`.
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
 * @example
 * log1p(tensor([0])); // [0]
 */
export function log1p(x: TensorLike): Tensor {
  return floatUnaryOp('log1p', log1pPrimitive, x);
}

/**
 * The logarithm to base 10. Source: Array API `log10`.
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
 * x * log(y), and 0 where x is 0, whatever y is but NaN. The slope by x is log(y) also there, for y above 0. Source: SciPy `xlogy`.
 *
 * @example
 * xlogy(tensor([0, 1]), tensor([0, 1])); // [0, 0]
 */
export function xlogy(a: TensorLike, b: TensorLike): Tensor {
  return compose('xlogy', () => {
    const [p, q] = floatOperands(a, b);
    const [x, y] = [wrap(p), wrap(q)];
    // Where log(y) is no finite number, 0 takes no notice of it.
    const useless = logicalAnd(equal(x, 0), logicalOr(lessEqual(y, 0), equal(y, Number.POSITIVE_INFINITY)));
    return mul(x, log(where(useless, 1, y)));
  });
}
