/** Entry point @polygrad/core/matchers: comparisons of tensors for `expect` of vitest and jest. */
import { UnsupportedError } from '../engine/errors.ts';
import { tensor } from '../ops/creation/creation.ts';
import {
  type Arithmetic,
  closeness,
  type CloseOptions,
  type Tolerances,
  tolerancesOf,
} from '../ops/elementwise/recording.ts';
import type { DType, TypedArray } from '@polygrad/compiler/shape/dtype';
import { showShape } from '@polygrad/compiler/shape/errors';
import { getElement } from '@polygrad/compiler/shape/host';
import { say } from '@polygrad/compiler/shape/shown';
import { sameShape, type Shape } from '@polygrad/compiler/shape/view';
import { isTensor } from '../tensor/handle.ts';
import type { NestedInput, Tensor } from '../tensor/types.ts';

export type { CloseOptions } from '../ops/elementwise/recording.ts';

/** What a matcher tells the test runner. */
export interface MatcherResult {
  readonly pass: boolean;
  readonly message: () => string;
}

/** The `expect` of vitest or jest, as far as it is used. */
export interface Expectations {
  extend(matchers: typeof tensorMatchers): void;
  addEqualityTesters?(testers: ((a: unknown, b: unknown) => boolean | undefined)[]): void;
}

declare global {
  // biome-ignore lint/style/noNamespace: it is theirs
  namespace jest {
    // As vitest and @types/jest declare it: both take matchers from here, and all declarations have the same parameters.
    // biome-ignore lint/complexity/noBannedTypes: theirs
    interface Matchers<R, T = {}> {
      /**
       * Every element of a tensor is close to that of another, or of nested arrays: |a - b| <= atol + rtol * |b|. Await it where the engine
       * cannot read at once (WebGPU).
       */
      toBeCloseToTensor(expected: Tensor | NestedInput, options?: CloseOptions): R;
    }
  }
}

function judged(a: Values, b: Values, tolerances: Tolerances): MatcherResult {
  const difference = differenceOf(a, b, tolerances);
  const text = ({ shape, dtype }: Values): string => `${dtype} [${shape.join(', ')}]`;
  return {
    pass: difference === null,
    message: () =>
      `received a tensor ${text(a)}, expected ${difference === null ? 'another than' : 'one close to'} ${text(b)}` +
      (difference === null ? '' : `\n${difference}`),
  };
}

/**
 * Matchers for `expect.extend`: `toBeCloseToTensor(expected, { rtol, atol, equalNaN })`, with the tolerances of `isClose`. A failure shows
 * shapes, how many elements differ, and the worst of them with its index.
 *
 * @example
 * const { pass } = await tensorMatchers.toBeCloseToTensor(tensor([1, 2]), [1, 2.1], { atol: 0.2 });
 * pass; // true
 */
export const tensorMatchers: {
  toBeCloseToTensor(
    received: unknown,
    expected: unknown,
    options?: CloseOptions,
  ): MatcherResult | Promise<MatcherResult>;
} = {
  toBeCloseToTensor(received, expected, options = {}) {
    const tolerances = tolerancesOf('toBeCloseToTensor', options);
    if (!isTensor(received))
      return { pass: false, message: () => say`received ${received}: no tensor; await promises of tensors first` };
    const other = isTensor(expected) ? expected : tensor(expected as NestedInput, { dtype: received.dtype });
    const values = valuesOf([received, other]);
    const judge = ([a, b]: readonly Values[]): MatcherResult => {
      if (other !== expected) other.dispose();
      return judged(a!, b!, tolerances);
    };
    return 'then' in values ? values.then(judge) : judge(values);
  },
};

/** Whether two tensors are the same, for `toEqual`: undefined for anything else. */
function sameTensors(a: unknown, b: unknown): boolean | undefined {
  if (!isTensor(a) || !isTensor(b)) return undefined;
  if (a === b) return true;
  if (a.dtype !== b.dtype) return false;
  const values = valuesOf([a, b]);
  if ('then' in values)
    throw new Error(
      '[toEqual] two tensors cannot be compared at once on this engine; use await expect(a).toBeCloseToTensor(b)',
    );
  const [x, y] = values as [Values, Values];
  return differenceOf(x, y, { rtol: 0, atol: 0, equalNaN: true }) === null;
}

/**
 * Teaches the `expect` of vitest or jest about tensors: `toBeCloseToTensor`, and `toEqual` of tensors by shape, dtype and exact values.
 * Call it once, in a setup file.
 *
 * @example no-run: needs a test runner
 * import { expect } from 'vitest';
 * import { extendExpect } from '@polygrad/core/matchers';
 * extendExpect(expect);
 */
export function extendExpect(expect: Expectations): void {
  expect.extend(tensorMatchers);
  expect.addEqualityTesters?.([sameTensors]);
}

// Values of two tensors side by side: how many differ by more than is allowed, and which of them most.

/** What is compared: elements on the host. */
interface Values {
  readonly data: TypedArray;
  readonly shape: Shape;
  readonly dtype: DType;
}

/** The elements of tensors: at once where their engines can, else later. */
function valuesOf(tensors: readonly Tensor[]): readonly Values[] | Promise<readonly Values[]> {
  const withData = ({ shape, dtype }: Tensor, data: TypedArray): Values => ({ data, shape, dtype });
  try {
    return tensors.map((t) => withData(t, t.dataSync()));
  } catch (error) {
    if (!(error instanceof UnsupportedError)) throw error;
    return Promise.all(tensors.map(async (t) => withData(t, await t.data())));
  }
}

type Element = number | bigint | boolean;

function distance(a: Element, b: Element): number {
  if (typeof a === 'bigint' && typeof b === 'bigint') return Number(a > b ? a - b : b - a);
  return Math.abs(Number(a) - Number(b));
}

/** Where an element is, as an index of every axis. */
function indexOf(place: number, shape: Shape): string {
  let rest = place;
  const index = [...shape].reverse().map((extent) => {
    const at = rest % extent;
    rest = (rest - at) / extent;
    return at;
  });
  return showShape(index.reverse());
}

const steps: Readonly<Record<Parameters<Arithmetic<number>['apply']>[0], (a: number, b: number) => number>> = {
  abs: Math.abs,
  add: (a, b) => a + b,
  mul: (a, b) => a * b,
  lt: (a, b) => Number(a < b),
  le: (a, b) => Number(a <= b),
  and: Math.min,
  or: Math.max,
  isNaN: (a) => Number(Number.isNaN(a)),
};

const onHost: Arithmetic<number> = {
  number: (value) => value,
  apply: (op, a = 0, b = 0) => steps[op](a, b),
};

/** Null if all values are as close as allowed, else a text that says which are not. */
function differenceOf(a: Values, b: Values, tolerances: Tolerances): string | null {
  if (!sameShape(a.shape, b.shape))
    return `shapes differ: received ${showShape(a.shape)}, expected ${showShape(b.shape)}`;
  const at = (values: Values, i: number): Element => getElement(values.data, values.dtype, i);
  const judge = (x: Element, y: Element, apart: number): { readonly close: number; readonly allowed: number } =>
    closeness(onHost, { x: Number(x), y: Number(y), distance: apart, same: Number(x === y) }, tolerances);
  let [count, worst, excess] = [0, -1, Number.NEGATIVE_INFINITY];
  for (let i = 0; i < a.data.length; i++) {
    const [x, y] = [at(a, i), at(b, i)];
    const apart = distance(x, y);
    const { close, allowed } = judge(x, y, apart);
    if (close === 1) continue;
    count++;
    // Not a number where one of them is NaN or infinite.
    const over = Number.isNaN(apart - allowed) ? Number.POSITIVE_INFINITY : apart - allowed;
    if (over <= excess) continue;
    [worst, excess] = [i, over];
  }
  if (count === 0) return null;
  const [x, y] = [at(a, worst), at(b, worst)];
  const apart = distance(x, y);
  return (
    `${count} of ${a.data.length} elements differ, most at ${indexOf(worst, a.shape)}: received ${x}, expected ${y}, ` +
    `apart by ${apart.toPrecision(3)}, allowed ${judge(x, y, apart).allowed.toPrecision(3)}`
  );
}
