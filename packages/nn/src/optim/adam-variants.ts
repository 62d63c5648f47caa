/** AMSGrad, Adamax, NAdam and RAdam: Adam with other norms, with Nesterov's momentum, and with a start that waits for its variance. */
import {
  abs,
  cast,
  div,
  exp,
  less,
  maximum,
  minimum,
  scope,
  sqrt,
  square,
  sub,
  take,
  type Tensor,
  tensor,
  where,
} from '@polygrad/core/functions';
import { checkNumber, checkOptions } from '../errors.ts';
import { AdamBase } from './adam.ts';
import { checkBetas } from './betas.ts';
import { type MaximizeOptions, Optimizer, type OptimizerOptions } from './optimizer.ts';
import type { Correction, Scalars, StepScalars } from './step-numbers.ts';

type Next = { parameter: Tensor; state: Tensor[] };

interface Settings {
  readonly betas: readonly [number, number];
  readonly eps: number;
  readonly weightDecay: number;
}

/** Options that all three have. */
interface VariantOptions extends OptimizerOptions {
  /** Decay of the two running means (default 0.9 and 0.999). */
  readonly betas?: readonly [number, number];
  /** Added to the denominator (default 1e-8). */
  readonly eps?: number;
  /** Weight of the squared parameters in the loss (default 0). */
  readonly weightDecay?: number;
}

function settingsOf(op: string, { betas = [0.9, 0.999], eps = 1e-8, weightDecay = 0 }: VariantOptions): Settings {
  checkBetas(op, betas);
  checkNumber(op, 'eps', eps, 0);
  checkNumber(op, 'weightDecay', weightDecay, 0);
  return { betas: [...betas], eps, weightDecay };
}

/** `g + decay p`, where there is a decay. */
const decayed = (g: Tensor, p: Tensor, { weightDecay }: Settings, decay: Tensor): Tensor =>
  weightDecay === 0 ? g : g.add(p.mul(decay));

/** Options of `AMSGrad`. */
export interface AMSGradOptions extends VariantOptions, MaximizeOptions {
  /** Decoupled weight decay, as in AdamW (default false: added to the gradient, as in Adam). */
  readonly decoupled?: boolean;
}

/**
 * Adam whose steps are divided by the largest mean of squares so far: `Adam`, and with `decoupled` `AdamW`, with `amsgrad: true`. Source: Reddi et al., "On
 * the convergence of Adam and beyond", 2018.
 *
 * @example
 * const p = parameter(tensor([1]));
 * new AMSGrad([p], { lr: 0.1 }).step([tensor([5])]);
 * p; // [0.9]
 */
export class AMSGrad extends AdamBase {
  constructor(parameters: Iterable<Tensor>, options: AMSGradOptions = {}) {
    checkOptions('AMSGrad', options, 'lr betas eps weightDecay maximize? decoupled?');
    const { decoupled = false, ...others } = options;
    const decay = decoupled ? 'parameter' : 'gradient';
    super('AMSGrad', parameters, { ...others, amsgrad: true }, decay, options.weightDecay ?? 0);
  }
}

/** Options of `Adamax`. */
export interface AdamaxOptions extends VariantOptions, MaximizeOptions {}

type AdamaxNames = 'beta1' | 'rest1' | 'beta2' | 'rate' | 'eps' | 'decay';

/**
 * Adamax: Adam with the largest gradient, which decays, in the place of the root of the mean of squares. Source: Kingma and Ba (2015), algorithm 2;
 * PyTorch `Adamax` (lr 2e-3 by default).
 *
 * @example
 * const p = parameter(tensor([1]));
 * new Adamax([p], { lr: 0.1 }).step([tensor([5])]);
 * p; // [0.9]
 */
export class Adamax extends Optimizer<AdamaxNames> {
  readonly #settings: Settings;

  constructor(parameters: Iterable<Tensor>, options: AdamaxOptions = {}) {
    checkOptions('Adamax', options, 'lr betas eps weightDecay maximize?');
    const settings = settingsOf('Adamax', options);
    super('Adamax', parameters, options.lr ?? 2e-3, ['mean', 'largest']);
    this.#settings = settings;
    this.maximize = options.maximize;
  }

  protected scalars(step: number, rate: number): Record<AdamaxNames, number> {
    const { betas, eps, weightDecay } = this.#settings;
    const [beta1, beta2] = betas;
    return { beta1, rest1: 1 - beta1, beta2, rate: rate / (1 - beta1 ** step), eps, decay: weightDecay };
  }

  protected override scalarsAt(_step: Tensor, rate: Tensor, correction: Correction): StepScalars<AdamaxNames> {
    return { rate: rate.div(correction(this.#settings.betas[0])) };
  }

  protected override get formula(): unknown {
    return Adamax.prototype.update;
  }

  protected update(p: Tensor, gradient: Tensor, [mean, largest]: readonly Tensor[], s: Scalars<AdamaxNames>): Next {
    const g = decayed(gradient, p, this.#settings, s.decay);
    const m = mean!.mul(s.beta1).add(g.mul(s.rest1));
    const top = maximum(largest!.mul(s.beta2), abs(g).add(s.eps));
    return { parameter: p.sub(m.mul(s.rate).div(top)), state: [m, top] };
  }
}

/** Options of `NAdam`. */
export interface NAdamOptions extends VariantOptions {
  /** How fast the momentum grows to beta1 (default 4e-3). */
  readonly momentumDecay?: number;
}

type NAdamNames = 'beta1' | 'rest1' | 'beta2' | 'rest2' | 'correction' | 'eps' | 'gradientRate' | 'meanRate' | 'decay';

/**
 * NAdam: Adam with Nesterov's momentum. Source: Dozat, "Incorporating Nesterov momentum into Adam", 2016; PyTorch `NAdam` (lr 2e-3
 * by default) as it is since 2.0: 1.13 multiplies by one momentum twice.
 *
 * @example
 * const p = parameter(tensor([1]));
 * new NAdam([p], { lr: 0.1 }).step([tensor([5])]);
 * p.shape; // [1]
 */
export class NAdam extends Optimizer<NAdamNames> {
  readonly #settings: Settings;
  readonly #momentumDecay: number;
  /** The product of the momenta of the first steps, by their number: [1, m1, m1 m2, ...], until it is too small for a number. */
  readonly #products: number[] = [1];

  constructor(parameters: Iterable<Tensor>, options: NAdamOptions = {}) {
    checkOptions('NAdam', options, 'lr betas eps weightDecay momentumDecay');
    const settings = settingsOf('NAdam', options);
    const { momentumDecay = 4e-3 } = options;
    checkNumber('NAdam', 'momentumDecay', momentumDecay, 0);
    super('NAdam', parameters, options.lr ?? 2e-3, ['mean', 'square']);
    this.#settings = settings;
    this.#momentumDecay = momentumDecay;
  }

  #momentum(step: number): number {
    return this.#settings.betas[0] * (1 - 0.5 * 0.96 ** (step * this.#momentumDecay));
  }

  protected scalars(step: number, rate: number): Record<NAdamNames, number> {
    const { betas, eps, weightDecay } = this.#settings;
    const [beta1, beta2] = betas;
    const products = this.#products;
    while (products.length <= step && products.at(-1)! > 0)
      products.push(products.at(-1)! * this.#momentum(products.length));
    const [momentum, next, product] = [this.#momentum(step), this.#momentum(step + 1), products[step] ?? 0];
    return {
      beta1,
      rest1: 1 - beta1,
      beta2,
      rest2: 1 - beta2,
      correction: 1 / (1 - beta2 ** step),
      eps,
      gradientRate: (rate * (1 - momentum)) / (1 - product),
      meanRate: (rate * next) / (1 - product * next),
      decay: weightDecay,
    };
  }

  protected override scalarsAt(step: Tensor, rate: Tensor, correction: Correction): StepScalars<NAdamNames> {
    const [beta1, beta2] = this.#settings.betas;
    const momentum = (at: Tensor): Tensor =>
      exp(at.mul(this.#momentumDecay * Math.log(0.96)))
        .mul(-0.5 * beta1)
        .add(beta1);
    // Products of momenta have no formula: they come from a table, as long as they are numbers.
    while (this.#products.length < 2 ** 17 && Math.fround(this.#products.at(-1)!) > 0)
      this.#products.push(this.#products.at(-1)! * this.#momentum(this.#products.length));
    const list = scope(() => tensor(Float64Array.from(this.#products), { dtype: step.dtype }));
    const product = take(list, cast(minimum(step, this.#products.length - 1), 'int32'));
    const [now, next] = [momentum(step), momentum(step.add(1))];
    return {
      correction: div(1, correction(beta2)),
      gradientRate: rate.mul(sub(1, now)).div(sub(1, product)),
      meanRate: rate.mul(next).div(sub(1, product.mul(next))),
    };
  }

  protected override get formula(): unknown {
    return NAdam.prototype.update;
  }

  protected update(p: Tensor, gradient: Tensor, [mean, meanSquare]: readonly Tensor[], s: Scalars<NAdamNames>): Next {
    const g = decayed(gradient, p, this.#settings, s.decay);
    const m = mean!.mul(s.beta1).add(g.mul(s.rest1));
    const v = meanSquare!.mul(s.beta2).add(square(g).mul(s.rest2));
    const spread = sqrt(v.mul(s.correction)).add(s.eps);
    const step = g.mul(s.gradientRate).add(m.mul(s.meanRate)).div(spread);
    return { parameter: p.sub(step), state: [m, v] };
  }
}

/** Options of `RAdam`. */
export interface RAdamOptions extends VariantOptions {}

type RAdamNames = 'beta1' | 'rest1' | 'beta2' | 'rest2' | 'eps' | 'plain' | 'adaptive' | 'decay';

/**
 * RAdam: the first steps, whose mean of squares is of few gradients, are those of a plain momentum. Source: Liu et al., "On the variance of the
 * adaptive learning rate and beyond", 2020; PyTorch `RAdam`.
 *
 * @example
 * const p = parameter(tensor([1]));
 * new RAdam([p], { lr: 0.1 }).step([tensor([5])]);
 * p; // [0.5]
 */
export class RAdam extends Optimizer<RAdamNames> {
  readonly #settings: Settings;

  constructor(parameters: Iterable<Tensor>, options: RAdamOptions = {}) {
    checkOptions('RAdam', options, 'lr betas eps weightDecay');
    const settings = settingsOf('RAdam', options);
    super('RAdam', parameters, options.lr ?? 1e-3, ['mean', 'square']);
    this.#settings = settings;
  }

  protected scalars(step: number, rate: number): Record<RAdamNames, number> {
    const { betas, eps, weightDecay } = this.#settings;
    const [beta1, beta2] = betas;
    const [correction1, correction2] = [1 - beta1 ** step, 1 - beta2 ** step];
    const longest = 2 / (1 - beta2) - 1;
    const length = longest - (2 * step * beta2 ** step) / correction2;
    const isKnown = length > 5;
    const rectified = Math.sqrt(((length - 4) * (length - 2) * longest) / ((longest - 4) * (longest - 2) * length));
    return {
      beta1,
      rest1: 1 - beta1,
      beta2,
      rest2: 1 - beta2,
      eps,
      // One of the two is zero, so that all steps have one plan.
      plain: isKnown ? 0 : rate / correction1,
      adaptive: isKnown ? (rate / correction1) * rectified * Math.sqrt(correction2) : 0,
      decay: weightDecay,
    };
  }

  protected override scalarsAt(step: Tensor, rate: Tensor, correction: Correction): StepScalars<RAdamNames> {
    const [beta1, beta2] = this.#settings.betas;
    const longest = 2 / (1 - beta2) - 1;
    const [plain, spread] = [rate.div(correction(beta1)), correction(beta2)];
    const length = sub(longest, step.mul(2).mul(sub(1, spread)).div(spread));
    const square = length.sub(4).mul(length.sub(2)).div(length);
    const rectified = sqrt(square.mul(longest / ((longest - 4) * (longest - 2))));
    const isKnown = less(5, length);
    return { plain: where(isKnown, 0, plain), adaptive: where(isKnown, plain.mul(rectified).mul(sqrt(spread)), 0) };
  }

  protected override get formula(): unknown {
    return RAdam.prototype.update;
  }

  protected update(p: Tensor, gradient: Tensor, [mean, meanSquare]: readonly Tensor[], s: Scalars<RAdamNames>): Next {
    const g = decayed(gradient, p, this.#settings, s.decay);
    const m = mean!.mul(s.beta1).add(g.mul(s.rest1));
    const v = meanSquare!.mul(s.beta2).add(square(g).mul(s.rest2));
    const factor = s.plain.add(s.adaptive.div(sqrt(v).add(s.eps)));
    return { parameter: p.sub(m.mul(factor)), state: [m, v] };
  }
}
