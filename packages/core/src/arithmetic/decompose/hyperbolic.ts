/**
 * sinh, cosh, tanh in arithmetic: polynomials near zero, else from e^|x| in two parts (exp.ts).
 */
import { expm1Parts, expm1Small, reduce, reduceRoughly } from './exp.ts';
import type { Coefficients, FloatMath, Whole } from '../float-math.ts';
import type { KNode } from '../../ir/ir.ts';

/** (tanh x - x) / x^3 in x^2, |x| <= 0.625; 2^-27 and 2^-56. */
const TANH: Coefficients = {
  float32: [-0.333332807, 0.133314058, -0.0537365153, 0.0206281673, -0.00569229666],
  float64: [
    -0.3333333333333333, 0.13333333333333042, -0.05396825396789699, 0.021869488519008305, -0.008863235103240878,
    0.0035921217511549622, -0.0014557754120478055, 0.0005896606577757043, -0.0002375906496055562, 9.257116129556769e-5,
    -3.12011014257974e-5, 6.485163482793113e-6,
  ],
};
/** (sinh x - x) / x^3 in x^2, |x| <= 1; 2^-31, and the Taylor series to 2^-59. */
const SINH: Coefficients = {
  float32: [0.166666672, 0.00833331048, 0.000198428956, 2.78221319e-6],
  float64: [1 / 6, 1 / 120, 1 / 5040, 1 / 362880, 1 / 39916800, 1 / 6227020800, 1 / 1307674368000, 1 / 355687428096000],
};

/** Where e^x is infinite, and half of where tanh is one. */
const LIMITS: Coefficients = { float32: [90, 9.5], float64: [711, 19.5] };

/** x + x^3 P(x^2): odd functions that are close to x. */
function oddPoly(m: FloatMath, x: KNode, coefs: readonly number[]): KNode {
  const square = m.mul(x, x);
  return m.add(x, m.mul(m.mul(x, square), m.poly(square, coefs)));
}

/** e^a = 2^n (one + rest) and e^-a = 2^n inverse, for a >= 0. */
function bothWays(m: FloatMath, a: KNode): { n: Whole; one: KNode; rest: KNode; inverse: KNode } {
  const reduced = reduce(m, m.min(a, m.pick(LIMITS)[0]!));
  const { high, low } = expm1Parts(m, reduced);
  const one = m.add(high, 1);
  const rest = m.add(m.add(m.sub(1, one), high), low);
  return { n: reduced.n, one, rest, inverse: m.div(m.inverseSquare(reduced.n), one) };
}

export function sinh(m: FloatMath, x: KNode): KNode {
  const a = m.abs(x);
  const { n, one, rest, inverse } = bothWays(m, a);
  const large = m.mul(m.mul(m.add(one, m.sub(rest, inverse)), m.power(n, -2)), 2);
  return m.withSign(m.where(m.lt(a, 1), oddPoly(m, a, m.pick(SINH)), large), m.signOf(x));
}

export function cosh(m: FloatMath, x: KNode): KNode {
  const { n, one, rest, inverse } = bothWays(m, m.abs(x));
  return m.mul(m.mul(m.add(one, m.add(rest, inverse)), m.power(n, -2)), 2);
}

/** Above 0.625 as 1 - w with w = 2 / (e^2a + 1). */
export function tanh(m: FloatMath, x: KNode): KNode {
  const a = m.min(m.abs(x), m.pick(LIMITS)[1]!);
  const { n, r } = reduceRoughly(m, m.add(a, a), 127);
  const power = m.power(n);
  const base = m.add(power, 1);
  const part = m.mul(power, expm1Small(m, r));
  const sum = m.add(base, part);
  const w = m.div(2, sum);
  const one = m.sub(1, w);
  const rest = m.mul(m.mul(w, m.lost(base, part, sum)), m.mul(w, 0.5));
  const large = m.add(one, m.add(m.sub(m.sub(1, one), w), rest));
  return m.withSign(m.where(m.lt(a, 0.625), oddPoly(m, a, m.pick(TANH)), large), m.signOf(x));
}
