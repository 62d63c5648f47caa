/**
 * Error function in float64, for the reference interpreter.
 *
 * Kummer's series erf(x) = 2x/sqrt(pi) exp(-x^2) sum (2x^2)^n / (1*3*...*(2n+1)) below 3 (all terms positive, so no
 * cancellation), the continued fraction of erfc above (Abramowitz and Stegun 7.1.6 and 7.1.14).
 */
export function erf(x: number): number {
  if (Number.isNaN(x) || x === 0) return x;
  const z = Math.abs(x);
  const sign = Math.sign(x);
  if (z > 6) return sign;
  if (z < 3) {
    let term = 1;
    let sum = 1;
    for (let n = 1; n < 120; n++) {
      term *= (2 * z * z) / (2 * n + 1);
      sum += term;
      if (term < 1e-18 * sum) break;
    }
    return (sign * 2 * z * Math.exp(-z * z) * sum) / Math.sqrt(Math.PI);
  }
  let fraction = z;
  for (let n = 80; n >= 1; n--) fraction = z + n / 2 / fraction;
  return sign * (1 - Math.exp(-z * z) / (fraction * Math.sqrt(Math.PI)));
}
