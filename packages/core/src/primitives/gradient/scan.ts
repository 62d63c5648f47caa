/**
 * Gradient rule of scans: the transpose of a linear recurrence is a linear recurrence the other way, so no division occurs, zeros
 * are exact, and every order of derivative is again made of scans.
 */
import { makeAgain } from '../../graph/build.ts';
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';
import { isFloat } from '../../shape/dtype.ts';
import type { GradientRule } from '../../graph/rules.ts';

export const scanRule: GradientRule<'scan'> = ({ grad, src, node, attr, needs }) => {
  const { op, axis, reverse } = attr;
  const x = src[0] as Node;
  switch (op) {
    case 'sum':
      return [makeAgain(node, [grad], { op, axis, reverse: !reverse })];
    case 'prod': {
      // y[i] = x[i] * y[i-1]: a recurrence whose coefficients are x.
      const slope = back(node, grad, x, axis, reverse);
      return [p.mul(slope, p.previous(node, axis, reverse, 1))];
    }
    case 'linear': {
      const slope = back(node, grad, src[1] as Node, axis, reverse);
      return [slope, needs[1] ? p.mul(slope, p.previous(node, axis, reverse, 0)) : null];
    }
    case 'max':
    case 'min': {
      // A new winner starts at every element that equals the result there. It collects the gradients up to the next winner.
      const here = p.eq(x, node);
      const wins = isFloat(x.dtype) ? p.binary('or', here, p.unary('isNaN', x)) : here;
      const goesOn = p.cast(p.not(wins), grad.dtype);
      return [p.where(wins, back(node, grad, goesOn, axis, reverse), p.zerosLike(x))];
    }
    default:
      return op satisfies never;
  }
};

/** Gradient by b of h[i] = a[i] * h[i-1] + b[i]: s[i] = g[i] + a[i+1] * s[i+1]. */
function back(scan: Node<'scan'>, grad: Node, factor: Node, axis: number, reverse: boolean): Node {
  return makeAgain(scan, [grad, p.previous(factor, axis, !reverse, 0)], { op: 'linear', axis, reverse: !reverse });
}
