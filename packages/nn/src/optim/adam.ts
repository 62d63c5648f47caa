/** Adam and AdamW: steps scaled by running means of the gradient and of its square. */
import { div, maximum, sqrt, square, type Tensor } from '@polygrad/core/functions';
import { checkOptions, checkNumber } from '../errors.ts';
import { checkBetas, momentumAt } from './betas.ts';
import { type MaximizeOptions, Optimizer, type OptimizerOptions } from './optimizer.ts';
import type { Correction, Scalars, StepScalars } from './step-numbers.ts';
import type { Schedule } from './schedule.ts';

/** Options of `Adam` and `AdamW`. */
export interface AdamOptions extends OptimizerOptions, MaximizeOptions {
  /** Decay of the two running means; the first may be a schedule, such as `oneCycleMomentum` (default 0.9 and 0.999). */
  readonly betas?: readonly [number | Schedule, number];
  /** Added to the denominator (default 1e-8). */
  readonly eps?: number;
  /** Weight decay (default 0 for Adam, 0.01 for AdamW). */
  readonly weightDecay?: number;
  /** Divide steps by the largest mean of squares so far (default false). Source: Reddi et al., "On the convergence of Adam and beyond", 2018. */
  readonly amsgrad?: boolean;
}

type AdamNames = 'beta1' | 'rest1' | 'beta2' | 'rest2' | 'rate' | 'rootCorrection' | 'eps' | 'decay' | 'keep';

/** Where weight decay acts: on the gradient (Adam) or on the parameter itself (AdamW). */
type Decay = 'gradient' | 'parameter';

/** What Adam, AdamW and AMSGrad have in common. */
export abstract class AdamBase extends Optimizer<AdamNames> {
  readonly #name: string;
  readonly #betas: readonly [number | Schedule, number];
  readonly #eps: number;
  readonly #weightDecay: number;
  readonly #decay: Decay;

  constructor(name: string, parameters: Iterable<Tensor>, options: AdamOptions, decay: Decay, weightDecay: number) {
    checkOptions(name, options, 'lr betas eps weightDecay maximize? amsgrad?');
    const { lr = 1e-3, betas = [0.9, 0.999], eps = 1e-8, amsgrad = false } = options;
    checkBetas(name, betas, true);
    checkNumber(name, 'eps', eps, 0);
    checkNumber(name, 'weightDecay', weightDecay, 0);
    super(name, parameters, lr, ['mean', 'square', ...(amsgrad ? ['largest'] : [])]);
    this.maximize = options.maximize;
    this.#name = name;
    this.#betas = [...betas];
    this.#eps = eps;
    this.#weightDecay = weightDecay;
    this.#decay = decay;
  }

  #beta1(): number {
    return momentumAt(this.#name, 'betas', this.#betas[0], this.steps);
  }

  protected scalars(step: number, rate: number): Record<AdamNames, number> {
    const [beta1, beta2] = [this.#beta1(), this.#betas[1]];
    return {
      beta1,
      rest1: 1 - beta1,
      beta2,
      rest2: 1 - beta2,
      rate: rate / (1 - beta1 ** step),
      rootCorrection: 1 / Math.sqrt(1 - beta2 ** step),
      eps: this.#eps,
      decay: this.#weightDecay,
      keep: 1 - rate * this.#weightDecay,
    };
  }

  protected override scalarsAt(_step: Tensor, rate: Tensor, correction: Correction): StepScalars<AdamNames> {
    const [beta1, beta2] = this.#betas;
    const first = correction(typeof beta1 === 'number' ? beta1 : () => this.#beta1());
    return { rate: rate.div(first), rootCorrection: div(1, sqrt(correction(beta2))) };
  }

  protected override get formula(): unknown {
    return AdamBase.prototype.update;
  }

  protected update(
    p: Tensor,
    gradient: Tensor,
    [mean, meanSquare, largest]: readonly Tensor[],
    s: Scalars<AdamNames>,
  ): { parameter: Tensor; state: Tensor[] } {
    const decays = this.#weightDecay !== 0;
    const g = decays && this.#decay === 'gradient' ? gradient.add(p.mul(s.decay)) : gradient;
    const m = mean!.mul(s.beta1).add(g.mul(s.rest1));
    const v = meanSquare!.mul(s.beta2).add(square(g).mul(s.rest2));
    // Only with `amsgrad` there is a largest one.
    const top = largest === undefined ? v : maximum(largest, v);
    const step = m.mul(s.rate).div(sqrt(top).mul(s.rootCorrection).add(s.eps));
    const kept = decays && this.#decay === 'parameter' ? p.mul(s.keep) : p;
    return { parameter: kept.sub(step), state: largest === undefined ? [m, v] : [m, v, top] };
  }
}

/**
 * Adam. Source: Kingma and Ba, "Adam: a method for stochastic optimization", 2015; PyTorch `Adam`.
 *
 * `m = beta1 m + (1 - beta1) g`, `v = beta2 v + (1 - beta2) g^2`, then
 * `p -= lr m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps)`. Weight decay adds `weightDecay p` to the gradient.
 *
 * @example
 * const p = parameter(tensor([1]));
 * new Adam([p], { lr: 0.1 }).step([tensor([5])]);
 * p; // [0.9]
 */
export class Adam extends AdamBase {
  constructor(parameters: Iterable<Tensor>, options: AdamOptions = {}) {
    super('Adam', parameters, options, 'gradient', options?.weightDecay ?? 0);
  }
}

/**
 * Adam with decoupled weight decay: every step first subtracts `lr weightDecay p` from the parameter. Source:
 * Loshchilov and Hutter, "Decoupled weight decay regularization", 2019; PyTorch `AdamW`.
 *
 * @example
 * const p = parameter(tensor([1]));
 * new AdamW([p], { lr: 0.1, weightDecay: 0.1 }).step([tensor([5])]);
 * p; // [0.89]
 */
export class AdamW extends AdamBase {
  constructor(parameters: Iterable<Tensor>, options: AdamOptions = {}) {
    super('AdamW', parameters, options, 'parameter', options?.weightDecay ?? 0.01);
  }
}
