/** What calls come to: values, or the error of a refusal. */
import {
  dispose,
  type DType,
  isTensor,
  PolygradError,
  seed,
  setDynamicSizes,
  setEager,
  setPendingLimits,
  setRecovery,
  type Tensor,
  traceOrigins,
  type TypedArray,
} from '@polygrad/core/functions';

import { usualLimits } from '@polygrad/core/internals';
import { NumberTensor } from '@polygrad/numbers';
import { build, isPlain } from './changed-calls.ts';
import type { RightCall } from './right-calls.ts';

/** A function of the library. */
export type Called = (...args: never[]) => unknown;

/** A tensor that was read; `data` is null if it has too many elements. */
export interface ReadTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly data: TypedArray | null;
}

/** What a call came to: the error that refused it, or what it gave. */
export interface Outcome {
  readonly refused: Error | null;
  /** True if the user's function refused. */
  readonly byUser: boolean;
  readonly tensors: readonly ReadTensor[];
  /** Numbers, texts and truths beside the tensors, in their order. */
  readonly plain: readonly unknown[];
}

/** Tensors of more elements are not read: they would be computed one by one. */
const most = 100_000;

interface Found {
  readonly tensors: Tensor[];
  readonly plain: unknown[];
}

/** Tensors and plain values inside a result. Functions and other objects are not looked at. */
function collect(value: unknown, found: Found): Found {
  if (isTensor(value)) found.tensors.push(value);
  else if (value instanceof NumberTensor) collect(value.array(), found);
  else if (Array.isArray(value) || ArrayBuffer.isView(value))
    for (const item of value as unknown as Iterable<unknown>) collect(item, found);
  else if (isPlain(value)) for (const item of Object.values(value)) collect(item, found);
  else if (typeof value !== 'function' && typeof value !== 'object') found.plain.push(value);
  return found;
}

const nothing = { byUser: false, tensors: [], plain: [] };

/** Everything that calls may change for those after them, as it was. */
export function restore(): void {
  setEager(false);
  setDynamicSizes('automatic');
  setPendingLimits(usualLimits);
  setRecovery({});
  traceOrigins(false);
}

/**
 * Makes a call with arguments that are there and the random numbers of one seed, reads what it gives and releases it. Throws errors that are
 * neither the library's nor among `users`, what functions of the user's threw.
 *
 * @example
 * const { tensors } = await performed(exp, { args: [tensor([0])], next: null });
 * tensors[0]?.data; // Float32Array [1]
 */
export async function performed(
  f: Called,
  { args, next }: RightCall,
  users: ReadonlySet<unknown> = new Set(),
): Promise<Outcome> {
  const given = new Set(collect([args, next], { tensors: [], plain: [] }).tensors);
  const results: unknown[] = [];
  seed(1);
  // Nothing is computed but what is read.
  setPendingLimits({ nodes: 2 ** 30, bytes: 2 ** 60 });
  try {
    let result: unknown = await f(...(args as readonly never[]));
    results.push(result);
    if (typeof result === 'function' && next !== null) {
      result = await result(...next);
      results.push(result);
    }
    const found = collect(result, { tensors: [], plain: [] });
    const tensors: ReadTensor[] = [];
    for (const t of found.tensors)
      tensors.push({ dtype: t.dtype, shape: t.shape, data: t.size < most ? (await t.data()).slice() : null });
    return { refused: null, byUser: false, tensors, plain: found.plain };
  } catch (error) {
    const ours = error instanceof PolygradError;
    const byUser = users.has(error);
    if (!ours && !byUser) throw error;
    return { ...nothing, refused: error as Error, byUser };
  } finally {
    dispose(collect(results, { tensors: [], plain: [] }).tensors.filter((t) => !given.has(t)));
    restore();
  }
}

/**
 * The same for a call whose tensors are data: they are made on the current engine, and released.
 *
 * @example
 * const { refused } = await outcomeOf(add, await hostCall({ args: [ones([2]), ones([3])], next: null }));
 * refused?.name; // 'ShapeError'
 */
export async function outcomeOf(f: Called, call: RightCall): Promise<Outcome> {
  const users = new Set<unknown>();
  const built: unknown[] = [];
  try {
    const make = (recipe: unknown): unknown => {
      const value = build(recipe, users);
      built.push(value);
      return value;
    };
    const made = { args: call.args.map(make), next: call.next?.map(make) ?? null };
    return await performed(f, made, users);
  } finally {
    dispose(collect(built, { tensors: [], plain: [] }).tensors);
  }
}
