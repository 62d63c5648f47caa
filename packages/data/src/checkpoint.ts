/**
 * A training in one safetensors file: the model's parameters and buffers under their own names, the optimizer's state under names of its own. The
 * free text of the file has what JSON holds (steps taken, where the random generator stands, the configuration). Other programs read the model from
 * it.
 */
import type { HostArray, HostDType, HostTypedArray } from './arrays.ts';
import { DataError, shown } from './errors.ts';
import { decodeSafetensors, encodeSafetensors } from './safetensors.ts';
import { shownValue } from './safetensors-rules.ts';

/** What a checkpoint takes of a tensor. */
export interface SavedTensor {
  readonly dtype: HostDType;
  readonly shape: readonly number[];
  data(): Promise<HostTypedArray>;
}

/** A model: a Module of `@polygrad/nn`, or anything with its two methods. */
export interface SavedModel {
  stateDict(): Readonly<Record<string, SavedTensor>>;
  loadStateDict(state: ReadonlyMap<string, HostArray>): unknown;
}

/** An optimizer of `@polygrad/nn`, or anything with its two methods. What its state has beside steps and slots is kept as JSON. */
export interface SavedOptimizer {
  state(): Promise<{ readonly steps: number; readonly slots: Readonly<Record<string, unknown>> }>;
  loadState(state: SavedSlots): void;
  /** Checks a state and gives what takes it over. With it nothing is restored where the state does not fit; without, the model is. */
  prepareState?(state: SavedSlots): () => void;
}

/** An optimizer's state in a file. */
export interface SavedSlots {
  readonly steps: number;
  readonly slots: ReadonlyMap<string, HostArray>;
}

/** A `GradScaler` of `@polygrad/nn`, or anything with its two methods, whose state is JSON. */
export interface SavedScaler<State = never> {
  state(): Promise<unknown>;
  loadState(state: State): void;
  /** As that of an optimizer. */
  prepareState?(state: State): () => void;
}

/** The random generator: `{ getRandomState, setRandomState }` of `@polygrad/core`. */
export interface SavedRandom<State = never> {
  getRandomState(): unknown;
  setRandomState(state: State): void;
}

/** What a checkpoint is made of, and brings back. */
export interface CheckpointParts {
  readonly model: SavedModel;
  readonly optimizer?: SavedOptimizer;
  readonly random?: SavedRandom;
  readonly scaler?: SavedScaler;
  /** More of a state like an optimizer's, by names of your own: a second optimizer, a `WeightAverage`. */
  readonly others?: Readonly<Record<string, SavedOptimizer>>;
}

/** Options of `encodeCheckpoint`. */
export interface CheckpointOptions {
  /** Anything JSON holds, such as the layers' sizes, to make the model again. */
  readonly config?: unknown;
  /** Epochs completed: `firstEpoch` of a `fit` that goes on. */
  readonly epoch?: number;
  /** Steps of the next epoch that are taken, too: its `firstStep`. */
  readonly step?: number;
  /** Free text for the header. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** What a checkpoint holds. */
export interface Checkpoint {
  /** Parameters and buffers by name. */
  readonly model: ReadonlyMap<string, HostArray>;
  /** Null where no optimizer was saved. */
  readonly optimizer: SavedSlots | null;
  /** Position of the random generator; null if it was not saved. */
  readonly random: unknown;
  /** The state of the scaler; null if it was not saved. */
  readonly scaler: unknown;
  /** The states of others, by their names. */
  readonly others: Readonly<Record<string, SavedSlots>>;
  readonly config: unknown;
  readonly epoch: number | null;
  /** Further steps of the epoch after these that are taken; null if that was not saved. */
  readonly step: number | null;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Before the names of an optimizer's arrays. A module can have no such name: those are paths of identifiers and numbers. */
const ofOptimizer = 'optimizer/';

/** The entry of the free text with all that is ours. */
const entry = 'polygrad';

function fail(code: 'argument' | 'format', source: string, text: string): DataError {
  return new DataError(code, source, `[checkpoint] ${text}`);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Throws for a model by itself in the place of parts. */
export function refuseModel(op: string, parts: unknown): void {
  if (isObject(parts) && typeof parts.stateDict === 'function')
    throw new DataError(
      'argument',
      'parts',
      `[${op}] parts are ${shown(parts)}: give an object with the model, as { model }`,
    );
}

/** Throws unless every part has its methods. */
function checkParts(parts: CheckpointParts): void {
  const wanted = {
    model: 'stateDict loadStateDict',
    optimizer: 'state loadState',
    random: 'getRandomState setRandomState',
    scaler: 'state loadState',
  };
  if (!isObject(parts)) throw fail('argument', 'parts', `parts are ${shownValue(parts)}; give an object with a model`);
  refuseModel('checkpoint', parts);
  for (const [name, methods] of Object.entries(wanted)) {
    const part = (parts as unknown as Record<string, Record<string, unknown> | undefined>)[name];
    if (part === undefined && name !== 'model') continue;
    if (!methods.split(' ').every((method) => typeof part?.[method] === 'function'))
      throw fail('argument', name, `bad ${name}: ${shownValue(part)}; it must have the methods ${methods}`);
  }
  const { others = {} } = parts;
  if (!isObject(others)) throw fail('argument', 'others', `others are ${shownValue(others)}; give an object of them`);
  for (const [name, part] of Object.entries<Partial<SavedOptimizer> | undefined>(others)) {
    if (!/^[A-Za-z]\w*$/.test(name) || name === 'optimizer')
      throw fail('argument', name, `bad name of others: ${shownValue(name)}; use letters and digits, not 'optimizer'`);
    if (typeof part?.state !== 'function' || typeof part.loadState !== 'function')
      throw fail('argument', name, `bad ${name}: ${shownValue(part)}; it must have the methods ${wanted.optimizer}`);
  }
}

/** What JSON would change or leave out without a word is refused. */
function jsonOf(own: object): string {
  const strict = (key: string, value: unknown): unknown => {
    if (
      (typeof value === 'number' && !Number.isFinite(value)) ||
      typeof value === 'function' ||
      typeof value === 'symbol'
    )
      throw new TypeError(`${key} is ${shownValue(value)}`);
    return value;
  };
  try {
    return JSON.stringify(own, strict);
  } catch (error) {
    const text = `config cannot be written as JSON: ${(error as Error).message}; leave it out or make it text`;
    throw new DataError('argument', 'config', `[checkpoint] ${text}`, { cause: error });
  }
}

/**
 * The bytes of a checkpoint. Equal states give equal bytes.
 *
 * @param parts the model, and if the training is to go on the optimizer, the random generator and the scaler of mixed precision
 * @param options config, epoch, step, metadata
 * @throws DataError `argument` for parts without their methods, and options that JSON does not hold
 * @example
 * const w = { dtype: 'float32', shape: [2], data: async () => new Float32Array([1, 2]) } as const;
 * const model = { stateDict: () => ({ w }), loadStateDict: () => {} };
 * const file = await encodeCheckpoint({ model }, { config: { layers: 2 } });
 * decodeCheckpoint(file).config; // { layers: 2 }
 */
export async function encodeCheckpoint(parts: CheckpointParts, options: CheckpointOptions = {}): Promise<Uint8Array> {
  checkParts(parts);
  const { config, epoch, step, metadata = {} } = options;
  for (const [name, count] of Object.entries({ epoch, step }))
    if (count !== undefined && (!Number.isSafeInteger(count) || count < 0))
      throw fail('argument', name, `bad ${name}: ${shownValue(count)}; must be a whole number, 0 or more`);
  if (isObject(metadata) && Object.hasOwn(metadata, entry))
    throw fail('argument', entry, `metadata may have no entry '${entry}'; rename it`);
  const arrays = new Map<string, HostArray>();
  // All reads are asked for at once, so that one wait serves them.
  const values = Object.entries(parts.model.stateDict());
  const read = await Promise.all(values.map(([, value]) => value.data()));
  for (const [i, [name, { dtype, shape }]] of values.entries()) {
    if (name.startsWith(ofOptimizer))
      throw fail(
        'argument',
        name,
        `no parameter may have the name '${name}': '${ofOptimizer}' begins those of optimizers`,
      );
    arrays.set(name, { dtype, shape, data: read[i]! } as HostArray);
  }
  const split = async (prefix: string, part: SavedOptimizer): Promise<{ steps: number; counts: object }> => {
    const { steps, slots, ...counts } = await part.state();
    for (const [name, array] of Object.entries(slots)) arrays.set(prefix + name, array as HostArray);
    return { steps, counts };
  };
  const { steps, counts = {} } =
    parts.optimizer === undefined ? { steps: undefined } : await split(ofOptimizer, parts.optimizer);
  const others: Record<string, object> = {};
  for (const [name, part] of Object.entries(parts.others ?? {})) others[name] = await split(`${name}/`, part);
  const random = parts.random?.getRandomState();
  const scaler = await parts.scaler?.state();
  const own = {
    version: 1,
    steps,
    ...(Object.keys(counts).length > 0 && { counts }),
    ...(Object.keys(others).length > 0 && { others }),
    random,
    scaler,
    epoch,
    step,
    config,
  };
  const text = jsonOf(own);
  return encodeSafetensors(arrays, { format: 'pt', ...metadata, [entry]: text });
}

/**
 * Reads a checkpoint that is in memory. A safetensors file of other programs is one too, with a model alone.
 *
 * @param file the whole file
 * @param source what to call the file in errors
 * @throws DataError for a file that is damaged, or of a later version
 * @example
 * const file = encodeSafetensors({ w: { dtype: 'float32', shape: [1], data: new Float32Array(1) } });
 * decodeCheckpoint(file).optimizer; // null
 */
export function decodeCheckpoint(file: Uint8Array | ArrayBufferLike, source = 'checkpoint'): Checkpoint {
  const { tensors, metadata } = decodeSafetensors(file, source);
  const { [entry]: text, ...rest } = metadata;
  let own: Record<string, unknown> = {};
  if (text !== undefined) {
    const damaged = fail('format', source, `${source} is damaged: its entry '${entry}' is not what a checkpoint has`);
    try {
      own = JSON.parse(text) as Record<string, unknown>;
    } catch {
      throw damaged;
    }
    if (!isObject(own) || typeof own.version !== 'number') throw damaged;
    if (own.version !== 1)
      throw fail(
        'format',
        source,
        `${source} is a checkpoint of version ${own.version}, this library reads version 1; update it`,
      );
    const isCount = (value: unknown): boolean =>
      value === undefined || (Number.isSafeInteger(value) && Number(value) >= 0);
    if (!isCount(own.steps) || !isCount(own.epoch) || !isCount(own.step) || !isObject(own.counts ?? {})) throw damaged;
    const isState = (one: unknown): boolean => isObject(one) && isCount(one.steps ?? -1) && isObject(one.counts);
    if (own.others !== undefined && !(isObject(own.others) && Object.values(own.others).every(isState))) throw damaged;
  }
  const model = new Map<string, HostArray>();
  const slots = new Map<string, HostArray>();
  const others: Record<string, SavedSlots & { readonly slots: Map<string, HostArray> }> = {};
  for (const [name, state] of Object.entries((own.others ?? {}) as Record<string, { steps: number; counts: object }>))
    others[name] = { ...state.counts, steps: state.steps, slots: new Map() };
  for (const [name, array] of tensors) {
    const owner = name.slice(0, Math.max(0, name.indexOf('/')));
    if (name.startsWith(ofOptimizer)) slots.set(name.slice(ofOptimizer.length), array);
    else if (Object.hasOwn(others, owner)) others[owner]!.slots.set(name.slice(owner.length + 1), array);
    else model.set(name, array);
  }
  const { steps, counts, random = null, scaler = null, config = null } = own;
  const { epoch = null, step = null } = own as { epoch?: number; step?: number };
  const optimizer = steps === undefined ? null : { ...(counts as object), steps: steps as number, slots };
  return { model, optimizer, random, scaler, others, config, epoch, step, metadata: rest };
}

/** A check of a state now, and what takes it over. What has no check of its own finds out when it takes it over. */
function prepared<State>(
  part: { loadState(state: State): void; prepareState?(state: State): () => void } | undefined,
  state: State | null,
): () => void {
  if (part === undefined || state === null) return () => {};
  return part.prepareState?.(state) ?? (() => part.loadState(state));
}

/**
 * Gives a checkpoint's values to a model, and to an optimizer, the random generator and a scaler where they are given. Where one does not fit, none
 * of them gets any.
 *
 * @throws DataError `mismatch` where the checkpoint lacks what a part needs; errors of the parts where names or shapes differ
 * @example
 * const w = { dtype: 'float32', shape: [1], data: async () => new Float32Array(1) } as const;
 * const model = { stateDict: () => ({ w }), loadStateDict: () => {} };
 * restoreCheckpoint(decodeCheckpoint(await encodeCheckpoint({ model })), { model });
 */
export function restoreCheckpoint(checkpoint: Checkpoint, parts: CheckpointParts): void {
  checkParts(parts);
  const lacks = (what: string): DataError =>
    new DataError(
      'mismatch',
      what,
      `[checkpoint] the checkpoint holds no state of the ${what}; save it with the ${what} among the parts, or leave it out here`,
    );
  if (parts.optimizer !== undefined && checkpoint.optimizer === null) throw lacks('optimizer');
  if (parts.random !== undefined && checkpoint.random === null) throw lacks('random generator');
  if (parts.scaler !== undefined && checkpoint.scaler === null) throw lacks('scaler');
  const others = Object.entries(parts.others ?? {});
  for (const [name] of others) if (!Object.hasOwn(checkpoint.others, name)) throw lacks(name);
  const goOn = [
    ...others.map(([name, part]) => prepared(part, checkpoint.others[name]!)),
    prepared(parts.optimizer, checkpoint.optimizer),
    prepared(parts.scaler as SavedScaler<unknown> | undefined, checkpoint.scaler),
  ];
  const random = parts.random as SavedRandom<unknown> | undefined;
  const before = random?.getRandomState();
  random?.setRandomState(checkpoint.random);
  try {
    parts.model.loadStateDict(checkpoint.model);
  } catch (error) {
    random?.setRandomState(before);
    throw error;
  }
  for (const take of goOn) take();
}
