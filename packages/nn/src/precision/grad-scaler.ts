/**
 * GradScaler: a loss multiplied so that small gradients of float16 do not vanish, and steps left out where large ones overflow. The factor, and whether a step is
 * taken, are tensors: nothing is read.
 */
/// <reference lib="esnext.disposable" preserve="true" />
import {
  any,
  cast,
  div,
  equal,
  expm1,
  maximum,
  isFinite as finite,
  keep,
  logicalAnd,
  logicalNot,
  logicalOr,
  noGrad,
  registerState,
  scope,
  stack,
  type Tensor,
  where,
} from '@polygrad/core/functions';
import { checkFits, checkInteger, checkList, checkNumber, checkOptions, checkTensor, NnError } from '../errors.ts';
import { filled } from '../init/filled.ts';
import { Optimizer } from '../optim/optimizer.ts';
import { type Gradients, inOrder } from '../optim/owners.ts';

/** Options of `GradScaler`. */
export interface GradScalerOptions {
  /** First factor of the loss (default 65536). */
  readonly initScale?: number;
  /** What the factor is multiplied by after `growthInterval` updates without overflow (default 2). */
  readonly growthFactor?: number;
  /** What the factor is multiplied by after an overflow (default 0.5). */
  readonly backoffFactor?: number;
  /** Updates without overflow before the factor grows (default 2000). */
  readonly growthInterval?: number;
  /** False: losses and gradients stay as they are and all steps are taken (default true). */
  readonly enabled?: boolean;
}

/** What a scaler goes on from. */
export interface GradScalerState {
  /** The factor. */
  readonly scale: number;
  /** Updates without overflow since the factor changed. */
  readonly growthTracker: number;
  /** Steps that were left out. */
  readonly skipped: number;
}

/** Whether any gradient has an element that is infinite or NaN: bool, shape []. */
const overflow = (gradients: readonly Tensor[]): Tensor =>
  any(stack(gradients.map((gradient) => any(logicalNot(finite(gradient))))));

const wide = (t: Tensor): Tensor => (t.dtype === 'float64' ? t : cast(t, 'float32'));

/**
 * Scales losses, takes the scale out of gradients again, and leaves steps out whose gradients have overflowed. Source: Micikevicius et al., "Mixed
 * precision training" (2018); PyTorch `GradScaler`, with its defaults and its rule of growth.
 *
 * A step that is left out changes no parameter and no state. It does not count for corrections such as Adam's; schedules count it. bfloat16 has the
 * range of float32 and needs no scaler.
 *
 * @example
 * const model = new Linear(2, 1);
 * const optimizer = new SGD(model.parameters(), { lr: 0.1 });
 * const scaler = new GradScaler({ initScale: 1024 });
 * const { grads } = lossAndGrad(model, () => scaler.scale(autocast('float16', () => model.forward(ones([4, 2])).mean())));
 * scaler.step(optimizer, grads);
 * scaler.update();
 * await scaler.state(); // { scale: 1024, growthTracker: 1, skipped: 0 }
 */
export class GradScaler {
  readonly enabled: boolean;
  readonly #growth: number;
  readonly #backoff: number;
  readonly #interval: number;
  /** float32, shape []. */
  readonly #scale: Tensor;
  /** int32, shape []. */
  readonly #tracker: Tensor;
  readonly #skipped: Tensor;
  /** bool, shape []: a step since the last update has overflowed. */
  readonly #found: Tensor;
  /** Whether their gradients, whose scale was taken out, have overflowed. */
  readonly #unscaled: Map<Optimizer, Tensor> = new Map();

  constructor(options: GradScalerOptions = {}) {
    checkOptions('GradScaler', options, 'initScale growthFactor backoffFactor growthInterval enabled?');
    const { initScale = 65536, growthFactor = 2, backoffFactor = 0.5, growthInterval = 2000, enabled = true } = options;
    checkNumber('GradScaler', 'initScale', initScale);
    checkFits('GradScaler', 'initScale', initScale, initScale > 0, 'above 0');
    checkNumber('GradScaler', 'growthFactor', growthFactor);
    checkFits('GradScaler', 'growthFactor', growthFactor, growthFactor > 1, 'above 1');
    checkNumber('GradScaler', 'backoffFactor', backoffFactor);
    checkFits('GradScaler', 'backoffFactor', backoffFactor, backoffFactor > 0 && backoffFactor < 1, 'above 0, below 1');
    checkInteger('GradScaler', 'growthInterval', growthInterval, 1, 2 ** 31 - 1);
    this.enabled = enabled;
    this.#growth = growthFactor;
    this.#backoff = backoffFactor;
    this.#interval = growthInterval;
    this.#scale = registerState(keep(filled([], initScale)));
    this.#tracker = registerState(keep(filled([], 0, 'int32')));
    this.#skipped = registerState(keep(filled([], 0, 'int32')));
    this.#found = registerState(keep(filled([], 0, 'bool')));
  }

  /** The loss times the factor. Differentiate this one; show and add up the other. */
  scale(loss: Tensor): Tensor {
    checkTensor('scale', 'loss', loss);
    return this.enabled ? loss.mul(this.#scale) : loss;
  }

  /**
   * Takes the scale out of an optimizer's gradients, for what looks at them before the step, such as clipping. `step` then does not do it again.
   *
   * @param gradients in the order of the optimizer's parameters; they are consumed. Left out: those that `backward()` left
   * @returns the gradients, 16-bit ones in float32
   * @throws NnError if the optimizer's gradients had their scale taken out since the last step, or it has none
   */
  unscale(optimizer: Optimizer, gradients?: Gradients): Gradients {
    const given = this.#given('unscale', optimizer, gradients);
    if (!this.enabled) return given;
    if (this.#unscaled.has(optimizer))
      throw new NnError('unscale', 'the scale was taken out of these gradients already; call it once before each step');
    const present = given.filter((gradient) => gradient !== null);
    return scope(() =>
      noGrad(() => {
        const inverse = div(1, this.#scale);
        const found = keep(overflow(present));
        const results = given.map((gradient) => (gradient === null ? null : wide(gradient).mul(inverse)));
        this.#unscaled.set(optimizer, found);
        for (const [index, gradient] of given.entries()) {
          if (gradients !== undefined) gradient?.dispose();
          else if (gradient !== null) optimizer.parameters[index]!.grad = keep(results[index]!);
        }
        return results;
      }),
    );
  }

  /**
   * Takes an optimizer's step with the scale taken out of the gradients, or leaves it out where one of them has overflowed.
   *
   * @param gradients in the order of the optimizer's parameters; they are consumed. Left out: those that `backward()` left
   */
  step(optimizer: Optimizer, gradients?: Gradients): void {
    const given = this.#given('step', optimizer, gradients);
    if (!this.enabled) {
      optimizer.step(gradients);
      return;
    }
    scope(() =>
      noGrad(() => {
        const own = this.#unscaled.has(optimizer) ? given : this.unscale(optimizer, gradients);
        const skip = this.#unscaled.get(optimizer)!;
        try {
          optimizer.step(gradients === undefined ? undefined : own, { skip, expm1, maximum });
          this.#found.assign(logicalOr(this.#found, skip));
          this.#skipped.assign(this.#skipped.add(cast(skip, 'int32')));
        } finally {
          this.#unscaled.delete(optimizer);
          skip.dispose();
        }
      }),
    );
  }

  /** Changes the factor by what the steps since the last update have met: once after the steps of all optimizers. */
  update(): void {
    if (!this.enabled) return;
    if (this.#unscaled.size > 0)
      throw new NnError(
        'update',
        'the scale was taken out of gradients that no step was taken with; call step() first',
      );
    scope(() =>
      noGrad(() => {
        const found = this.#found;
        const count = this.#tracker.add(1);
        const isDue = equal(count, this.#interval);
        const larger = this.#scale.mul(this.#growth);
        const grown = where(logicalAnd(isDue, finite(larger)), larger, this.#scale);
        const next = where(found, this.#scale.mul(this.#backoff), grown);
        this.#tracker.assign(where(logicalOr(found, isDue), 0, count));
        this.#scale.assign(next);
        this.#found.assign(logicalAnd(found, false));
      }),
    );
  }

  /** Where it stands, in host memory: waits for the steps so far. */
  async state(): Promise<GradScalerState> {
    const read = [this.#scale, this.#tracker, this.#skipped].map((value) => value.item());
    const [scale, growthTracker, skipped] = (await Promise.all(read)).map(Number) as [number, number, number];
    return { scale, growthTracker, skipped };
  }

  /**
   * Goes on from a saved state.
   *
   * @throws NnError if it is none; nothing is changed then
   */
  loadState(state: GradScalerState): void {
    this.prepareState(state)();
  }

  /**
   * Checks a state, and gives what takes it over: the two halves of `loadState`.
   *
   * @throws NnError if it is none
   */
  prepareState(state: GradScalerState): () => void {
    const isObject = typeof state === 'object' && state !== null;
    checkFits('loadState', 'state', state, isObject, 'an object with scale, growthTracker and skipped');
    const { scale, growthTracker, skipped } = state;
    checkNumber('loadState', 'scale', scale);
    checkFits('loadState', 'scale', scale, scale > 0, 'above 0');
    checkInteger('loadState', 'growthTracker', growthTracker, 0, 2 ** 31 - 1);
    checkInteger('loadState', 'skipped', skipped, 0, 2 ** 31 - 1);
    return () =>
      scope(() => {
        this.#scale.assign(filled([], scale));
        this.#tracker.assign(filled([], growthTracker, 'int32'));
        this.#skipped.assign(filled([], skipped, 'int32'));
      });
  }

  /** The gradients, checked as far as they are read here; the optimizer checks the rest. */
  #given(op: string, optimizer: Optimizer, gradients: Gradients | undefined): Gradients {
    checkFits(op, 'optimizer', optimizer, optimizer instanceof Optimizer, 'an Optimizer');
    if (gradients !== undefined) checkList(op, 'gradients', gradients);
    const given =
      gradients === undefined ? optimizer.parameters.map(({ grad }) => grad) : inOrder(optimizer.parameters, gradients);
    if (given.length !== optimizer.parameters.length)
      throw new NnError(
        op,
        `${given.length} gradients for ${optimizer.parameters.length} parameters; pass one for each, or null`,
      );
    for (const gradient of given) if (gradient !== null) checkTensor(op, 'gradient', gradient);
    if (given.every((gradient) => gradient === null))
      throw new NnError(op, 'no parameter has a gradient; pass gradients or call backward() on a loss first');
    return given;
  }

  /** Gives its memory back. */
  dispose(): void {
    for (const value of [this.#scale, this.#tracker, this.#skipped, this.#found, ...this.#unscaled.values()])
      value.dispose();
    this.#unscaled.clear();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}
