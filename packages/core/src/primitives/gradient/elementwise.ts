/** Gradient rules of elementwise primitives. `x` is the source, `y` the result, `g` the gradient of the result. */
import type { BinaryPrimitive, UnaryPrimitive } from '../../graph/attrs.ts';
import type { Node } from '../../graph/node.ts';
import { cast, div, eq, like, lt, mul, neg, unary, where } from '../../graph/primitives.ts';
import { isFloat } from '../../shape/dtype.ts';
import type { DefinedBinary, DefinedUnary } from '../../graph/definition.ts';
import type { GradientRule } from '../../graph/rules.ts';

type UnaryRule = (g: Node, x: Node, y: Node) => Node;

function one<P extends UnaryPrimitive>(rule: UnaryRule): GradientRule<P> {
  return ({ grad, src, node }) => [rule(grad, src[0] as Node, node)];
}

/** Steps and tests have slope zero wherever they have one. */
const flat = (): readonly null[] => [null];
const flatTwo = (): readonly null[] => [null, null];

const times = (x: Node, factor: number): Node => mul(x, like(x, factor));

export const unaryRules: { readonly [P in Exclude<UnaryPrimitive, DefinedUnary>]: GradientRule<P> } = {
  neg: one((g) => neg(g)),
  not: flat,
  abs: one((g, x) => mul(g, unary('sign', x))),
  sign: flat,
  sqrt: one((g, _, y) => div(times(g, 0.5), y)),
  rsqrt: one((g, _, y) => mul(times(g, -0.5), mul(mul(y, y), y))),
  reciprocal: one((g, _, y) => neg(mul(g, mul(y, y)))),
  floor: flat,
  exp: one((g, _, y) => mul(g, y)),
  log: one((g, x) => div(g, x)),
  isNaN: flat,
};

/** The winner takes the gradient; equals share it. */
function winner<P extends 'maximum' | 'minimum'>(aWins: (a: Node, b: Node) => Node): GradientRule<P> {
  return ({ grad, src, needs }) => {
    const [a, b] = src as [Node, Node];
    const half = where(eq(a, b), times(grad, 0.5), like(grad, 0));
    return [needs[0] ? where(aWins(a, b), grad, half) : null, needs[1] ? where(aWins(b, a), grad, half) : null];
  };
}

export const binaryRules: { readonly [P in Exclude<BinaryPrimitive, DefinedBinary>]: GradientRule<P> } = {
  add: ({ grad }) => [grad, grad],
  sub: ({ grad, needs }) => [grad, needs[1] ? neg(grad) : null],
  mul: ({ grad, src, needs }) => [
    needs[0] ? mul(grad, src[1] as Node) : null,
    needs[1] ? mul(grad, src[0] as Node) : null,
  ],
  div: ({ grad, src, node, needs }) => {
    const b = src[1] as Node;
    const quotient = div(grad, b);
    return [needs[0] ? quotient : null, needs[1] ? neg(mul(quotient, node)) : null];
  },
  idiv: flatTwo,
  irem: flatTwo,
  maximum: winner((a, b) => lt(b, a)),
  minimum: winner((a, b) => lt(a, b)),
  and: flatTwo,
  or: flatTwo,
  xor: flatTwo,
  shl: flatTwo,
  shr: flatTwo,
  lt: flatTwo,
  le: flatTwo,
  eq: flatTwo,
};

export const whereRule: GradientRule<'where'> = ({ grad, src, needs }) => {
  const condition = src[0] as Node;
  const zero = like(grad, 0);
  return [null, needs[1] ? where(condition, grad, zero) : null, needs[2] ? where(condition, zero, grad) : null];
};

export const castRule: GradientRule<'cast'> = ({ grad, src }) => {
  const { dtype } = src[0] as Node;
  return [isFloat(dtype) ? cast(grad, dtype) : null];
};
