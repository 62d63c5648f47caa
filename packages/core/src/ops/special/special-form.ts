/**
 * The form of special functions: a value by approximation, in the accuracy of the dtype, and a slope by its formula.
 *
 * Differentiating an approximation would differentiate its error too. The slope is an operation of its own, so derivatives of every
 * order are accurate.
 */
import { customRules, elementwiseCustom } from '../../graph/rules.ts';
import { noGrad } from '../../autodiff/custom-gradient.ts';
import { makeNode } from '../../graph/build.ts';
import type { Node } from '../../graph/node.ts';
import { compose } from '../../graph/scope.ts';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { floatOperand } from '../../tensor/operand.ts';
import type { Tensor, TensorLike } from '../../tensor/types.ts';
import { add, mul } from '../elementwise/arithmetic.ts';
import { inFloat32 } from '../elementwise/recording.ts';

/** Numbers of an approximation per accuracy. */
export interface ByAccuracy<T> {
  readonly float32: T;
  readonly float64: T;
}

/** What the tensor's dtype calls for. */
export function accurate<T>(numbers: ByAccuracy<T>, x: Tensor): T {
  return x.dtype === 'float64' ? numbers.float64 : numbers.float32;
}

/** c[0] + c[1] x + c[2] x^2 + ... */
export function polynomial(x: Tensor, coefficients: readonly number[]): Tensor {
  const last = coefficients.length - 1;
  let sum: Tensor | number = coefficients[last]!;
  for (let i = last - 1; i >= 0; i--) sum = add(mul(x, sum), coefficients[i]!);
  return typeof sum === 'number' ? add(mul(x, 0), sum) : sum;
}

/**
 * A function of one number, element by element.
 *
 * @param value of a float32 or float64 tensor; 16-bit floats are computed in float32
 * @param slope the derivative, from the argument and the value
 */
export function specialFunction(
  op: string,
  x: TensorLike,
  value: (x: Tensor) => Tensor,
  slope: (x: Tensor, y: Tensor) => Tensor,
): Tensor {
  return compose(op, () => {
    const source = floatOperand(x);
    const result = noGrad(() => inFloat32([wrap(source)], value));
    const node: Node = makeNode('stopGradient', [nodeOf(result), source], null);
    elementwiseCustom.add(node);
    customRules.set(node, (grad, self) => {
      const argument = wrap(self.src[1]!);
      return [null, nodeOf(compose(op, () => mul(wrap(grad), slope(argument, wrap(self)))))];
    });
    return wrap(node);
  });
}
