/** The learning rates that the steps of a training had, to draw or to check a schedule by. */
import { checkFits, checkInteger, checkOptions } from '../errors.ts';
import type { Callback } from './callback.ts';

/** Rates of one step. */
export interface RatePoint {
  /** Steps of the whole training, counted from 1. */
  readonly step: number;
  readonly epoch: number;
  /** One rate for each group of parameters; one in all where there are no groups. */
  readonly rates: readonly number[];
}

/** Options of `rateMonitor`. */
export interface RateMonitorOptions {
  /** Steps between two points (default 1). */
  readonly every?: number;
}

/** A callback of `fit` that remembers rates. */
export interface RateMonitor extends Callback {
  readonly points: readonly RatePoint[];
}

/** What has rates: an optimizer, or one of groups. */
interface HasRates {
  readonly currentRate: number;
  readonly groups?: readonly { readonly currentRate: number }[];
}

/**
 * Remembers the learning rate of every step, or of every so many. A training that `fit` begins again starts the list anew.
 *
 * @param optimizer whose rates; those of each group for `ParameterGroups`
 * @param options every (1)
 * @throws NnError for options that do not fit
 * @example
 * const data = [{ x: tensor([[-2], [2]]), y: tensor([0, 1], { dtype: 'int32' }) }];
 * const model = new Linear(1, 2);
 * const optimizer = new SGD(model.parameters(), { lr: stepDecay(0.5, { every: 2, factor: 0.5 }) });
 * const monitor = rateMonitor(optimizer);
 * await fit(model, data, { optimizer, loss: crossEntropy, epochs: 4, callbacks: [monitor] });
 * monitor.points.map(({ rates }) => rates[0]); // [0.5, 0.5, 0.25, 0.25]
 */
export function rateMonitor(optimizer: HasRates, options: RateMonitorOptions = {}): RateMonitor {
  const given: unknown = optimizer;
  const hasRate = typeof given === 'object' && given !== null && typeof optimizer.currentRate === 'number';
  checkFits('rateMonitor', 'optimizer', optimizer, hasRate, 'an Optimizer');
  checkOptions('rateMonitor', options, 'every');
  const { every = 1 } = options;
  checkInteger('rateMonitor', 'every', every, 1);
  const ratesNow = (): number[] => (optimizer.groups ?? [optimizer]).map(({ currentRate }) => currentRate);
  const points: RatePoint[] = [];
  let steps = 0;
  /** Of the step to come: after it the optimizer tells the next one's. */
  let rates: readonly number[] = [];
  return {
    points,
    onTrainBegin() {
      points.length = 0;
      steps = 0;
    },
    // Others may have changed the rate between epochs.
    onEpochBegin() {
      rates = ratesNow();
    },
    onStep({ epoch }) {
      steps++;
      if (steps % every === 0) points.push({ step: steps, epoch, rates });
      rates = ratesNow();
    },
  };
}
