/**
 * Optimizer: what all optimizers share: state per parameter, and the step as one scope of graph operations. Each optimizer is a formula: new
 * parameter and new state from old ones, the gradient and the numbers of the step (step-numbers.ts); see sgd.ts, adam.ts and adaptive.ts.
 */
/// <reference lib="esnext.disposable" preserve="true" />
import { holdFlushes, refuseNames, showAs } from '@polygrad/core/engine';
import {
  cast,
  type DType,
  equal,
  flush,
  Formula,
  type FormulaSet,
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
import { checkFits, checkList, checkNumber, NnError } from '../errors.ts';
import { filled } from '../init/filled.ts';
import { fitState, hostState, type StateDict, type StateOwner } from '../module/state.ts';
import { type Gradients, inOrder } from './owners.ts';
import { checkedState, type LoadedState, type OptimizerState } from './saved-state.ts';
import type { Schedule } from './schedule.ts';
import {
  checkedNumbers,
  checkedRate,
  type Correction,
  type Scalars,
  scalarsOf,
  type StepScalars,
} from './step-numbers.ts';

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

const owner: StateOwner = {
  op: 'loadState',
  name: 'optimizer',
  remedy: 'the state is of other parameters or of another optimizer',
};

/** A tensor that a step assigns, and its new value. */
type Change = readonly [target: Tensor, value: Tensor];

/** What a step computes with, by the leaders of parameters (`#leaders`). Compiled steps set it anew at every call. */
interface StepNumbers<Names extends string> {
  rate: number;
  /** Steps with this one. */
  readonly steps: number[];
  readonly numbers: Record<Names, number>[];
}

/** 16-bit floats lose small steps: their parameters have a float32 copy, which the formulas work on. */
const isSmall = ({ dtype }: Tensor): boolean => dtype === 'float16' || dtype === 'bfloat16';
const master = 'master';

/**
 * Base class. `Names` are the scalars of a step, `Slots` the tensors of state that each parameter has.
 *
 * A float16 or bfloat16 parameter has a float32 copy as its first tensor of state, and the others in float32. The formula sees these, and the
 * parameter is the copy rounded. Where it was changed from outside, the copy follows.
 *
 * A step in which a parameter has no gradient, for instance because it is frozen, does not count for it. Corrections of running means begin with its
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
  /** For each parameter the first one that has missed as many. */
  #leaders: readonly number[];
  /** Of `#next`, where that is one. */
  #formula: Formula | null = null;
  /** Of the scalars. */
  #names: readonly string[] = [];
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
      throw new NnError(
        name,
        'there are no parameters; pass model.parameters(), with layers and parameter() in public fields',
      );
    for (const [i, parameter] of this.parameters.entries())
      checkFits(name, `parameters[${i}]`, parameter, isTensor(parameter), 'a tensor; for groups, ParameterGroups');
    if (new Set(this.parameters).size !== this.parameters.length) {
      throw new NnError(name, 'a parameter is listed twice; pass each once');
    }
    if (typeof learningRate !== 'function') checkNumber(name, 'lr', learningRate, 0);
    this.learningRate = learningRate;
    this.#missed = this.parameters.map(() => 0);
    this.#leaders = this.#missed;
    this.#slots = this.parameters.map((parameter) => (isSmall(parameter) ? [master, ...slots] : slots));
    this.#state = this.parameters.map((parameter) => {
      const own = (value: Tensor): Tensor => registerState(keep(value));
      if (!isSmall(parameter)) return slots.map((slot) => own(first(slot, parameter)));
      const copy = own(noGrad(() => cast(parameter, 'float32')));
      return [copy, ...slots.map((slot) => own(first(slot, copy)))];
    });
    // Initial values of parameters are still pending; a separate step keeps them out of the first step's plan.
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
  protected scalarsAt?(step: Tensor, rate: Tensor, correction: Correction): StepScalars<Names>;

  /** The new parameter and its new state. */
  protected abstract update(
    parameter: Tensor,
    gradient: Tensor,
    state: readonly Tensor[],
    scalars: Scalars<Names>,
  ): { readonly parameter: Tensor; readonly state: readonly Tensor[] };

  /** `update`, where it is one elementwise formula for all parameters that never changes: a `Formula` then, which is called once. */
  protected get formula(): unknown {
    return undefined;
  }

  /**
   * Takes one step: every parameter that has a gradient gets a new value. The work is submitted, not waited for. A step that throws has changed
   * nothing. Where the device has no room for it, parameters, state and count of steps go back to what they were.
   *
   * Without an argument the gradients are those that `backward()` left in `parameter.grad`, which are cleared.
   *
   * @param gradients those of `lossAndGrad`, of which each goes to its parameter, and those of other parameters stay; others one per parameter, or null. They are
   *   consumed: disposed, and not to be used afterwards
   * @param guard of `GradScaler`: whether the step is skipped
   * @throws NnError if there are more or fewer gradients than parameters, none at all, or one of another shape or no floating-point dtype. Also where
   *   the schedule gives NaN, infinity or a negative number
   * @example
   * const model = new Linear(4, 2);
   * const optimizer = new SGD(model.parameters(), { lr: 0.1 });
   * const { grads } = lossAndGrad(model, () => model.forward(ones([3, 4])).mean());
   * optimizer.step(grads);
   * optimizer.steps; // 1
   */
  step(gradients?: Gradients, guard?: StepGuard): void {
    if (gradients !== undefined)
      checkFits(
        'step',
        'gradients',
        gradients,
        Array.isArray(gradients),
        'a list: those of lossAndGrad, or left out after backward()',
      );
    const given =
      gradients === undefined
        ? this.parameters.map((parameter) => parameter.grad)
        : inOrder(this.parameters, gradients);
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
      // In one piece: a flush in the middle would find old values and gradients in use, and could not write new ones over them.
      holdFlushes(() => {
        // Only when all of it is known to be right: nothing is changed by a step that throws.
        noGrad(() => this.prepare(given, guard)());
        if (gradients === undefined) this.zeroGrad();
        else for (const gradient of given) gradient?.dispose();
      });
    });
  }

  /** Computes a step and gives what carries it out. What makes one step of several optimizers (groups.ts) prepares all of them first. */
  protected prepare(given: Gradients, guard?: StepGuard): () => void {
    for (let index = 0; index < given.length; index++) {
      const gradient = given[index]!;
      if (gradient !== null) this.#check(index, gradient);
    }
    if (guard !== undefined) this.#skipped ??= registerState(keep(filled([], 0, 'int32')));
    const leaders = this.#leadersNow();
    const numbers = this.#numbersOf(leaders);
    const changes = this.#changes(given, leaders, numbers, guard);
    if (guard !== undefined) {
      const { skip } = guard;
      for (const [i, [target, value]] of changes.entries()) changes[i] = [target, where(skip, target, value)];
      changes.push([this.#skipped!, this.#skipped!.add(cast(skip, 'int32'))]);
    }
    // The gradients may be gone when this is counted.
    const absent = given.flatMap((gradient, index) => (gradient === null ? [index] : []));
    return () => {
      for (let i = 0; i < changes.length; i++) changes[i]![0].assign(changes[i]![1]);
      this.#countStep(absent);
    };
  }

  // What compiled steps keep is made by functions of its own, which name no tensor: recordings would hold all tensors of their step.

  /** Parameters that have taken equally many steps share the numbers of a step. A compiled step is recorded anew where they no longer do. */
  #leadersNow(): readonly number[] {
    hostValue(() => this.#leaders.join());
    return this.#leaders;
  }

  /** The numbers of a step, now and at every call of a compiled one. */
  #numbersOf(leaders: readonly number[]): StepNumbers<Names> {
    const found: StepNumbers<Names> = { rate: 0, steps: [], numbers: [] };
    const { steps, numbers } = found;
    hostEffect(() => {
      const source = typeof this.learningRate === 'function' ? `learningRate(${this.#steps})` : 'learningRate';
      found.rate = checkedRate(this.currentRate, source, this.#steps + 1);
      for (let leader = 0; leader < leaders.length; leader++) {
        if (leaders[leader] !== leader) continue;
        steps[leader] = this.#steps + 1 - this.#missed[leader]!;
        numbers[leader] = checkedNumbers(this.scalars(steps[leader]!, found.rate), steps[leader]!);
      }
    });
    return found;
  }

  /** Counts a step. `absent`: parameters that had no gradient. */
  #countStep(absent: readonly number[]): void {
    const count = (by: 1 | -1): void => {
      this.#steps += by;
      if (absent.length > 0)
        this.#miss(this.#missed.map((missed, index) => missed + (absent.includes(index) ? by : 0)));
    };
    hostEffect(
      () => count(1),
      () => count(-1),
    );
  }

  /** The scalars of a step in a dtype, of parameters with this leader. */
  #scalarsIn(dtype: DType, leader: number, numbers: StepNumbers<Names>, guard?: StepGuard): Scalars<Names> {
    const scalars = scalarsOf(() => numbers.numbers[leader]!, dtype);
    if (guard === undefined || this.scalarsAt === undefined) return scalars;
    const ofStep = this.#scalarsAt(
      dtype,
      () => numbers.steps[leader]!,
      () => numbers.rate,
      guard,
    );
    return { ...scalars, ...ofStep };
  }

  /** Scalars of a step that a guard may have kept from counting. */
  #scalarsAt(dtype: DType, step: () => number, rate: () => number, { maximum, expm1 }: StepGuard): StepScalars<Names> {
    const counted = maximum(hostNumber(step, { dtype }).sub(cast(this.#skipped!, dtype)), 1);
    return this.scalarsAt!(counted, hostNumber(rate, { dtype }), (beta) => {
      const log = typeof beta === 'number' ? Math.log(beta) : hostNumber(() => Math.log(beta()), { dtype });
      return expm1(counted.mul(log)).mul(-1);
    });
  }

  /** Parameters and state with their new values, of all parameters that have a gradient. */
  #changes(given: Gradients, leaders: readonly number[], numbers: StepNumbers<Names>, guard?: StepGuard): Change[] {
    const changes: Change[] = [];
    const known: { readonly dtype: DType; readonly leader: number; readonly scalars: readonly Tensor[] }[] = [];
    if (this.formula === this.update && !this.maximize)
      this.#formula ??= new Formula((set, numbers) => this.#next(set, numbers));
    for (let index = 0; index < given.length; index++) {
      const gradient = given[index]!;
      if (gradient === null) continue;
      const parameter = this.parameters[index]!;
      const state = this.#state[index]!;
      const leader = leaders[index]!;
      const copy = isSmall(parameter) ? state[0]! : null;
      const own = copy === null ? state : state.slice(1);
      const dtype = copy === null ? parameter.dtype : 'float32';
      let numbered = known.find((other) => other.dtype === dtype && other.leader === leader);
      if (numbered === undefined) {
        const scalars = this.#scalarsIn(dtype, leader, numbers, guard);
        this.#names = Object.keys(scalars);
        known.push((numbered = { dtype, leader, scalars: Object.values(scalars) }));
      }
      const p = copy === null ? parameter : following(copy, parameter);
      const g = copy === null ? gradient : cast(gradient, dtype);
      const set: FormulaSet = [p, g, ...own];
      const next = this.#formula?.of(set, numbered.scalars) ?? this.#next(set, numbered.scalars);
      if (copy === null) changes.push([parameter, next[0]!]);
      else changes.push([copy, next[0]!], [parameter, cast(next[0]!, parameter.dtype)]);
      for (let i = 1; i < next.length; i++) changes.push([own[i - 1]!, next[i]!]);
    }
    for (let i = 0; i < changes.length; i++) {
      const target = changes[i]![0];
      const value = changes[i]![1];
      if (target.dtype === value.dtype) continue;
      throw new NnError(
        'step',
        `a gradient makes a ${target.dtype} parameter ${value.dtype}; convert the gradients with cast()`,
      );
    }
    return changes;
  }

  /** The new value of a parameter and its new state, from the old ones. The values in between are dead afterwards, so no flush stores them. */
  #next(set: readonly Tensor[], numbers: readonly Tensor[]): readonly Tensor[] {
    return scope(() => {
      const [p, g, ...own] = set as readonly [Tensor, Tensor, ...Tensor[]];
      const scalars = Object.fromEntries(this.#names.map((name, i) => [name, numbers[i]]));
      const { parameter, state } = this.update(p, this.maximize ? g.mul(-1) : g, own, scalars as Scalars<Names>);
      return [parameter, ...state];
    });
  }

  /** Steps of each parameter without a gradient, from now on. */
  #miss(missed: readonly number[]): void {
    this.#missed = missed;
    this.#leaders = missed.map((count) => missed.indexOf(count));
  }

  /** Throws if the gradient is none of the parameter. */
  #check(index: number, gradient: Tensor): void {
    checkFits('step', `gradient ${index}`, gradient, isTensor(gradient), 'a tensor, or null where there is none');
    const { shape, dtype } = this.parameters[index]!;
    if (gradient.ndim !== shape.length || shape.some((n, axis) => gradient.shape[axis] !== n)) {
      throw new NnError(
        'step',
        `gradient ${index} has shape [${gradient.shape.join(', ')}] and its parameter [${shape.join(', ')}]; pass gradients in the order of the parameters`,
      );
    }
    if (!gradient.dtype.includes('float')) {
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
      this.#miss(missed);
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

/** The float32 copy of a parameter, or the parameter itself if it has none. */
function following(copy: Tensor, parameter: Tensor): Tensor {
  return where(equal(cast(copy, parameter.dtype), parameter), copy, cast(parameter, 'float32'));
}

// What optimizers of PyTorch and Keras have. Setting the rate under another name would change nothing.
refuseNames(
  Optimizer,
  {
    'lr= learning_rate= param_groups=': 'learningRate, a number or a schedule',
    'zero_grad clearGradients': 'zeroGrad(), though step() clears what it has used',
    'state_dict stateDict': 'await state()',
    'load_state_dict loadStateDict': 'loadState(state)',
    'minimize applyGradients apply_gradients': 'lossAndGrad(model, loss), and step(grads) of the optimizer',
  },
  (name, instead, self) => new NnError('Optimizer', `no '${name}' of ${self.constructor.name}: ${instead}`, [name]),
);
showAs(Optimizer.prototype, ({ steps, currentRate, parameters }) => ({
  steps,
  learningRate: currentRate,
  parameters: parameters.length,
  numbers: parameters.reduce((count, { size }) => count + size, 0),
}));
