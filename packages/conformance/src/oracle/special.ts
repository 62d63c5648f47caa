/** Functions JavaScript's Math lacks, in float64, for the oracle only. */

/**
 * Error function to about 1e-15: Maclaurin series below 2.5, continued fraction of erfc above (Abramowitz and Stegun
 * 7.1.5 and 7.1.14).
 */
export function erf(x: number): number {
  if (Number.isNaN(x)) return x;
  const z = Math.abs(x);
  if (z > 6) return Math.sign(x);
  if (z < 2.5) {
    let term = z;
    let sum = z;
    for (let n = 1; n < 200; n++) {
      term *= (-z * z) / n;
      const add = term / (2 * n + 1);
      sum += add;
      if (Math.abs(add) < 1e-18 * Math.abs(sum)) break;
    }
    return (Math.sign(x) * 2 * sum) / Math.sqrt(Math.PI);
  }
  let fraction = z;
  for (let n = 120; n >= 1; n--) fraction = z + n / 2 / fraction;
  return Math.sign(x) * (1 - Math.exp(-z * z) / (fraction * Math.sqrt(Math.PI)));
}

/** C99 pow: unlike Math.pow, 1 to any power is 1. */
export function pow(base: number, exponent: number): number {
  return base === 1 ? 1 : base ** exponent;
}

/** Half to even. */
export function roundHalfEven(x: number): number {
  const floor = Math.floor(x);
  const rest = x - floor;
  if (rest < 0.5) return floor;
  if (rest > 0.5) return floor + 1;
  return floor % 2 === 0 ? floor : floor + 1;
}
