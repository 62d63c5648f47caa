/** The remainder of floats, with the sign of the dividend. */
import { div, mul, neg, unary } from '../graph/primitives.ts';
import type { Node } from '../graph/node.ts';
import { fma } from '../kernel/decompose-basic.ts';
import { frem } from '../kernel/decompose-frem.ts';
import type { Definition } from './definition.ts';
import { binaryFunction } from './elementwise.ts';
import { truncPrimitive } from './rounding.ts';

export const fmodPrimitive: Definition<'fmod'> = /* @__PURE__ */ binaryFunction(
  'fmod',
  { FREM: frem, FMA: fma },
  ({ grad, src, needs }) => [
    grad,
    needs[1] ? neg(mul(grad, unary(truncPrimitive, div(src[0] as Node, src[1] as Node)))) : null,
  ],
);
