/** Gradient rules of elementwise primitives. `x` is the source, `y` the result, `g` the gradient of the result. */
import type { BinaryPrimitive, UnaryPrimitive } from '../graph/attrs.ts';
import type { Node } from '../graph/node.ts';
import { add, binary, cast, div, eq, like, lt, mul, neg, not, sub, unary, where } from '../graph/primitives.ts';
import { isFloat } from '../shape/dtype.ts';
import type { GradientRule } from './rule.ts';

type UnaryRule = (g: Node, x: Node, y: Node) => Node;

function one<P extends UnaryPrimitive>(rule: UnaryRule): GradientRule<P> {
  return ({ grad, src, node }) => [rule(grad, src[0] as Node, node)];
}

/** Steps and tests have slope zero wherever they have one. */
const flat = (): readonly null[] => [null];
const flatTwo = (): readonly null[] => [null, null];

const times = (x: Node, factor: number): Node => mul(x, like(x, factor));

/** 1 / sqrt(1 - x^2). */
const circle = (x: Node): Node => unary('rsqrt', sub(like(x, 1), mul(x, x)));

export const unaryRules: { readonly [P in UnaryPrimitive]: GradientRule<P> } = {
  neg: one((g) => neg(g)),
  not: flat,
  abs: one((g, x) => mul(g, unary('sign', x))),
  sign: flat,
  sqrt: one((g, _, y) => div(times(g, 0.5), y)),
  rsqrt: one((g, _, y) => mul(times(g, -0.5), mul(mul(y, y), y))),
  reciprocal: one((g, _, y) => neg(mul(g, mul(y, y)))),
  floor: flat,
  ceil: flat,
  trunc: flat,
  round: flat,
  exp: one((g, _, y) => mul(g, y)),
  exp2: one((g, _, y) => mul(times(g, Math.LN2), y)),
  expm1: one((g, _, y) => mul(g, add(y, like(y, 1)))),
  log: one((g, x) => div(g, x)),
  log2: one((g, x) => div(times(g, Math.LOG2E), x)),
  log1p: one((g, x) => div(g, add(x, like(x, 1)))),
  sin: one((g, x) => mul(g, unary('cos', x))),
  cos: one((g, x) => neg(mul(g, unary('sin', x)))),
  tan: one((g, _, y) => mul(g, add(mul(y, y), like(y, 1)))),
  asin: one((g, x) => mul(g, circle(x))),
  acos: one((g, x) => neg(mul(g, circle(x)))),
  atan: one((g, x) => div(g, add(mul(x, x), like(x, 1)))),
  sinh: one((g, x) => mul(g, unary('cosh', x))),
  cosh: one((g, x) => mul(g, unary('sinh', x))),
  tanh: one((g, _, y) => mul(g, sub(like(y, 1), mul(y, y)))),
  erf: one((g, x) => mul(times(g, 2 / Math.sqrt(Math.PI)), unary('exp', neg(mul(x, x))))),
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

export const binaryRules: { readonly [P in BinaryPrimitive]: GradientRule<P> } = {
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
  fmod: ({ grad, src, needs }) => [
    grad,
    needs[1] ? neg(mul(grad, unary('trunc', div(src[0] as Node, src[1] as Node)))) : null,
  ],
  pow: ({ grad, src, node, needs }) => {
    const [x, y] = src as [Node, Node];
    const zero = like(grad, 0);
    let byBase: Node | null = null;
    if (needs[0]) {
      // y x^(y-1), but 0 where y is 0, even at x = 0.
      const slope = mul(y, binary('pow', x, sub(y, like(y, 1))));
      byBase = where(eq(y, zero), zero, mul(grad, slope));
    }
    let byExponent: Node | null = null;
    if (needs[1]) {
      // x^y log(x), but 0 at x = 0 where the power itself is 0 (or 1 at y = 0).
      const atZero = binary('and', eq(x, zero), not(lt(y, zero)));
      byExponent = where(atZero, zero, mul(grad, mul(node, unary('log', x))));
    }
    return [byBase, byExponent];
  },
  atan2: ({ grad, src, needs }) => {
    const [y, x] = src as [Node, Node];
    const scaled = div(grad, add(mul(x, x), mul(y, y)));
    return [needs[0] ? mul(scaled, x) : null, needs[1] ? neg(mul(scaled, y)) : null];
  },
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

export const fmaRule: GradientRule<'fma'> = ({ grad, src, needs }) => [
  needs[0] ? mul(grad, src[1] as Node) : null,
  needs[1] ? mul(grad, src[0] as Node) : null,
  grad,
];

export const castRule: GradientRule<'cast'> = ({ grad, src }) => {
  const { dtype } = src[0] as Node;
  return [isFloat(dtype) ? cast(grad, dtype) : null];
};
