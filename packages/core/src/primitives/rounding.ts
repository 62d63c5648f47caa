/** Rounding to integers, remainders, and sums of products rounded once. */
import { ceil, fma, frem, round, trunc } from '../arithmetic/decompose/basic.ts';
import { common, define, type Definition } from '../graph/definition.ts';
import type { Node } from '../graph/node.ts';
import { div, mul, neg, sub, unary } from '../graph/primitives.ts';
import { opName } from '../graph/scope.ts';
import { broadcastShapes } from '../shape/view.ts';
import { binaryFunction, unaryFunction } from './elementwise.ts';

declare module '../graph/attrs.ts' {
  interface UnaryAttrs {
    ceil: null;
    trunc: null;
    round: null;
  }
  interface BinaryAttrs {
    /** The remainder of floats, with the sign of the dividend. */
    fmod: null;
  }
  interface Attrs {
    /** a * b + c, rounded once; floats. */
    fma: null;
  }
}

// Steps: their slope is zero wherever they have one.
const flat = (): null => null;

export const ceilPrimitive: Definition<'ceil'> = /* @__PURE__ */ unaryFunction('ceil', 'CEIL', 1, { CEIL: ceil }, flat);

export const truncPrimitive: Definition<'trunc'> = /* @__PURE__ */ unaryFunction(
  'trunc',
  'TRUNC',
  1,
  { TRUNC: trunc },
  flat,
);

export const roundPrimitive: Definition<'round'> = /* @__PURE__ */ unaryFunction(
  'round',
  'ROUND',
  2,
  { ROUND: round },
  flat,
);

export const fmodPrimitive: Definition<'fmod'> = /* @__PURE__ */ binaryFunction(
  'fmod',
  'FREM',
  8,
  { FREM: frem, FMA: fma },
  ({ grad, src, node, needs }) => {
    if (!needs[1]) return [grad, null];
    const [x, y] = src as [Node, Node];
    // The quotient whose multiple was taken off: x / y may round up to the next one.
    return [grad, neg(mul(grad, unary(roundPrimitive, div(sub(x, node), y))))];
  },
);

export const fmaPrimitive: Definition<'fma'> = /* @__PURE__ */ define('fma', {
  infer: {
    shape: (src) => {
      const op = opName('fma');
      const [a, b, c] = src as [Node, Node, Node];
      return broadcastShapes(op, broadcastShapes(op, a.shape, b.shape), c.shape);
    },
    dtype: (src) => {
      const [a, b, c] = src as [Node, Node, Node];
      common('fma', 'float', a, b);
      return common('fma', 'float', a, c);
    },
  },
  gradient: ({ grad, src, needs }) => [
    needs[0] ? mul(grad, src[1]!) : null,
    needs[1] ? mul(grad, src[0]!) : null,
    grad,
  ],
  role: 'elementwise',
  work: 2,
  kernelOp: 'FMA',
  functions: { FMA: fma },
});
