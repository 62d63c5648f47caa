/** LAMB, Adafactor and Muon: steps that depend on a parameter as a whole, on its size or on its shape as a matrix. */
import {
  div,
  equal,
  flatten,
  logicalOr,
  matmul,
  maximum,
  mean,
  pow,
  reshape,
  sqrt,
  square,
  sub,
  sum,
  type Tensor,
  transpose,
  unsqueeze,
  where,
} from '@polygrad/core/functions';
import { checkFits, checkFraction, checkInteger, checkNumber, checkOptions, NnError } from '../errors.ts';
import { filled } from '../init/filled.ts';
import { checkBetas } from './betas.ts';
import { Optimizer, type OptimizerOptions } from './optimizer.ts';
import type { Correction, Scalars, StepScalars } from './step-numbers.ts';

type Next = { parameter: Tensor; state: Tensor[] };

/** The length of a tensor as a vector. */
const lengthOf = (t: Tensor): Tensor => sqrt(sum(square(t)));

/** Options of `LAMB`. */
export interface LAMBOptions extends OptimizerOptions {
  /** Decay of the two running means (default 0.9 and 0.999). */
  readonly betas?: readonly [number, number];
  /** Added to the denominator (default 1e-6). */
  readonly eps?: number;
  /** Share of the parameters that is part of each step (default 0). */
  readonly weightDecay?: number;
}

type LAMBNames = 'beta1' | 'rest1' | 'beta2' | 'rest2' | 'correction1' | 'correction2' | 'eps' | 'decay' | 'rate';

/**
 * LAMB: Adam's step for each parameter, as long as the parameter itself times lr; for large batches. Source: You et al., "Large batch optimization for
 * deep learning", 2020, algorithm 2.
 *
 * @example
 * const p = parameter(tensor([3, 4]));
 * new LAMB([p], { lr: 0.1, eps: 0 }).step([tensor([2, -2])]);
 * p; // about [2.6464, 4.3536]
 */
export class LAMB extends Optimizer<LAMBNames> {
  readonly #options: Required<Omit<LAMBOptions, 'lr'>>;

  constructor(parameters: Iterable<Tensor>, options: LAMBOptions = {}) {
    checkOptions('LAMB', options, 'lr betas eps weightDecay');
    const { lr = 1e-3, betas = [0.9, 0.999], eps = 1e-6, weightDecay = 0 } = options;
    checkBetas('LAMB', betas);
    checkNumber('LAMB', 'eps', eps, 0);
    checkNumber('LAMB', 'weightDecay', weightDecay, 0);
    super('LAMB', parameters, lr, ['mean', 'square']);
    this.#options = { betas: [...betas], eps, weightDecay };
  }

  protected scalars(step: number, rate: number): Record<LAMBNames, number> {
    const { betas, eps, weightDecay } = this.#options;
    const [beta1, beta2] = betas;
    return {
      beta1,
      rest1: 1 - beta1,
      beta2,
      rest2: 1 - beta2,
      correction1: 1 / (1 - beta1 ** step),
      correction2: 1 / (1 - beta2 ** step),
      eps,
      decay: weightDecay,
      rate,
    };
  }

  protected override scalarsAt(_step: Tensor, _rate: Tensor, correction: Correction): StepScalars<LAMBNames> {
    const [beta1, beta2] = this.#options.betas;
    return { correction1: div(1, correction(beta1)), correction2: div(1, correction(beta2)) };
  }

  protected update(p: Tensor, g: Tensor, [mean, meanSquare]: readonly Tensor[], s: Scalars<LAMBNames>): Next {
    const m = mean!.mul(s.beta1).add(g.mul(s.rest1));
    const v = meanSquare!.mul(s.beta2).add(square(g).mul(s.rest2));
    const adam = m.mul(s.correction1).div(sqrt(v.mul(s.correction2)).add(s.eps));
    const step = this.#options.weightDecay === 0 ? adam : adam.add(p.mul(s.decay));
    const [size, length] = [lengthOf(p), lengthOf(step)];
    // A parameter of zeros, and a step of none, have no length to compare.
    const trust = where(logicalOr(equal(size, 0), equal(length, 0)), 1, size.div(length));
    return { parameter: p.sub(step.mul(trust.mul(s.rate))), state: [m, v] };
  }
}

/** Options of `Adafactor`. */
export interface AdafactorOptions extends OptimizerOptions {
  /** Added to squared gradients, and least size that a parameter counts as (default 1e-30 and 1e-3). */
  readonly eps?: readonly [number, number];
  /** Steps whose root mean square is above this are cut down to it (default 1). */
  readonly clip?: number;
  /** The means of squares decay by `1 - t^-decayExponent` (default 0.8). */
  readonly decayExponent?: number;
  /** Steps are as large as the parameter (its root mean square) times lr (default true). */
  readonly scaleParameter?: boolean;
  /** Share of the parameters that each step takes away, times lr (default 0). */
  readonly weightDecay?: number;
}

type AdafactorNames = 'decay' | 'rest' | 'tiny' | 'least' | 'clip' | 'rate' | 'keep';

/** What the paper has: steps relative to the parameter, at most a hundredth of it. */
const relativeStep = (step: number): number => Math.min(1e-2, 1 / Math.sqrt(step + 1));

/**
 * Adafactor: of a matrix only the means of squares of its rows and of its columns are kept. Source: Shazeer and Stern, "Adafactor", 2018, algorithms 4
 * and 5, without momentum.
 *
 * More than two axes are stacks of matrices; of fewer the squares are kept as they are. `lr` is `min(0.01, 1 / sqrt(t))` unless given.
 *
 * @example
 * const p = parameter(tensor([[1, 1]]));
 * new Adafactor([p], { lr: 0.1 }).step([tensor([[5, -5]])]);
 * p; // about [[0.9, 1.1]]
 */
export class Adafactor extends Optimizer<AdafactorNames> {
  readonly #options: Required<Omit<AdafactorOptions, 'lr'>>;

  constructor(parameters: Iterable<Tensor>, options: AdafactorOptions = {}) {
    checkOptions('Adafactor', options, 'lr eps clip# decayExponent# scaleParameter? weightDecay');
    const { lr = relativeStep, eps = [1e-30, 1e-3], clip = 1, decayExponent = 0.8 } = options;
    const { scaleParameter = true, weightDecay = 0 } = options;
    checkFits('Adafactor', 'eps', eps, Array.isArray(eps) && eps.length === 2, 'a list of two numbers');
    for (const one of eps) checkNumber('Adafactor', 'eps', one, 0);
    checkFits('Adafactor', 'clip', clip, clip > 0, 'a number above 0');
    checkNumber('Adafactor', 'decayExponent', decayExponent, 0);
    checkNumber('Adafactor', 'weightDecay', weightDecay, 0);
    super('Adafactor', parameters, lr, ['rows', 'columns'], (slot, { shape, dtype }) => {
      // Of a vector the rows are its elements, and there are no columns.
      if (shape.length < 2) return filled(slot === 'rows' ? shape : [], 0, dtype);
      const last = slot === 'rows' ? shape.length - 1 : shape.length - 2;
      return filled(
        shape.filter((_, axis) => axis !== last),
        0,
        dtype,
      );
    });
    this.#options = { eps: [...eps], clip, decayExponent, scaleParameter, weightDecay };
  }

  protected scalars(step: number, rate: number): Record<AdafactorNames, number> {
    const { eps, clip, decayExponent, weightDecay } = this.#options;
    const rest = step ** -decayExponent;
    return { decay: 1 - rest, rest, tiny: eps[0], least: eps[1], clip, rate, keep: 1 - rate * weightDecay };
  }

  protected override scalarsAt(step: Tensor): StepScalars<AdafactorNames> {
    const rest = pow(step, -this.#options.decayExponent);
    return { decay: sub(1, rest), rest };
  }

  protected update(p: Tensor, g: Tensor, [rows, columns]: readonly Tensor[], s: Scalars<AdafactorNames>): Next {
    const squares = square(g).add(s.tiny);
    const isMatrix = p.ndim >= 2;
    const r = rows!.mul(s.decay).add((isMatrix ? mean(squares, -1) : squares).mul(s.rest));
    const c = isMatrix ? columns!.mul(s.decay).add(mean(squares, -2).mul(s.rest)) : columns!;
    const share = isMatrix ? r.div(mean(r, { axis: -1, keepDims: true })) : r;
    const spread = isMatrix ? unsqueeze(sqrt(share), -1).mul(unsqueeze(sqrt(c), -2)) : sqrt(r);
    const step = g.div(spread);
    const size = (t: Tensor): Tensor => sqrt(mean(square(t)));
    const cut = step.div(maximum(size(step).div(s.clip), 1));
    const rate = this.#options.scaleParameter ? maximum(size(p), s.least).mul(s.rate) : s.rate;
    const kept = this.#options.weightDecay === 0 ? p : p.mul(s.keep);
    return { parameter: kept.sub(cut.mul(rate)), state: [r, c] };
  }
}

/** Options of `Muon`. */
export interface MuonOptions extends OptimizerOptions {
  /** Share of the running mean of gradients that is kept (default 0.95). */
  readonly momentum?: number;
  /** Look ahead along the momentum (default true). */
  readonly nesterov?: boolean;
  /** Share of the parameters that each step takes away, times lr (default 0.1). */
  readonly weightDecay?: number;
  /** Steps of the Newton-Schulz iteration (default 5). */
  readonly iterations?: number;
  /** Added to the length that a matrix is divided by first (default 1e-7). */
  readonly eps?: number;
}

type MuonNames = 'momentum' | 'rest' | 'eps' | 'rate' | 'keep';

/** A quintic whose iteration brings singular values between 0 and 1 near 1 fast. */
const quintic = [3.4445, -4.775, 2.0315] as const;

/**
 * Muon: the momentum of a matrix with all its singular values brought near 1. For hidden layers: of convolutions the kernel is a matrix of its outputs;
 * biases, norms, embeddings and heads go to another optimizer (see `ParameterGroups`). Source: Jordan et al., "Muon", 2024; PyTorch 2.9 `Muon`.
 *
 * @throws NnError for parameters with fewer than two axes
 * @example
 * const p = parameter(tensor([[1, 0], [0, 1]]));
 * new Muon([p], { lr: 0.1, weightDecay: 0 }).step([tensor([[5, 0], [0, 1]])]);
 * p.shape; // [2, 2]
 */
export class Muon extends Optimizer<MuonNames> {
  readonly #options: Required<Omit<MuonOptions, 'lr'>>;

  constructor(parameters: Iterable<Tensor>, options: MuonOptions = {}) {
    checkOptions('Muon', options, 'lr momentum nesterov? weightDecay iterations eps');
    const { lr = 1e-3, momentum = 0.95, nesterov = true, weightDecay = 0.1, iterations = 5, eps = 1e-7 } = options;
    checkFraction('Muon', 'momentum', momentum);
    checkNumber('Muon', 'weightDecay', weightDecay, 0);
    checkInteger('Muon', 'iterations', iterations, 1, 100);
    checkNumber('Muon', 'eps', eps, 0);
    super('Muon', parameters, lr, ['momentum']);
    for (const { shape } of this.parameters)
      if (shape.length < 2)
        throw new NnError(
          'Muon',
          `a parameter has shape [${shape.join(', ')}] and is no matrix; give it to another optimizer, see ParameterGroups`,
        );
    this.#options = { momentum, nesterov, weightDecay, iterations, eps };
  }

  protected scalars(_step: number, rate: number): Record<MuonNames, number> {
    const { momentum, eps, weightDecay } = this.#options;
    return { momentum, rest: 1 - momentum, eps, rate, keep: 1 - rate * weightDecay };
  }

  protected update(p: Tensor, g: Tensor, [before]: readonly Tensor[], s: Scalars<MuonNames>): Next {
    const { nesterov, weightDecay, iterations } = this.#options;
    const next = before!.mul(s.momentum).add(g.mul(s.rest));
    const ahead = nesterov ? next.mul(s.momentum).add(g.mul(s.rest)) : next;
    const matrix = p.ndim === 2 ? ahead : flatten(ahead, { start: 1 });
    const [rows, columns] = matrix.shape as [number, number];
    const wide = rows > columns ? transpose(matrix) : matrix;
    let x = wide.div(lengthOf(wide).add(s.eps));
    const [a, b, c] = quintic;
    for (let i = 0; i < iterations; i++) {
      const product = matmul(x, transpose(x));
      x = x.mul(a).add(matmul(product.mul(b).add(matmul(product, product).mul(c)), x));
    }
    const step = reshape(rows > columns ? transpose(x) : x, p.shape).mul(Math.sqrt(Math.max(1, rows / columns)));
    const kept = weightDecay === 0 ? p : p.mul(s.keep);
    return { parameter: kept.sub(step.mul(s.rate)), state: [next] };
  }
}
