/**
 * fit: the training loop. Every step is one scope - upload, loss, gradients, optimizer, sums of the loss - and so one submission. The sums are read
 * every few steps, so the loop seldom waits for the device.
 */
import {
  announce,
  flush,
  getEngine,
  isTensor,
  noGrad,
  type ReadyProgress,
  type SmallFloat,
  scope,
  stats,
  type Tensor,
  throttle,
  warmup,
} from '@polygrad/core/functions';
import { told } from '@polygrad/core/engine';
import { checkFits, checkFunction, checkInteger, checkList, checkRequired, NnError } from '../errors.ts';
import { checkModule, type Module } from '../module/module.ts';
import { clipGradNorm } from '../optim/clip.ts';
import { Optimizer } from '../optim/optimizer.ts';
import type { Gradients } from '../optim/owners.ts';
import type { ClosureFit, ClosureOptimizer } from '../optim/closure.ts';
import type { GradScaler } from '../precision/grad-scaler.ts';
import { mixedRunner, ownScaler, type Runner } from '../precision/mixed.ts';
import type { BatchTransform } from './augment.ts';
import { passUntil } from './abort.ts';
import { type BatchSource, checkSource, lastOf, lengthOf, toDevice, type TrainBatch } from './batch.ts';
import type { Callback, EpochReport, LoopControl, StepReport } from './callback.ts';
import { evaluate, type LossFunction } from './evaluate.ts';
import { checkMetrics, Meter, type Metrics, scoresOf } from './meter.ts';
import { type ProgressStyle, progress } from './progress.ts';
import { lossAndGrad } from './loss-and-grad.ts';

/** Options of `fit`. */
export interface FitOptions {
  /** Made over the model's parameters. One that takes a closure, as `LBFGS`, takes its iterations on each batch; it reads losses meanwhile. */
  readonly optimizer: Optimizer | ClosureOptimizer;
  /** Loss of a batch: the mean over its rows. */
  readonly loss: LossFunction;
  /** Changes of each training batch before its step, in this order; metrics see the targets as they were. */
  readonly transforms?: readonly BatchTransform[];
  /** Passes over the batches, from `firstEpoch` on: a training of 20 that goes on with epoch 8 has 12. */
  readonly epochs: number;
  /** What to measure on training and validation batches besides the loss. */
  readonly metrics?: Metrics;
  /** Batches to evaluate after every epoch. */
  readonly validation?: BatchSource;
  readonly callbacks?: readonly Callback[];
  /** How to show progress (default 'none'); `progress(...)` among the callbacks does the same with more choice. */
  readonly progress?: ProgressStyle;
  /** Largest norm of all gradients together (default: no limit). */
  readonly clipNorm?: number;
  /** Steps between two reads of the running loss (default 50). */
  readonly readEvery?: number;
  /** Number of the first epoch: for going on with a training (default 0). */
  readonly firstEpoch?: number;
  /** Steps of the first epoch that an earlier call has taken (default 0). Their batches are passed over, and the epoch's report is of the others. */
  readonly firstStep?: number;
  /**
   * Mixed precision: forward pass and loss run in `autocast` (default: they do not). In float16 the loss is scaled, and steps whose gradients overflow are left
   * out.
   */
  readonly precision?: SmallFloat;
  /** Scales the loss, with `precision`: pass one to keep its state (default: a new one for float16, none for bfloat16). */
  readonly scaler?: GradScaler;
  /**
   * `compile` of core: steps are recorded at first and replayed from then on (default: each is recorded). What model, loss and metrics read of JavaScript counts
   * as recorded, see docs/compile.md. Transforms and callbacks run every time; what transforms compute is no part of a step and may be rounded otherwise.
   */
  readonly compile?: (step: Step) => Step & { dispose(): void };
  /** Ends the training with the signal's reason: between two steps, and while a batch is waited for. */
  readonly signal?: AbortSignal;
}

/** What a training left behind. */
export interface History {
  readonly epochs: readonly EpochReport[];
  /** True if a callback stopped it. */
  readonly stopped: boolean;
}

type Hook = Exclude<keyof Callback, 'onStep' | 'onCompile'>;

async function tell<H extends Hook>(
  callbacks: readonly Callback[],
  hook: H,
  ...args: Parameters<NonNullable<Callback[H]>>
): Promise<void> {
  for (const callback of callbacks) {
    const call = callback[hook] as ((...given: unknown[]) => void | Promise<void>) | undefined;
    await call?.apply(callback, args);
  }
}

/** A batch after all transforms. */
function transformed(transforms: readonly BatchTransform[], x: Tensor, y: Tensor): readonly [Tensor, Tensor] {
  let batch: readonly [Tensor, Tensor] = [x, y];
  for (const transform of transforms) {
    const next = transform(...batch);
    const isPair = Array.isArray(next) && next.length === 2 && next.every(isTensor);
    checkFits('fit', 'result of a transform', next, isPair, 'a list of two tensors, [x, y]');
    for (const part of next)
      if (part.shape[0] !== x.shape[0])
        throw new NnError('fit', `a transform made ${part.shape[0]} rows of ${x.shape[0]}; keep their number`);
    batch = next;
  }
  return batch;
}

/** What a step computes from a batch after its transforms. `y` are the targets before them. */
type Step = (x: Tensor, target: Tensor, y: Tensor) => void;

/** Loss and gradients of a batch; loss and metrics go into the meter, where there is one. */
type Evaluate = (...batch: [...Parameters<Step>, meter: Meter | null]) => { value: Tensor; grads: Gradients };

function evaluationOf(
  model: Module,
  options: FitOptions,
  names: readonly string[],
  run: Runner,
  scaler: GradScaler | null,
): Evaluate {
  return (x, target, y, meter) => {
    const rows = y.shape[0]!;
    const { value, grads, aux } = lossAndGrad(model, () => {
      const [prediction, loss] = run(() => {
        const made = model.forward(x);
        return [made, options.loss(made, target)] as const;
      });
      return [scaler === null ? loss : scaler.scale(loss), { prediction, loss }] as const;
    });
    if (meter !== null) {
      const scores = names.map((name) => scoresOf(options.metrics![name]!, aux.prediction, y));
      meter.add([aux.loss.mul(rows), ...scores], rows);
    }
    return { value, grads };
  };
}

/** One optimizer step, and its loss and metrics into the meter. */
function stepOf(
  optimizer: Optimizer,
  evaluate: Evaluate,
  meter: Meter,
  scaler: GradScaler | null,
  clipNorm: number | undefined,
): Step {
  return (x, target, y) => {
    const found = evaluate(x, target, y, meter);
    const grads = scaler === null ? found.grads : scaler.unscale(optimizer, found.grads);
    if (clipNorm !== undefined) clipGradNorm(grads, clipNorm);
    if (scaler === null) optimizer.step(grads);
    else {
      scaler.step(optimizer, grads);
      scaler.update();
    }
  };
}

/** A batch on the device, after its transforms, and its targets before them. */
function readyBatch(batch: TrainBatch, transforms: readonly BatchTransform[]): Parameters<Step> {
  const { x: given, y } = toDevice('fit', batch);
  return [...noGrad(() => transformed(transforms, given, y)), y];
}

/** A step on a batch of the data. */
function trainStep(batch: TrainBatch, transforms: readonly BatchTransform[], step: Step): void {
  scope(() => step(...readyBatch(batch, transforms)));
}

/** The step as `compile` of the options makes it. Throws NnError if that is no compiled function. */
function compiled(compile: NonNullable<FitOptions['compile']>, plain: Step): ReturnType<typeof compile> {
  const made = compile(plain);
  const isReplay = typeof made === 'function' && typeof made.dispose === 'function';
  checkFits(
    'fit',
    'what compile made',
    made,
    isReplay,
    'a function to call and dispose of; pass compile of @polygrad/core',
  );
  return made;
}

/** Throws NnError unless a callback is an object; what is named as its functions are, and none of them, would never be called. */
function checkCallback(callback: Callback): void {
  const isObject = typeof callback === 'object' && callback !== null;
  checkFits('fit', 'callback', callback, isObject, 'an object');
  for (const name in callback)
    if (/^on[A-Z_]/.test(name) && !/^on(Train|Epoch)(Begin|End)$|^onStep$|^onCompile$/.test(name))
      throw new NnError('fit', `nothing calls '${name}' of a callback; see Callback`);
}

/** What stands for options that `fit` of other libraries has. */
const otherOptions: Readonly<Record<string, string>> = {
  batchsize: 'data gives batches, as Dataset.from(rows).batch(32) does',
  shuffle: 'data gives batches in order, or another one, as Dataset.from(rows).shuffle({ seed: 1 }).batch(32) does',
  lr: 'the optimizer has it, as new Adam(model.parameters(), { lr: 0.001 })',
  learningrate: 'the optimizer has it, as new Adam(model.parameters(), { lr: 0.001 })',
};

/** Throws NnError for options that `fit` of other libraries has. */
function refuseOthers(options: FitOptions): void {
  for (const name of Object.keys(options ?? {})) {
    const instead = otherOptions[name.toLowerCase().replaceAll('_', '')];
    if (instead !== undefined) throw new NnError('fit', `no option '${name}'; ${instead}`, [name]);
  }
}

/**
 * Throws NnError where layers were replaced after the optimizer was made: the new ones would never learn. It may have fewer parameters than the model, or
 * those of others too, but not both.
 */
function refuseReplaced(model: Module, parameters: readonly Tensor[], own: ReadonlySet<Tensor>): void {
  const others = parameters.filter((parameter) => !own.has(parameter)).length;
  if (others === 0) return;
  const [name] = model.namedParameters().find(([, p]) => p.requiresGrad && !parameters.includes(p)) ?? [];
  if (name !== undefined)
    throw new NnError(
      'fit',
      `the optimizer lacks parameter '${name}', and ${others} of its ${parameters.length} are not the model's; after replacing layers make it anew over model.parameters()`,
      ['optimizer', name],
    );
}

/** Throws NnError for arguments of `fit` that do not fit. Returns how the optimizer takes a step if it takes a closure. */
function checkFit(model: Module, data: BatchSource, options: FitOptions): ClosureFit | undefined {
  checkModule('fit', model);
  checkSource('fit', 'data', data);
  if (told) refuseOthers(options);
  checkRequired(
    'fit',
    options,
    'optimizer loss! epochs transforms metrics validation callbacks progress clipNorm compile readEvery firstEpoch firstStep precision scaler signal',
  );
  const { optimizer, epochs, readEvery = 50, firstEpoch = 0, firstStep = 0 } = options;
  checkInteger('fit', 'epochs', epochs, 0);
  checkInteger('fit', 'readEvery', readEvery, 1);
  checkInteger('fit', 'firstEpoch', firstEpoch, 0);
  checkInteger('fit', 'firstStep', firstStep, 0);
  const asking = (optimizer as Partial<ClosureOptimizer> | null)?.fitted?.(options);
  const isOptimizer = asking !== undefined || optimizer instanceof Optimizer;
  checkFits('fit', 'optimizer', optimizer, isOptimizer, 'an Optimizer, such as new Adam(model.parameters())');
  const learned = new Set(model.parameters());
  if (!optimizer.parameters.some((parameter) => learned.has(parameter)))
    throw new NnError(
      'fit',
      `the optimizer has ${optimizer.parameters.length} parameters, none of the model's ${learned.size}; make it over model.parameters()`,
      ['optimizer'],
    );
  if (told) refuseReplaced(model, optimizer.parameters, learned);
  checkFunction('fit', 'loss', options.loss);
  const { compile, metrics = {}, validation } = options;
  if (compile !== undefined) checkFunction('fit', 'compile', compile);
  checkMetrics('fit', metrics);
  if (validation !== undefined) checkSource('fit', 'validation', validation);
  const { transforms = [], callbacks = [], signal, scaler, precision } = options;
  checkList('fit', 'transforms', transforms);
  for (const transform of transforms) checkFunction('fit', 'transform', transform);
  checkList('fit', 'callbacks', callbacks);
  for (const callback of callbacks) checkCallback(callback);
  if (signal !== undefined)
    checkFits('fit', 'signal', signal, typeof signal?.throwIfAborted === 'function', 'an AbortSignal');
  if (scaler !== undefined)
    checkFits('fit', 'scaler', scaler, precision !== undefined, "left out without precision: 'float16'");
  if (Object.keys(metrics).includes('loss'))
    throw new NnError('fit', "no metric may have the name 'loss'; rename it", ['loss']);
  return asking;
}

/**
 * Trains a model: for every batch of every epoch, one step of the optimizer along the gradient of the loss.
 *
 * On engines that compile beside the program (WebGPU, OpenCL) the first step is rehearsed with `warmup` of core. So its kernels are ready when it
 * runs. That calls model and loss once more, and callbacks hear of it by `onCompile`. Data with `rows` and `batchSize` tells whether the last batch
 * is smaller. Then a step of its size is announced by `announce` of core, which calls them once more where plans may depend on it.
 *
 * @param model a module from inputs `x` to predictions; put into training mode for the steps
 * @param data batches with `x` and `y`, as `batches(...)` of `@polygrad/data` gives them; pass `n` is `data.epoch(n)`
 *   where there is that
 * @param options see `FitOptions`
 * @returns a report per epoch
 * @throws NnError for options that do not fit, empty data, and a loss that is not finite when it is read
 * @example
 * const data = [{ x: tensor([[-2], [2], [-1], [1]]), y: tensor([0, 1, 0, 1], { dtype: 'int32' }) }];
 * const model = new Linear(1, 2);
 * const { epochs } = await fit(model, data, {
 *   optimizer: new Adam(model.parameters(), { lr: 0.1 }),
 *   loss: crossEntropy,
 *   epochs: 50,
 *   metrics: { accuracy },
 * });
 * epochs.at(-1)?.metrics; // { accuracy: 1 }
 */
export async function fit(model: Module, data: BatchSource, options: FitOptions): Promise<History> {
  return new Training(model, data, options).run();
}

/** One call of `fit`. */
class Training {
  readonly #model: Module;
  readonly #data: BatchSource;
  readonly #options: FitOptions;
  readonly #asking: ReturnType<typeof checkFit>;
  readonly #callbacks: readonly Callback[];
  readonly #steps: ReturnType<typeof lengthOf>;
  readonly #control: LoopControl;
  readonly #meter: Meter;
  readonly #evaluation: ReturnType<typeof evaluationOf>;
  /** The scaler of `precision` alone, which nobody else gives back. */
  readonly #ownScaler: ReturnType<typeof ownScaler>;
  readonly #onBatch: ReturnType<typeof stepOf>;
  #replayed: ReturnType<typeof compiled> | undefined;
  #isPrepared = false;
  #isStopped = false;

  constructor(model: Module, data: BatchSource, options: FitOptions) {
    this.#asking = checkFit(model, data, options);
    this.#model = model;
    this.#data = data;
    this.#options = options;
    const { optimizer, epochs, firstEpoch = 0, metrics = {}, precision, compile } = options;
    this.#callbacks = [...(options.callbacks ?? []), progress(options.progress ?? 'none')];
    this.#control = {
      model,
      epochs: firstEpoch + epochs,
      stop: () => {
        this.#isStopped = true;
      },
    };
    this.#steps = lengthOf(data);
    const names = Object.keys(metrics);
    this.#meter = new Meter(['loss', ...names], metrics);
    this.#ownScaler = options.scaler !== undefined ? null : ownScaler(precision);
    const scaler = options.scaler ?? this.#ownScaler;
    this.#evaluation = evaluationOf(model, options, names, mixedRunner(precision), scaler);
    const plain = stepOf(optimizer as Optimizer, this.#evaluation, this.#meter, scaler, options.clipNorm);
    try {
      this.#replayed = compile === undefined ? undefined : compiled(compile, plain);
    } catch (error) {
      this.#release();
      throw error;
    }
    this.#onBatch = this.#replayed ?? plain;
  }

  #release(): void {
    this.#replayed?.dispose();
    this.#meter.dispose();
    this.#ownScaler?.dispose();
  }

  /** All epochs. */
  async run(): Promise<History> {
    const { epochs, firstEpoch = 0 } = this.#options;
    const [callbacks, control] = [this.#callbacks, this.#control];
    const reports: EpochReport[] = [];
    try {
      await tell(callbacks, 'onTrainBegin', control);
      for (let epoch = firstEpoch; epoch < firstEpoch + epochs && !this.#isStopped; epoch++) {
        await tell(callbacks, 'onEpochBegin', epoch, control);
        const trained = await this.#train(epoch);
        const report: EpochReport = { epoch, ...trained, validation: await this.#validate() };
        reports.push(report);
        await tell(callbacks, 'onEpochEnd', report, control);
      }
    } finally {
      this.#release();
      await tell(callbacks, 'onTrainEnd', control);
    }
    return { epochs: reports, stopped: this.#isStopped };
  }

  async #validate(): Promise<EpochReport['validation']> {
    const { validation, precision, loss, metrics = {}, signal } = this.#options;
    if (validation === undefined) return null;
    const batches = passUntil(validation, 0, signal);
    const checked = await evaluate(this.#model, batches, { ...(precision && { precision }), loss, metrics });
    return { loss: checked.loss, metrics: checked.metrics };
  }

  /** The steps of an epoch, but for those that `firstStep` leaves out. */
  async #train(epoch: number): Promise<Required<Omit<EpochReport, 'epoch' | 'validation'>>> {
    const { readEvery = 50, firstEpoch = 0, firstStep = 0, transforms = [], signal } = this.#options;
    const meter = this.#meter;
    meter.reset();
    this.#model.train();
    const start = performance.now();
    let planned = 0;
    const before = epoch === firstEpoch ? firstStep : 0;
    let passed = 0;
    let current: Pick<StepReport, 'loss' | 'metrics'> = { loss: null, metrics: {} };
    for await (const batch of passUntil(this.#data, epoch, signal)) {
      signal?.throwIfAborted();
      if (passed < before) {
        passed++;
        continue;
      }
      const step = (): void => trainStep(batch, transforms, this.#onBatch);
      if (!this.#isPrepared && this.#asking === undefined) await this.#prepare(step, batch);
      const { plansMade } = stats();
      if (this.#asking === undefined) step();
      else await this.#asking(() => readyBatch(batch, transforms), this.#evaluation, meter, batch);
      const newPlans = Math.max(0, stats().plansMade - plansMade);
      if (newPlans > 0) planned++;
      if (meter.batches % readEvery === 0) current = await this.#readMeter(epoch);
      const report: StepReport = { epoch, step: before + meter.batches, steps: this.#steps, ...current, newPlans };
      for (const callback of this.#callbacks) {
        const waiting = callback.onStep?.(report, this.#control);
        if (waiting !== undefined) await waiting;
      }
      await throttle();
    }
    if (passed < before)
      throw new NnError(
        'fit',
        `firstStep is ${before} and epoch ${epoch} has ${passed} batches; is the data another?`,
        ['firstStep'],
      );
    if (meter.batches === 0 && before > 0) return { loss: Number.NaN, metrics: {}, seconds: 0, steps: 0, planned: 0 };
    if (meter.batches === 0)
      throw new NnError(
        'fit',
        `there are no batches in epoch ${epoch + 1}; give a list or a Dataset that has rows, for iterators end`,
      );
    const read = await this.#readMeter(epoch);
    return { ...read, seconds: (performance.now() - start) / 1000, steps: meter.batches, planned };
  }

  /** Means of the epoch so far. */
  async #readMeter(epoch: number): Promise<{ readonly loss: number; readonly metrics: Record<string, number> }> {
    const { loss, ...metrics } = await this.#meter.read();
    if (Number.isFinite(loss)) return { loss: loss!, metrics };
    const where = `epoch ${epoch + 1}, within the first ${this.#meter.batches} steps`;
    // Before the second step no learning rate can be the reason.
    const isFirst = epoch === (this.#options.firstEpoch ?? 0) && this.#meter.batches === 1;
    const remedy = isFirst
      ? 'look for NaN and wrong class numbers in the batch'
      : 'lower the learning rate or set clipNorm';
    throw new NnError('fit', `the loss became ${loss} (${where}); ${remedy}`, ['loss']);
  }

  /**
   * Announces a smaller last batch, so that one plan serves both where that is as fast. And where kernels are made beside the program, the first step
   * would hold it up or seem to do nothing: they are made before.
   */
  async #prepare(step: () => void, batch: TrainBatch): Promise<void> {
    this.#isPrepared = true;
    const last = lastOf(this.#data, batch);
    if (last !== null) this.#announce(last);
    if (getEngine().ready === undefined) return;
    const onCompile = (made: ReadyProgress): void => {
      for (const callback of this.#callbacks) callback.onCompile?.(made, this.#control);
    };
    // What is wrong with a step is told when it runs.
    await warmup(step, { onCompile }).catch(() => {});
    this.#options.signal?.throwIfAborted();
  }

  /** Announces a step on a batch. */
  #announce(batch: TrainBatch): void {
    const { transforms = [] } = this.#options;
    const step: Step = (...given) => {
      this.#onBatch(...given);
      // A compiled step ends with a flush.
      if (this.#replayed !== undefined) flush();
    };
    try {
      announce(() => trainStep(batch, transforms, step));
    } catch {
      // What is wrong with a step is told when it runs.
    }
  }
}
