/** RMSProp, Adagrad and Adadelta: steps scaled by how large past gradients were. */
import { sqrt, square, type Tensor } from '@polygrad/core/functions';
import { checkOptions, checkFraction, checkNumber } from '../errors.ts';
import { Optimizer, type OptimizerOptions, type Scalars } from './optimizer.ts';

type Next = { parameter: Tensor; state: Tensor[] };

export interface RMSPropOptions extends OptimizerOptions {
  /** Decay of the running mean of squares (default 0.99). */
  readonly alpha?: number;
  readonly eps?: number;
  readonly momentum?: number;
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
  readonly #options: Required<Omit<RMSPropOptions, 'lr'>>;

  constructor(parameters: Iterable<Tensor>, options: RMSPropOptions = {}) {
    checkOptions('RMSProp', options, 'lr alpha eps momentum centered? weightDecay');
    const { lr = 1e-2, alpha = 0.99, eps = 1e-8, momentum = 0, centered = false, weightDecay = 0 } = options;
    checkFraction('RMSProp', 'alpha', alpha);
    checkFraction('RMSProp', 'momentum', momentum);
    checkNumber('RMSProp', 'eps', eps, 0);
    checkNumber('RMSProp', 'weightDecay', weightDecay, 0);
    const slots = ['square', ...(centered ? ['mean'] : []), ...(momentum > 0 ? ['momentum'] : [])];
    super('RMSProp', parameters, lr, slots);
    this.#options = { alpha, eps, momentum, centered, weightDecay };
  }

  protected scalars(_step: number, rate: number): Record<RMSPropNames, number> {
    const { alpha, eps, momentum, weightDecay } = this.#options;
    return { rate, alpha, rest: 1 - alpha, eps, momentum, decay: weightDecay };
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
    if (momentum > 0) {
      step = state[centered ? 2 : 1]!.mul(s.momentum).add(step);
      next.push(step);
    }
    return { parameter: p.sub(step.mul(s.rate)), state: next };
  }
}

export interface AdagradOptions extends OptimizerOptions {
  /** Step t has the rate `lr / (1 + (t - 1) rateDecay)` (default 0). */
  readonly rateDecay?: number;
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
  readonly #options: Required<Omit<AdagradOptions, 'lr'>>;

  constructor(parameters: Iterable<Tensor>, options: AdagradOptions = {}) {
    checkOptions('Adagrad', options, 'lr rateDecay eps weightDecay');
    const { lr = 1e-2, rateDecay = 0, eps = 1e-10, weightDecay = 0 } = options;
    checkNumber('Adagrad', 'rateDecay', rateDecay, 0);
    checkNumber('Adagrad', 'eps', eps, 0);
    checkNumber('Adagrad', 'weightDecay', weightDecay, 0);
    super('Adagrad', parameters, lr, ['sum']);
    this.#options = { rateDecay, eps, weightDecay };
  }

  protected scalars(step: number, rate: number): Record<AdagradNames, number> {
    const { rateDecay, eps, weightDecay } = this.#options;
    return { rate: rate / (1 + (step - 1) * rateDecay), eps, decay: weightDecay };
  }

  protected update(p: Tensor, gradient: Tensor, [sum]: readonly Tensor[], s: Scalars<AdagradNames>): Next {
    const g = this.#options.weightDecay === 0 ? gradient : gradient.add(p.mul(s.decay));
    const v = sum!.add(square(g));
    return { parameter: p.sub(g.mul(s.rate).div(sqrt(v).add(s.eps))), state: [v] };
  }
}

export interface AdadeltaOptions extends OptimizerOptions {
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
  readonly #options: Required<Omit<AdadeltaOptions, 'lr'>>;

  constructor(parameters: Iterable<Tensor>, options: AdadeltaOptions = {}) {
    checkOptions('Adadelta', options, 'lr rho eps weightDecay');
    const { lr = 1, rho = 0.9, eps = 1e-6, weightDecay = 0 } = options;
    checkFraction('Adadelta', 'rho', rho);
    checkNumber('Adadelta', 'eps', eps, 0);
    checkNumber('Adadelta', 'weightDecay', weightDecay, 0);
    super('Adadelta', parameters, lr, ['square', 'delta']);
    this.#options = { rho, eps, weightDecay };
  }

  protected scalars(_step: number, rate: number): Record<AdadeltaNames, number> {
    const { rho, eps, weightDecay } = this.#options;
    return { rate, rho, rest: 1 - rho, eps, decay: weightDecay };
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
