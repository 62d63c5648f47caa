/** Relatives of the error function: what is left of 1, and its inverse. erf itself is a primitive, in trigonometric.ts. */
import type { Tensor, TensorLike } from '../../tensor/types.ts';
import { abs, add, div, mul, neg, square, sub } from '../elementwise/arithmetic.ts';
import { copysign } from '../elementwise/compound.ts';
import { exp, log, sqrt } from '../elementwise/exponential.ts';
import { equal, greater, less } from '../elementwise/logic.ts';
import { where } from '../elementwise/where.ts';
import { round } from '../elementwise/rounding.ts';
import { accurate, polynomial, specialFunction } from './special-form.ts';
import { guessFar, guessNear, scaledErfc } from './special-tables.ts';
import { erf } from '../elementwise/trigonometric.ts';

/** From here on erfc is 0; and to this part of 1 an argument is rounded so that its square is exact. */
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
    (t) => mul(exp(neg(square(t))), -2 / Math.sqrt(Math.PI)),
  );
}

/**
 * The inverse of the error function: infinite at -1 and 1, NaN beyond. Source: PyTorch `torch.erfinv`. A guess is corrected by one
 * step of Halley's method, with erf near 0 and erfc near 1.
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
