/** How a loss with its options and reductions is described, and its specs: the mean with all options, other reductions with some. */
import type { DType, Tensor } from '@polygrad/core';
import { type NDArray, nd } from '../../oracle/ndarray.ts';
import { type Random, sample, uniform } from '../../oracle/random.ts';
import type { Options, OpSpec } from '../../spec.ts';
import { total } from '../../oracle/sums.ts';

const floats: readonly DType[] = ['float32', 'float64'];
type Draw = (r: Random) => number;
export const any: Draw = uniform(-2, 2);
export const chance: Draw = uniform(0.05, 0.95);

export interface Loss {
  readonly name: string;
  readonly options: readonly Options[];
  readonly draw: (r: Random) => NDArray[];
  readonly run: (xs: Tensor[], o: Options) => Tensor;
  /** Losses of the elements; with weights where the mean is weighted. */
  readonly losses: (xs: NDArray[], o: Options) => NDArray | { readonly losses: NDArray; readonly weights: NDArray };
  readonly of: readonly number[];
  readonly inputDTypes?: Readonly<Record<number, DType>>;
}

export type Two = readonly [NDArray, NDArray];
export const pairOf =
  (shape: readonly number[], left: Draw = any, right: Draw = any) =>
  (r: Random): NDArray[] => [sample(r, shape, left), sample(r, shape, right)];

function reduced(loss: Loss, xs: NDArray[], o: Options): NDArray {
  const result = loss.losses(xs, o);
  const [each, weights] =
    'losses' in result ? [result.losses, total(result.weights.data)] : [result, result.data.length];
  switch (o.reduction ?? 'mean') {
    case 'none':
      return each;
    case 'sum':
      return nd([], [total(each.data)]);
    case 'batchMean':
      return nd([], [total(each.data) / ((xs[0] as NDArray).shape[0] as number)]);
    default:
      return nd([], [total(each.data) / weights]);
  }
}

export function lossOptionSpecs(losses: readonly Loss[]): OpSpec[] {
  return losses.map((loss) => ({
    name: loss.name,
    dtypes: floats,
    ...(loss.inputDTypes ? { inputDTypes: loss.inputDTypes } : {}),
    instances: loss.options.flatMap((options, which) =>
      // Every set of options with the mean; the other reductions with the first and the last set.
      (options.reduction === undefined && (which === 0 || which === loss.options.length - 1)
        ? ['mean', 'sum', 'none']
        : [options.reduction ?? 'mean']
      ).map((reduction) => ({
        label: JSON.stringify({ ...options, reduction }),
        small: true,
        options: { ...options, reduction },
        draw: loss.draw,
      })),
    ),
    run: loss.run,
    oracle: (xs, o) => reduced(loss, xs, o),
    gradient: { of: loss.of, order: 2 },
  }));
}
