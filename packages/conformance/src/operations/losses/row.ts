/** How a loss with its options and reductions is described, its specs, and what its random calls have in common. */
import type { DType, Tensor } from '@polygrad/core';
import { nd, type NDArray } from '../../oracle/ndarray.ts';
import { type Random, sample, uniform } from '../../oracle/random.ts';
import { average, total } from '../../oracle/sums.ts';
import { drawn, plain } from '../../programs/operands.ts';
import type { Pool } from '../../programs/pool.ts';
import type { Value } from '../../programs/program.ts';
import { floats, type Inputs, type OpSpec, type Options } from '../../spec.ts';

type Draw = (r: Random) => number;
export const any: Draw = uniform(-2, 2);
export const chance: Draw = uniform(0.05, 0.95);

export interface Loss<out N extends number = number> {
  readonly name: string;
  readonly options: readonly Options[];
  draw(r: Random): Inputs<N, NDArray>;
  run(xs: Inputs<N, Tensor>, o: Options): Tensor;
  /** Losses of the elements; with weights where the mean is weighted. */
  losses(xs: Inputs<N, NDArray>, o: Options): NDArray | { readonly losses: NDArray; readonly weights: NDArray };
  readonly of: readonly number[];
  readonly inputDTypes?: Readonly<Record<number, DType>>;
}

/** A loss within a list of others, of so many inputs. */
export const loss = <N extends number>(described: Loss<N>): Loss<N> => described;

export const pairOf =
  (shape: readonly number[], left: Draw = any, right: Draw = any) =>
  (r: Random): [NDArray, NDArray] => [sample(r, shape, left), sample(r, shape, right)];

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
      return nd([], [total(each.data) / xs[0]!.shape[0]!]);
    default:
      return nd([], [total(each.data) / weights]);
  }
}

/** The mean with all options, other reductions with the first and the last. */
export const lossSpec = (loss: Loss): OpSpec => ({
  name: loss.name,
  dtypes: floats,
  ...(loss.inputDTypes ? { inputDTypes: loss.inputDTypes } : {}),
  instances: loss.options.flatMap((options, which) =>
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
});

/** All losses, their sum or their mean. */
export function drawnReduction(pool: Pool): {
  written: { readonly reduction?: string };
  f: (losses: NDArray) => NDArray;
} {
  const reduction = pool.c.pick(['mean', 'sum', 'none']);
  return {
    written: reduction === 'mean' ? {} : { reduction },
    f: (losses) =>
      reduction === 'none' ? losses : nd([], [(reduction === 'sum' ? total : average)([...losses.data])]),
  };
}

/** Another of the same shape and dtype. */
export const mate = (pool: Pool, x: Value): Value =>
  (pool.c.nat(2) === 0
    ? pool.pick((v) => v.dtype === x.dtype && v.shape.join() === x.shape.join() && plain(v))
    : null) ?? drawn(pool, x.dtype, x.shape);
