/** Functions of angles, and angles of numbers. */
import { add, binary, div, like, lt, mul, neg, stopGradient, sub, unary, where } from '../graph/primitives.ts';
import type { Node } from '../graph/node.ts';
import { acos, asin, atan, atan2, cos, sin, tan } from '../arithmetic/decompose/trigonometric.ts';
import { mulHigh } from '../arithmetic/decompose/basic.ts';
import type { Definition } from '../graph/definition.ts';
import { binaryFunction, unaryFunction } from './elementwise.ts';

declare module '../graph/attrs.ts' {
  interface UnaryAttrs {
    sin: null;
    cos: null;
    tan: null;
    asin: null;
    acos: null;
    atan: null;
  }
  interface BinaryAttrs {
    atan2: null;
  }
}

export const sinPrimitive: Definition<'sin'> = /* @__PURE__ */ unaryFunction(
  'sin',
  'SIN',
  20,
  { SIN: sin, MULHI: mulHigh },
  (g, x) => mul(g, unary(cosPrimitive, x)),
);

export const cosPrimitive: Definition<'cos'> = /* @__PURE__ */ unaryFunction(
  'cos',
  'COS',
  20,
  { COS: cos, MULHI: mulHigh },
  (g, x) => neg(mul(g, unary(sinPrimitive, x))),
);

export const tanPrimitive: Definition<'tan'> = /* @__PURE__ */ unaryFunction(
  'tan',
  'TAN',
  28,
  { TAN: tan, MULHI: mulHigh },
  (g, _, y) => mul(g, add(mul(y, y), like(y, 1))),
);

// Of the product, which keeps its digits where x is next to 1.
const circle = (x: Node): Node => unary('rsqrt', mul(sub(like(x, 1), x), add(x, like(x, 1))));

export const asinPrimitive: Definition<'asin'> = /* @__PURE__ */ unaryFunction(
  'asin',
  'ASIN',
  16,
  { ASIN: asin },
  (g, x) => mul(g, circle(x)),
);

export const acosPrimitive: Definition<'acos'> = /* @__PURE__ */ unaryFunction(
  'acos',
  'ACOS',
  16,
  { ACOS: acos },
  (g, x) => neg(mul(g, circle(x))),
);

export const atanPrimitive: Definition<'atan'> = /* @__PURE__ */ unaryFunction(
  'atan',
  'ATAN',
  16,
  { ATAN: atan },
  (g, x) => div(g, add(mul(x, x), like(x, 1))),
);

export const atan2Primitive: Definition<'atan2'> = /* @__PURE__ */ binaryFunction(
  'atan2',
  'ATAN2',
  24,
  { ATAN2: atan2 },
  ({ grad, src, needs }) => {
    const [y, x] = src as [Node, Node];
    // x / (x^2 + y^2) of numbers whose squares are out of range, too. The scale cancels, so it carries no gradient.
    const larger = binary('maximum', unary('abs', x), unary('abs', y));
    const scale = stopGradient(where(lt(larger, like(x, Number.POSITIVE_INFINITY)), larger, like(x, 1)));
    const [a, b] = [div(x, scale), div(y, scale)];
    const scaled = div(div(grad, scale), add(mul(a, a), mul(b, b)));
    return [needs[0] ? mul(scaled, a) : null, needs[1] ? neg(mul(scaled, b)) : null];
  },
);
