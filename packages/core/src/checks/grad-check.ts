/** gradCheck: gradients against finite differences. */
import { GradientError } from '../autodiff/backward.ts';
import { grads } from '../autodiff/grad.ts';
import { compose } from '../graph/scope.ts';
import { tensor } from '../ops/creation/creation.ts';
import { cast } from '../ops/elementwise/arithmetic.ts';
import { type CloseOptions, tolerancesOf } from '../ops/elementwise/recording.ts';
import { isClose } from '../ops/elementwise/logic.ts';
import { all, sum } from '../ops/reduction/reduction.ts';
import { checkList } from '@polygrad/compiler/shape/axes';
import { getElement } from '@polygrad/compiler/shape/host';
import { checkFunction, checkNames } from '@polygrad/compiler/shape/options';
import { say } from '@polygrad/compiler/shape/shown';
import { nodeOf } from '../tensor/handle.ts';
import { keep, scope } from '../tensor/scope.ts';
import type { Tensor, TensorLike } from '../tensor/types.ts';

/** Options of `gradCheck`. */
export interface GradCheckOptions {
  /** Step of the central differences. Default 1e-6. */
  readonly step?: number;
  /** Allowed difference: atol + rtol * |difference quotient|. Default 1e-3 and 1e-5. */
  readonly rtol?: number;
  readonly atol?: number;
}

/**
 * Compares the gradients of a function with central differences in float64, element by element.
 *
 * @param f from tensors to a tensor, whose elements are summed; should be smooth at the tested point
 * @param inputs its arguments; they are converted to float64
 * @returns true
 * @throws GradientError that names the first element that is off
 *
 * @example
 * await gradCheck((x) => x.exp(), [tensor([0.5, 1])]); // true
 */
export async function gradCheck(
  f: (...inputs: Tensor[]) => Tensor,
  inputs: readonly Tensor[],
  options: GradCheckOptions = {},
): Promise<true> {
  checkNames('gradCheck', options, 'step# rtol# atol#');
  checkFunction('gradCheck', f);
  checkList('gradCheck', 'inputs', inputs, '[x]');
  for (const input of inputs) nodeOf(input, 'gradCheck');
  const { step = 1e-6, rtol = 1e-3, atol = 1e-5 } = options;
  const total = (...xs: Tensor[]): Tensor => sum(f(...xs));
  const values: Float64Array[] = [];
  for (const input of inputs) {
    const wide = cast(input, 'float64');
    values.push(await wide.data());
    wide.dispose();
  }
  const shapes = inputs.map((input) => input.shape);
  const make = (): Tensor[] => values.map((data, i) => tensor(data, { dtype: 'float64', shape: shapes[i]! }));
  const slopes = scope(() => [...grads(total)(...make())]);
  const evaluate = async (): Promise<number> => {
    const result = scope(() => cast(total(...make()), 'float64'));
    const data = await result.data();
    result.dispose();
    return getElement(data, 'float64', 0) as number;
  };
  try {
    for (const [i, data] of values.entries()) {
      const analytic = (await slopes[i]!.data()) as Float64Array;
      for (let at = 0; at < data.length; at++) {
        const x = data[at]!;
        data[at] = x + step;
        const high = await evaluate();
        data[at] = x - step;
        const low = await evaluate();
        data[at] = x;
        const expected = (high - low) / (2 * step);
        const actual = analytic[at]!;
        if (!(Math.abs(actual - expected) <= atol + rtol * Math.abs(expected))) {
          throw new GradientError(
            'gradCheck',
            say`gradient is off: ${actual} where differences give ${expected}, at element ${at} of input ${i}; check the rules of the operations used`,
          );
        }
      }
    }
    return true;
  } finally {
    for (const slope of slopes) slope.dispose();
  }
}

// allClose: whether two tensors hold the same numbers, within tolerances. The one answer is read back.

/**
 * True if |a - b| <= atol + rtol * |b| for all elements, or both are the same infinity. Asynchronous, because it depends on data. Source:
 * NumPy `allclose`, PyTorch `allclose`.
 *
 * @param a, b any shapes that broadcast, any dtypes that meet in one
 * @param options rtol 1e-5, atol 1e-8, equalNaN false
 * @throws ShapeError, DTypeError where they do not meet
 *
 * @example
 * await allClose(tensor([1, 2]), tensor([1, 2.000001])); // true
 * await allClose(tensor([1, 2]), tensor([1, 2.1])); // false
 */
export async function allClose(a: TensorLike, b: TensorLike, options: CloseOptions = {}): Promise<boolean> {
  const tolerances = tolerancesOf('allClose', options);
  const close = compose('allClose', () => keep(all(isClose(a, b, tolerances))));
  try {
    return (await close.item()) === 1;
  } finally {
    close.dispose();
  }
}
