/**
 * The logarithm of the gamma function and its derivatives of all orders, and relatives of the error function.
 *
 * Positive arguments: polynomials around 1 and 2, recurrence up to them, Stirling's series beyond. Negative ones: reflection (Abramowitz and
 * Stegun, 6.1.17, 6.3.7 and 6.4.7), accurate relative to its terms, so near a zero of the function not relative to the result.
 */
import { compose } from '../../graph/scope.ts';
import { checkCount } from '@polygrad/compiler/shape/axes';
import { bell } from '../../primitives/elementwise.ts';
import { nodeOf, wrap } from '../../tensor/handle.ts';
import type { Tensor, TensorLike } from '../../tensor/types.ts';
import { abs, add, copysign, div, minimum, mul, neg, reciprocal, square, sub } from '../elementwise/arithmetic.ts';
import { cos, erf, exp, log, sin, sqrt } from '../elementwise/transcendental.ts';
import { equal, greater, greaterEqual, isInf, less, logicalAnd } from '../elementwise/logic.ts';
import { round } from '../elementwise/activation.ts';
import { where } from '../elementwise/recording.ts';
import {
  accurate,
  digammaAtRoot,
  digammaFar,
  guessFar,
  guessNear,
  logGammaAtTwo,
  logGammaFar,
  polygammaPlan,
  polynomial,
  powersOfCotangent,
  scaledErfc,
  specialFunction,
} from './special-form.ts';

/** x for positive, 1 - x for negative x. */
function reflected(x: Tensor): Tensor {
  return where(less(x, 0), sub(1, x), x);
}

/** The signed distance from the nearest integer: what sine and cotangent of pi x depend on, but for signs. */
function phase(x: Tensor): Tensor {
  return sub(x, round(x));
}

/** cot(pi r) for r from -1/2 to 1/2, accurate also for small r. */
function cotangent(r: Tensor): Tensor {
  const size = abs(r);
  const small = greater(size, 0.25);
  const angle = mul(where(small, sub(0.5, size), size), Math.PI);
  const [s, c] = [sin(angle), cos(angle)];
  const quotient = div(where(small, s, c), where(small, c, s));
  return where(less(r, 0), neg(quotient), quotient);
}

/**
 * The logarithm of the absolute value of the gamma function: infinite at 0, -1, -2 ... Its derivative is digamma. Source: C `lgamma`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * lgamma(tensor([1, 5])); // [0, 3.1780539]
 */
export function lgamma(x: TensorLike): Tensor {
  return specialFunction('lgamma', x, logGamma, digamma);
}

function logGamma(x: Tensor): Tensor {
  const t = reflected(x);
  const steps = accurate({ float32: 4, float64: 6 }, x);
  const large = greaterEqual(t, steps + 2.5);
  // Down to [3/2, 5/2] by gamma(t) = (t - 1) gamma(t - 1).
  const start = where(large, 2, t);
  let z = start;
  let product: Tensor | null = null;
  for (let i = 1; i <= steps; i++) {
    const down = sub(start, i);
    const take = greaterEqual(down, 1.5);
    z = where(take, down, z);
    product = product === null ? where(take, down, 1) : where(take, mul(product, down), product);
  }
  // Up from below by gamma(z) = gamma(z + 1) / z, once or twice.
  const low = less(z, 1.25);
  const lowest = less(z, 0.5);
  const u = where(lowest, z, where(low, sub(z, 1), sub(z, 2)));
  const factor = where(lowest, mul(z, add(z, 1)), where(low, z, product!));
  const size = log(where(large, t, factor));
  const near = add(mul(u, polynomial(u, accurate(logGammaAtTwo, x))), where(low, neg(size), size));
  const r = reciprocal(t);
  const rest = add(mul(r, polynomial(square(r), accurate(logGammaFar, x))), 0.5 * Math.log(2 * Math.PI) - 0.5);
  const far = add(mul(sub(t, 0.5), sub(size, 1)), rest);
  const positive = where(large, far, near);
  // sin(pi r) / pi, next to 0 without a product that has fewer digits than r.
  const r0 = abs(phase(x));
  const sine = where(less(r0, 2 ** -60), r0, mul(sin(mul(r0, Math.PI)), 1 / Math.PI));
  const mirror = neg(add(log(sine), positive));
  // Far below 0 every number is an integer, and the mirror image's value may be beyond the range.
  return where(isInf(positive), Number.POSITIVE_INFINITY, where(less(x, 0), mirror, positive));
}

/** The positive zero of digamma, and what float32 and float64 lose of it. */
const root = {
  float32: { head: Math.fround(1.4616321449683622), tail: 1.4616321449683622 - Math.fround(1.4616321449683622) },
  float64: { head: 1.4616321449683622, tail: 9.549995429965697e-17 },
};

/**
 * The derivative of lgamma: -infinity at 0, NaN at -1, -2 ... Source: SciPy `digamma`, PyTorch `torch.digamma`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * digamma(tensor([1, 2])); // [-0.5772157, 0.42278433]
 */
export function digamma(x: TensorLike): Tensor {
  return specialFunction('digamma', x, digammaValue, (t) => polygamma(1, t));
}

function digammaValue(x: Tensor): Tensor {
  const t = reflected(x);
  const steps = accurate({ float32: 4, float64: 8 }, x);
  const large = greaterEqual(t, steps + 2);
  // Down to [1, 2] by digamma(t) = digamma(t - 1) + 1 / (t - 1); up from below by the same.
  const start = where(large, 1, t);
  let z = start;
  let sum: Tensor | null = null;
  for (let i = 1; i <= steps; i++) {
    const down = sub(start, i);
    const take = greaterEqual(down, 1);
    z = where(take, down, z);
    const term = where(take, reciprocal(where(take, down, 1)), 0);
    sum = sum === null ? term : add(sum, term);
  }
  const low = less(z, 1);
  const offset = where(low, reciprocal(where(low, start, 1)), 0);
  z = where(low, add(z, 1), z);
  const { head, tail } = accurate(root, x);
  const slope = polynomial(sub(z, 1.5), accurate(digammaAtRoot, x));
  const near = sub(add(mul(sub(sub(z, head), tail), slope), sum!), offset);
  const r = reciprocal(t);
  const far = sub(log(t), mul(r, add(mul(r, polynomial(square(r), accurate(digammaFar, x))), 0.5)));
  const positive = where(large, far, near);
  const place = phase(x);
  const mirror = sub(positive, mul(cotangent(place), Math.PI));
  return where(less(x, 0), where(equal(place, 0), Number.NaN, mirror), positive);
}

/**
 * The n-th derivative of digamma. At 0, -1, -2 ... infinite for odd n, NaN for even n below 0. Source: SciPy `polygamma`, PyTorch
 * `torch.polygamma`.
 *
 * Accuracy goes down by about one unit in the last place per order; what is too large is infinite, what is too small 0.
 *
 * @param order n, an integer of at least 0
 * @returns of the shape of x; integers become float32
 * @throws ArgumentError for other orders
 *
 * @example
 * polygamma(1, tensor([1])); // [1.644934]
 */
export function polygamma(order: number, x: TensorLike): Tensor {
  checkCount('polygamma', 'order', order, 0, Number.MAX_SAFE_INTEGER - 1);
  if (order === 0) return compose('polygamma', () => digamma(x));
  return specialFunction(
    'polygamma',
    x,
    (t) => polygammaValue(order, t),
    (t) => polygamma(order + 1, t),
  );
}

/** x^n by squaring. */
function power(x: Tensor, n: number): Tensor {
  let result: Tensor | null = null;
  let base = x;
  for (let rest = n; rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) result = result === null ? base : mul(result, base);
    if (rest > 1) base = square(base);
  }
  return result!;
}

/** From this order on, integers that are 2.5 away from x add nothing to what its neighbours give: (0.5 / 2.5)^25 is below 2^-57. */
const LATTICE_ORDER = 24;

function polygammaValue(order: number, x: Tensor): Tensor {
  const t = reflected(x);
  // n! times the sum of (t + k)^-(n + 1): terms one by one, then Euler and Maclaurin's formula from z = t + shifts on.
  const plan = polygammaPlan(order, accurate({ float32: 2 ** -27, float64: 2 ** -57 }, x));
  const { shifts, tail, unit, half, most, factor, scale } = plan;
  const term = (base: Tensor): Tensor => power(div(scale, base), order + 1);
  const z = add(t, shifts);
  const w = minimum(div(unit, z), most);
  const rest = add(mul(w, add(mul(w, polynomial(square(w), tail)), half)), 1 / order);
  // One power less than the terms, which may be below the smallest number where this is not.
  let sum = mul(power(div(scale, z), order), mul(rest, scale));
  for (let k = shifts - 1; k >= 0; k--) sum = add(sum, term(k === 0 ? t : add(t, k)));
  const even = order % 2 === 0;
  const positive = mul(sum, even ? -factor : factor);
  const place = phase(x);
  const reflection = order < LATTICE_ORDER ? cotangentSlope(order, place) : mul(latticeSum(order, place, term), factor);
  // Where both are infinite the reflection is larger, as its terms are nearer.
  const mirror = where(
    isInf(reflection),
    even ? neg(reflection) : reflection,
    even ? sub(positive, reflection) : sub(reflection, positive),
  );
  const atPole = logicalAnd(less(x, 0), equal(place, 0));
  const negative = even ? where(atPole, Number.NaN, mirror) : mirror;
  return where(less(x, 0), negative, positive);
}

/** The n-th derivative of -pi cot(pi x), but for its sign (-1)^(n + 1). */
function cotangentSlope(order: number, place: Tensor): Tensor {
  const cot = cotangent(place);
  const powers = polynomial(square(cot), powersOfCotangent(order));
  return order % 2 === 0 ? mul(cot, powers) : powers;
}

/** The same divided by `factor`, as a sum over the four nearest integers. Their distances are r, 1 - r, 1 + r and 2 - r. */
function latticeSum(order: number, place: Tensor, term: (base: Tensor) => Tensor): Tensor {
  const r = abs(place);
  const [first, second, third, fourth] = [r, sub(1, r), add(r, 1), sub(2, r)].map(term) as [
    Tensor,
    Tensor,
    Tensor,
    Tensor,
  ];
  if (order % 2 === 1) return add(add(first, second), add(third, fourth));
  // Of two infinite terms the first is larger. Halfway between integers the terms cancel.
  const sum = where(isInf(first), first, add(sub(first, second), sub(third, fourth)));
  const whole = where(equal(r, 0.5), 0, sum);
  return where(less(place, 0), neg(whole), whole);
}

// Relatives of the error function: what is left of 1, and its inverse. erf itself is a primitive, in transcendental.ts.

/** `last`: erfc is 0 from there on. `parts`: arguments rounded to multiples of 1 / parts have exact squares. */
const ranges = { float32: { last: 10.5, parts: 256 }, float64: { last: 27.5, parts: 2 ** 20 } };

/** exp(-x^2) for |x| up to `last`, without the error of x^2 that the exponential would magnify. */
function gaussian(x: Tensor): Tensor {
  const { parts } = accurate(ranges, x);
  const head = mul(round(mul(x, parts)), 1 / parts);
  return mul(exp(neg(mul(sub(x, head), add(x, head)))), exp(neg(square(head))));
}

/** exp(x^2) erfc(x) for x from 1/2 to `last`. */
function scaled(x: Tensor): Tensor {
  return div(polynomial(div(sub(x, 4), add(x, 4)), accurate(scaledErfc, x)), add(mul(x, 2), 1));
}

/**
 * The complementary error function 1 - erf(x), accurate to a few units in the last place for large x too. Source: C `erfc`.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * erfc(tensor([0, 2])); // [1, 0.004677735]
 */
export function erfc(x: TensorLike): Tensor {
  return specialFunction(
    'erfc',
    x,
    (t) => {
      const { last } = accurate(ranges, t);
      const tail = where(less(t, 0.5), 0.5, where(greater(t, last), last, t));
      return where(less(t, 0.5), sub(1, erf(t)), mul(scaled(tail), gaussian(tail)));
    },
    (t) => mul(wrap(bell(nodeOf(t))), -2 / Math.sqrt(Math.PI)),
  );
}

/**
 * The inverse of the error function: infinite at -1 and 1, NaN beyond. Source: PyTorch `torch.erfinv`. A guess is corrected by one
 * step of Halley's method, with erf near 0 and erfc near 1.
 *
 * @returns of the shape of x; integers become float32
 *
 * @example
 * erfinv(tensor([0, 0.5])); // [0, 0.47693628]
 */
export function erfinv(x: TensorLike): Tensor {
  return specialFunction(
    'erfinv',
    x,
    (t) => {
      const a = abs(t);
      const left = sub(1, a);
      const w = neg(log(mul(left, add(a, 1))));
      const near = less(w, 6);
      const far = sqrt(where(near, 6, where(greater(w, 38), 38, w)));
      const guess = mul(a, where(near, polynomial(where(near, w, 6), guessNear), polynomial(far, guessFar)));
      const bell = gaussian(guess);
      const small = less(guess, 0.5);
      const excess = where(small, sub(erf(guess), a), sub(left, mul(scaled(where(small, 0.5, guess)), bell)));
      const step = div(excess, mul(bell, 2 / Math.sqrt(Math.PI)));
      const better = sub(guess, div(step, add(mul(guess, step), 1)));
      const inside = where(equal(a, 1), Number.POSITIVE_INFINITY, better);
      return copysign(where(greater(a, 1), Number.NaN, inside), t);
    },
    (_, y) => mul(exp(square(y)), Math.sqrt(Math.PI) / 2),
  );
}
