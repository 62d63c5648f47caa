/**
 * Calls with one argument changed, made of right ones: to something of the same kind, which may be right too, or to something odd.
 *
 * Tensors among the arguments are data here, so that the same call can be made on several engines.
 */
import { type DType, isTensor, mul, scope, tensor, type Tensor } from '@polygrad/core/functions';
import { dtypeInfo, getElement, isInteger } from '@polygrad/core/internals';
import { noting, type RightCall } from './right-calls.ts';
import { oddValues } from './wrong-arguments.ts';

type Element = number | bigint | boolean;

/** A tensor as data, to be made anew on each engine. */
export class HostTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly values: readonly Element[];
  /** Made by a kernel: the library does not know its integers at the call, as it does those of data. */
  readonly computed: boolean;

  constructor(dtype: DType, shape: readonly number[], values: readonly Element[], computed: boolean = false) {
    this.dtype = dtype;
    this.shape = shape;
    this.values = values;
    this.computed = computed;
  }
}

/** True for objects that are options or lists by name. */
export const isPlain = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;

async function read(t: Tensor, computed: boolean): Promise<HostTensor> {
  const data = await t.data();
  const values = Array.from({ length: data.length }, (_, i) => getElement(data, t.dtype, i));
  return new HostTensor(t.dtype, t.shape, values, computed);
}

/** The same with every tensor inside as data. */
async function recipeOf(value: unknown, computed: boolean): Promise<unknown> {
  const inner = (item: unknown): Promise<unknown> => recipeOf(item, computed);
  if (isTensor(value)) return read(value, computed);
  if (Array.isArray(value)) return Promise.all(value.map(inner));
  if (!isPlain(value)) return value;
  return Object.fromEntries(await Promise.all(Object.entries(value).map(async ([k, v]) => [k, await inner(v)])));
}

/**
 * The call with every tensor inside as data; `computed`: a kernel makes it anew.
 *
 * @example
 * const { args } = await hostCall({ args: [tensor([1, 2]), 3], next: null });
 * args[1]; // 3
 */
export async function hostCall({ args, next }: RightCall, computed: boolean = false): Promise<RightCall> {
  const all = (list: readonly unknown[]): Promise<unknown[]> =>
    Promise.all(list.map((value) => recipeOf(value, computed)));
  return { args: await all(args), next: next && (await all(next)) };
}

/** An argument with its tensors on the current engine. What functions inside throw, being the user's, is added to `users`. */
export function build(recipe: unknown, users: Set<unknown>): unknown {
  if (recipe instanceof HostTensor) {
    const { dtype, shape, values, computed } = recipe;
    const made = (): Tensor => tensor(values as readonly number[], { dtype, shape: [...shape] });
    return computed && isInteger(dtype) ? scope(() => mul(made(), 1)) : made();
  }
  if (Array.isArray(recipe)) return recipe.map((item) => build(item, users));
  if (!isPlain(recipe)) return noting(recipe, users);
  return Object.fromEntries(Object.entries(recipe).map(([k, v]) => [k, build(v, users)]));
}

/** What changed calls have in the place of an argument, or of a part of it: others of the same kind, or something odd. */
export type Change = 'likely' | 'odd';

/** Options of `changedCalls`. */
export interface ChangeOptions {
  /** Names of the options that the function takes at a place. */
  readonly namesAt?: (at: number) => readonly string[];
  /** Others of the same kind for values that only the caller knows; null for all others. */
  readonly others?: (value: unknown) => readonly unknown[] | null;
}

type Alternatives = (value: unknown, names: readonly string[]) => readonly unknown[];

const dtypes = Object.keys(dtypeInfo) as DType[];
const words = ['none', 'sum', 'mean', 'same', 'valid', 'nhwc', 'tanh', 'linear', 'nearest', 'reflect', 'ij', 'max'];
const options: readonly unknown[] = [0, 1, -1, 2, 0.5, true, false, [0], [0, 1], [1, 1], ...words, ...dtypes];

/** Elements as a dtype holds them, as far as it can: 1 for non-finite values, no sign for unsigned ones. */
function asElements(dtype: DType, values: readonly Element[]): Element[] {
  const { kind, bytes } = dtypeInfo[dtype];
  return values.map((value) => {
    const x = Number(value);
    if (kind === 'bool') return x !== 0;
    if (kind === 'float') return Number.isFinite(x) ? x : 1;
    const most = 2 ** Math.min(8 * bytes - 1, 31) - 1;
    const whole = Number.isFinite(x) ? Math.min(Math.trunc(kind === 'uint' ? Math.abs(x) : x), most) : 1;
    return bytes === 8 ? BigInt(whole) : whole;
  });
}

/** Other tensors in the place of one: another dtype, another shape of the same elements, one row more or less, none, other elements. */
function tensorsInstead({ dtype, shape, values }: HostTensor): HostTensor[] {
  const numbers = values.map(Number);
  const of = (like: DType, as: readonly number[], from: readonly Element[]): HostTensor =>
    new HostTensor(like, as, asElements(like, from));
  return [
    ...dtypes.filter((other) => other !== dtype).map((other) => of(other, shape, numbers)),
    of(dtype, [...shape].reverse(), values),
    of(dtype, [1, ...shape], values),
    of(dtype, [values.length], values),
    of(dtype, [2, ...shape], [...values, ...values]),
    of(dtype, [0], []),
    ...[(x: number) => x + 1, () => 0, (x: number) => -x].map((f) => of(dtype, shape, numbers.map(f))),
  ];
}

/** Others of the same kind. */
const likely: Alternatives = (value, names) => {
  if (value instanceof HostTensor) return tensorsInstead(value);
  if (typeof value === 'number') return [value + 1, value - 1, -value, value * 2, 0, 0.5, Number.NaN, 2 ** 31];
  if (typeof value === 'boolean') return [!value, 1];
  if (typeof value === 'string') return [...words, ...dtypes].filter((word) => word !== value);
  if (Array.isArray(value)) return [value.slice(1), [...value, ...value.slice(-1)], [...value].reverse()];
  if (value !== undefined && !isPlain(value)) return [];
  return names.flatMap((name) => options.map((other) => ({ ...value, [name]: other })));
};

/** What is of another kind, or outside of every range. */
const odd: Alternatives = () => oddValues.map(([, value]) => value);

/** A value with itself or one part of it replaced, in all ways. */
function replaced(value: unknown, alternatives: Alternatives, names: readonly string[]): unknown[] {
  const all = [...alternatives(value, names)];
  if (Array.isArray(value))
    value.forEach((item, i) => {
      for (const other of replaced(item, alternatives, [])) all.push(value.with(i, other));
    });
  if (isPlain(value))
    for (const [name, item] of Object.entries(value))
      for (const other of replaced(item, alternatives, [])) all.push({ ...value, [name]: other });
  return all;
}

function changedLists(
  list: readonly unknown[],
  alternatives: Alternatives,
  namesAt: (at: number) => readonly string[],
): unknown[][] {
  const padded = [...list, undefined];
  return padded.flatMap((value, at) =>
    replaced(value, alternatives, namesAt(at)).map((other) =>
      at === list.length ? [...list, other] : list.with(at, other),
    ),
  );
}

/**
 * Calls made of one, each with one argument changed or one more.
 *
 * @example
 * changedCalls({ args: [true], next: null }, 'likely').map(({ args }) => args[0]); // [false, 1]
 */
export function changedCalls(
  { args, next }: RightCall,
  change: Change,
  { namesAt = () => [], others = () => null }: ChangeOptions = {},
): RightCall[] {
  const alternatives: Alternatives = change === 'odd' ? odd : (value, names) => others(value) ?? likely(value, names);
  return [
    ...changedLists(args, alternatives, namesAt).map((other) => ({ args: other, next })),
    ...(next === null ? [] : changedLists(next, alternatives, () => []).map((other) => ({ args, next: other }))),
  ];
}

function show(x: unknown): string {
  if (x instanceof HostTensor)
    return `pg.tensor([${x.values.map(show).join(', ')}], { dtype: '${x.dtype}', shape: [${x.shape.join(', ')}] })`;
  if (typeof x === 'bigint') return `${x}n`;
  if (typeof x === 'string') return `'${x}'`;
  if (Array.isArray(x)) return `[${x.map(show).join(', ')}]`;
  if (isPlain(x))
    return `{ ${Object.entries(x)
      .map(([k, v]) => `${k}: ${show(v)}`)
      .join(', ')} }`;
  return Object.is(x, -0) ? '-0' : String(x);
}

/**
 * The call as TypeScript.
 *
 * @example
 * callText('grad', { args: ['f'], next: [2] }); // "pg.grad('f')(2);"
 */
export function callText(name: string, { args, next }: RightCall): string {
  const list = (values: readonly unknown[]): string => `(${values.map(show).join(', ')})`;
  return `pg.${name}${list(args)}${next === null ? '' : list(next)};`;
}
