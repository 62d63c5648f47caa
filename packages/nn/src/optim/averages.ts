/** Running means of weights, and sums of gradients over several batches: both on the device, nothing is read. */
import {
  detach,
  hostEffect,
  hostNumber,
  hostValue,
  keep,
  noGrad,
  registerState,
  scope,
  type Tensor,
} from '@polygrad/core/functions';
import { checkFits, checkFunction, checkInteger, checkList, checkOptions, NnError } from '../errors.ts';
import { filled } from '../init/filled.ts';
import { type AnyModule, checkModule } from '../module/module.ts';
import {
  assignState,
  fitState,
  hostState,
  type StateDict,
  type StateOwner,
  type StateValues,
} from '../module/state.ts';
import { type Gradients, owned, ownerOf } from './owners.ts';
import { checkedState, type LoadedState, type OptimizerState } from './saved-state.ts';

const owner: StateOwner = { op: 'loadStateDict', name: 'average', remedy: 'the state is of another model' };

/** Options of `WeightAverage`. */
export interface WeightAverageOptions {
  /**
   * Share of the mean so far that each update keeps: a number (default 0.999), or a function of how many updates there were. `(n) => n / (n + 1)` gives
   * the plain mean of all (stochastic weight averaging).
   */
  readonly decay?: number | ((updates: number) => number);
}

/**
 * Running means of a network's parameters, which often generalise better than the last ones. Source: Polyak and Juditsky (1992); Izmailov et al. (2018)
 * for plain means; PyTorch `AveragedModel`.
 *
 * @example
 * const model = new Linear(1, 1, { bias: false });
 * model.weight.assign(tensor([[1]]));
 * const average = new WeightAverage(model, { decay: 0.5 });
 * model.weight.assign(tensor([[3]]));
 * average.update();
 * average.swap();
 * model.weight; // [[2]]
 */
export class WeightAverage {
  readonly model: AnyModule;
  readonly decay: number | ((updates: number) => number);
  readonly #parameters: readonly [name: string, parameter: Tensor][];
  readonly #means: StateDict;
  #updates = 0;

  /** @param model whose parameters are averaged; the means begin with what these are now */
  constructor(model: AnyModule, options: WeightAverageOptions = {}) {
    checkModule('WeightAverage', model);
    checkOptions('WeightAverage', options, 'decay');
    const { decay = 0.999 } = options;
    const isShare = typeof decay === 'function' || (typeof decay === 'number' && decay >= 0 && decay < 1);
    checkFits('WeightAverage', 'decay', decay, isShare, 'at least 0 and below 1, or a function');
    this.model = model;
    this.decay = decay;
    this.#parameters = model.namedParameters();
    this.#means = Object.fromEntries(
      this.#parameters.map(([name, parameter]) => {
        const mean = registerState(keep(filled(parameter.shape, 0, parameter.dtype)));
        scope(() => noGrad(() => mean.assign(detach(parameter))));
        return [name, mean];
      }),
    );
  }

  /** Updates made. */
  get updates(): number {
    return this.#updates;
  }

  /** Takes the parameters as they are now into the means: after each step of the optimizer. */
  update(): void {
    let rest = 0;
    // At every call of a compiled step, too.
    hostEffect(() => {
      const decay = typeof this.decay === 'function' ? this.decay(this.#updates) : this.decay;
      checkFits('update', 'decay', decay, typeof decay === 'number' && decay >= 0 && decay <= 1, 'from 0 to 1');
      rest = 1 - decay;
    });
    scope(() =>
      noGrad(() => {
        for (const [name, parameter] of this.#parameters) {
          const mean = this.#means[name]!;
          const share = hostNumber(() => rest, { dtype: mean.dtype });
          mean.assign(mean.add(parameter.sub(mean).mul(share)));
        }
      }),
    );
    hostEffect(
      () => void this.#updates++,
      () => void this.#updates--,
    );
  }

  /** Exchanges the parameters and the means. Called again it undoes that. */
  swap(): void {
    scope(() =>
      noGrad(() => {
        for (const [name, parameter] of this.#parameters) {
          const mean = this.#means[name]!;
          const [own, averaged] = [detach(parameter).mul(1), detach(mean).mul(1)];
          parameter.assign(averaged);
          mean.assign(own);
        }
      }),
    );
  }

  /**
   * Runs a function, such as an evaluation, with the means in the place of the parameters.
   *
   * @returns what the function gives
   */
  async during<Result>(run: () => Result | Promise<Result>): Promise<Result> {
    checkFunction('during', 'run', run);
    this.swap();
    try {
      return await run();
    } finally {
      this.swap();
    }
  }

  /** The means by the names of the parameters: the tensors themselves, for `hostState` and `snapshot`. */
  stateDict(): StateDict {
    return { ...this.#means };
  }

  /**
   * Goes on from saved means.
   *
   * @param updates how many were made for them
   * @throws NnError for missing or unknown names, and for shapes or dtypes that differ
   */
  loadStateDict(state: StateValues, updates: number): void {
    checkInteger('loadStateDict', 'updates', updates, 0);
    assignState(this.#means, state, true, owner);
    this.#updates = updates;
  }

  /** The means in host memory and the number of updates, in the form of an optimizer's state: `others` of `saveModel` and `checkpoints` take it. */
  async state(): Promise<OptimizerState> {
    return { steps: this.#updates, slots: await hostState(this.#means) };
  }

  /**
   * Goes on from what `state()` gave, or a file holds of it.
   *
   * @throws NnError if the state is of another model; nothing is changed then
   */
  loadState(state: LoadedState): void {
    this.prepareState(state)();
  }

  /**
   * Checks a state, and gives what takes it over: the two halves of `loadState`.
   *
   * @throws NnError if the state is of another model
   */
  prepareState(state: LoadedState): () => void {
    const { steps, slots } = checkedState(state, this.#parameters.length);
    const { assign } = fitState(this.#means, slots, true, { ...owner, op: 'loadState' });
    return () => {
      assign();
      this.#updates = steps;
    };
  }

  /** Gives the memory of the means back. */
  dispose(): void {
    for (const mean of Object.values(this.#means)) mean.dispose();
  }
}

/**
 * Means of gradients over several batches, for steps as of a batch that many times as large.
 *
 * @example
 * const accumulator = new GradientAccumulator(2);
 * accumulator.add([tensor([1, 2])]); // null
 * accumulator.add([tensor([3, 4])]); // [[2, 3]]
 */
export class GradientAccumulator {
  /** Batches per step. */
  readonly count: number;
  #sums: (Tensor | undefined)[] = [];
  #held: boolean[] = [];
  #owners: (Tensor | undefined)[] = [];
  #added = 0;

  constructor(count: number) {
    checkInteger('GradientAccumulator', 'count', count, 1);
    this.count = count;
  }

  /**
   * Adds the gradients of one batch.
   *
   * @param gradients in the order of the parameters, always the same; they are consumed
   * @returns after every `count` batches their means, for `optimizer.step`; null otherwise
   * @throws NnError for another number of gradients than before
   */
  add(gradients: Gradients): Gradients | null {
    checkList('add', 'gradients', gradients);
    if (this.#sums.length === 0) this.#sums = gradients.map(() => undefined);
    if (gradients.length !== this.#sums.length)
      throw new NnError('add', `${gradients.length} gradients after ${this.#sums.length}; pass one for each parameter`);
    const added = hostValue(() => this.#added);
    const isLast = added + 1 === this.count;
    const done: (Tensor | null)[] = [];
    if (added === 0) this.#held = gradients.map(() => false);
    scope(() =>
      noGrad(() => {
        for (const [i, gradient] of gradients.entries()) {
          const sum = this.#sums[i];
          if (gradient !== null) this.#owners[i] = ownerOf(gradient);
          const part = gradient === null ? null : gradient.mul(1 / this.count);
          const total = this.#held[i] && sum !== undefined ? (part === null ? sum.mul(1) : sum.add(part)) : part;
          if (isLast) done.push(total === null ? null : owned(keep(total), this.#owners[i]));
          else if (part !== null && total !== null) {
            const { shape, dtype } = part;
            this.#sums[i] = sum ?? registerState(keep(filled(shape, 0, dtype)));
            this.#sums[i]!.assign(total);
            this.#held[i] = true;
          }
          gradient?.dispose();
        }
      }),
    );
    hostEffect(
      () => void (this.#added = isLast ? 0 : added + 1),
      () => void (this.#added = added),
    );
    return isLast ? done : null;
  }

  /** Gives the memory of the sums back. */
  dispose(): void {
    for (const sum of this.#sums) sum?.dispose();
    this.#sums = [];
    this.#added = 0;
  }
}
