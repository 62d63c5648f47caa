/** Numbers for polygamma of an order, computed on the host: how far to shift, series, polynomials in the cotangent. */

/** Bernoulli's numbers B_2, B_4 ... over the factorials (2 j)!. */
const bernoulli: readonly number[] = [
  1 / 6,
  -1 / 30,
  1 / 42,
  -1 / 30,
  5 / 66,
  -691 / 2730,
  7 / 6,
  -3617 / 510,
  43867 / 798,
  -174611 / 330,
  854513 / 138,
  -236364091 / 2730,
].map((b, i) => {
  let quotient = b;
  for (let k = 2; k <= 2 * (i + 1); k++) quotient /= k;
  return quotient;
});

export interface PolygammaPlan {
  /** Terms summed one by one. */
  readonly shifts: number;
  /** Coefficients in 1 / z^2 behind 1 / n + 1 / (2 z) + 1 / z^2 (...), for z from `shifts` on. */
  readonly tail: readonly number[];
  /** n! is factor * scale^(n + 1), scale a power of two: so neither n! nor powers of 1 / z overflow where their product does not. */
  readonly factor: number;
  readonly scale: number;
}

/** The fewest terms for which Euler and Maclaurin's formula reaches the accuracy, relative to its first term. */
export function polygammaPlan(order: number, accuracy: number): PolygammaPlan {
  const coefficients: number[] = [];
  let rising = 1;
  bernoulli.forEach((b, i) => {
    // (n + 1) (n + 2) ... (n + 2 j - 1)
    rising *= i === 0 ? order + 1 : (order + 2 * i) * (order + 2 * i + 1);
    coefficients.push(b * rising);
  });
  let bits = 0;
  for (let k = 2; k <= order; k++) bits += Math.log2(k);
  const scale = 2 ** Math.round(bits / (order + 1));
  let factor = 1 / scale;
  for (let k = 1; k <= order; k++) factor *= k / scale;
  for (let shifts = 2; ; shifts++) {
    // The error is at most the first term left out.
    const last = coefficients.findIndex((c, i) => Math.abs(c) * shifts ** (-2 * i - 2) * order < accuracy);
    if (last >= 0) return { shifts, tail: coefficients.slice(0, Math.max(1, last)), factor, scale };
  }
}

/**
 * The n-th derivative of -pi cot(pi x), but for its sign (-1)^(n + 1), as a polynomial in c = cot(pi x): coefficients of its powers of
 * c^2, behind a factor c for even n. All are positive; NaN where one is larger than `limit`.
 */
export function powersOfCotangent(order: number, limit: number): readonly number[] {
  // From p(c) to pi (1 + c^2) p'(c).
  let p = [0, Math.PI];
  for (let n = 0; n < order; n++) {
    const next = new Array<number>(p.length + 1).fill(0);
    p.forEach((value, k) => {
      if (k === 0) return;
      next[k - 1] = (next[k - 1] as number) + Math.PI * k * value;
      next[k + 1] = (next[k + 1] as number) + Math.PI * k * value;
    });
    p = next;
  }
  const own = p.filter((_, k) => k % 2 === (order + 1) % 2);
  return own.some((value) => !(value < limit)) ? own.map(() => Number.NaN) : own;
}
