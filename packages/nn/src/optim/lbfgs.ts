/**
 * L-BFGS: Newton's steps, whose second derivatives are estimated from the last gradients; for whole batches and few parameters.
 *
 * Directions and the history are on the device; `two-loops.ts` makes one of the other. Each evaluation reads some numbers: the loss, and products that lengths of steps are decided by.
 */
import { showAs } from '@polygrad/core/engine';
import {
  abs,
  concat,
  type DType,
  detach,
  dispose,
  flatten,
  full,
  isTensor,
  keep,
  max,
  narrow,
  reshape,
  scope,
  stack,
  sum,
  type Tensor,
  tensor,
  zeros,
} from '@polygrad/core/functions';
import {
  checkFits,
  checkFunction,
  checkInteger,
  checkList,
  checkNumber,
  checkOptions,
  checkTensor,
  NnError,
} from '../errors.ts';
import { hostState, type StateArray } from '../module/state.ts';
import type { Closure, ClosureFit, ClosureOptimizer, Evaluated } from './closure.ts';
import { checkedState, type LoadedState, type OptimizerState } from './saved-state.ts';
import { inOrder } from './owners.ts';
import { dot, inTwoLoops, type Pair, quietly } from './two-loops.ts';
import { strongWolfe } from './wolfe.ts';

/** Options of `LBFGS`. */
export interface LBFGSOptions {
  /** Length of a step, of Newton's one (default 1); with a line search that of its first try. */
  readonly lr?: number;
  /** Most iterations per call (default 20). */
  readonly maxIter?: number;
  /** Most evaluations per call (default 5/4 of the iterations). */
  readonly maxEval?: number;
  /** Stop where no number of the gradient is larger (default 1e-7). */
  readonly toleranceGrad?: number;
  /** Stop where steps or losses change less (default 1e-9). */
  readonly toleranceChange?: number;
  /** How many gradients the second derivatives are estimated from (default 100). */
  readonly historySize?: number;
  /** Search for a length that meets the strong Wolfe conditions (default null: none). */
  readonly lineSearchFn?: 'strongWolfe' | null;
}

/** Numbers from the device, in one read. */
async function read(scalars: () => readonly Tensor[]): Promise<number[]> {
  const all = quietly(() => stack([...scalars()]));
  const found = Array.from((await all.data()) as ArrayLike<number>, Number);
  all.dispose();
  return found;
}

/**
 * L-BFGS. Source: Liu and Nocedal (1989); PyTorch `LBFGS`, with `strongWolfe` for its `strong_wolfe`.
 *
 * @example
 * const x = parameter(tensor([3, -4]));
 * const optimizer = new LBFGS([x], { lineSearchFn: 'strongWolfe' });
 * await optimizer.step(() => {
 *   const [value, grad] = valueAndGrad((t: Tensor) => t.mul(t).sum())(x);
 *   return { value, grads: [grad] };
 * });
 * x; // about [0, 0]
 *
 * await optimizer.step(() => {
 *   const loss = x.mul(x).sum();
 *   loss.backward(); // as in PyTorch; gradients are cleared once they are taken
 *   return loss;
 * });
 */
export class LBFGS implements ClosureOptimizer {
  readonly parameters: readonly Tensor[];
  /** The rate of the next step. May be changed between steps, as by `ReduceOnPlateau`. */
  learningRate: number;
  readonly options: Required<Omit<LBFGSOptions, 'lr'>>;
  readonly #dtype: DType;
  #iterations = 0;
  #pairs: Pair[] = [];
  #scale = 1;
  #length = 0;
  #direction: Tensor | null = null;
  #gradient: Tensor | null = null;

  /** @param parameters the tensors to optimise, all of one dtype */
  constructor(parameters: Iterable<Tensor>, options: LBFGSOptions = {}) {
    const names = 'lr maxIter maxEval toleranceGrad toleranceChange historySize lineSearchFn';
    checkOptions('LBFGS', options, names);
    const { lr = 1, maxIter = 20, historySize = 100 } = options;
    checkInteger('LBFGS', 'maxIter', maxIter, 1);
    const { maxEval = Math.floor((maxIter * 5) / 4) } = options;
    const { toleranceGrad = 1e-7, toleranceChange = 1e-9, lineSearchFn = null } = options;
    const isList =
      typeof parameters?.[Symbol.iterator] === 'function' && typeof parameters !== 'string' && !isTensor(parameters);
    checkFits('LBFGS', 'parameters', parameters, isList, 'a list of tensors: pass model.parameters()');
    if (Array.isArray(parameters)) checkList('LBFGS', 'parameters', parameters);
    this.parameters = [...parameters];
    for (const [i, parameter] of this.parameters.entries()) checkTensor('LBFGS', `parameters[${i}]`, parameter);
    if (this.parameters.length === 0) throw new NnError('LBFGS', 'there are no parameters; pass model.parameters()');
    this.#dtype = this.parameters[0]!.dtype;
    for (const { dtype } of this.parameters)
      if (dtype !== this.#dtype)
        throw new NnError('LBFGS', `parameters are ${this.#dtype} and ${dtype}; make them of one dtype`, [
          'parameters',
        ]);
    checkNumber('LBFGS', 'lr', lr, 0);
    checkInteger('LBFGS', 'maxEval', maxEval, 1);
    checkInteger('LBFGS', 'historySize', historySize, 1);
    checkNumber('LBFGS', 'toleranceGrad', toleranceGrad, 0);
    checkNumber('LBFGS', 'toleranceChange', toleranceChange, 0);
    const known = lineSearchFn === null || lineSearchFn === 'strongWolfe';
    checkFits('LBFGS', 'lineSearchFn', lineSearchFn, known, "'strongWolfe', or null");
    this.learningRate = lr;
    this.options = { maxIter, maxEval, toleranceGrad, toleranceChange, historySize, lineSearchFn };
  }

  /** The learning rate of the next step. */
  get currentRate(): number {
    return this.learningRate;
  }

  /** Iterations made. */
  get steps(): number {
    return this.#iterations;
  }

  /**
   * Takes up to `maxIter` steps.
   *
   * @param closure computes the loss and its gradients at the parameters as they are then, or returns the loss after `backward()`; it is called
   *   several times
   * @returns the loss before
   * @throws NnError for gradients that do not fit the parameters
   */
  async step(closure: Closure): Promise<number> {
    checkFunction('step', 'closure', closure);
    const { maxIter, maxEval, toleranceGrad, toleranceChange, lineSearchFn } = this.options;
    const lr = this.learningRate;
    checkNumber('step', 'learningRate', lr, 0);
    const start = await this.#evaluate(closure);
    let { loss, gradient } = start;
    let count = 1;
    let [largest, total] = (await read(() => [max(abs(gradient)), sum(abs(gradient))])) as [number, number];
    for (let i = 1; i <= maxIter && largest > toleranceGrad; i++) {
      this.#iterations++;
      if (this.#iterations === 1) this.#direct(quietly(() => gradient.mul(-1)));
      else await this.#newton(gradient);
      const before = loss;
      this.#hold(gradient);
      this.#length = this.#iterations === 1 ? Math.min(1, 1 / total) * lr : lr;
      const direction = this.#direction!;
      const [slope, reach] = (await read(() => [dot(gradient, direction), max(abs(direction))])) as [number, number];
      if (slope > -toleranceChange) break;
      if (lineSearchFn === 'strongWolfe') {
        const from = this.#flat();
        const found = await strongWolfe(
          async (length) => {
            this.#move(from, length);
            const point = await this.#evaluate(closure);
            const [inDirection] = await read(() => [dot(point.gradient, direction)]);
            return { ...point, slope: inDirection! };
          },
          this.#length,
          { loss, gradient, slope },
          reach,
          toleranceChange,
        );
        this.#length = found.length;
        ({ loss, gradient } = found);
        count += found.count;
        this.#move(from, this.#length);
        from.dispose();
      } else {
        const from = this.#flat();
        this.#move(from, this.#length);
        from.dispose();
        // The last one is not looked at: the next call begins there.
        if (i === maxIter) break;
        ({ loss, gradient } = await this.#evaluate(closure));
        count++;
      }
      [largest, total] = (await read(() => [max(abs(gradient)), sum(abs(gradient))])) as [number, number];
      if (count >= maxEval || reach * this.#length <= toleranceChange || Math.abs(loss - before) < toleranceChange)
        break;
    }
    if (gradient !== this.#gradient) gradient.dispose();
    return start.loss;
  }

  /** The loss and the gradient as one vector, which the caller disposes. */
  /** How `fit` takes its steps: iterations on each batch; loss and metrics are those before the first. */
  fitted(options: object): ClosureFit {
    const { precision, ...given } = options as Readonly<Record<string, unknown>>;
    const refused = ['compile', 'clipNorm', 'scaler'].find((name) => given[name] !== undefined);
    const name = refused ?? (precision === 'float16' ? 'precision' : undefined);
    if (name !== undefined)
      throw new NnError(
        'fit',
        `${name} is given, and LBFGS decides by the losses it asks for; leave ${name} out, or take an optimizer that is given gradients, such as Adam`,
        [name],
      );
    return async (ready, evaluate, sums, batch) => {
      // Kept over the reads of the step. Tensors of the batch itself are the caller's.
      const own = scope(ready);
      let first: typeof sums | null = sums;
      try {
        await this.step(() =>
          scope(() => {
            const found = evaluate(...own, first);
            first = null;
            return found;
          }),
        );
      } finally {
        const theirs = new Set<unknown>(Object.values(batch));
        for (const t of new Set(own)) if (!theirs.has(t)) t.dispose();
      }
    };
  }

  async #evaluate(closure: Closure): Promise<{ readonly loss: number; readonly gradient: Tensor }> {
    const { value, grads: found } = this.#asked(closure);
    const grads = inOrder(this.parameters, found);
    if (grads.length !== this.parameters.length)
      throw new NnError(
        'step',
        `${grads.length} gradients for ${this.parameters.length} parameters; pass one for each, or null`,
      );
    const gradient = quietly(() =>
      keep(
        concat(
          grads.map((grad, i) => {
            const { size, shape } = this.parameters[i]!;
            if (grad !== null && grad.shape.join() !== shape.join())
              throw new NnError(
                'step',
                `gradient ${i} has shape [${grad.shape.join(', ')}] and its parameter [${shape.join(', ')}]`,
              );
            return grad === null ? zeros([size], { dtype: this.#dtype }) : flatten(grad);
          }),
          0,
        ),
      ),
    );
    const loss = Number(await value.item());
    dispose(value);
    for (const grad of found) grad?.dispose();
    return { loss, gradient };
  }

  /** What the closure found: in its result, or after `backward()` with the parameters, whose gradients are cleared. */
  #asked(closure: Closure): Evaluated {
    const found = scope(closure);
    if (isTensor(found)) {
      const grads = this.parameters.map((parameter) => parameter.grad && keep(detach(parameter.grad)));
      if (grads.every((grad) => grad === null))
        throw new NnError(
          'step',
          'the function returned a loss and no parameter has a gradient; call backward() on it',
        );
      this.zeroGrad();
      return { value: found, grads };
    }
    const { value } = (found ?? {}) as Partial<Evaluated>;
    checkFits('step', 'result', found, isTensor(value), '{ value, grads } of lossAndGrad, or a loss after backward()');
    checkList('step', 'grads', found.grads);
    return found;
  }

  /** Clears what `backward()` accumulated. */
  zeroGrad(): void {
    for (const parameter of this.parameters) if (parameter.requiresGrad) parameter.grad = null;
  }

  /** The parameters as one vector, which the caller disposes. */
  #flat(): Tensor {
    return quietly(() =>
      keep(
        concat(
          this.parameters.map((parameter) => flatten(detach(parameter))),
          0,
        ),
      ),
    );
  }

  /** Puts the parameters so far from a point in the direction. */
  #move(from: Tensor, length: number): void {
    quietly(() => {
      const to = from.add(this.#direction!.mul(full([], length, { dtype: this.#dtype })));
      let start = 0;
      for (const parameter of this.parameters) {
        parameter.assign(reshape(narrow(to, 0, start, parameter.size), parameter.shape));
        start += parameter.size;
      }
    });
  }

  #direct(direction: Tensor): void {
    this.#direction?.dispose();
    this.#direction = keep(direction);
  }

  #hold(gradient: Tensor): void {
    if (this.#gradient !== gradient) this.#gradient?.dispose();
    this.#gradient = gradient;
  }

  /** The direction of Newton's step, by the history. */
  async #newton(gradient: Tensor): Promise<void> {
    const [move, change] = quietly(() => [
      keep(this.#direction!.mul(full([], this.#length, { dtype: this.#dtype }))),
      keep(gradient.sub(this.#gradient!)),
    ]) as [Tensor, Tensor];
    const [product, square] = (await read(() => [dot(change, move), dot(change, change)])) as [number, number];
    if (product > 1e-10) {
      if (this.#pairs.length === this.options.historySize) {
        const [oldest] = this.#pairs.splice(0, 1);
        oldest!.move.dispose();
        oldest!.change.dispose();
      }
      this.#pairs.push({ move, change, inverse: 1 / product });
      this.#scale = product / square;
    } else {
      move.dispose();
      change.dispose();
    }
    this.#direct(inTwoLoops(gradient, this.#pairs, this.#scale, this.#dtype));
  }

  /** The state in host memory, to go on from. */
  async state(): Promise<OptimizerState> {
    const own = this.#direction === null ? {} : { direction: this.#direction, gradient: this.#gradient! };
    const pairs = this.#pairs.flatMap(({ move, change }, i) => [
      [`${i}.move`, move] as const,
      [`${i}.change`, change] as const,
    ]);
    const slots = await hostState({ ...own, ...Object.fromEntries(pairs) });
    const length: StateArray = {
      dtype: 'float64',
      shape: [2 + this.#pairs.length],
      data: Float64Array.of(this.#length, this.#scale, ...this.#pairs.map(({ inverse }) => inverse)),
    };
    return { steps: this.#iterations, slots: { ...slots, numbers: length } };
  }

  /**
   * Goes on from a saved state.
   *
   * @throws NnError if the state is of other parameters; nothing is changed then
   */
  loadState(state: LoadedState): void {
    this.prepareState(state)();
  }

  /**
   * Checks a state, and gives what takes it over.
   *
   * @throws NnError if the state is of other parameters
   */
  prepareState(state: LoadedState): () => void {
    const op = 'loadState';
    const { steps, slots } = checkedState(state, this.parameters.length);
    const { numbers, ...vectors } = (slots instanceof Map ? Object.fromEntries(slots) : slots) as Record<
      string,
      Tensor | StateArray
    >;
    const size = this.parameters.reduce((count, parameter) => count + parameter.size, 0);
    const isList = numbers !== undefined && 'data' in numbers && !isTensor(numbers) && numbers.data.length >= 2;
    checkFits(
      op,
      "slot 'numbers'",
      numbers,
      isList,
      'an array of at least two numbers: the state is of another optimizer',
    );
    const [length, scale, ...inverses] = Array.from((numbers as StateArray).data as ArrayLike<number>, Number);
    const paired = ['direction', 'gradient'].filter((name) => Object.hasOwn(vectors, name));
    const wanted = [
      ...inverses.flatMap((_, i) => [`${i}.move`, `${i}.change`]),
      ...(paired.length > 0 ? ['direction', 'gradient'] : []),
    ];
    const names = new Set([...wanted, ...Object.keys(vectors)]);
    for (const name of names) {
      const vector = vectors[name];
      const fits =
        vector !== undefined &&
        wanted.includes(name) &&
        vector.shape?.join() === String(size) &&
        vector.dtype === this.#dtype;
      const pairs = `${inverses.length} pairs`;
      if (!fits)
        throw new NnError(
          op,
          `the slot '${name}' is ${vector === undefined ? 'missing' : `${vector.dtype} [${vector.shape?.join(', ')}]`}; a state of ${pairs} has vectors of ${size} numbers, ${this.#dtype}, for each: it is of other parameters`,
          [name],
        );
    }
    const vector = (name: string): Tensor => {
      const value = vectors[name]!;
      if (isTensor(value)) return keep(value.mul(1));
      return keep(tensor(value.data, { shape: value.shape, dtype: value.dtype }));
    };
    return () => {
      this.dispose();
      this.#pairs = inverses.map((inverse, i) => ({
        move: vector(`${i}.move`),
        change: vector(`${i}.change`),
        inverse,
      }));
      this.#direction = vectors.direction ? vector('direction') : null;
      this.#gradient = vectors.gradient ? vector('gradient') : null;
      [this.#iterations, this.#length, this.#scale] = [steps, length!, scale!];
    };
  }

  /** Gives the memory of the history back, and begins anew. The parameters stay. */
  dispose(): void {
    for (const { move, change } of this.#pairs) {
      move.dispose();
      change.dispose();
    }
    this.#direction?.dispose();
    this.#gradient?.dispose();
    [this.#pairs, this.#direction, this.#gradient] = [[], null, null];
    [this.#iterations, this.#length, this.#scale] = [0, 0, 1];
  }
}

showAs(LBFGS.prototype, ({ steps, learningRate, options, parameters }) => ({
  steps,
  learningRate,
  options,
  parameters: parameters.length,
}));
