/** Schedules that go up and down again, hold or ramp for some steps, or are made of others. */
import {
  checkFits,
  checkFraction,
  checkFunction,
  checkInteger,
  checkList,
  checkNumber,
  checkOptions,
  checkRequired,
  NnError,
} from '../errors.ts';
import type { Schedule } from './schedule.ts';

/** Options of `linearRate`. */
export interface RampOptions {
  /** Factor at the first step (default 1/3). */
  readonly from?: number;
  /** Factor from step `steps` on (default 1). */
  readonly to?: number;
  /** Default 5. */
  readonly steps?: number;
}

/**
 * `rate` times a factor that changes in a line. Source: PyTorch `LinearLR`.
 *
 * @throws NnError for numbers out of range and options that are not known
 * @example
 * linearRate(1, { from: 0.5, steps: 4 })(2); // 0.75
 */
export function linearRate(rate: number, options: RampOptions = {}): Schedule {
  checkNumber('linearRate', 'rate', rate, 0);
  checkOptions('linearRate', options, 'from# to# steps');
  const { from = 1 / 3, to = 1, steps = 5 } = options;
  checkInteger('linearRate', 'steps', steps, 1);
  return (step) => rate * (from + ((to - from) * Math.min(step, steps)) / steps);
}

/** Options of `heldRate`. */
export interface HoldOptions {
  /** Factor of the first steps (default 1/3). */
  readonly factor?: number;
  /** How many there are (default 5). */
  readonly steps?: number;
}

/**
 * `rate` times a factor for the first steps, then `rate`. Source: PyTorch `ConstantLR`.
 *
 * @throws NnError for numbers out of range and options that are not known
 * @example
 * heldRate(1, { factor: 0.5, steps: 4 })(3); // 0.5
 */
export function heldRate(rate: number, options: HoldOptions = {}): Schedule {
  checkNumber('heldRate', 'rate', rate, 0);
  checkOptions('heldRate', options, 'factor# steps');
  const { factor = 1 / 3, steps = 5 } = options;
  checkInteger('heldRate', 'steps', steps, 0);
  return (step) => (step < steps ? rate * factor : rate);
}

/** Options of `cyclicRate` and `cyclicMomentum`. */
export interface CyclicOptions {
  /** Steps from the lowest rate to the highest (default 2000). */
  readonly up?: number;
  /** Steps back (default as many). */
  readonly down?: number;
  /** How the height changes: not at all ('triangular', default), by half each cycle, or by `factor` each step. */
  readonly mode?: 'triangular' | 'halved' | 'exponential';
  /** Default 1. */
  readonly factor?: number;
}

/**
 * Up and down in lines, again and again. Source: Smith, "Cyclical learning rates for training neural networks", 2017; PyTorch `CyclicLR`, whose modes are
 * 'triangular', 'triangular2' and 'exp_range'.
 *
 * @param low the lowest rate
 * @param high the highest
 * @throws NnError for numbers out of range and options that are not known
 * @example
 * cyclicRate(0, 1, { up: 4 })(6); // 0.5
 */
export function cyclicRate(low: number, high: number, options: CyclicOptions = {}): Schedule {
  checkNumber('cyclicRate', 'low', low, 0);
  checkNumber('cyclicRate', 'high', high, low);
  checkOptions('cyclicRate', options, 'up down mode factor#');
  const { up = 2000, down = up, mode = 'triangular', factor = 1 } = options;
  checkInteger('cyclicRate', 'up', up, 1);
  checkInteger('cyclicRate', 'down', down, 1);
  const known = mode === 'triangular' || mode === 'halved' || mode === 'exponential';
  checkFits('cyclicRate', 'mode', mode, known, "'triangular', 'halved' or 'exponential'");
  const length = up + down;
  return (step) => {
    const cycle = Math.floor(step / length);
    const at = step - cycle * length;
    const height = at <= up ? at / up : (length - at) / down;
    const scale = mode === 'triangular' ? 1 : mode === 'halved' ? 0.5 ** cycle : factor ** step;
    return low + (high - low) * height * scale;
  };
}

/**
 * The momentum that goes with `cyclicRate` of the same options: `high` where the rate is lowest, `low` where it is highest. Source: PyTorch `CyclicLR`, whose
 * `cycle_momentum` it is, with 0.8 and 0.9 by default.
 *
 * @param low the least momentum
 * @param high the greatest
 * @throws NnError for numbers out of range and options that are not known
 * @example
 * const optimizer = new SGD([parameter(tensor([1]))], {
 *   lr: cyclicRate(0.01, 0.1, { up: 4 }),
 *   momentum: cyclicMomentum(0.8, 0.9, { up: 4 }),
 * });
 * cyclicMomentum(0.8, 0.9, { up: 4 })(6); // about 0.85
 */
export function cyclicMomentum(low: number = 0.8, high: number = 0.9, options: CyclicOptions = {}): Schedule {
  checkFraction('cyclicMomentum', 'high', high);
  checkNumber('cyclicMomentum', 'low', low, 0);
  const height = cyclicRate(0, 1, options);
  checkNumber('cyclicMomentum', 'high', high, low);
  return (step) => high - (high - low) * height(step);
}

/** Options of `cosineRestarts`. */
export interface RestartOptions {
  /** Length of the first cycle. */
  readonly steps: number;
  /** Each cycle is so many times as long as the one before (default 1). */
  readonly factor?: number;
  /** Where cycles end (default 0). */
  readonly floor?: number;
}

/**
 * Half a cosine from `rate` to the floor, again and again. Source: Loshchilov and Hutter, "SGDR", 2017; PyTorch `CosineAnnealingWarmRestarts`.
 *
 * @throws NnError for numbers out of range and options that are not known
 * @example
 * cosineRestarts(1, { steps: 10 })(15); // 0.5
 */
export function cosineRestarts(rate: number, options: RestartOptions): Schedule {
  checkNumber('cosineRestarts', 'rate', rate, 0);
  checkRequired('cosineRestarts', options, 'steps factor floor#');
  const { steps, factor = 1, floor = 0 } = options;
  checkInteger('cosineRestarts', 'steps', steps, 1);
  checkInteger('cosineRestarts', 'factor', factor, 1);
  return (step) => {
    let [at, length] = [step, steps];
    if (factor === 1) at = step % steps;
    // Infinity never ends; its rate is no number, which the optimizer says.
    else
      while (at >= length && at < Number.POSITIVE_INFINITY) {
        at -= length;
        length *= factor;
      }
    return floor + ((rate - floor) * (1 + Math.cos((Math.PI * at) / length))) / 2;
  };
}

/**
 * One schedule after the other; each counts from its own first step. Source: PyTorch `SequentialLR`.
 *
 * @param schedules in order
 * @param at the steps at which the second, the third and so on begin
 * @throws NnError unless the first is a list of schedules and the second one of steps that fit it
 * @example
 * sequentialRates([linearRate(1, { from: 0, steps: 10 }), exponentialDecay(1, 0.5)], [10])(12); // 0.25
 */
export function sequentialRates(schedules: readonly Schedule[], at: readonly number[]): Schedule {
  checkList('sequentialRates', 'schedules', schedules);
  checkList('sequentialRates', 'at', at);
  for (const schedule of schedules) checkFunction('sequentialRates', 'schedule', schedule);
  const ascend =
    at.length === schedules.length - 1 && at.every((step, i) => typeof step === 'number' && step > (at[i - 1] ?? 0));
  checkFits(
    'sequentialRates',
    'at',
    at,
    ascend,
    `${schedules.length - 1} steps that ascend, one for each schedule but the first`,
  );
  return (step) => {
    const passed = at.filter((start) => step >= start).length;
    return schedules[passed]!(step - (at[passed - 1] ?? 0));
  };
}

/**
 * `rate` times the factors of several schedules, each of which was made for the same `rate`. Source: PyTorch `ChainedScheduler`.
 *
 * @throws NnError unless the rate is above 0 and the schedules are a list of functions
 * @example
 * chainedRates(1, [heldRate(1, { factor: 0.5 }), exponentialDecay(1, 0.5)])(1); // 0.25
 */
export function chainedRates(rate: number, schedules: readonly Schedule[]): Schedule {
  checkNumber('chainedRates', 'rate', rate, 0);
  checkFits('chainedRates', 'rate', rate, rate > 0, 'above 0');
  checkList('chainedRates', 'schedules', schedules);
  for (const schedule of schedules) checkFunction('chainedRates', 'schedule', schedule);
  return (step) => schedules.reduce((product, schedule) => (product * schedule(step)) / rate, rate);
}

/** What has a learning rate: an optimizer, or a group of one. */
export interface HasRate {
  learningRate: number | Schedule;
  /** Optimizers inside it, as `ParameterGroups` has them: then their rates are changed. */
  readonly groups?: readonly HasRate[];
}

/** Options of `ReduceOnPlateau`. */
export interface PlateauOptions {
  /** What is better: less ('min', default) or more. */
  readonly mode?: 'min' | 'max';
  /** Rates are multiplied by this (default 0.1). */
  readonly factor?: number;
  /** How many values without improvement are waited for (default 10). */
  readonly patience?: number;
  /** Least improvement that counts (default 1e-4). */
  readonly threshold?: number;
  /** The least improvement is a share of the best value ('relative', default), or a number. */
  readonly thresholdMode?: 'relative' | 'absolute';
  /** How many values after a change do not count (default 0). */
  readonly cooldown?: number;
  /** Least learning rate (default 0). */
  readonly minLr?: number;
}

/** Where a `ReduceOnPlateau` stands, as JSON holds it. */
export interface PlateauState {
  /** The best value so far; null before the first. */
  readonly best: number | null;
  /** Values without improvement since then, or since the last change. */
  readonly bad: number;
  /** How many values more do not count. */
  readonly cooling: number;
  /** The rates that it has made, one for each group; null where a group has a schedule. */
  readonly rates: readonly (number | null)[];
}

/**
 * Makes learning rates smaller where a loss or a metric has stopped to improve. It is told numbers, so it reads nothing from the device itself. Source:
 * PyTorch `ReduceLROnPlateau`.
 *
 * @example
 * const optimizer = new SGD([parameter(tensor([1]))], { lr: 1 });
 * const plateau = new ReduceOnPlateau(optimizer, { patience: 1, factor: 0.5 });
 * for (const loss of [3, 2, 2, 2]) plateau.step(loss);
 * optimizer.learningRate; // 0.5
 */
export class ReduceOnPlateau {
  readonly #targets: readonly HasRate[];
  readonly #options: Required<PlateauOptions>;
  #best: number;
  #bad = 0;
  #cooling = 0;

  constructor(optimizer: HasRate, options: PlateauOptions = {}) {
    checkOptions('ReduceOnPlateau', options, 'mode factor patience threshold thresholdMode cooldown minLr');
    const { mode = 'min', factor = 0.1, patience = 10, threshold = 1e-4 } = options;
    const { thresholdMode = 'relative', cooldown = 0, minLr = 0 } = options;
    checkFits('ReduceOnPlateau', 'mode', mode, mode === 'min' || mode === 'max', "'min' or 'max'");
    checkFraction('ReduceOnPlateau', 'factor', factor);
    checkInteger('ReduceOnPlateau', 'patience', patience, 0);
    checkNumber('ReduceOnPlateau', 'threshold', threshold, 0);
    const known = thresholdMode === 'relative' || thresholdMode === 'absolute';
    checkFits('ReduceOnPlateau', 'thresholdMode', thresholdMode, known, "'relative' or 'absolute'");
    checkInteger('ReduceOnPlateau', 'cooldown', cooldown, 0);
    checkNumber('ReduceOnPlateau', 'minLr', minLr, 0);
    const isOptimizer = typeof optimizer === 'object' && optimizer !== null && 'learningRate' in optimizer;
    checkFits('ReduceOnPlateau', 'optimizer', optimizer, isOptimizer, 'an optimizer');
    this.#targets = optimizer.groups ?? [optimizer];
    this.#options = { mode, factor, patience, threshold, thresholdMode, cooldown, minLr };
    this.#best = mode === 'min' ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
  }

  /** The best value so far. */
  get best(): number {
    return this.#best;
  }

  /** Takes a value of the loss or metric; returns true if the rates were changed. */
  step(value: number): boolean {
    const { patience, cooldown } = this.#options;
    checkFits('ReduceOnPlateau', 'value', value, typeof value === 'number', 'a number: read it from the device first');
    if (this.#improves(value)) {
      this.#best = value;
      this.#bad = 0;
    } else this.#bad++;
    if (this.#cooling > 0) {
      this.#cooling--;
      this.#bad = 0;
    }
    if (this.#bad <= patience) return false;
    for (const target of this.#targets) this.#reduce(target);
    this.#cooling = cooldown;
    this.#bad = 0;
    return true;
  }

  /** Where it stands, to save beside a model's state: rates are no part of an optimizer's. */
  state(): PlateauState {
    const rates = this.#targets.map(({ learningRate }) => (typeof learningRate === 'number' ? learningRate : null));
    return { best: Number.isFinite(this.#best) ? this.#best : null, bad: this.#bad, cooling: this.#cooling, rates };
  }

  /**
   * Goes on from a saved state, with its rates.
   *
   * @throws NnError for numbers that are none, and for a state of another number of groups; nothing is changed then
   */
  loadState(state: PlateauState): void {
    const op = 'loadState';
    const isObject = typeof state === 'object' && state !== null;
    checkFits(op, 'state', state, isObject, 'an object with best, bad, cooling and rates');
    const { best, bad, cooling, rates } = state;
    if (best !== null) checkNumber(op, 'best', best);
    checkInteger(op, 'bad', bad, 0);
    checkInteger(op, 'cooling', cooling, 0);
    checkList(op, 'rates', rates);
    if (rates.length !== this.#targets.length)
      throw new NnError(
        op,
        `rates has ${rates.length} entries and the optimizer ${this.#targets.length} groups; the state is of another optimizer`,
        ['rates'],
      );
    for (const rate of rates) if (rate !== null) checkNumber(op, 'rates', rate, 0);
    const worst = this.#options.mode === 'min' ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
    [this.#best, this.#bad, this.#cooling] = [best ?? worst, bad, cooling];
    for (const [i, rate] of rates.entries()) if (rate !== null) this.#targets[i]!.learningRate = rate;
  }

  #improves(value: number): boolean {
    const { mode, threshold, thresholdMode } = this.#options;
    const best = this.#best;
    const sign = mode === 'min' ? -1 : 1;
    if (!Number.isFinite(best)) return sign * (value - best) > 0;
    const least = thresholdMode === 'relative' ? best * (1 + sign * threshold) : best + sign * threshold;
    return mode === 'min' ? value < least : value > least;
  }

  #reduce(target: HasRate): void {
    const { factor, minLr } = this.#options;
    const before = target.learningRate;
    if (typeof before === 'function') target.learningRate = (step) => Math.max(before(step) * factor, minLr);
    // Changes too small to matter are left out, as in PyTorch.
    else if (before - Math.max(before * factor, minLr) > 1e-8) target.learningRate = Math.max(before * factor, minLr);
  }
}
