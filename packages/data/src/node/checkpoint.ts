/** Checkpoints on disk, and the callback that writes them while `fit` of `@polygrad/nn` runs. Node only. */
import { join } from 'node:path';
import {
  type Checkpoint,
  type CheckpointOptions,
  type CheckpointParts,
  decodeCheckpoint,
  encodeCheckpoint,
  refuseModel,
  restoreCheckpoint,
  type SavedRandom,
} from '../checkpoint.ts';
import { checkFits, checkOptions, DataError, isPlain, shown } from '../errors.ts';
import { readWhole } from './files.ts';
import { writeWhole } from './write.ts';

/** Parts by name; a `config` among them would be lost without a word. */
const partTypes = { model: 'any', optimizer: 'any', random: 'any', scaler: 'any', others: 'any' } as const;

/**
 * Saves a model, and what its training needs to go on, in one safetensors file, whole or not at all.
 *
 * @param path where to; the folder is made if need be
 * @param parts the model, and if the training is to go on the optimizer, the random generator and the scaler of mixed precision
 * @param options config (JSON, to make the model again), epoch, step, metadata
 * @throws DataError `missing` if it cannot be written, and what was there stays; `argument` for parts and options that do not fit
 * @example
 * ```ts no-run: writes a file
 * const model = new Linear(2, 1);
 * const optimizer = new Adam(model.parameters());
 * await saveModel('runs/mlp.safetensors', { model, optimizer, random: { getRandomState, setRandomState } }, { config: { hidden: 64 } });
 * ```
 */
export async function saveModel(path: string, parts: CheckpointParts, options: CheckpointOptions = {}): Promise<void> {
  refuseModel('saveModel', parts);
  checkOptions('saveModel', parts, partTypes);
  checkOptions('saveModel', options, { config: 'any', epoch: 'number', step: 'number', metadata: 'object' });
  await writeWhole(path, await encodeCheckpoint(parts, options));
}

/**
 * Reads what `saveModel` wrote, or a safetensors file of another program, and gives the values to the parts that are given.
 *
 * @param path the file
 * @param parts what takes the values over; without, they are only returned, for instance to make the model of `config` first
 * @returns all that the file holds
 * @throws DataError for files that are missing or damaged, or lack a part
 * @example
 * ```ts no-run: writes a file
 * const model = new Linear(2, 1);
 * const optimizer = new Adam(model.parameters());
 * const { config, epoch } = await loadModel('runs/mlp.safetensors', { model, optimizer });
 * ```
 */
export async function loadModel(path: string, parts?: CheckpointParts): Promise<Checkpoint> {
  refuseModel('loadModel', parts);
  if (parts !== undefined) checkOptions('loadModel', parts, partTypes);
  const checkpoint = decodeCheckpoint(await readWhole(path), path);
  if (parts !== undefined) restoreCheckpoint(checkpoint, parts);
  return checkpoint;
}

/** What a checkpoint asks of the report of an epoch. */
interface Report {
  readonly epoch: number;
  readonly loss: number;
  readonly validation: { readonly loss: number } | null;
}

/** What a checkpoint asks of the report of a step. */
interface StepReport {
  readonly epoch: number;
  readonly step: number;
  readonly steps: number | undefined;
}

/** Options of `checkpoints`. */
export interface CheckpointsOptions<R extends Report = Report> extends Omit<CheckpointParts, 'random'> {
  /**
   * The random generator, `{ getRandomState, setRandomState }` of `@polygrad/core`: dropout and augmentation draw from it. False leaves it out, and a
   * training that goes on draws other numbers.
   */
  readonly random: SavedRandom | false;
  /** Epochs between two files. Default 1; the best is looked for after each. */
  readonly every?: number;
  /** Steps between two files within an epoch, for long ones (default: none). Reads the whole state each time. */
  readonly everySteps?: number;
  /** The number that says which epoch was best. Default the validation loss, or the loss without validation. */
  readonly watch?: (report: R) => number;
  /** Whether the least or the greatest is best. Default 'min'. */
  readonly best?: 'min' | 'max';
  /** Put into every file. */
  readonly config?: unknown;
}

/** Callbacks of `fit` that write checkpoints. */
export interface Checkpoints<R extends Report = Report> {
  onStep(report: StepReport): Promise<void> | undefined;
  onEpochEnd(report: R): Promise<void>;
  /** The epoch of best.safetensors, and its number; null before the first. */
  readonly best: { readonly epoch: number; readonly value: number } | null;
  /** Gives the parts the values of best.safetensors. */
  restoreBest(): Promise<void>;
  /** Gives the parts the values of last.safetensors, if it is there. Returns the epoch to go on with: `firstEpoch` of `fit`. */
  resume(): Promise<number>;
  /** After `resume`: steps of that epoch that are taken, too. `firstStep` of `fit`. */
  readonly firstStep: number;
}

/** The options with their defaults, once they are known to fit. */
function checked<R extends Report>(
  folder: string,
  options: CheckpointsOptions<R>,
): Required<Pick<CheckpointsOptions<R>, 'every' | 'watch' | 'best'>> {
  checkFits('checkpoints', 'folder', folder, typeof folder === 'string', 'a path');
  checkFits('checkpoints', 'options', options, isPlain(options), 'an object with the model');
  const { everySteps } = options;
  const { every = 1, watch = (report: R) => report.validation?.loss ?? report.loss, best = 'min' } = options;
  const wrong = (name: string, value: unknown, wanted: string): DataError =>
    new DataError('argument', name, `[checkpoints] bad ${name}: ${shown(value)}; must be ${wanted}`);
  if (!Number.isSafeInteger(every) || every < 1) throw wrong('every', every, 'a whole number, 1 or more');
  if (everySteps !== undefined && (!Number.isSafeInteger(everySteps) || everySteps < 1))
    throw wrong('everySteps', everySteps, 'a whole number, 1 or more');
  if (best !== 'min' && best !== 'max') throw wrong('best', best, "'min' or 'max'");
  if (typeof watch !== 'function') throw wrong('watch', watch, 'a function of the report');
  // Without it a training that was cut off goes on with other masks of dropout, and nobody notices.
  if (options.random === undefined)
    throw new DataError(
      'argument',
      'random',
      '[checkpoints] no random generator, so that resume() would go on with other random numbers (dropout, augmentation); add random: { getRandomState, setRandomState } of @polygrad/core, or random: false',
    );
  return { every, watch, best };
}

/** The parts of a training, less those that are not given. */
function partsOf({ model, optimizer, random, scaler, others }: CheckpointsOptions<never>): CheckpointParts {
  return {
    model,
    ...(optimizer && { optimizer }),
    ...(random && { random }),
    ...(scaler && { scaler }),
    ...(others && { others }),
  };
}

/**
 * Writes last.safetensors after epochs of `fit`, and best.safetensors after each that was better than all before, whole or not at all. With
 * optimizer, random generator and the scaler (mixed precision) among the parts, a training that was cut off goes on bit for bit from `resume()`.
 *
 * @param folder where to; made if need be
 * @param options model, optimizer, random, scaler, others, every (1), everySteps, watch, best ('min'), config
 * @throws DataError `argument` for options that do not fit, and where the random generator is neither given nor left out by `random: false`; where a
 *   file cannot be written: the training ends with it
 * @example
 * ```ts no-run: writes a file
 * const model = new Linear(2, 1);
 * const optimizer = new Adam(model.parameters());
 * const files = checkpoints('runs/mlp', { model, optimizer, random: { getRandomState, setRandomState } });
 * const firstEpoch = await files.resume();
 * const { firstStep } = files;
 * const options = { epochs: 20 - firstEpoch, firstEpoch, firstStep, callbacks: [files] }; // for fit
 * await files.restoreBest();
 * ```
 */
export function checkpoints<R extends Report = Report>(folder: string, options: CheckpointsOptions<R>): Checkpoints<R> {
  const { every, watch, best: direction } = checked(folder, options);
  const { everySteps } = options;
  const [last, top] = ['last', 'best'].map((name) => join(folder, `${name}.safetensors`)) as [string, string];
  const parts = partsOf(options);
  let best: Checkpoints['best'] = null;
  let firstStep = 0;
  const encoded = (where: { epoch: number; step?: number }, top: Checkpoints['best']): Promise<Uint8Array> =>
    encodeCheckpoint(parts, {
      ...where,
      config: options.config,
      // NaN is no JSON: numbers as text.
      ...(top && { metadata: { best_epoch: String(top.epoch), best_value: String(top.value) } }),
    });
  const isMissing = (error: unknown): boolean =>
    error instanceof DataError && (error.cause as NodeJS.ErrnoException | undefined)?.code === 'ENOENT';
  return {
    get best() {
      return best;
    },
    get firstStep() {
      return firstStep;
    },
    onStep({ epoch, step, steps }) {
      // The last step of an epoch is followed by its end.
      if (everySteps === undefined || step % everySteps !== 0 || step === steps) return undefined;
      return encoded({ epoch, step }, best).then((bytes) => writeWhole(last, bytes));
    },
    async onEpochEnd(report) {
      const value = watch(report);
      const epoch = report.epoch + 1;
      // A number is better than NaN.
      const isBest =
        best === null ||
        (direction === 'min' ? value < best.value : value > best.value) ||
        (Number.isNaN(best.value) && !Number.isNaN(value));
      if (!isBest && epoch % every !== 0) return;
      const next = isBest ? { epoch: report.epoch, value } : best!;
      const bytes = await encoded({ epoch }, next);
      if (isBest) await writeWhole(top, bytes);
      if (epoch % every === 0) await writeWhole(last, bytes);
      best = next;
    },
    async restoreBest() {
      await loadModel(top, parts);
    },
    async resume() {
      try {
        const { epoch, step, metadata } = await loadModel(last, parts);
        firstStep = step ?? 0;
        const { best_epoch, best_value } = metadata;
        if (best_epoch !== undefined) best = { epoch: Number(best_epoch), value: Number(best_value) };
        return epoch ?? 0;
      } catch (error) {
        if (isMissing(error)) return 0;
        throw error;
      }
    },
  };
}
