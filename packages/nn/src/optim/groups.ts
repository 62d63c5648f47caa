/** Parameter groups with separate options: one step for all of them, and learning rates that decrease from layer to layer. */
import type { Tensor } from '@polygrad/core/functions';
import { checkFits, checkFraction, checkList, checkNumber, checkRequired, NnError } from '../errors.ts';
import { type AnyModule, checkModule } from '../module/module.ts';
import type { StateArray } from '../module/state.ts';
import { Optimizer, type StepGuard } from './optimizer.ts';
import type { Gradients } from './owners.ts';
import { checkedState, type LoadedState, type OptimizerState } from './saved-state.ts';
import type { Schedule } from './schedule.ts';

/** An optimizer's class. */
export type OptimizerClass<Options> = new (parameters: Iterable<Tensor>, options?: Options) => Optimizer;

/** Parameters, and what is different for them. */
export type ParameterGroup<Options> = Partial<Options> & { readonly parameters: Iterable<Tensor> };

type Prepared = { prepare(given: Gradients, guard?: StepGuard): () => void };

/**
 * An optimizer for each group of parameters, which take their steps together: either all of it is carried out or nothing. Gradients that are not of
 * `lossAndGrad` are in the order of the groups. Source: PyTorch's parameter groups.
 *
 * @example
 * const model = new Sequential(new Linear(2, 8), new ReLU(), new Linear(8, 1));
 * const [first, , last] = model.layers as [Linear, ReLU, Linear];
 * const groups = [{ parameters: first.parameters(), lr: 1e-4 }, { parameters: last.parameters(), weightDecay: 0 }];
 * const optimizer = new ParameterGroups(AdamW, groups, { lr: 1e-3 });
 * optimizer.groups.map(({ currentRate }) => currentRate); // [1e-4, 1e-3]
 */
export class ParameterGroups<Options extends object> extends Optimizer<never> {
  /** The optimizer of each group. Their learning rates may be changed between steps. */
  readonly groups: readonly Optimizer[];

  /**
   * @param kind class of the optimizers
   * @param groups parameters, with the options that are different for them
   * @param options of all groups that say nothing else
   */
  constructor(
    kind: OptimizerClass<Options>,
    groups: readonly ParameterGroup<Options>[],
    options: Partial<Options> = {},
  ) {
    const isClass = typeof kind === 'function' && kind.prototype instanceof Optimizer;
    checkFits('ParameterGroups', 'kind', kind, isClass, 'the class of an optimizer that takes gradients, such as Adam');
    checkList('ParameterGroups', 'groups', groups);
    const lists = groups.map((group, i) => {
      const list = group?.parameters;
      checkFits('ParameterGroups', `groups[${i}]`, group, list !== undefined, 'an object with parameters and options');
      return [...list];
    });
    super('ParameterGroups', lists.flat(), 0, []);
    this.groups = groups.map(
      ({ parameters: _, ...own }, i) => new kind(lists[i]!, { ...options, ...own } as unknown as Options),
    );
  }

  /** Steps taken. */
  override get steps(): number {
    // The base class asks before there are groups.
    return this.groups?.[0]?.steps ?? 0;
  }

  /** The learning rate of the first group's next step. */
  override get currentRate(): number {
    return this.groups[0]!.currentRate;
  }

  protected override prepare(given: Gradients, guard?: StepGuard): () => void {
    let start = 0;
    const commits = this.groups.map((group) => {
      const end = start + group.parameters.length;
      const own = given.slice(start, end);
      start = end;
      return (group as unknown as Prepared).prepare(own, guard);
    });
    return () => {
      for (const commit of commits) commit();
    };
  }

  protected scalars(): Record<never, number> {
    return {};
  }

  protected update(parameter: Tensor): { readonly parameter: Tensor; readonly state: readonly Tensor[] } {
    return { parameter, state: [] };
  }

  /** Numbers of the first parameters of the groups. */
  #starts(): number[] {
    let start = 0;
    return this.groups.map(({ parameters }) => {
      start += parameters.length;
      return start - parameters.length;
    });
  }

  /** The state in host memory: names begin with the number of the parameter among all. */
  override async state(): Promise<OptimizerState> {
    const slots: Record<string, StateArray> = {};
    const starts = this.#starts();
    const missed: number[] = [];
    let skipped: number | undefined;
    for (const [i, group] of this.groups.entries()) {
      const state = await group.state();
      // All groups skip the same steps.
      ({ skipped } = state);
      missed.push(...(state.missed ?? group.parameters.map(() => 0)));
      for (const [name, value] of Object.entries(state.slots)) {
        const [index, slot] = name.split('.') as [string, string];
        slots[`${Number(index) + starts[i]!}.${slot}`] = value;
      }
    }
    return {
      steps: this.steps,
      ...(skipped === undefined ? {} : { skipped }),
      ...(missed.some((count) => count > 0) && { missed }),
      slots,
    };
  }

  /**
   * Checks a saved state, also that of one optimizer of the same class with all the parameters, and gives what takes it over.
   *
   * @throws NnError if the state is of other parameters or of another optimizer
   */
  override prepareState(state: LoadedState): () => void {
    const { steps, skipped, missed, slots } = checkedState(state, this.parameters.length);
    const starts = this.#starts();
    const parts = this.groups.map((): [string, StateArray | Tensor][] => []);
    const entries = slots instanceof Map ? [...slots] : Object.entries(slots);
    for (const [name, value] of entries as [string, StateArray | Tensor][]) {
      const [index, ...slot] = name.split('.');
      const at = starts.findLastIndex((start) => Number(index) >= start);
      if (at < 0 || Number(index) >= this.parameters.length)
        throw new NnError('loadState', `the optimizer has no '${name}'; the state is of other parameters`, [name]);
      parts[at]!.push([[Number(index) - starts[at]!, ...slot].join('.'), value]);
    }
    const commits = this.groups.map((group, i) =>
      group.prepareState({
        ...{ steps, skipped, slots: Object.fromEntries(parts[i]!) },
        missed: missed.slice(starts[i]!, starts[i]! + group.parameters.length),
      }),
    );
    return () => {
      for (const commit of commits) commit();
    };
  }

  override dispose(): void {
    for (const group of this.groups) group.dispose();
  }
}

/** Options of `layerRates`. */
export interface LayerRatesOptions {
  /** The last part's rate, or its schedule. */
  readonly lr: number | Schedule;
  /** Each part before has this share of the rate of the one behind it (default 0.9). */
  readonly decay?: number;
}

/**
 * Groups for `ParameterGroups` whose rates fall from the last part of a network to the first. Source: Howard and Ruder, "Universal language model
 * fine-tuning", 2018.
 *
 * @param parts of the network, from its input to its output; a parameter in several counts with the last
 * @throws NnError for parts that are no modules, and for rates and options out of range
 * @example
 * const [body, head] = [new Linear(2, 8), new Linear(8, 1)];
 * layerRates([body, head], { lr: 0.1, decay: 0.5 }).map(({ lr }) => lr); // [0.05, 0.1]
 */
export function layerRates(
  parts: readonly AnyModule[],
  options: LayerRatesOptions,
): { readonly parameters: Tensor[]; readonly lr: number | Schedule }[] {
  checkList('layerRates', 'parts', parts);
  for (const part of parts) checkModule('layerRates', part);
  checkRequired('layerRates', options, 'lr decay#');
  const { lr, decay = 0.9 } = options;
  if (typeof lr !== 'function') checkNumber('layerRates', 'lr', lr, 0);
  if (decay !== 1) checkFraction('layerRates', 'decay', decay);
  const taken = new Set<Tensor>();
  const groups: { readonly parameters: Tensor[]; readonly lr: number | Schedule }[] = [];
  for (const [i, part] of [...parts].reverse().entries()) {
    const parameters = part.parameters().filter((tensor) => !taken.has(tensor));
    for (const tensor of parameters) taken.add(tensor);
    const factor = decay ** i;
    const rate = typeof lr === 'function' ? (step: number): number => lr(step) * factor : lr * factor;
    if (parameters.length > 0) groups.unshift({ parameters, lr: rate });
  }
  return groups;
}
