/** Functions JavaScript's Math lacks, in float64, for the oracle only. */

/**
 * Error function to about 1e-15: Kummer's series below 2.5, whose terms are all positive, continued fraction of erfc above (Abramowitz and
 * Stegun 7.1.6 and 7.1.14).
 */
export function erf(x: number): number {
  if (Number.isNaN(x)) return x;
  const z = Math.abs(x);
  if (z > 6) return Math.sign(x);
  if (z < 2.5) {
    let term = 1;
    let sum = 1;
    for (let n = 1; n < 200 && term > 1e-18 * sum; n++) {
      term *= (2 * z * z) / (2 * n + 1);
      sum += term;
    }
    return 2 * x * ((Math.exp(-z * z) * sum) / Math.sqrt(Math.PI));
  }
  let fraction = z;
  for (let n = 120; n >= 1; n--) fraction = z + n / 2 / fraction;
  return Math.sign(x) * (1 - Math.exp(-z * z) / (fraction * Math.sqrt(Math.PI)));
}

/** C99 pow: unlike Math.pow, 1 to any power is 1. */
export function pow(base: number, exponent: number): number {
  return base === 1 ? 1 : base ** exponent;
}

/** 1 / (1 + exp(-x)), without overflow. */
export function logistic(x: number): number {
  return x < 0 ? Math.exp(x) / (1 + Math.exp(x)) : 1 / (1 + Math.exp(-x));
}

/** log(1 + exp(x)), without overflow. */
export function softplus(x: number): number {
  return Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
}

/** The number nearest to x between two others. */
export function clamp(x: number, low: number, high: number): number {
  return Math.min(Math.max(x, low), high);
}

/** Half to even. */
export function roundHalfEven(x: number): number {
  const floor = Math.floor(x);
  const rest = x - floor;
  if (rest < 0.5) return floor;
  if (rest > 0.5) return floor + 1;
  return floor % 2 === 0 ? floor : floor + 1;
}

/** 1 - erf(x) without cancellation: the continued fraction of Abramowitz and Stegun 7.1.14 where erf comes close to 1. */
export function erfc(x: number): number {
  if (!(x > 1.5)) return 1 - erf(x);
  let fraction = x;
  for (let n = 400; n >= 1; n--) fraction = x + n / 2 / fraction;
  return Math.exp(-x * x) / (fraction * Math.sqrt(Math.PI));
}

/** The inverse of erf by bisection, by two terms of its series near 0. */
export function erfinv(y: number): number {
  if (y < 0) return -erfinv(-y);
  if (!(y < 1)) return y === 1 ? Number.POSITIVE_INFINITY : Number.NaN;
  if (y < 1e-4) return (y + (Math.PI * y ** 3) / 12) * (Math.sqrt(Math.PI) / 2);
  let [low, high] = [0, 6];
  for (let i = 0; i < 60; i++) {
    const middle = (low + high) / 2;
    if (y < 0.5 ? erf(middle) < y : erfc(middle) > 1 - y) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** log |gamma(x)|: Stirling's series (Abramowitz and Stegun 6.1.41) behind 30 steps of the recurrence, reflection below 0. */
export function lgamma(x: number): number {
  if (Math.abs(x) === Number.POSITIVE_INFINITY) return Number.POSITIVE_INFINITY;
  // Its zeros, where only rounding would be left of the sums below.
  if (x === 1 || x === 2) return 0;
  if (x < 0) {
    const rest = Math.abs(x - Math.round(x));
    return (rest < 1e-12 ? -Math.log(rest) : Math.log(Math.PI / Math.sin(Math.PI * rest))) - lgamma(1 - x);
  }
  let shift = 0;
  let z = x;
  for (; z < 30; z++) shift += Math.log(z);
  const series = 1 / (12 * z) - 1 / (360 * z ** 3) + 1 / (1260 * z ** 5) - 1 / (1680 * z ** 7);
  return (z - 0.5) * Math.log(z) - z + 0.5 * Math.log(2 * Math.PI) + series - shift;
}

/** The n-th derivative of digamma by its series (6.3.16 and 6.4.10): 2000 terms, the rest as an integral with Euler's corrections. */
export function polygamma(n: number, x: number): number {
  const terms = 2000;
  const z = x + terms;
  if (z === Number.POSITIVE_INFINITY) return n === 0 ? z : n % 2 === 0 ? -0 : 0;
  if (n === 0) {
    let sum = Math.log(z) - 1 / (2 * z) - 1 / (12 * z * z);
    for (let k = terms - 1; k >= 0; k--) sum -= 1 / (k === 0 ? x : x + k);
    return sum;
  }
  let sum = z ** -n / n + z ** (-n - 1) / 2 + ((n + 1) * z ** (-n - 2)) / 12;
  for (let k = terms - 1; k >= 0; k--) sum += (k === 0 ? x : x + k) ** (-n - 1);
  for (let k = 2; k <= n; k++) sum *= k;
  return n % 2 === 0 ? -sum : sum;
}
