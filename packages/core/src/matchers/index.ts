/** Entry point @polygrad/core/matchers: comparisons of tensors for `expect` of vitest and jest. */
import { type CloseOptions, type Tolerances, tolerancesOf } from '../ops/elementwise/recording.ts';
import { tensor } from '../ops/creation/creation.ts';
import { say } from '../shape/shown.ts';
import { isTensor } from '../tensor/handle.ts';
import type { NestedInput, Tensor } from '../tensor/types.ts';
import { differenceOf, type Values, valuesOf } from './compare.ts';

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
