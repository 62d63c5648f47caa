/**
 * erf in arithmetic.
 *
 * float32: x + x P(x^2) below 0.95, 1 - e^P(|x|) above (N. Juffa's form of erff), minimax fits. float64: the Maclaurin series
 * below 1 (Abramowitz and Stegun 7.1.5); above, erfc(z) = t exp(-z^2 + P(t)) with t = 2 / (2 + z), the form of *Numerical Recipes* (3rd
 * edition, 6.2.2), P interpolated at Chebyshev points with 300-bit arithmetic, absolute error of erf below 2e-17.
 */
import { exp, expm1Small, reduce } from './decompose-exp.ts';
import type { FloatMath } from './float-math.ts';
import type { KNode } from './ir.ts';

/** (erf x - x) / x in x^2, |x| <= 0.95, 2^-25; and log(1 - erf x) on [0.95, 4], 2^-29 of erf. */
const NEAR = [0.128379136, -0.376124114, 0.112810135, -0.0267394856, 0.00495585706, -0.000581138651];
const FAR = [-0.000244723167, -1.1274749, -0.637517214, -0.10364009, 0.0220875125, -0.00300850254, 0.000192422536];

function erf32(m: FloatMath, x: KNode): KNode {
  const a = m.min(m.abs(x), 4);
  const near = m.add(a, m.mul(a, m.poly(m.mul(a, a), NEAR)));
  const { n, r } = reduce(m, m.poly(a, FAR));
  const far = m.sub(1, m.mul(m.add(expm1Small(m, r), 1), m.power(n)));
  return m.withSign(m.where(m.lt(a, 0.95), near, far), m.signOf(x));
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
