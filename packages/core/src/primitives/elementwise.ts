/** How functions of floats, element by element, are defined: by their arithmetic and their slope. */
import { elementwiseBatch } from './batch/rule.ts';
import { binaryInfer, unaryInfer } from '../graph/infer-elementwise.ts';
import type { Node } from '../graph/node.ts';
import { like, mul, sub } from '../graph/primitives.ts';
import type { GradientRule } from '../graph/rules.ts';
import type { FloatFunctions } from '../arithmetic/functions.ts';
import type { DefinedBinary, DefinedUnary, Definition } from '../graph/definition.ts';

/** A function of one number. `slope`: the gradient by x, given that by the result y; null where it is 0. */
export function unaryFunction<P extends DefinedUnary>(
  op: P,
  functions: FloatFunctions,
  slope: (g: Node, x: Node, y: Node) => Node | null,
): Definition<P> {
  return {
    op,
    infer: unaryInfer(op, 'float'),
    gradient: ({ grad, src, node }) => [slope(grad, src[0] as Node, node)],
    batch: elementwiseBatch,
    elementwise: true,
    functions,
  };
}

/** A function of two numbers. */
export function binaryFunction<P extends DefinedBinary>(
  op: P,
  functions: FloatFunctions,
  gradient: GradientRule<P>,
): Definition<P> {
  return { op, infer: binaryInfer(op, 'float'), gradient, batch: elementwiseBatch, elementwise: true, functions };
}

export const times = (x: Node, factor: number): Node => mul(x, like(x, factor));

/** 1 - x^2. */
export const fromOne = (x: Node): Node => sub(like(x, 1), mul(x, x));
