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
 * @throws NnError unless the rate is a finite number of at least 0
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
 * @throws NnError for numbers out of range and options that are not known
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
 * @throws NnError for numbers out of range and options that are not known
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
 * @throws NnError unless rate and factor are finite numbers of at least 0
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
 * @throws NnError for numbers out of range and options that are not known
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
 * @throws NnError for numbers out of range and options that are not known
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
 * @throws NnError unless steps are an integer of at least 0 and `then` is a schedule
 * @example
 * const schedule = linearWarmup(10, cosineDecay(1e-3, { steps: 990 }));
 * schedule(4); // 5e-4
 */
export function linearWarmup(steps: number, then: Schedule): Schedule {
  checkInteger('linearWarmup', 'steps', steps, 0);
  checkFunction('linearWarmup', 'then', then);
  return (step) => (step < steps ? (then(0) * (step + 1)) / steps : then(step - steps));
}

/** Options of `oneCycle`. */
export interface OneCycleOptions {
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
}

/** A schedule that goes from the first of four values to the second, to the third (with three phases) and to the last. */
function phases(
  op: string,
  options: Pick<OneCycleOptions, 'steps' | 'up' | 'threePhase' | 'anneal'>,
  [first, top, back, last]: readonly [number, number, number, number],
): Schedule {
  const { steps, up = 0.3, threePhase = false, anneal = 'cosine' } = options;
  checkInteger(op, 'steps', steps, 2);
  checkFraction(op, 'up', up);
  const known = anneal === 'cosine' || anneal === 'linear';
  checkFits(op, 'anneal', anneal, known, "'cosine' or 'linear'");
  const between = (from: number, to: number, share: number): number =>
    anneal === 'linear' ? from + (to - from) * share : to + ((from - to) * (1 + Math.cos(Math.PI * share))) / 2;
  const upTo = up * steps - 1;
  const backAt = threePhase ? 2 * up * steps - 2 : upTo;
  return (step) => {
    if (step <= upTo) return between(first, top, step / upTo);
    if (step <= backAt) return between(top, back, (step - upTo) / (backAt - upTo));
    return between(threePhase ? back : top, last, Math.min((step - backAt) / (steps - 1 - backAt), 1));
  };
}

/**
 * One cycle: up to `rate` along half a cosine over the first part of `steps`, then down to nearly nothing. Source: Smith
 * and Topin, "Super-convergence", 2018; PyTorch `OneCycleLR`, whose defaults these are. `oneCycleMomentum` is the momentum that goes with it.
 *
 * @throws NnError for numbers out of range and options that are not known
 * @example
 * oneCycle(1, { steps: 10 })(2); // 1
 */
export function oneCycle(rate: number, options: OneCycleOptions): Schedule {
  checkNumber('oneCycle', 'rate', rate, 0);
  checkRequired('oneCycle', options, 'steps up startFactor# endFactor# threePhase? anneal');
  const { startFactor = 25, endFactor = 1e4 } = options;
  const first = rate / startFactor;
  return phases('oneCycle', options, [first, rate, first, first / endFactor]);
}

/** Options of `oneCycleMomentum`. */
export interface OneCycleMomentumOptions extends Omit<OneCycleOptions, 'startFactor' | 'endFactor'> {
  /** Momentum where the rate is highest (default 0.85). */
  readonly low?: number;
  /** Momentum at the first and the last step (default 0.95). */
  readonly high?: number;
}

/**
 * The momentum that goes with `oneCycle` of the same options: down while the rate goes up, and up again. For `momentum` of SGD and RMSProp, and the first of the
 * `betas` of Adam. Source: PyTorch `OneCycleLR`, whose `cycle_momentum` it is.
 *
 * @throws NnError for numbers out of range and options that are not known
 * @example
 * const optimizer = new Adam([parameter(tensor([1]))], {
 *   lr: oneCycle(0.1, { steps: 10 }),
 *   betas: [oneCycleMomentum({ steps: 10 }), 0.999],
 * });
 * oneCycleMomentum({ steps: 10 })(2); // 0.85
 */
export function oneCycleMomentum(options: OneCycleMomentumOptions): Schedule {
  checkRequired('oneCycleMomentum', options, 'steps up threePhase? anneal low high');
  const { low = 0.85, high = 0.95 } = options;
  checkFraction('oneCycleMomentum', 'high', high);
  checkNumber('oneCycleMomentum', 'low', low, 0);
  checkNumber('oneCycleMomentum', 'high', high, low);
  return phases('oneCycleMomentum', options, [high, low, high, high]);
}
