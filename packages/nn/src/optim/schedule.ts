/**
 * Learning-rate schedules: functions from the number of steps taken to a learning rate. Plain numbers, no tensors;
 * an optimizer asks its schedule before every step.
 */
import {
  checkFits,
  checkFraction,
  checkFunction,
  checkInteger,
  checkList,
  checkNumber,
  checkRequired,
} from '../errors.ts';

/** The learning rate of the step after `step` steps have been taken (0 for the first). */
export type Schedule = (step: number) => number;

/**
 * The same rate at every step.
 *
 * @example
 * constantRate(0.1)(50); // 0.1
 */
export function constantRate(rate: number): Schedule {
  checkNumber('constantRate', 'rate', rate, 0);
  return () => rate;
}

/**
 * Multiplies the rate by `factor` every `every` steps. Source: PyTorch `StepLR`.
 *
 * @example
 * const schedule = stepDecay(0.1, { every: 100, factor: 0.5 });
 * schedule(250); // 0.025
 */
export function stepDecay(rate: number, options: { readonly every: number; readonly factor?: number }): Schedule {
  checkNumber('stepDecay', 'rate', rate, 0);
  checkRequired('stepDecay', options, 'every factor#');
  const { every, factor = 0.1 } = options;
  checkInteger('stepDecay', 'every', every, 1);
  return (step) => rate * factor ** Math.floor(step / every);
}

/**
 * Multiplies the rate by `factor` at each of the given steps. Source: PyTorch `MultiStepLR`.
 *
 * @example
 * multiStepDecay(1, { at: [10, 20] })(15); // 0.1
 */
export function multiStepDecay(
  rate: number,
  options: { readonly at: readonly number[]; readonly factor?: number },
): Schedule {
  checkNumber('multiStepDecay', 'rate', rate, 0);
  checkRequired('multiStepDecay', options, 'at factor#');
  const { at, factor = 0.1 } = options;
  checkList('multiStepDecay', 'at', at);
  return (step) => rate * factor ** at.filter((milestone) => step >= milestone).length;
}

/**
 * `rate factor^step`. Source: PyTorch `ExponentialLR`.
 *
 * @example
 * exponentialDecay(1, 0.5)(3); // 0.125
 */
export function exponentialDecay(rate: number, factor: number): Schedule {
  checkNumber('exponentialDecay', 'rate', rate, 0);
  checkNumber('exponentialDecay', 'factor', factor, 0);
  return (step) => rate * factor ** step;
}

/**
 * From `rate` down to `least` along half a cosine over `steps` steps, and `least` after them. Source: Loshchilov and
 * Hutter, "SGDR", 2017; PyTorch `CosineAnnealingLR`.
 *
 * @example
 * const schedule = cosineDecay(1, { steps: 100 });
 * schedule(50); // 0.5
 */
export function cosineDecay(rate: number, options: { readonly steps: number; readonly least?: number }): Schedule {
  checkNumber('cosineDecay', 'rate', rate, 0);
  checkRequired('cosineDecay', options, 'steps least#');
  const { steps, least = 0 } = options;
  checkInteger('cosineDecay', 'steps', steps, 1);
  return (step) => least + ((rate - least) * (1 + Math.cos(Math.PI * Math.min(step / steps, 1)))) / 2;
}

/**
 * From `rate` down to `least` along `(1 - step / steps)^power`. Source: PyTorch `PolynomialLR`.
 *
 * @example
 * polynomialDecay(1, { steps: 100 })(25); // 0.75
 */
export function polynomialDecay(
  rate: number,
  options: { readonly steps: number; readonly power?: number; readonly least?: number },
): Schedule {
  checkNumber('polynomialDecay', 'rate', rate, 0);
  checkRequired('polynomialDecay', options, 'steps power# least#');
  const { steps, power = 1, least = 0 } = options;
  checkInteger('polynomialDecay', 'steps', steps, 1);
  return (step) => least + (rate - least) * (1 - Math.min(step / steps, 1)) ** power;
}

/**
 * Rises linearly to what `then` begins with over `steps` steps, then follows it from its own step 0.
 *
 * @example
 * const schedule = linearWarmup(10, cosineDecay(1e-3, { steps: 990 }));
 * schedule(4); // 5e-4
 */
export function linearWarmup(steps: number, then: Schedule): Schedule {
  checkInteger('linearWarmup', 'steps', steps, 0);
  checkFunction('linearWarmup', 'then', then);
  return (step) => (step < steps ? (then(0) * (step + 1)) / steps : then(step - steps));
}

/**
 * One cycle: up to `rate` along half a cosine over the first part of `steps`, then down to nearly nothing. Source: Smith
 * and Topin, "Super-convergence", 2018; PyTorch `OneCycleLR`, whose defaults these are.
 *
 * @example
 * oneCycle(1, { steps: 10 })(2); // 1
 */
export function oneCycle(
  rate: number,
  options: {
    readonly steps: number;
    /** Share of the steps that go up (default 0.3). */
    readonly up?: number;
    /** The first rate is `rate / startFactor` (default 25). */
    readonly startFactor?: number;
    /** The last rate is the first one over `endFactor` (default 1e4). */
    readonly endFactor?: number;
    /** Down to the first rate in as many steps as up, and then to the last (default false). */
    readonly threePhase?: boolean;
    /** Along half a cosine (default) or in lines. */
    readonly anneal?: 'cosine' | 'linear';
  },
): Schedule {
  checkNumber('oneCycle', 'rate', rate, 0);
  checkRequired('oneCycle', options, 'steps up startFactor# endFactor# threePhase? anneal');
  const { steps, up = 0.3, startFactor = 25, endFactor = 1e4, threePhase = false, anneal = 'cosine' } = options;
  checkInteger('oneCycle', 'steps', steps, 2);
  checkFraction('oneCycle', 'up', up);
  const first = rate / startFactor;
  const last = first / endFactor;
  const top = up * steps - 1;
  const known = anneal === 'cosine' || anneal === 'linear';
  checkFits('oneCycle', 'anneal', anneal, known, "'cosine' or 'linear'");
  const between = (from: number, to: number, share: number): number =>
    anneal === 'linear' ? from + (to - from) * share : to + ((from - to) * (1 + Math.cos(Math.PI * share))) / 2;
  const back = threePhase ? 2 * up * steps - 2 : top;
  return (step) => {
    if (step <= top) return between(first, rate, step / top);
    if (step <= back) return between(rate, first, (step - top) / (back - top));
    return between(threePhase ? first : rate, last, Math.min((step - back) / (steps - 1 - back), 1));
  };
}
