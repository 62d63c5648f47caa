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
  /** Coefficients in w^2 behind 1 / n + w (half + w (...)), for w = unit / z, but at most `most`. */
  readonly tail: readonly number[];
  readonly unit: number;
  readonly half: number;
  readonly most: number;
  /** n! is factor * scale^(n + 1), factor near 1 and scale a number of the dtype: so nothing overflows but what the result does with it. */
  readonly factor: number;
  readonly scale: number;
}

/**
 * The fewest terms for which Euler and Maclaurin's formula reaches the accuracy.
 *
 * The formula is accurate from `far` on. Terms are added from x to x + shifts, so where that is less, what is left is
 * (x / (x + shifts))^n of the sum: fewer than 30 terms make that small, however large n is. The formula's own variable is kept from where it is
 * nothing but large.
 */
export function polygammaPlan(order: number, accuracy: number): PolygammaPlan {
  let far = Number.POSITIVE_INFINITY;
  let last = 0;
  const coefficients: number[] = [];
  let rising = 1;
  bernoulli.forEach((b, i) => {
    // (n + 1) (n + 2) ... (n + 2 j - 1)
    rising *= i === 0 ? order + 1 : (order + 2 * i) * (order + 2 * i + 1);
    coefficients.push(b * rising);
    // The error is at most the first term left out, relative to 1 / n.
    const from = (Math.abs(b * rising) * (order / accuracy)) ** (1 / (2 * i + 2));
    if (!(from < far)) return;
    far = from;
    last = i;
  });
  const powers = 2 * last + 2;
  const shifts = Math.max(2, Math.ceil(Math.min(far, (powers * far) / (order + 1 + powers) + 1)));
  const unit = 2 ** Math.round(Math.log2(far));
  const tail = coefficients.slice(0, Math.max(1, last)).map((c, i) => c / unit ** (2 * i + 2));
  return {
    shifts,
    tail,
    unit,
    half: 0.5 / unit,
    most: (2 * unit) / far,
    ...factorial(order, accuracy < 2 ** -30 ? Number : Math.fround),
  };
}

/** n! as factor * scale^(n + 1), the scale a number of the dtype. */
function factorial(n: number, round: (x: number) => number): { readonly factor: number; readonly scale: number } {
  if (n > 100_000) {
    // Stirling's series. The quotient is near e, so its logarithm loses nothing that n times it would show.
    const rest = 0.5 * Math.log(2 * Math.PI * n) + 1 / (12 * n) - 1 / (360 * n ** 3);
    const scale = round(Math.exp((n * (Math.log(n) - 1) + rest) / (n + 1)));
    const size = n * (Math.log(n / scale) - 1) + rest - Math.log(scale);
    // Where rounding alone makes more of it, sums are 0 or infinite.
    return { scale, factor: Math.exp(Math.min(40, Math.max(-40, size))) };
  }
  let size = 0;
  for (let k = 2; k <= n; k++) size += Math.log(k);
  const scale = round(Math.exp(size / (n + 1)));
  // Large and small factors in turns, so that the product stays near 1.
  let factor = 1 / scale;
  for (let [low, high] = [1, n]; low <= high; ) factor *= (factor < 1 ? high-- : low++) / scale;
  return { scale, factor };
}

/**
 * The n-th derivative of -pi cot(pi x), but for its sign (-1)^(n + 1), as a polynomial in c = cot(pi x): coefficients of its powers of
 * c^2, behind a factor c for even n. All are positive.
 */
export function powersOfCotangent(order: number): readonly number[] {
  // From p(c) to pi (1 + c^2) p'(c).
  let p = [0, Math.PI];
  for (let n = 0; n < order; n++) {
    const next = new Array<number>(p.length + 1).fill(0);
    p.forEach((value, k) => {
      if (k === 0) return;
      next[k - 1] = next[k - 1]! + Math.PI * k * value;
      next[k + 1] = next[k + 1]! + Math.PI * k * value;
    });
    p = next;
  }
  return p.filter((_, k) => k % 2 === (order + 1) % 2);
}
