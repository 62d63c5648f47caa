/**
 * State dictionaries: the values of a module's parameters and buffers by name, taken over from tensors or host arrays,
 * and brought to the host for saving. File formats are the data package's business.
 */
import { type DType, detach, isTensor, keep, type Tensor, tensor, type TypedArray } from '@polygrad/core/functions';
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
function checkState(op: string, state: unknown): void {
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

/**
 * Assigns values to the tensors of the same names, all of them or, if anything does not fit, none.
 *
 * @returns names without a value and values without a name
 * @throws NnError
 */
export function assignState(
  targets: StateDict,
  state: StateValues,
  strict: boolean,
  { op, name: owner, remedy }: StateOwner,
): { missing: string[]; unexpected: string[] } {
  checkState(op, state);
  const values = new Map(state instanceof Map ? state : Object.entries(state as Record<string, Tensor | StateArray>));
  const missing = Object.keys(targets).filter((name) => !values.has(name));
  const unexpected = [...values.keys()].filter((name) => !Object.hasOwn(targets, name));
  if (strict && missing.length + unexpected.length > 0) {
    const parts = [
      ...(missing.length > 0 ? [`the state lacks ${list(missing)}`] : []),
      ...(unexpected.length > 0 ? [`the ${owner} has no ${list(unexpected)}`] : []),
    ];
    throw new NnError(op, `${parts.join('; ')}; ${remedy}`, [...missing, ...unexpected]);
  }
  const fitting = Object.keys(targets).filter((name) => values.has(name));
  for (const name of fitting) {
    const target = targets[name]!;
    const value = values.get(name)!;
    const whole = typeof value === 'object' && value !== null && Array.isArray(value.shape) && 'data' in value;
    checkFits(op, `'${name}'`, value, whole, 'a tensor, or an array with dtype, shape and data');
    if (!sameShape(target.shape, value.shape)) {
      const shapes = `(${target.shape.join(', ')}) in the ${owner} and (${value.shape.join(', ')}) in the state`;
      throw new NnError(op, `'${name}' has shape ${shapes}; the state is of another ${owner}`, [name]);
    }
    if (target.dtype !== value.dtype) {
      const dtypes = `${target.dtype} in the ${owner} and ${value.dtype} in the state`;
      throw new NnError(op, `'${name}' is ${dtypes}; convert it first`, [name]);
    }
  }
  for (const name of fitting) {
    const value = values.get(name)!;
    if (isTensor(value)) targets[name]!.assign(value);
    else {
      const uploaded = tensor(value.data, { shape: value.shape, dtype: value.dtype });
      targets[name]!.assign(uploaded);
      uploaded.dispose();
    }
  }
  return { missing, unexpected };
}

/**
 * The values of a state in host memory, ready for `encodeSafetensors` of `@polygrad/data`.
 *
 * @param state tensors by name, for instance `model.stateDict()`
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
