/** RMSProp, Adagrad, Adadelta and Rprop: steps scaled by past gradients, by their size or by their signs. */
import { clip, sign, sqrt, square, type Tensor, where, equal, greater, less } from '@polygrad/core/functions';
import { checkFits, checkOptions, checkFraction, checkNumber } from '../errors.ts';
import { filled } from '../init/filled.ts';
import { type MaximizeOptions, Optimizer, type OptimizerOptions } from './optimizer.ts';
import type { Scalars, StepScalars } from './step-numbers.ts';
import { checkMomentum, momentumAt } from './betas.ts';
import type { Schedule } from './schedule.ts';

type Next = { parameter: Tensor; state: Tensor[] };

/** Options of `RMSProp`. */
export interface RMSPropOptions extends OptimizerOptions, MaximizeOptions {
  /** Decay of the running mean of squares (default 0.99). */
  readonly alpha?: number;
  readonly eps?: number;
  /** Share of the last step that is kept, or a schedule of it (default 0). */
  readonly momentum?: number | Schedule;
  /** Subtract the square of the mean, so that the variance is what scales (default false). */
  readonly centered?: boolean;
  /** Weight of the squared parameters in the loss (default 0). */
  readonly weightDecay?: number;
}

type RMSPropNames = 'rate' | 'alpha' | 'rest' | 'eps' | 'momentum' | 'decay';

/**
 * RMSProp. Source: Tieleman and Hinton, lecture 6.5, 2012; PyTorch `RMSprop`:
 * `v = alpha v + (1 - alpha) g^2`, then `p -= lr g / (sqrt(v) + eps)`.
 *
 * @example
 * const p = parameter(tensor([1]));
 * new RMSProp([p], { lr: 0.1, alpha: 0.75 }).step([tensor([5])]);
 * p; // [0.8]
 */
export class RMSProp extends Optimizer<RMSPropNames> {
  readonly #options: Required<Omit<RMSPropOptions, 'lr' | 'maximize'>>;

  constructor(parameters: Iterable<Tensor>, options: RMSPropOptions = {}) {
    checkOptions('RMSProp', options, 'lr alpha eps momentum centered? weightDecay maximize?');
    const { lr = 1e-2, alpha = 0.99, eps = 1e-8, momentum = 0, centered = false, weightDecay = 0 } = options;
    checkFraction('RMSProp', 'alpha', alpha);
    checkMomentum('RMSProp', 'momentum', momentum);
    checkNumber('RMSProp', 'eps', eps, 0);
    checkNumber('RMSProp', 'weightDecay', weightDecay, 0);
    const slots = ['square', ...(centered ? ['mean'] : []), ...(momentum === 0 ? [] : ['momentum'])];
    super('RMSProp', parameters, lr, slots);
    this.#options = { alpha, eps, momentum, centered, weightDecay };
    this.maximize = options.maximize;
  }

  protected scalars(_step: number, rate: number): Record<RMSPropNames, number> {
    const { alpha, eps, momentum, weightDecay } = this.#options;
    const kept = momentumAt('RMSProp', 'momentum', momentum, this.steps);
    return { rate, alpha, rest: 1 - alpha, eps, momentum: kept, decay: weightDecay };
  }

  protected override get formula(): unknown {
    return RMSProp.prototype.update;
  }

  protected update(p: Tensor, gradient: Tensor, state: readonly Tensor[], s: Scalars<RMSPropNames>): Next {
    const { centered, momentum, weightDecay } = this.#options;
    const g = weightDecay === 0 ? gradient : gradient.add(p.mul(s.decay));
    const v = state[0]!.mul(s.alpha).add(square(g).mul(s.rest));
    const next = [v];
    let spread = v;
    if (centered) {
      const mean = state[1]!.mul(s.alpha).add(g.mul(s.rest));
      next.push(mean);
      spread = v.sub(square(mean));
    }
    let step = g.div(sqrt(spread).add(s.eps));
    if (momentum !== 0) {
      step = state[centered ? 2 : 1]!.mul(s.momentum).add(step);
      next.push(step);
    }
    return { parameter: p.sub(step.mul(s.rate)), state: next };
  }
}

/** Options of `Adagrad`. */
export interface AdagradOptions extends OptimizerOptions, MaximizeOptions {
  /** Step t has the rate `lr / (1 + (t - 1) lrDecay)` (default 0). */
  readonly lrDecay?: number;
  /** What the sum of squares begins with (default 0). */
  readonly initialAccumulatorValue?: number;
  readonly eps?: number;
  /** Weight of the squared parameters in the loss (default 0). */
  readonly weightDecay?: number;
}

type AdagradNames = 'rate' | 'eps' | 'decay';

/**
 * Adagrad. Source: Duchi, Hazan and Singer, "Adaptive subgradient methods", 2011; PyTorch `Adagrad`:
 * `v += g^2`, then `p -= lr g / (sqrt(v) + eps)`.
 *
 * @example
 * const p = parameter(tensor([1]));
 * new Adagrad([p], { lr: 0.1 }).step([tensor([5])]);
 * p; // [0.9]
 */
export class Adagrad extends Optimizer<AdagradNames> {
  readonly #options: Required<Omit<AdagradOptions, 'lr' | 'maximize' | 'initialAccumulatorValue'>>;

  constructor(parameters: Iterable<Tensor>, options: AdagradOptions = {}) {
    checkOptions('Adagrad', options, 'lr lrDecay initialAccumulatorValue eps weightDecay maximize?');
    const { lr = 1e-2, lrDecay = 0, initialAccumulatorValue = 0, eps = 1e-10, weightDecay = 0 } = options;
    checkNumber('Adagrad', 'lrDecay', lrDecay, 0);
    checkNumber('Adagrad', 'initialAccumulatorValue', initialAccumulatorValue, 0);
    checkNumber('Adagrad', 'eps', eps, 0);
    checkNumber('Adagrad', 'weightDecay', weightDecay, 0);
    super('Adagrad', parameters, lr, ['sum'], (_, { shape, dtype }) => filled(shape, initialAccumulatorValue, dtype));
    this.#options = { lrDecay, eps, weightDecay };
    this.maximize = options.maximize;
  }

  protected scalars(step: number, rate: number): Record<AdagradNames, number> {
    const { lrDecay, eps, weightDecay } = this.#options;
    return { rate: rate / (1 + (step - 1) * lrDecay), eps, decay: weightDecay };
  }

  protected override scalarsAt(step: Tensor, rate: Tensor): StepScalars<AdagradNames> {
    return { rate: rate.div(step.sub(1).mul(this.#options.lrDecay).add(1)) };
  }

  protected override get formula(): unknown {
    return Adagrad.prototype.update;
  }

  protected update(p: Tensor, gradient: Tensor, [sum]: readonly Tensor[], s: Scalars<AdagradNames>): Next {
    const g = this.#options.weightDecay === 0 ? gradient : gradient.add(p.mul(s.decay));
    const v = sum!.add(square(g));
    return { parameter: p.sub(g.mul(s.rate).div(sqrt(v).add(s.eps))), state: [v] };
  }
}

/** Options of `Adadelta`. */
export interface AdadeltaOptions extends OptimizerOptions, MaximizeOptions {
  /** Decay of both running means (default 0.9). */
  readonly rho?: number;
  readonly eps?: number;
  /** Weight of the squared parameters in the loss (default 0). */
  readonly weightDecay?: number;
}

type AdadeltaNames = 'rate' | 'rho' | 'rest' | 'eps' | 'decay';

/**
 * Adadelta. Source: Zeiler, "ADADELTA: an adaptive learning rate method", 2012; PyTorch `Adadelta` (lr 1 by default):
 * `v = rho v + (1 - rho) g^2`, `d = sqrt(u + eps) / sqrt(v + eps) g`, `u = rho u + (1 - rho) d^2`, then `p -= lr d`.
 *
 * @example
 * const p = parameter(tensor([1]));
 * new Adadelta([p], { eps: 0.1 }).step([tensor([0.3])]);
 * p; // about [0.7127]
 */
export class Adadelta extends Optimizer<AdadeltaNames> {
  readonly #options: Required<Omit<AdadeltaOptions, 'lr' | 'maximize'>>;

  constructor(parameters: Iterable<Tensor>, options: AdadeltaOptions = {}) {
    checkOptions('Adadelta', options, 'lr rho eps weightDecay maximize?');
    const { lr = 1, rho = 0.9, eps = 1e-6, weightDecay = 0 } = options;
    checkFraction('Adadelta', 'rho', rho);
    checkNumber('Adadelta', 'eps', eps, 0);
    checkNumber('Adadelta', 'weightDecay', weightDecay, 0);
    super('Adadelta', parameters, lr, ['square', 'delta']);
    this.#options = { rho, eps, weightDecay };
    this.maximize = options.maximize;
  }

  protected scalars(_step: number, rate: number): Record<AdadeltaNames, number> {
    const { rho, eps, weightDecay } = this.#options;
    return { rate, rho, rest: 1 - rho, eps, decay: weightDecay };
  }

  protected override get formula(): unknown {
    return Adadelta.prototype.update;
  }

  protected update(p: Tensor, gradient: Tensor, state: readonly Tensor[], s: Scalars<AdadeltaNames>): Next {
    const [meanSquare, meanDelta] = state as [Tensor, Tensor];
    const g = this.#options.weightDecay === 0 ? gradient : gradient.add(p.mul(s.decay));
    const v = meanSquare.mul(s.rho).add(square(g).mul(s.rest));
    const delta = sqrt(meanDelta.add(s.eps))
      .div(sqrt(v.add(s.eps)))
      .mul(g);
    const u = meanDelta.mul(s.rho).add(square(delta).mul(s.rest));
    return { parameter: p.sub(delta.mul(s.rate)), state: [v, u] };
  }
}

/** Options of `Rprop`. */
export interface RpropOptions extends OptimizerOptions, MaximizeOptions {
  /** Factors of a step's size: where the gradient's sign changes, and where it stays (default 0.5 and 1.2). */
  readonly etas?: readonly [number, number];
  /** Least and largest size of a step (default 1e-6 and 50). */
  readonly stepSizes?: readonly [number, number];
}

type RpropNames = 'shrink' | 'grow';

/**
 * Rprop: each number has a separate step size, which grows while the gradient keeps its sign. For whole batches; `lr` is the size of the first step only.
 * Source: Riedmiller and Braun (1993), without backtracking; PyTorch `Rprop`.
 *
 * @example
 * const p = parameter(tensor([1]));
 * new Rprop([p], { lr: 0.1 }).step([tensor([5])]);
 * p; // [0.9]
 */
export class Rprop extends Optimizer<RpropNames> {
  readonly #etas: readonly [number, number];
  readonly #stepSizes: readonly [number, number];

  constructor(parameters: Iterable<Tensor>, options: RpropOptions = {}) {
    checkOptions('Rprop', options, 'lr etas stepSizes maximize?');
    const { lr = 1e-2, etas = [0.5, 1.2], stepSizes = [1e-6, 50] } = options;
    const isPair = (pair: unknown): boolean =>
      Array.isArray(pair) && pair.length === 2 && pair.every((n) => Number.isFinite(n));
    checkFits('Rprop', 'etas', etas, isPair(etas) && 0 < etas[0] && etas[0] < 1 && etas[1] > 1, 'a pair around 1');
    checkFits('Rprop', 'stepSizes', stepSizes, isPair(stepSizes) && stepSizes[0] <= stepSizes[1], 'least and largest');
    const start = typeof lr === 'function' ? lr(0) : lr;
    checkNumber('Rprop', 'lr', start, 0);
    super('Rprop', parameters, lr, ['gradient', 'size'], (slot, { shape, dtype }) =>
      filled(shape, slot === 'size' ? start : 0, dtype),
    );
    this.#etas = [...etas];
    this.#stepSizes = [...stepSizes];
    this.maximize = options.maximize;
  }

  protected scalars(): Record<RpropNames, number> {
    const [shrink, grow] = this.#etas;
    return { shrink, grow };
  }

  protected override get formula(): unknown {
    return Rprop.prototype.update;
  }

  protected update(p: Tensor, g: Tensor, [before, size]: readonly Tensor[], s: Scalars<RpropNames>): Next {
    const agreement = g.mul(before!);
    const turned = less(agreement, 0);
    const factor = where(greater(agreement, 0), s.grow, where(turned, s.shrink, 1));
    const [least, most] = this.#stepSizes;
    const next = where(equal(agreement, 0), size!, clip(size!.mul(factor), least, most));
    // Where the sign changed there is no step, and the next one is as after none.
    const kept = where(turned, 0, g);
    return { parameter: p.sub(sign(kept).mul(next)), state: [kept, next] };
  }
}
