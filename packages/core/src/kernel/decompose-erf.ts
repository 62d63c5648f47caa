/**
 * erf in arithmetic.
 *
 * Below 1 the Maclaurin series (Abramowitz and Stegun 7.1.5). Above, erfc(z) = t exp(-z^2 + P(t)) with t = 2 / (2 + z), the form of
 * *Numerical Recipes* (3rd edition, 6.2.2); P was fitted at Chebyshev points with 300-bit arithmetic, absolute error of erf below
 * 2e-17 (float64) and 5e-11 (float32).
 */
import { exp } from './decompose-exp.ts';
import type { FloatMath } from './decompose-math.ts';
import type { KNode } from './ir.ts';

interface Fit {
  /** Where erf is 1 to the precision wanted, and the range of t it was fitted on. */
  readonly end: number;
  readonly low: number;
  readonly high: number;
  /** Coefficients in u, t mapped to [-1, 1]. */
  readonly coefs: readonly number[];
}

// biome-ignore format: coefficients
const FINE: Fit = { end: 6, low: 0.25, high: 0.6666666666666666, coefs: [
  -0.7274922853522042, 0.2765835893613121, 0.010174695380256588, -0.003111699667421343, -0.00040147120417270124,
  9.56000637570717e-05, 1.6041266414347456e-05, -4.527152129332839e-06, -6.019926570516827e-07, 2.5643736304177233e-07,
  1.4524895006242228e-08, -1.4606504947092647e-08, 5.088309962259204e-10, 7.277727100018668e-10,
  -1.0252591370548987e-10, -2.4942356969093246e-11, 6.872112256756665e-12,
] };
// biome-ignore format: coefficients
const SINGLE: Fit = { end: 4, low: 0.3333333333333333, high: 0.6666666666666666, coefs: [
  -0.6717940838580413, 0.22421440687105984, 0.00526036111515157, -0.0017368594330103996, -0.00012185387966155853,
  3.626214479057304e-05, 2.364195973216694e-06, -9.98900546428533e-07,
] };

function series(m: FloatMath, x: KNode, count: number): KNode {
  const coefs: number[] = [];
  let factorial = 1;
  for (let n = 0; n < count; n++) {
    if (n > 0) factorial *= -n;
    coefs.push(2 / (Math.sqrt(Math.PI) * factorial * (2 * n + 1)));
  }
  return m.mul(x, m.poly(m.mul(x, x), coefs));
}

export function erf(m: FloatMath, x: KNode): KNode {
  const fit = m.fine ? FINE : SINGLE;
  const size = m.abs(x);
  const near = m.lt(size, 1);
  const small = series(m, m.where(near, x, 0), m.fine ? 18 : 11);
  const z = m.where(near, 1, m.min(size, fit.end));
  const t = m.div(2, m.add(z, 2));
  const scale = 2 / (fit.high - fit.low);
  const u = m.muladd(t, scale, -(fit.high + fit.low) / (fit.high - fit.low));
  const tail = m.mul(t, exp(m, m.sub(m.poly(u, fit.coefs), m.mul(z, z))));
  const large = m.where(m.lt(fit.end, size), 1, m.sub(1, tail));
  return m.where(m.isNaN(x), x, m.where(near, small, m.copySign(large, x)));
}
