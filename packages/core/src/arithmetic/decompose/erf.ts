/**
 * erf in arithmetic.
 *
 * float32: x + x P(x^2) below 1, a polynomial in |x| - 2.36 above, minimax fits by Lawson's reweighted least squares. float64: the Maclaurin series
 * below 1 (Abramowitz and Stegun 7.1.5); above, erfc(z) = t exp(-z^2 + P(t)) with t = 2 / (2 + z), the form of *Numerical Recipes* (3rd
 * edition, 6.2.2), P interpolated at Chebyshev points with 300-bit arithmetic, absolute error of erf below 2e-17.
 */
import { exp } from './exp.ts';
import type { FloatMath } from '../float-math.ts';
import type { KNode } from '../../ir/ir.ts';

/** (erf x - x) / x in x^2, |x| <= 1, 2^-24.6 of erf. */
const NEAR = [0.128379121, -0.37612322, 0.112801515, -0.0267105773, 0.00491675548, -0.000562834262];
/** erf(CENTRE + t), a number of float32 at t = 0, on [1, 3.92], 2^-24.8; erf is one above. */
const CENTRE = 2.36000681;
// biome-ignore format: the longest list
const FAR = [
  0.999154806, 0.00430135848, -0.0101518584, 0.0145352324, -0.0137619767, 0.00864623953, -0.00314966589, 3.6023499e-5,
  0.000680104829, -0.000337625592, 1.80774168e-5, 3.64141197e-5, -9.17840771e-6,
];

/** The sum of coefs[k] x^k by odd and even powers apart, for long ones: half as many steps wait for each other. */
function splitPoly(m: FloatMath, x: KNode, coefs: readonly number[]): KNode {
  const square = m.mul(x, x);
  const [even, odd] = [0, 1].map((first) => coefs.filter((_, k) => k % 2 === first)) as [number[], number[]];
  return m.muladd(m.poly(square, odd), x, m.poly(square, even));
}

function erf32(m: FloatMath, x: KNode): KNode {
  const a = m.min(m.abs(x), 3.92);
  const near = m.muladd(x, m.poly(m.mul(x, x), NEAR), x);
  const t = m.sub(a, CENTRE);
  const [one, ...rest] = FAR as [number, ...number[]];
  const far = m.withSign(m.muladd(splitPoly(m, t, rest), t, one), m.signOf(x));
  return m.where(m.lt(a, 1), near, far);
}

/** 2 / sqrt(pi) * (-1)^k / (k! (2k + 1)). */
const SERIES = Array.from({ length: 18 }, (_, k) => {
  let factorial = 1;
  for (let n = 1; n <= k; n++) factorial *= -n;
  return 2 / (Math.sqrt(Math.PI) * factorial * (2 * k + 1));
});
/** P in u = t mapped from [1/4, 2/3] to [-1, 1]. */
const TAIL = [
  -0.7274922853522042, 0.2765835893613121, 0.010174695380256588, -0.003111699667421343, -0.00040147120417270124,
  9.56000637570717e-5, 1.6041266414347456e-5, -4.527152129332839e-6, -6.019926570516827e-7, 2.5643736304177233e-7,
  1.4524895006242228e-8, -1.4606504947092647e-8, 5.088309962259204e-10, 7.277727100018668e-10, -1.0252591370548987e-10,
  -2.4942356969093246e-11, 6.872112256756665e-12,
];

function erf64(m: FloatMath, x: KNode): KNode {
  const a = m.min(m.abs(x), 6);
  const near = m.mul(a, m.poly(m.mul(a, a), SERIES));
  const t = m.div(2, m.add(a, 2));
  const u = m.muladd(t, 4.8, -2.2);
  const far = m.sub(1, m.mul(t, exp(m, m.sub(m.poly(u, TAIL), m.mul(a, a)))));
  return m.withSign(m.where(m.lt(a, 1), near, far), m.signOf(x));
}

export function erf(m: FloatMath, x: KNode): KNode {
  return m.t === 'float32' ? erf32(m, x) : erf64(m, x);
}
