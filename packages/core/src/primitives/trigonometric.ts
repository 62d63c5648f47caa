/** Functions of angles, and angles of numbers. */
import { add, div, like, mul, neg, unary } from '../graph/primitives.ts';
import type { Node } from '../graph/node.ts';
import { acos, asin, atan, atan2 } from '../kernel/decompose-arc.ts';
import { mulHigh } from '../kernel/decompose-basic.ts';
import { cos, sin, tan } from '../kernel/decompose-trig.ts';
import type { Definition } from './definition.ts';
import { binaryFunction, fromOne, unaryFunction } from './elementwise.ts';

export const sinPrimitive: Definition<'sin'> = /* @__PURE__ */ unaryFunction(
  'sin',
  { SIN: sin, MULHI: mulHigh },
  (g, x) => mul(g, unary(cosPrimitive, x)),
);

export const cosPrimitive: Definition<'cos'> = /* @__PURE__ */ unaryFunction(
  'cos',
  { COS: cos, MULHI: mulHigh },
  (g, x) => neg(mul(g, unary(sinPrimitive, x))),
);

export const tanPrimitive: Definition<'tan'> = /* @__PURE__ */ unaryFunction(
  'tan',
  { TAN: tan, MULHI: mulHigh },
  (g, _, y) => mul(g, add(mul(y, y), like(y, 1))),
);

const circle = (x: Node): Node => unary('rsqrt', fromOne(x));

export const asinPrimitive: Definition<'asin'> = /* @__PURE__ */ unaryFunction('asin', { ASIN: asin }, (g, x) =>
  mul(g, circle(x)),
);

export const acosPrimitive: Definition<'acos'> = /* @__PURE__ */ unaryFunction('acos', { ACOS: acos }, (g, x) =>
  neg(mul(g, circle(x))),
);

export const atanPrimitive: Definition<'atan'> = /* @__PURE__ */ unaryFunction('atan', { ATAN: atan }, (g, x) =>
  div(g, add(mul(x, x), like(x, 1))),
);

export const atan2Primitive: Definition<'atan2'> = /* @__PURE__ */ binaryFunction(
  'atan2',
  { ATAN2: atan2 },
  ({ grad, src, needs }) => {
    const [y, x] = src as [Node, Node];
    const scaled = div(grad, add(mul(x, x), mul(y, y)));
    return [needs[0] ? mul(scaled, x) : null, needs[1] ? neg(mul(scaled, y)) : null];
  },
);
