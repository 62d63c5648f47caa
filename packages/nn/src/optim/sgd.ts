/** SGD: steps along the gradient, with momentum. And Lion: steps along the sign of a momentum. */
import { cast, less, sign, type Tensor } from '@polygrad/core/functions';
import { checkNumber, checkOptions, NnError } from '../errors.ts';
import { checkBetas, checkMomentum, momentumAt } from './betas.ts';
import { type MaximizeOptions, Optimizer, type OptimizerOptions } from './optimizer.ts';
import type { Scalars, StepScalars } from './step-numbers.ts';
import type { Schedule } from './schedule.ts';

/** Options of `SGD`. */
export interface SGDOptions extends OptimizerOptions, MaximizeOptions {
  /** Share of the last step's direction that is kept, or a schedule of it, such as `oneCycleMomentum` (default 0). */
  readonly momentum?: number | Schedule;
  /** Look ahead along the momentum (default false). */
  readonly nesterov?: boolean;
  /** Weight of the squared parameters in the loss (default 0). */
  readonly weightDecay?: number;
  /** Share of each gradient but the first that the momentum leaves out (default 0). */
  readonly dampening?: number;
}

type SGDNames = 'rate' | 'momentum' | 'decay' | 'fresh';

/**
 * Stochastic gradient descent. Source: PyTorch `SGD` (Sutskever et al., 2013, for the momentum).
 *
 * With gradient `g` plus `weightDecay p`: `b = momentum b + g`, then `p -= lr b`, or with Nesterov's momentum
 * `p -= lr (g + momentum b)`.
 *
 * @example
 * const p = parameter(tensor([1]));
 * const optimizer = new SGD([p], { lr: 0.1, momentum: 0.9 });
 * optimizer.step([tensor([5])]);
 * p; // [0.5]
 * optimizer.step([tensor([0])]);
 * p; // [0.05]
 */
export class SGD extends Optimizer<SGDNames> {
  readonly #options: Required<Omit<SGDOptions, 'lr' | 'maximize'>>;

  constructor(parameters: Iterable<Tensor>, options: SGDOptions = {}) {
    checkOptions('SGD', options, 'lr momentum nesterov? weightDecay dampening# maximize?');
    const { lr = 1e-3, momentum = 0, nesterov = false, weightDecay = 0, dampening = 0, maximize } = options;
    checkMomentum('SGD', 'momentum', momentum);
    checkNumber('SGD', 'weightDecay', weightDecay, 0);
    if (nesterov && (momentum === 0 || dampening !== 0))
      throw new NnError('SGD', 'nesterov needs a momentum without dampening; set momentum above 0, dampening to 0', [
        'nesterov',
      ]);
    super('SGD', parameters, lr, momentum === 0 ? [] : ['momentum']);
    this.#options = { momentum, nesterov, weightDecay, dampening };
    this.maximize = maximize;
  }

  protected scalars(step: number, rate: number): Record<SGDNames, number> {
    const { momentum, weightDecay, dampening } = this.#options;
    const kept = momentumAt('SGD', 'momentum', momentum, this.steps);
    return { rate, momentum: kept, decay: weightDecay, fresh: step === 1 ? 1 : 1 - dampening };
  }

  protected override scalarsAt(step: Tensor): StepScalars<SGDNames> {
    return { fresh: cast(less(1, step), step.dtype).mul(-this.#options.dampening).add(1) };
  }

  protected override get formula(): unknown {
    return SGD.prototype.update;
  }

  protected update(
    p: Tensor,
    gradient: Tensor,
    [buffer]: readonly Tensor[],
    s: Scalars<SGDNames>,
  ): { parameter: Tensor; state: Tensor[] } {
    const g = this.#options.weightDecay === 0 ? gradient : gradient.add(p.mul(s.decay));
    if (buffer === undefined) return { parameter: p.sub(g.mul(s.rate)), state: [] };
    const next = buffer.mul(s.momentum).add(this.#options.dampening === 0 ? g : g.mul(s.fresh));
    const direction = this.#options.nesterov ? g.add(next.mul(s.momentum)) : next;
    return { parameter: p.sub(direction.mul(s.rate)), state: [next] };
  }
}

/** Options of `Lion`. */
export interface LionOptions extends OptimizerOptions {
  /** Decay of the momentum in the step and in the state (default 0.9 and 0.99). */
  readonly betas?: readonly [number, number];
  /** Share of the parameters that each step takes away, times lr (default 0). */
  readonly weightDecay?: number;
}

type LionNames = 'rate' | 'beta1' | 'rest1' | 'beta2' | 'rest2' | 'keep';

/**
 * Lion. Source: Chen et al., "Symbolic discovery of optimization algorithms", 2023, algorithm 2:
 * `p -= lr (sign(beta1 m + (1 - beta1) g) + weightDecay p)`, then `m = beta2 m + (1 - beta2) g`.
 *
 * @example
 * const p = parameter(tensor([1]));
 * new Lion([p], { lr: 0.1, weightDecay: 0.5 }).step([tensor([5])]);
 * p; // [0.85]
 */
export class Lion extends Optimizer<LionNames> {
  readonly #betas: readonly [number, number];
  readonly #weightDecay: number;

  constructor(parameters: Iterable<Tensor>, options: LionOptions = {}) {
    checkOptions('Lion', options, 'lr betas weightDecay');
    const { lr = 1e-4, betas = [0.9, 0.99], weightDecay = 0 } = options;
    checkBetas('Lion', betas);
    checkNumber('Lion', 'weightDecay', weightDecay, 0);
    super('Lion', parameters, lr, ['momentum']);
    this.#betas = [...betas];
    this.#weightDecay = weightDecay;
  }

  protected scalars(_step: number, rate: number): Record<LionNames, number> {
    const [beta1, beta2] = this.#betas;
    return { rate, beta1, rest1: 1 - beta1, beta2, rest2: 1 - beta2, keep: 1 - rate * this.#weightDecay };
  }

  protected override get formula(): unknown {
    return Lion.prototype.update;
  }

  protected update(
    p: Tensor,
    g: Tensor,
    [m]: readonly Tensor[],
    s: Scalars<LionNames>,
  ): { parameter: Tensor; state: Tensor[] } {
    const direction = sign(m!.mul(s.beta1).add(g.mul(s.rest1)));
    const kept = this.#weightDecay === 0 ? p : p.mul(s.keep);
    return { parameter: kept.sub(direction.mul(s.rate)), state: [m!.mul(s.beta2).add(g.mul(s.rest2))] };
  }
}
