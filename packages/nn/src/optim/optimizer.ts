/**
 * Optimizer: what all optimizers share - state per parameter, the step as one scope of graph operations, numbers that
 * change from step to step as scalars. Each optimizer is a formula: new parameter and new state from old ones and the
 * gradient (sgd.ts, adam.ts, adaptive.ts).
 */
/// <reference lib="esnext.disposable" preserve="true" />
import { holdFlushes, showAs, shown } from '@polygrad/core/engine';
import {
  cast,
  type DType,
  equal,
  flush,
  hostEffect,
  hostNumber,
  hostValue,
  isTensor,
  keep,
  noGrad,
  registerState,
  scope,
  type Tensor,
  where,
} from '@polygrad/core/functions';
import { checkFits, checkInteger, checkList, checkNumber, checkTensor, NnError } from '../errors.ts';
import { filled } from '../init/filled.ts';
import {
  checkState,
  fitState,
  hostState,
  type StateArray,
  type StateDict,
  type StateOwner,
  type StateValues,
} from '../module/state.ts';
import type { Schedule } from './schedule.ts';

/** Gradients in the order of the parameters; null where there is none. */
export type Gradients = readonly (Tensor | null)[];

/** Numbers of one step as scalars on the device, by name. */
export type Scalars<Names extends string> = { readonly [Name in Names]: Tensor };

/** Scalars that depend on the number of the step. */
export type StepScalars<Names extends string> = { readonly [Name in Names]?: Tensor };

/** Options that all optimizers share. */
export interface OptimizerOptions {
  /** Learning rate, or a schedule of it. */
  readonly lr?: number | Schedule;
}

/** What optimizers share that can climb instead of descend. */
export interface MaximizeOptions {
  /** Make the loss larger instead of smaller (default false). */
  readonly maximize?: boolean;
}

/** Whether a step is taken at all, which only the device knows: what GradScaler hands over. */
export interface StepGuard {
  /** bool, shape []: where true, parameters and state stay as they are and the step does not count. */
  readonly skip: Tensor;
  /** exp(x) - 1: pages without it do not load it. */
  readonly expm1: (x: Tensor) => Tensor;
  readonly maximum: (x: Tensor, y: number) => Tensor;
}

/** The state of an optimizer in host memory: arrays by name, and the number of steps asked for. */
export interface OptimizerState {
  readonly steps: number;
  /** How many of them were skipped; left out where none can have been. */
  readonly skipped?: number;
  /** Steps that each parameter had no gradient in; left out where there were none. */
  readonly missed?: readonly number[];
  /** `'<index of the parameter>.<slot>'` to array. */
  readonly slots: Readonly<Record<string, StateArray>>;
}

/** A state to go on from, whose slots may come from a file. */
export type LoadedState = Omit<OptimizerState, 'slots'> & { readonly slots: StateValues };

/** What a state says of so many parameters, whole. Throws where that cannot be. */
export function checkedState(
  state: LoadedState,
  count: number,
): { steps: number; skipped: number; missed: number[]; slots: StateValues } {
  const op = 'loadState';
  checkFits(op, 'state', state, typeof state === 'object' && state !== null, 'an object with steps and slots');
  const { steps, skipped = 0, missed = new Array<number>(count).fill(0), slots } = state;
  checkInteger(op, 'steps', steps, 0);
  checkInteger(op, 'skipped', skipped, 0, steps);
  checkList(op, 'missed', missed);
  if (missed.length !== count)
    throw new NnError(
      op,
      `missed has ${missed.length} entries and the optimizer ${count} parameters; the state is of other parameters`,
      ['missed'],
    );
  for (const one of missed) checkInteger(op, 'missed', one, 0, steps);
  checkState(op, slots);
  return { steps, skipped, missed: [...missed], slots };
}

const owner: StateOwner = {
  op: 'loadState',
  name: 'optimizer',
  remedy: 'the state is of other parameters or of another optimizer',
};

/** 16-bit floats lose small steps: their parameters have a float32 copy, which the formulas work on. */
const isSmall = ({ dtype }: Tensor): boolean => dtype === 'float16' || dtype === 'bfloat16';
const master = 'master';

/**
 * Base class. `Names` are the scalars of a step, `Slots` the tensors of state that each parameter has.
 *
 * A float16 or bfloat16 parameter has a float32 copy as its first tensor of state, and the others in float32: the formula sees these, and the parameter is the
 * copy rounded. Where it was changed from outside, the copy follows.
 *
 * A step in which a parameter has no gradient, for instance because it is frozen, does not count for it: corrections of running means begin with its
 * first gradient, as in PyTorch.
 *
 * @example
 * class PlainDescent extends Optimizer<'rate'> {
 *   constructor(parameters: Iterable<Tensor>, lr: number) {
 *     super('PlainDescent', parameters, lr, []);
 *   }
 *   protected scalars(_step: number, rate: number) {
 *     return { rate };
 *   }
 *   protected update(parameter: Tensor, gradient: Tensor, state: readonly Tensor[], s: Scalars<'rate'>) {
 *     return { parameter: parameter.sub(gradient.mul(s.rate)), state };
 *   }
 * }
 * const w = parameter(tensor([1, 2]));
 * new PlainDescent([w], 0.5).step([tensor([2, 2])]);
 * w; // [0, 1]
 */
export abstract class Optimizer<Names extends string = string> {
  /** What is optimised, in the order gradients are given in. */
  readonly parameters: readonly Tensor[];
  /** Learning rate or its schedule. May be changed between steps. */
  learningRate: number | Schedule;
  /** Steps go up the gradient instead of down. */
  declare protected maximize?: boolean | undefined;
  #steps = 0;
  readonly #state: readonly Tensor[][];
  readonly #slots: readonly (readonly string[])[];
  /** Steps of each parameter without a gradient. Those that a guard skipped are among them, so that a corrected count may come out too small: it is kept at 1. */
  #missed: readonly number[];
  /** int32, shape []: steps that guards kept from counting. Null before the first guard. */
  #skipped: Tensor | null = null;

  /**
   * @param name of the optimizer, for errors
   * @param parameters the tensors to optimise, for instance `model.parameters()`
   * @param slots names of the state tensors of each parameter
   * @param first their first values, uploaded ones (default: zeros of the parameter's shape)
   */
  constructor(
    name: string,
    parameters: Iterable<Tensor>,
    learningRate: number | Schedule,
    slots: readonly string[],
    first: (slot: string, parameter: Tensor) => Tensor = (_, { shape, dtype }) => filled(shape, 0, dtype),
  ) {
    // A module in the place of its parameters is the likely mistake.
    const isList =
      typeof parameters?.[Symbol.iterator] === 'function' && typeof parameters !== 'string' && !isTensor(parameters);
    checkFits(name, 'parameters', parameters, isList, 'a list of tensors: pass model.parameters()');
    if (Array.isArray(parameters)) checkList(name, 'parameters', parameters);
    this.parameters = [...parameters];
    if (this.parameters.length === 0)
      throw new NnError(name, 'there are no parameters to optimise; pass model.parameters()');
    this.parameters.forEach((parameter, index) => void checkTensor(name, `parameters[${index}]`, parameter));
    if (new Set(this.parameters).size !== this.parameters.length) {
      throw new NnError(name, 'a parameter is listed twice; pass each one once');
    }
    if (typeof learningRate !== 'function') checkNumber(name, 'lr', learningRate, 0);
    this.learningRate = learningRate;
    this.#missed = this.parameters.map(() => 0);
    this.#slots = this.parameters.map((parameter) => (isSmall(parameter) ? [master, ...slots] : slots));
    this.#state = this.parameters.map((parameter) => {
      const own = (value: Tensor): Tensor => registerState(keep(value));
      if (!isSmall(parameter)) return slots.map((slot) => own(first(slot, parameter)));
      const copy = own(noGrad(() => cast(parameter, 'float32')));
      return [copy, ...slots.map((slot) => own(first(slot, copy)))];
    });
    // First values of parameters are still to be computed; a step of their own keeps them out of the first step's plan.
    flush();
  }

  /** Steps asked for: with a `GradScaler` those that it skipped are among them. */
  get steps(): number {
    return this.#steps;
  }

  /** The learning rate of the next step. */
  get currentRate(): number {
    return typeof this.learningRate === 'function' ? this.learningRate(this.#steps) : this.learningRate;
  }

  /** The numbers of step `step` (1 for the first) at learning rate `rate`. */
  protected abstract scalars(step: number, rate: number): Record<Names, number>;

  /**
   * Those of `scalars` that depend on the number of the step, for a step whose number only the device knows. `correction` gives 1 - beta ** step. Optimizers
   * without such scalars leave the method out.
   */
  protected scalarsAt?(step: Tensor, rate: Tensor, correction: (beta: number) => Tensor): StepScalars<Names>;

  /** The new parameter and its new state. */
  protected abstract update(
    parameter: Tensor,
    gradient: Tensor,
    state: readonly Tensor[],
    scalars: Scalars<Names>,
  ): { readonly parameter: Tensor; readonly state: readonly Tensor[] };

  /**
   * Takes one step: every parameter that has a gradient gets a new value. The work is submitted, not waited for. A step that throws has
   * changed nothing; where the device has no room for it, parameters, state and count of steps go back to what they were.
   *
   * Without an argument the gradients are those that `backward()` left in `parameter.grad`, which are cleared.
   *
   * @param gradients one per parameter, or null; they are consumed: disposed, and not to be used afterwards
   * @param guard of `GradScaler`: whether the step is skipped
   * @throws NnError if there are more or fewer gradients than parameters, none at all, or one of another shape or no floating-point dtype; and
   *   where the schedule gives no learning rate: NaN, infinity, a negative number
   * @example
   * const model = new Linear(4, 2);
   * const optimizer = new SGD(model.parameters(), { lr: 0.1 });
   * const { grads } = lossAndGrad(model, () => model.forward(ones([3, 4])).mean());
   * optimizer.step(grads);
   * optimizer.steps; // 1
   */
  step(gradients?: Gradients, guard?: StepGuard): void {
    const given = gradients ?? this.parameters.map((parameter) => parameter.grad);
    checkList('step', 'gradients', given);
    if (given.length !== this.parameters.length) {
      throw new NnError(
        'step',
        `${given.length} gradients for ${this.parameters.length} parameters; pass one for each, or null`,
      );
    }
    if (given.every((gradient) => gradient === null)) {
      throw new NnError('step', 'no parameter has a gradient; pass gradients or call backward() on a loss first');
    }
    scope(() => {
      // In one piece: a flush in the middle would find old values and gradients still in use, and could write new ones over none of them.
      holdFlushes(() => {
        // Only when all of it is known to be right: nothing is changed by a step that throws.
        noGrad(() => this.prepare(given, guard)());
        if (gradients === undefined) this.zeroGrad();
        else for (const gradient of gradients) gradient?.dispose();
      });
    });
  }

  /** Computes a step and gives what carries it out. What makes one step of several optimizers (groups.ts) prepares all of them first. */
  protected prepare(given: Gradients, guard?: StepGuard): () => void {
    for (const [index, gradient] of given.entries()) if (gradient !== null) this.#check(index, gradient);
    if (guard !== undefined) this.#skipped ??= registerState(keep(filled([], 0, 'int32')));
    // Parameters that have taken equally many steps share the numbers of a step. A compiled step is recorded anew where they no longer do.
    const leaders = hostValue(() => this.#missed.map((count, _, all) => all.indexOf(count)).join()).split(',');
    const steps: Record<string, number> = {};
    const numbers: Record<string, Record<Names, number>> = {};
    let rate = 0;
    // At every call of a compiled step, too.
    hostEffect(() => {
      rate = this.#rate();
      for (const leader of new Set(leaders)) {
        steps[leader] = this.#steps + 1 - this.#missed[Number(leader)]!;
        numbers[leader] = this.#numbers(steps[leader], rate);
      }
    });
    const scalarsIn = (dtype: DType, leader: string): Scalars<Names> => {
      const scalars = scalarsOf(() => numbers[leader]!, dtype);
      if (guard === undefined || this.scalarsAt === undefined) return scalars;
      const step = hostNumber(() => steps[leader]!, { dtype });
      const counted = guard.maximum(step.sub(cast(this.#skipped!, dtype)), 1);
      const correction = (beta: number): Tensor => guard.expm1(counted.mul(Math.log(beta))).mul(-1);
      return {
        ...scalars,
        ...this.scalarsAt(
          counted,
          hostNumber(() => rate, { dtype }),
          correction,
        ),
      };
    };
    // The gradients may be gone when this is counted.
    const isAbsent = given.map((gradient) => gradient === null);
    const changes: (readonly [target: Tensor, value: Tensor])[] = [];
    const known = new Map<string, Scalars<Names>>();
    for (const [index, gradient] of given.entries()) {
      if (gradient === null) continue;
      const parameter = this.parameters[index]!;
      const state = this.#state[index]!;
      const [copy, own] = isSmall(parameter) ? [state[0]!, state.slice(1)] : [null, state];
      const dtype = copy === null ? parameter.dtype : 'float32';
      const key = dtype + leaders[index];
      let scalars = known.get(key);
      if (scalars === undefined) known.set(key, (scalars = scalarsIn(dtype, leaders[index]!)));
      const p = copy === null ? parameter : following(copy, parameter);
      const g = copy === null ? gradient : cast(gradient, dtype);
      // Nobody needs what lies between afterwards: no flush has to store it.
      const next = scope(() => this.update(p, this.maximize ? g.mul(-1) : g, own, scalars));
      if (copy === null) changes.push([parameter, next.parameter]);
      else changes.push([copy, next.parameter], [parameter, cast(next.parameter, parameter.dtype)]);
      changes.push(...next.state.map((value, slot) => [own[slot]!, value] as const));
    }
    for (const [target, value] of changes) {
      if (target.dtype === value.dtype) continue;
      throw new NnError(
        'step',
        `a gradient makes a ${target.dtype} parameter ${value.dtype}; convert the gradients with cast()`,
      );
    }
    if (guard !== undefined) {
      const { skip } = guard;
      for (const [i, [target, value]] of changes.entries()) changes[i] = [target, where(skip, target, value)];
      changes.push([this.#skipped!, this.#skipped!.add(cast(skip, 'int32'))]);
    }
    return () => {
      for (const [target, value] of changes) target.assign(value);
      const count = (by: 1 | -1): void => {
        this.#steps += by;
        this.#missed = this.#missed.map((missed, index) => (isAbsent[index] ? missed + by : missed));
      };
      hostEffect(
        () => count(1),
        () => count(-1),
      );
    };
  }

  /** The learning rate of a step, before anything is recorded: one NaN would be in every parameter after it. */
  #rate(): number {
    const rate: unknown = this.currentRate;
    if (typeof rate === 'number' && Number.isFinite(rate) && rate >= 0) return rate;
    const source = typeof this.learningRate === 'function' ? `learningRate(${this.#steps})` : 'learningRate';
    throw new NnError(
      'step',
      `bad ${source} for step ${this.#steps + 1}: ${shown(rate)}; must be a finite number of at least 0`,
      ['learningRate'],
    );
  }

  /** What formulas give for the step of parameters that have taken this many. */
  #numbers(step: number, rate: number): Record<Names, number> {
    const numbers = this.scalars(step, rate);
    for (const [name, value] of Object.entries<unknown>(numbers)) {
      if (typeof value === 'number' && !Number.isNaN(value)) continue;
      throw new NnError('step', `bad ${name} for step ${step}: ${shown(value)}; must be a number`, [name]);
    }
    return numbers;
  }

  /** Throws if the gradient is none of the parameter. */
  #check(index: number, gradient: Tensor): void {
    checkFits('step', `gradient ${index}`, gradient, isTensor(gradient), 'a tensor, or null where there is none');
    const { shape, dtype } = this.parameters[index]!;
    if (gradient.shape.join() !== shape.join()) {
      throw new NnError(
        'step',
        `gradient ${index} has shape [${gradient.shape.join(', ')}] and its parameter [${shape.join(', ')}]; pass gradients in the order of the parameters`,
      );
    }
    if (/^(u?int|bool)/.test(gradient.dtype)) {
      throw new NnError(
        'step',
        `gradient ${index} is ${gradient.dtype} and its parameter ${dtype}; gradients are floating-point, convert with cast()`,
      );
    }
  }

  /** Clears what `backward()` accumulated. */
  zeroGrad(): void {
    for (const parameter of this.parameters) if (parameter.requiresGrad) parameter.grad = null;
  }

  /** The tensors of the state by the names they are saved under. */
  #named(): StateDict {
    return Object.fromEntries(
      this.#state.flatMap((tensors, index) =>
        tensors.map((value, slot) => [`${index}.${this.#slots[index]![slot]}`, value]),
      ),
    );
  }

  /** The state in host memory, to save beside a model's. */
  async state(): Promise<OptimizerState> {
    const slots = await hostState(this.#named());
    return {
      steps: this.#steps,
      ...(this.#skipped && { skipped: Number(await this.#skipped.item()) }),
      ...(this.#missed.some((count) => count > 0) && { missed: this.#missed }),
      slots,
    };
  }

  /**
   * Goes on from a saved state: what `state()` gave, or its steps and the tensors of a file (`encodeSafetensors(state.slots)`).
   *
   * @throws NnError if the state is of other parameters or of another optimizer; nothing is changed then
   */
  loadState(state: LoadedState): void {
    this.prepareState(state)();
  }

  /**
   * Checks a state, and gives what takes it over: the two halves of `loadState`, for what takes over several states or none of them.
   *
   * @throws NnError if the state is of other parameters or of another optimizer
   * @example
   * const optimizer = new Adam([parameter(tensor([1]))]);
   * const goOn = optimizer.prepareState({ ...(await optimizer.state()), steps: 7 });
   * goOn();
   * optimizer.steps; // 7
   */
  prepareState(state: LoadedState): () => void {
    const { steps, skipped, missed, slots } = checkedState(state, this.parameters.length);
    const { assign } = fitState(this.#named(), slots, true, owner);
    return () => {
      assign();
      this.#skipped?.dispose();
      this.#skipped = skipped === 0 ? null : registerState(keep(filled([], skipped, 'int32')));
      this.#steps = steps;
      this.#missed = missed;
    };
  }

  /** Gives the memory of the state back. The parameters stay. */
  dispose(): void {
    for (const tensors of this.#state) for (const value of tensors) value.dispose();
    this.#skipped?.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

/** The float32 copy of a parameter; its own value where that is another. */
function following(copy: Tensor, parameter: Tensor): Tensor {
  return where(equal(cast(copy, parameter.dtype), parameter), copy, cast(parameter, 'float32'));
}

/** Numbers as scalars of a dtype: bound when a plan runs, so that no value makes a plan of its own. */
function scalarsOf<Names extends string>(numbers: () => Record<Names, number>, dtype: DType): Scalars<Names> {
  const found: Partial<Record<Names, Tensor>> = {};
  for (const name of Object.keys(numbers()) as Names[]) found[name] = hostNumber(() => numbers()[name], { dtype });
  return found as Scalars<Names>;
}

showAs(Optimizer.prototype, ({ steps, currentRate, parameters }) => ({
  steps,
  learningRate: currentRate,
  parameters: parameters.length,
  numbers: parameters.reduce((count, { size }) => count + size, 0),
}));
