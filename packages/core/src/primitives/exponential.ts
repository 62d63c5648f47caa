/** Exponentials and logarithms beyond `exp` and `log`, powers, hyperbolic functions, the error function. */
import { add, binary, div, eq, like, lt, mul, neg, not, sub, unary, where } from '../graph/primitives.ts';
import type { Node } from '../graph/node.ts';
import { cosh, erf, exp2, expm1, log10, log1p, log2, pow, sinh, tanh } from '../arithmetic/decompose/exponential.ts';
import type { Definition } from '../graph/definition.ts';
import { binaryFunction, fromOne, times, unaryFunction } from './elementwise.ts';

declare module '../graph/attrs.ts' {
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
  (g, _, y) => mul(g, add(y, like(y, 1))),
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
  mul(times(g, 2 / Math.sqrt(Math.PI)), unary('exp', neg(mul(x, x)))),
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
      // y x^(y-1), but 0 where y is 0, even at x = 0.
      const slope = mul(y, binary(powPrimitive, x, sub(y, like(y, 1))));
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
);
