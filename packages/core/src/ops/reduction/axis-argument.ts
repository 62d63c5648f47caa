/** The axis argument of reductions: a number, several, or options - as one record. */
import { normalizeAxes, normalizeAxis } from '@polygrad/compiler/shape/axes';
import { checkNames, type OptionNames } from '@polygrad/compiler/shape/options';
import { isList } from '@polygrad/compiler/shape/shown';
import type { AxisOptions } from '../../tensor/types.ts';

export interface Axes {
  /** Sorted, distinct, non-negative. */
  readonly axes: number[];
  readonly keepDims: boolean;
}

/** Reads an axis argument for a tensor of `rank` axes; `names` are those of all options. Throws ShapeError in the name of `op`. */
export function readAxes<Options extends AxisOptions, const Text extends string>(
  op: string,
  argument: number | readonly number[] | Options | undefined,
  rank: number,
  names?: OptionNames<Options, Text>,
): Axes {
  if (typeof argument === 'object' && argument !== null && !isList(argument)) {
    checkNames<unknown, string>(op, argument, names ?? 'axis keepDims?');
    const { axis, keepDims } = argument as { axis?: number | readonly number[]; keepDims?: boolean };
    return { axes: normalizeAxes(op, axis, rank), keepDims: keepDims ?? false };
  }
  return { axes: normalizeAxes(op, argument as number | readonly number[] | undefined, rank), keepDims: false };
}

/** Reads an argument that names one axis, by itself or as `{ axis }`; `names` are those of all options. */
export function readAxis<Options extends { readonly axis?: number | undefined }, const Text extends string>(
  op: string,
  argument: number | Options | undefined,
  fallback: number,
  rank: number,
  names?: OptionNames<Options, Text>,
): number {
  if (typeof argument !== 'number') checkNames<unknown, string>(op, argument, names ?? 'axis');
  const axis = typeof argument === 'number' ? argument : (argument?.axis ?? fallback);
  // A scalar counts as one element along one axis.
  if (rank === 0 && (axis === 0 || axis === -1)) return 0;
  return normalizeAxis(op, axis, rank);
}
