/**
 * Special functions: a value by approximation, as accurate as the dtype, and a derivative by its formula; with the coefficients.
 *
 * Why not differentiate the approximation: that would differentiate its error too. The derivative is an operation of its own, so derivatives of
 * every order are accurate.
 */
import { noGrad } from '../../autodiff/custom-gradient.ts';
import { compose } from '../../graph/scope.ts';
import { withSlope } from '../../primitives/elementwise.ts';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import { floatOperand } from '../../tensor/operand.ts';
import type { Tensor, TensorLike } from '../../tensor/types.ts';
import { add, mul } from '../elementwise/arithmetic.ts';
import { inFloat32 } from '../elementwise/recording.ts';

/** Numbers of an approximation per accuracy. */
export interface ByAccuracy<T> {
  readonly float32: T;
  readonly float64: T;
}

/** What the tensor's dtype calls for. */
export function accurate<T>(numbers: ByAccuracy<T>, x: Tensor): T {
  return x.dtype === 'float64' ? numbers.float64 : numbers.float32;
}

/** c[0] + c[1] x + c[2] x^2 + ... */
export function polynomial(x: Tensor, coefficients: readonly number[]): Tensor {
  const last = coefficients.length - 1;
  let sum: Tensor | number = coefficients[last]!;
  for (let i = last - 1; i >= 0; i--) sum = add(mul(x, sum), coefficients[i]!);
  return typeof sum === 'number' ? add(mul(x, 0), sum) : sum;
}

/**
 * A function of one number, element by element.
 *
 * @param value of a float32 or float64 tensor; 16-bit floats are computed in float32
 * @param slope the derivative, from the argument and the value
 */
export function specialFunction(
  op: string,
  x: TensorLike,
  value: (x: Tensor) => Tensor,
  slope: (x: Tensor, y: Tensor) => Tensor,
): Tensor {
  return compose(op, () => {
    const source = floatOperand(x);
    const result = noGrad(() => inFloat32([wrap(source)], value));
    return wrap(
      withSlope(nodeOf(result), source, (grad, argument, self) =>
        nodeOf(compose(op, () => mul(wrap(grad), slope(wrap(argument), wrap(self))))),
      ),
    );
  });
}

// Polynomials of the special functions, lowest power first. Each was interpolated at the Chebyshev points of its interval with 60
// digits; the errors given are relative ones of the polynomial before rounding, for float32 and float64.

type Table = ByAccuracy<readonly number[]>;

/** log gamma(2 + u) / u on [-3/4, 1/2]: 3e-9 and 4e-17. */
export const logGammaAtTwo: Table = {
  float32: [
    0.42278433, 0.32246703, -0.06735234, 0.020580977, -0.00738459, 0.0028882704, -0.0012023172, 0.00051948376,
    -0.0001818842, 9.14432e-5, -0.00011227535,
  ],
  float64: [
    0.42278433509846713, 0.32246703342411326, -0.06735230105319989, 0.02058080842777418, -0.007385551028502159,
    0.002890510331383695, -0.0011927539179523957, 0.0005096695054915424, -0.00022315464669130103, 9.945783913330653e-5,
    -4.4927323253898135e-5, 2.0503882702645786e-5, -9.433730911910839e-6, 4.395623759794621e-6, -2.0532766649484134e-6,
    8.781963368636073e-7, -4.5172517222650804e-7, 3.66529171043464e-7, -1.736660316326268e-8, -7.727327530285385e-8,
    -1.4427747303509595e-7,
  ],
};

/** (log gamma(x) - (x - 1/2) (log(x) - 1) - (log(2 pi) - 1) / 2) x in 1 / x^2, x above 6.5 and 8.5: 3e-9 and 3e-18. */
export const logGammaFar: Table = {
  float32: [0.083333336, -0.0027775967, 0.0007731562],
  float64: [
    0.08333333333333333, -0.0027777777777758484, 0.000793650791418809, -0.0005952371230897643, 0.0008415479374239695,
    -0.0018955263539697656, 0.005192469209526495,
  ],
};

/** digamma(3/2 + u) / (3/2 + u - root) on [-1/2, 1/2]: 4e-9 and 9e-17. */
export const digammaAtRoot: Table = {
  float32: [
    0.9510559, -0.4236275, 0.24054253, -0.14839886, 0.09498469, -0.06205598, 0.04085003, -0.025786884, 0.01711499,
    -0.01637362, 0.010902588,
  ],
  float64: [
    0.9510558760318328, -0.4236274212814573, 0.24054248424078478, -0.14840492305485808, 0.09498872445354183,
    -0.06192213319072707, 0.0407608338843387, -0.026975800029253667, 0.017907250563619775, -0.011908146513976738,
    0.007926972735646359, -0.005280903066090605, 0.0035187504361950134, -0.002337552647103118, 0.0015580749137213761,
    -0.0010776863967234226, 0.0007184107969046378, -0.00035476352053371977, 0.00023650171719339814,
    -0.0003783907897248858, 0.0002522590506964885,
  ],
};

/** (log(x) - 1 / (2 x) - digamma(x)) x^2 in 1 / x^2, x above 6 and 10: 4e-10 and 5e-18. */
export const digammaFar: Table = {
  float32: [0.083333336, -0.008333298, 0.003961839, -0.0037855296],
  float64: [
    0.08333333333333333, -0.008333333333329107, 0.0039682539614681435, -0.004166662567441333, 0.007574572233138122,
    -0.020915106432928057, 0.06980456110772017,
  ],
};

/** (1 + 2 x) exp(x^2) erfc(x) in (x - 4) / (x + 4), x from 1/2 to 11 and 28: 2e-9 and 3e-17. */
export const scaledErfc: Table = {
  float32: [
    1.2329952, -0.13962108, 0.015379794, 0.06809474, -0.10104374, 0.09376629, -0.06626805, 0.03699304, -0.016557476,
    0.005290105, 4.257936e-6,
  ],
  float64: [
    1.2329951186255526, -0.1396211168405616, 0.015379652102614858, 0.06809705425457811, -0.10103906603599298,
    0.09373283500259434, -0.0663303658198799, 0.03716751546515809, -0.016197733962200932, 0.005031970657505758,
    -0.0007577739752266992, -0.000199260546967223, 0.0001506247026512128, -2.4385454299846383e-5,
    -1.1230434994851926e-5, 5.678446518677392e-6, 3.0842678654442027e-7, -7.811785785175153e-7, 5.941337955131871e-8,
    7.389680444833914e-8, -9.455982939872743e-9,
  ],
};

/** A first guess of erfinv(a) / a in w = -log(1 - a^2) up to 6, and in the root of w from 6 to 38: 2e-7 both. */
export const guessNear: readonly number[] = [
  0.8862269, 0.23201571, 0.011538471, -0.0023135366, -0.00014847987, 5.6415654e-5, 7.374945e-8, -1.2273974e-6,
  1.4382543e-7, -5.4809868e-9,
];
export const guessFar: readonly number[] = [
  3.39067771208, -5.39751344688, 4.84814278835, -1.88334092444, 0.294776076241, 0.0614009681007, -0.0443788917826,
  0.0114071563928, -0.00169491365398, 0.000152966217308, -7.82968902729e-6, 1.75291791806e-7,
];

// Numbers for polygamma of an order, computed on the host: how far to shift, series, polynomials in the cotangent.

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
 * The formula is accurate from `far` on. Terms are added from x to x + shifts. Where that is less than `far`, what is left is
 * (x / (x + shifts))^n of the sum: fewer than 30 terms make that small, however large n is. There `most` bounds the formula's variable, whose value
 * does not matter but must not overflow.
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
