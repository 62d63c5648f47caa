/**
 * saveModel and loadModel: a training in one safetensors file. `@polygrad/data` knows the format and writes the file; it is loaded only then, so that pages and
 * programs that save nothing carry none of it. Bytes without files are its `encodeCheckpoint` and `decodeCheckpoint`.
 */
import { getRandomState, setRandomState } from '@polygrad/core/functions';
import { checkFits, checkOptions, NnError } from '../errors.ts';
import { type AnyModule, isModule } from '../module/module.ts';
import type { StateArray } from '../module/state.ts';

/** An optimizer or a scaler: its state can be read and loaded again. */
interface Stateful {
  state(): Promise<unknown>;
  loadState(state: never): void;
}

/** What is saved beside a model, so that its training can go on. */
export interface TrainingParts {
  readonly model: AnyModule;
  readonly optimizer?: Stateful;
  /** Where the random generator stands (default false); or `{ getRandomState, setRandomState }`. */
  readonly random?: boolean | { getRandomState(): unknown; setRandomState(state: never): void };
  /** The `GradScaler` of a training in float16. */
  readonly scaler?: Stateful;
  /** More of a state like an optimizer's, by names of your own: a second optimizer, a `WeightAverage`. */
  readonly others?: Readonly<Record<string, Stateful>>;
}

/** What is written beside the parts. */
export interface SaveOptions {
  /** Anything JSON holds, such as the layers' sizes, to make the model again. */
  readonly config?: unknown;
  /** Epochs completed: `firstEpoch` of a `fit` that goes on. */
  readonly epoch?: number;
  /** Steps of the next epoch that are taken, too: its `firstStep`. */
  readonly step?: number;
  /** Free text for the header. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** What a file holds. */
export interface SavedTraining {
  /** Parameters and buffers by name. */
  readonly model: ReadonlyMap<string, StateArray>;
  /** Null where no optimizer was saved. */
  readonly optimizer: { readonly steps: number; readonly slots: ReadonlyMap<string, StateArray> } | null;
  /** Position of the random generator; null if it was not saved. */
  readonly random: unknown;
  /** The state of the scaler; null if it was not saved. */
  readonly scaler: unknown;
  /** The states of others, by their names. */
  readonly others: Readonly<
    Record<string, { readonly steps: number; readonly slots: ReadonlyMap<string, StateArray> }>
  >;
  readonly config: unknown;
  readonly epoch: number | null;
  /** Further steps of the epoch after these that are taken; null if that was not saved. */
  readonly step: number | null;
  readonly metadata: Readonly<Record<string, string>>;
}

/** The little that is used of `@polygrad/data/node`. */
interface Files {
  saveModel(path: string, parts: object, options: SaveOptions): Promise<void>;
  loadModel(path: string, parts?: object): Promise<SavedTraining>;
}

/** Loads the package under a name that bundlers do not follow: it is an optional peer, and this part of it is for Node. */
async function loadFiles(op: string): Promise<Files> {
  const { process } = globalThis as { process?: { versions?: { node?: string } } };
  if (process?.versions?.node === undefined)
    throw new NnError(
      op,
      'there are no files here, only in Node; encodeCheckpoint and decodeCheckpoint of @polygrad/data do the same with bytes',
    );
  const name = '@polygrad/data/node';
  try {
    return (await import(/* webpackIgnore: true */ /* @vite-ignore */ name)) as Files;
  } catch (error) {
    const isMissing = (error as { code?: string }).code === 'ERR_MODULE_NOT_FOUND';
    if (!isMissing || !String(error).includes('@polygrad/data')) throw error;
    throw new NnError(op, 'files need the package @polygrad/data, which is not installed; npm install @polygrad/data');
  }
}

/** The parts for the data package, which does not know where core's random generator is. */
function partsOf(op: string, given: AnyModule | TrainingParts): object {
  if (isModule(given)) return { model: given };
  const isObject = typeof given === 'object' && given !== null;
  checkFits(op, 'model', given, isObject, 'a Module, or an object with a model');
  checkOptions(op, given, 'model optimizer random scaler others');
  checkFits(op, 'model', given.model, isModule(given.model), 'a Module');
  const { random = false, ...parts } = given;
  if (random === false) return parts;
  return { ...parts, random: random === true ? { getRandomState, setRandomState } : random };
}

function checkPath(op: string, path: unknown): void {
  checkFits(
    op,
    'path',
    path,
    typeof path === 'string' && path !== '',
    'the path of a file, and the model comes second',
  );
}

/**
 * Saves a model, and what its training needs to go on, in one safetensors file. It is written whole or not at all: a full disk or a crash leaves what
 * was there. Other programs read the model from it. For Node, with `@polygrad/data` installed.
 *
 * @param path where to; the folder is made if need be
 * @param parts the model, or it with the optimizer, the random generator (`random: true`), the scaler, and others
 * @param options config (JSON, to make the model again), epoch, step, metadata
 * @throws NnError without Node or the data package, and for parts that do not fit; DataError where the file cannot be written
 * @example
 * ```ts no-run: writes a file
 * const model = new Linear(2, 1);
 * const optimizer = new Adam(model.parameters());
 * await saveModel('runs/mlp.safetensors', { model, optimizer, random: true }, { config: { hidden: 64 }, epoch: 3 });
 * ```
 */
export async function saveModel(
  path: string,
  parts: AnyModule | TrainingParts,
  options: SaveOptions = {},
): Promise<void> {
  checkPath('saveModel', path);
  checkOptions('saveModel', options, 'config epoch# step# metadata');
  const whole = partsOf('saveModel', parts);
  await (await loadFiles('saveModel')).saveModel(path, whole, options);
}

/**
 * Reads what `saveModel` wrote, or a safetensors file of another program, and gives the values to the parts that are given. For Node, with
 * `@polygrad/data` installed.
 *
 * @param path the file
 * @param parts what takes the values over; without, they are only returned, for instance to make the model of `config` first
 * @returns all that the file holds
 * @throws NnError without Node or the data package, and where names or shapes are not the model's; DataError for files that are missing, damaged, or lack a part
 * @example
 * ```ts no-run: reads a file
 * const model = new Linear(2, 1);
 * const optimizer = new Adam(model.parameters());
 * const { config, epoch } = await loadModel('runs/mlp.safetensors', { model, optimizer, random: true });
 * ```
 */
export async function loadModel(path: string, parts?: AnyModule | TrainingParts): Promise<SavedTraining> {
  checkPath('loadModel', path);
  const whole = parts === undefined ? undefined : partsOf('loadModel', parts);
  return (await loadFiles('loadModel')).loadModel(path, whole);
}
