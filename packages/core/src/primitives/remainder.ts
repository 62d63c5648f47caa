/** The remainder of floats, with the sign of the dividend. */
import { div, mul, neg, sub, unary } from '../graph/primitives.ts';
import type { Node } from '../graph/node.ts';
import { fma } from '../arithmetic/decompose/basic.ts';
import { frem } from '../arithmetic/decompose/frem.ts';
import type { Definition } from '../graph/definition.ts';
import { binaryFunction } from './elementwise.ts';
import { roundPrimitive } from './rounding.ts';

export const fmodPrimitive: Definition<'fmod'> = /* @__PURE__ */ binaryFunction(
  'fmod',
  { FREM: frem, FMA: fma },
  ({ grad, src, node, needs }) => {
    if (!needs[1]) return [grad, null];
    const [x, y] = src as [Node, Node];
    // The quotient whose multiple was taken off: x / y may round up to the next one.
    return [grad, neg(mul(grad, unary(roundPrimitive, div(sub(x, node), y))))];
  },
);
