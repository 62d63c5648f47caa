/** Weights of cubic convolution (Keys, 1981), with the slope -3/4 that image libraries use. */
import type { Node } from '../../graph/node.ts';
import * as p from '../../graph/primitives.ts';

const slope = -0.75;

/** Weights of the neighbours at -1, 0, 1 and 2 for a position at `part` (0 .. 1) behind neighbour 0. They add up to 1. */
export function cubicWeights(part: Node): Node[] {
  const number = (value: number): Node => p.like(part, value);
  const polynomial = (t: Node, ...coefficients: readonly number[]): Node =>
    coefficients.slice(1).reduce((sum, c) => p.add(p.mul(sum, t), number(c)), number(coefficients[0]!));
  const near = (t: Node): Node => polynomial(t, slope + 2, -(slope + 3), 0, 1);
  const far = (t: Node): Node => polynomial(t, slope, -5 * slope, 8 * slope, -4 * slope);
  const rest = p.sub(number(1), part);
  return [far(p.add(part, number(1))), near(part), near(rest), far(p.add(rest, number(1)))];
}
