/**
 * Elementwise functions that only pages which record them carry: exponentials and logarithms beyond `exp` and `log`, powers, hyperbolic functions,
 * the error function; functions of angles; rounding, remainders and `fma`.
 *
 * Each is a constant: its kernel operation, its cost in additions, its arithmetic for engines without that operation, and its gradient.
 */
import { ceil, fma, frem, mulHigh, round, trunc } from '@polygrad/compiler/arithmetic/decompose/basic';
import {
  cosh,
  erf,
  exp2,
  expm1,
  log10,
  log1p,
  log2,
  pow,
  sinh,
  tanh,
} from '@polygrad/compiler/arithmetic/decompose/exponential';
import { acos, asin, atan, atan2, cos, sin, tan } from '@polygrad/compiler/arithmetic/decompose/trigonometric';
import { common, define, type Definition } from '../graph/definition.ts';
import type { Node } from '../graph/node.ts';
import {
  add,
  binary,
  div,
  eq,
  le,
  like,
  lt,
  mul,
  neg,
  not,
  stopGradient,
  sub,
  unary,
  where,
} from '../graph/primitives.ts';
import { opName } from '../graph/scope.ts';
import { broadcastShapes } from '@polygrad/compiler/shape/broadcast';
import { bell, binaryFunction, fromOne, times, unaryFunction, withSlope } from './elementwise.ts';

declare module '../graph/node.ts' {
  interface UnaryAttrs {
    exp2: null;
    expm1: null;
    log2: null;
    log10: null;
    log1p: null;
    sinh: null;
    cosh: null;
    tanh: null;
    erf: null;
  }
  interface BinaryAttrs {
    pow: null;
  }
}

export const exp2Primitive: Definition<'exp2'> = /* @__PURE__ */ unaryFunction(
  'exp2',
  'EXP2',
  9,
  { EXP2: exp2 },
  (g, _, y) => mul(times(g, Math.LN2), y),
);

export const expm1Primitive: Definition<'expm1'> = /* @__PURE__ */ unaryFunction(
  'expm1',
  'EXPM1',
  14,
  { EXPM1: expm1 },
  // Not y + 1, which has no digits left where y is near -1.
  (g, x) => mul(g, unary('exp', x)),
);

export const log2Primitive: Definition<'log2'> = /* @__PURE__ */ unaryFunction(
  'log2',
  'LOG2',
  12,
  { LOG2: log2 },
  (g, x) => div(times(g, Math.LOG2E), x),
);

export const log10Primitive: Definition<'log10'> = /* @__PURE__ */ unaryFunction(
  'log10',
  'LOG10',
  12,
  { LOG10: log10 },
  (g, x) => div(times(g, Math.LOG10E), x),
);

export const log1pPrimitive: Definition<'log1p'> = /* @__PURE__ */ unaryFunction(
  'log1p',
  'LOG1P',
  14,
  { LOG1P: log1p },
  (g, x) => div(g, add(x, like(x, 1))),
);

export const sinhPrimitive: Definition<'sinh'> = /* @__PURE__ */ unaryFunction(
  'sinh',
  'SINH',
  18,
  { SINH: sinh },
  (g, x) => mul(g, unary(coshPrimitive, x)),
);

export const coshPrimitive: Definition<'cosh'> = /* @__PURE__ */ unaryFunction(
  'cosh',
  'COSH',
  18,
  { COSH: cosh },
  (g, x) => mul(g, unary(sinhPrimitive, x)),
);

export const tanhPrimitive: Definition<'tanh'> = /* @__PURE__ */ unaryFunction(
  'tanh',
  'TANH',
  14,
  { TANH: tanh },
  (g, _, y) => mul(g, fromOne(y)),
);

export const erfPrimitive: Definition<'erf'> = /* @__PURE__ */ unaryFunction('erf', 'ERF', 20, { ERF: erf }, (g, x) =>
  mul(times(g, 2 / Math.sqrt(Math.PI)), bell(x)),
);

export const powPrimitive: Definition<'pow'> = /* @__PURE__ */ binaryFunction(
  'pow',
  'POW',
  30,
  { POW: pow },
  ({ grad, src, node, needs }) => {
    const [x, y] = src as [Node, Node];
    const zero = like(grad, 0);
    let byBase: Node | null = null;
    if (needs[0]) {
      // y x^(y-1). At y = 0 it is 0, but its derivative by y is 1/x there. So only where 1/x is not finite it becomes a constant 0.
      const inverse = unary('abs', unary('reciprocal', x));
      const flat = binary('and', eq(y, zero), not(lt(inverse, like(inverse, Number.POSITIVE_INFINITY))));
      const slope = mul(y, binary(powPrimitive, x, where(flat, like(y, 1), sub(y, like(y, 1)))));
      // A gradient of 0 stays 0 beside a slope that overflows: in the second derivative at y = 0, where x is tiny.
      const infinite = eq(unary('abs', slope), like(slope, Number.POSITIVE_INFINITY));
      byBase = where(binary('or', flat, binary('and', eq(grad, zero), infinite)), zero, mul(grad, slope));
    }
    let byExponent: Node | null = null;
    if (needs[1]) {
      // x^y log(x), but 0 at x = 0 where the power itself is 0 (or 1 at y = 0).
      const atZero = binary('and', eq(x, zero), le(zero, y));
      byExponent = where(atZero, zero, mul(mul(grad, node), unary('log', x)));
    }
    return [byBase, byExponent];
  },
);

// Functions of angles, and angles of numbers.

declare module '../graph/node.ts' {
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

/**
 * y = 1 / sqrt(1 - x^2), with the square as (1 - x) (1 + x): that keeps its digits where x is near 1. The derivative of the product would be a difference
 * of infinities at 1, so it is x y^3.
 */
const arcSineSlope = (argument: Node): Node =>
  withSlope(
    unary('rsqrt', mul(sub(like(argument, 1), argument), add(argument, like(argument, 1)))),
    argument,
    (g, x, y) => mul(g, mul(x, mul(mul(y, y), y))),
  );

export const asinPrimitive: Definition<'asin'> = /* @__PURE__ */ unaryFunction(
  'asin',
  'ASIN',
  16,
  { ASIN: asin },
  (g, x) => mul(g, arcSineSlope(x)),
);

export const acosPrimitive: Definition<'acos'> = /* @__PURE__ */ unaryFunction(
  'acos',
  'ACOS',
  16,
  { ACOS: acos },
  (g, x) => neg(mul(g, arcSineSlope(x))),
);

export const atanPrimitive: Definition<'atan'> = /* @__PURE__ */ unaryFunction(
  'atan',
  'ATAN',
  16,
  { ATAN: atan },
  (g, x) => mul(g, arcTangentSlope(x)),
);

/** y = 1 / (1 + x^2). Its derivative is -2 y (x y), in which x y overflows nowhere: not at infinity either. */
const arcTangentSlope = (argument: Node): Node =>
  withSlope(unary('reciprocal', add(mul(argument, argument), like(argument, 1))), argument, (g, x, y) =>
    times(mul(g, mul(y, arcTangentRatio(x, y))), -2),
  );

/** z = x y = 1 / (x + 1 / x) for y of `arcTangentSlope`; its derivative is y - 2 z^2. */
const arcTangentRatio = (argument: Node, y: Node): Node => {
  const inside = lt(unary('abs', argument), like(argument, 1));
  const far = unary('reciprocal', add(argument, unary('reciprocal', argument)));
  return withSlope(where(inside, mul(argument, y), far), argument, (g, x, z) =>
    mul(g, sub(arcTangentSlope(x), times(mul(z, z), 2))),
  );
};

export const atan2Primitive: Definition<'atan2'> = /* @__PURE__ */ binaryFunction(
  'atan2',
  'ATAN2',
  24,
  { ATAN2: atan2 },
  ({ grad, src, needs }) => {
    const [y, x] = src as [Node, Node];
    // x / (x^2 + y^2), scaled so that no square overflows. The scale cancels, so it carries no gradient.
    const larger = binary('maximum', unary('abs', x), unary('abs', y));
    // Beside infinity the angle stays as it is.
    const far = eq(larger, like(larger, Number.POSITIVE_INFINITY));
    const [one, zero] = [like(larger, 1), like(larger, 0)];
    const scale = stopGradient(where(far, one, larger));
    const [a, b] = [div(where(far, one, x), scale), div(where(far, one, y), scale)];
    const scaled = div(div(where(far, zero, grad), scale), add(mul(a, a), mul(b, b)));
    return [needs[0] ? mul(scaled, a) : null, needs[1] ? neg(mul(scaled, b)) : null];
  },
);

// Rounding to integers, remainders, and sums of products rounded once.

declare module '../graph/node.ts' {
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

// Step functions: the gradient is zero.
const noSlope = (): null => null;

export const ceilPrimitive: Definition<'ceil'> = /* @__PURE__ */ unaryFunction(
  'ceil',
  'CEIL',
  1,
  { CEIL: ceil },
  noSlope,
);

export const truncPrimitive: Definition<'trunc'> = /* @__PURE__ */ unaryFunction(
  'trunc',
  'TRUNC',
  1,
  { TRUNC: trunc },
  noSlope,
);

export const roundPrimitive: Definition<'round'> = /* @__PURE__ */ unaryFunction(
  'round',
  'ROUND',
  2,
  { ROUND: round },
  noSlope,
);

export const fmodPrimitive: Definition<'fmod'> = /* @__PURE__ */ binaryFunction(
  'fmod',
  'FREM',
  8,
  { FREM: frem, FMA: fma },
  ({ grad, src, node, needs }) => {
    if (!needs[1]) return [grad, null];
    const [x, y] = src as [Node, Node];
    // The integer quotient, from what was subtracted: trunc(x / y) may be one too large where the division rounds up.
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
