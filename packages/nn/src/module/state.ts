/**
 * State dictionaries: the values of a module's parameters and buffers by name, taken over from tensors or host arrays,
 * and brought to the host for saving. File formats are the data package's business.
 */
import { uploaded } from '@polygrad/core/engine';
import { cast, type DType, detach, isTensor, keep, type Tensor, type TypedArray } from '@polygrad/core/functions';
import { checkFits, checkTensor, NnError } from '../errors.ts';

/** Tensors by name. */
export type StateDict = Record<string, Tensor>;

/** An array in host memory; what `@polygrad/data` reads from files has this form. */
export interface StateArray {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly data: TypedArray;
}

/** Values to take over, by name. */
export type StateValues = Readonly<Record<string, Tensor | StateArray>> | ReadonlyMap<string, Tensor | StateArray>;

function sameShape(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((extent, axis) => extent === b[axis]);
}

function list(names: readonly string[]): string {
  const shown = names.slice(0, 6).map((name) => `'${name}'`);
  return names.length > 6 ? `${shown.join(', ')} and ${names.length - 6} more` : shown.join(', ');
}

/** Throws unless a state is an object or a Map. */
export function checkState(op: string, state: unknown): void {
  const named = typeof state === 'object' && state !== null && !Array.isArray(state) && !isTensor(state);
  checkFits(op, 'state', state, named, 'an object of tensors by name');
}

/** Throws unless a state is an object of tensors. */
function checkTensors(op: string, state: StateDict): void {
  checkState(op, state);
  for (const name in state) checkTensor(op, `'${name}'`, state[name]);
}

/** Who takes over a state, for errors. */
export interface StateOwner {
  readonly op: string;
  /** What the owner is. */
  readonly name: string;
  /** What to do where names differ. */
  readonly remedy: string;
}

/** How a state's names become those of the owner, which `has` knows: `null` leaves a value out. Default: as they are. */
export type Rename = (name: string, has: (name: string) => boolean) => string | null;

/**
 * How many batches a norm with running statistics has seen. Only one whose momentum is null keeps it here, in int32; PyTorch's all do, in int64,
 * although nothing depends on it with a momentum. Only beside running statistics, so that nothing else of that name is treated so.
 */
function isBatchCount(name: string, targets: StateDict): boolean {
  const place = /^(.*\.|)num_batches_tracked$/.exec(name)?.[1];
  return place !== undefined && Object.hasOwn(targets, `${place}running_mean`);
}

/** True for a count of batches as PyTorch writes it, where the owner keeps one. */
function isWiderCount(name: string, value: Tensor | StateArray, targets: StateDict): boolean {
  return value.dtype === 'int64' && targets[name]!.dtype === 'int32' && isBatchCount(name, targets);
}

/** The values of a state under the owner's names. Two for one name are a mistake. */
function renamed(state: StateValues, rename: Rename, targets: StateDict, op: string): Map<string, Tensor | StateArray> {
  const entries = state instanceof Map ? state : Object.entries(state as Record<string, Tensor | StateArray>);
  const values = new Map<string, Tensor | StateArray>();
  const origins = new Map<string, string>();
  const has = (name: string): boolean => Object.hasOwn(targets, name);
  for (const [origin, value] of entries) {
    const name = rename(origin, has);
    checkFits(op, 'the new name', name, name === null || typeof name === 'string', 'a string or null');
    if (name === null || (!has(name) && isBatchCount(name, targets))) continue;
    if (values.has(name)) {
      throw new NnError(op, `'${origins.get(name)}' and '${origin}' both become '${name}'; rename only one`, [name]);
    }
    values.set(name, value);
    origins.set(name, origin);
  }
  return values;
}

/**
 * Assigns values to the tensors of the same names, all of them or, if anything does not fit, none. The error says all that does not fit.
 *
 * @returns names without a value and values without a name
 * @throws NnError
 */
export function assignState(...given: Parameters<typeof fitState>): { missing: string[]; unexpected: string[] } {
  const { assign, ...names } = fitState(...given);
  assign();
  return names;
}

/**
 * The first half of `assignState`: nothing is changed before `assign` is called.
 *
 * @throws NnError
 */
export function fitState(
  targets: StateDict,
  state: StateValues,
  strict: boolean,
  { op, name: owner, remedy }: StateOwner,
  rename: Rename = (name) => name,
): { missing: string[]; unexpected: string[]; assign: () => void } {
  checkState(op, state);
  const values = renamed(state, rename, targets, op);
  const missing = Object.keys(targets).filter((name) => !values.has(name));
  const unexpected = [...values.keys()].filter((name) => !Object.hasOwn(targets, name));
  const fitting = Object.keys(targets).filter((name) => values.has(name));
  const names = strict ? [...missing, ...unexpected] : [];
  const wrong: string[] = [];
  const said: string[] = [];
  for (const name of fitting) {
    const value = values.get(name)!;
    const whole = typeof value === 'object' && value !== null && Array.isArray(value.shape) && 'data' in value;
    checkFits(op, `'${name}'`, value, whole, 'a tensor, or an array with dtype, shape and data');
    const target = targets[name]!;
    const differ = (what: string, own: string, other: string): void => {
      said.push(`'${name}' ${what}${own} in the ${owner} and ${other} in the state`);
      if (wrong.at(-1) !== name) wrong.push(name);
    };
    if (!sameShape(target.shape, value.shape))
      differ('has shape ', `(${target.shape.join(', ')})`, `(${value.shape.join(', ')})`);
    else if (!isTensor(value) && value.data?.length !== target.size)
      differ('has ', `${target.size} numbers`, `${value.data?.length}`);
    if (target.dtype !== value.dtype && !isWiderCount(name, value, targets)) differ('is ', target.dtype, value.dtype);
  }
  if (names.length + wrong.length > 0) {
    const shapes = said.some((text) => text.includes(' has shape '));
    const parts = [
      ...(strict && missing.length > 0 ? [`the state lacks ${list(missing)}`] : []),
      ...(strict && unexpected.length > 0 ? [`the ${owner} has no ${list(unexpected)}`] : []),
      ...said.slice(0, 6),
      ...(said.length > 6 ? [`and ${said.length - 6} more`] : []),
    ];
    const advice =
      names.length > 0 && said.length === 0 ? remedy : shapes ? `the state is of another ${owner}` : 'convert it first';
    throw new NnError(op, `${parts.join('; ')}; ${advice}`, [...names, ...wrong]);
  }
  const assign = (): void => {
    for (const name of fitting) assignOne(targets[name]!, values.get(name)!);
  };
  return { missing, unexpected, assign };
}

/** Assigns one value that fits. Of another dtype are counts alone. */
function assignOne(target: Tensor, value: Tensor | StateArray): void {
  const { dtype } = target;
  if (isTensor(value) && value.dtype === dtype) {
    target.assign(value);
    return;
  }
  const { shape } = value;
  const own = isTensor(value)
    ? cast(value, dtype)
    : uploaded(value.dtype === dtype ? value.data : Int32Array.from(value.data, Number), shape, dtype);
  target.assign(own);
  own.dispose();
}

/**
 * The values of a state in host memory, ready for `encodeSafetensors` of `@polygrad/data`.
 *
 * @param state tensors by name, for instance `model.stateDict()`
 * @throws NnError unless the state is an object of tensors by name
 * @example
 * const { weight } = await hostState(new Linear(2, 1).stateDict());
 * weight?.shape; // [1, 2]
 */
export async function hostState(state: StateDict): Promise<Record<string, StateArray>> {
  const found: Record<string, StateArray> = {};
  checkTensors('hostState', state);
  for (const [name, value] of Object.entries(state)) {
    found[name] = { dtype: value.dtype, shape: value.shape, data: await value.data() };
  }
  return found;
}

/**
 * A copy of a state that later changes of the module leave alone, without moving anything to the host.
 *
 * @throws NnError unless the state is an object of tensors by name
 * @example
 * const model = new Linear(2, 1);
 * const best = snapshot(model.stateDict());
 * model.weight.assign(zeros([1, 2]));
 * model.loadStateDict(best);
 */
export function snapshot(state: StateDict): StateDict {
  checkTensors('snapshot', state);
  return Object.fromEntries(Object.entries(state).map(([name, value]) => [name, keep(detach(value))]));
}
